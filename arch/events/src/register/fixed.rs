//! One counter's field in `IA32_FIXED_CTR_CTRL`. Intel SDM 3B, "Architectural
//! Performance Monitoring", version 2.

/// The four bits of one fixed counter, bits 4i+3:4i, and two more above bit 31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FixedControl {
    /// Bit 0 of the field: count at CPL 0.
    pub kernel: bool,
    /// Bit 1: count at CPL above 0.
    pub user: bool,
    /// Bit 2: AnyThread, versions 3 and 4.
    pub any_thread: bool,
    /// Bit 3: interrupt on overflow.
    pub interrupt: bool,
}

impl FixedControl {
    /// The field, 0 to 15.
    #[must_use]
    pub fn to_nibble(self) -> u8 {
        u8::from(self.kernel)
            | u8::from(self.user) << 1
            | u8::from(self.any_thread) << 2
            | u8::from(self.interrupt) << 3
    }

    /// Reads a field; bits above 3 are ignored.
    #[must_use]
    pub fn from_nibble(nibble: u8) -> Self {
        Self {
            kernel: nibble & 1 != 0,
            user: nibble & 2 != 0,
            any_thread: nibble & 4 != 0,
            interrupt: nibble & 8 != 0,
        }
    }

    /// The field at its place in the register.
    #[must_use]
    pub fn to_bits(self, index: u8) -> u64 {
        u64::from(self.to_nibble()).checked_shl(4 * u32::from(index)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_comes_back_and_stands_at_its_place() {
        for nibble in 0..16 {
            assert_eq!(FixedControl::from_nibble(nibble).to_nibble(), nibble);
        }
        // kvm-unit-tests and the kernel: OS and USR of fixed counter 1.
        assert_eq!(FixedControl::from_nibble(3).to_bits(1), 0x30);
        assert_eq!(FixedControl::from_nibble(0xf).to_bits(200), 0);
    }
}
