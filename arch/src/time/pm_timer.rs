//! The ACPI power management timer: ACPI specification, 4.8.3.3.

use x86_64::instructions::port::Port;

/// Its rate in Hz.
pub const HZ: u64 = 3_579_545;

/// The timer's register.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PmTimer {
    /// I/O port, from the FADT.
    pub port: u16,
    /// Whether all 32 bits count, or 24.
    pub wide: bool,
}

impl PmTimer {
    /// Reads the count.
    #[must_use]
    pub fn read(&self) -> u32 {
        // SAFETY: the FADT says that the port is the timer's; reading has no side effect.
        unsafe { Port::new(self.port).read() }
    }

    /// Ticks from `start` to `end`, one wrap at most between them.
    #[must_use]
    pub fn between(&self, start: u32, end: u32) -> u64 {
        let mask = if self.wide { u32::MAX } else { 0xff_ffff };
        u64::from(end.wrapping_sub(start) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::PmTimer;

    #[test]
    fn both_widths_wrap() {
        let wide = PmTimer { port: 0, wide: true };
        assert_eq!(wide.between(0xffff_fff0, 0x10), 0x20);
        let narrow = PmTimer { port: 0, wide: false };
        assert_eq!(narrow.between(0xff_fff0, 0x10), 0x20);
        assert_eq!(narrow.between(5, 5), 0);
    }
}
