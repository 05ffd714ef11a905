//! The local APIC in x2APIC mode: its registers as model-specific ones, upon the page that QEMU's has (SDM vol. 3, 11.12; APM vol. 2,
//! 16.9 to 16.12).
//!
//! QEMU has the mode only where its clock does not count instructions. What the guest reads and writes becomes an access to the page, or
//! to the extended registers.

use crate::extended_apic::ExtendedApic;

/// IA32_APIC_BASE.
pub const BASE: u32 = 0x1b;
/// The registers of the mode: the first and the last one.
pub const REGISTERS: (u32, u32) = (0x800, 0x8ff);
/// IA32_APIC_BASE bit 11: the APIC is on; bit 10: in x2APIC mode.
const ENABLE: u64 = 1 << 11;
const X2APIC: u64 = 1 << 10;
/// Bit 8: the boot processor, read-only.
const BOOT: u64 = 1 << 8;
/// All that the register has: the page too, below 4 GiB as QEMU's. Of other bits a write raises #GP, in QEMU as well.
const KNOWN: u64 = 0xffff_f000 | ENABLE | X2APIC | BOOT;

/// Offsets in the page of registers that are only read, and of those that are only written.
pub const ID: u64 = 0x20;
/// The logical id.
pub const LOGICAL: u64 = 0xd0;
const END_OF_INTERRUPT: u64 = 0xb0;
/// The register of commands.
pub const COMMAND: u64 = 0x300;
/// In this mode alone: SELF IPI (MSR 0x83F).
const SELF: u64 = 0x3f0;
/// Interrupt command: fixed, to this processor.
const TO_SELF: u32 = 0b01 << 18;

/// The mode of one processor.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct X2Apic {
    /// The mode can be had.
    offered: bool,
    /// It is chosen.
    on: bool,
}

/// What a write to a register does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Write {
    /// A write to the page, at this offset.
    Page(u64, u32),
    /// The same to the register of commands: destination and command.
    Command(u32, u32),
}

impl X2Apic {
    /// After RESET, with the mode or without.
    #[must_use]
    pub const fn new(offered: bool) -> Self {
        Self { offered, on: false }
    }

    /// Whether the mode can be had.
    #[must_use]
    pub const fn is_offered(&self) -> bool {
        self.offered
    }

    /// Whether `msr` is dealt with here.
    #[must_use]
    pub const fn has(&self, msr: u32) -> bool {
        self.offered && (msr == BASE || msr >= REGISTERS.0 && msr <= REGISTERS.1)
    }

    /// What the guest reads of IA32_APIC_BASE.
    #[must_use]
    pub const fn base(&self, processors: u64) -> u64 {
        processors | if self.on { X2APIC } else { 0 }
    }

    /// Writes IA32_APIC_BASE, which holds `old` for the processor. What the processor's is to be then; `None`: #GP.
    ///
    /// To the mode only an APIC goes that is on, and out of it only one that is switched off (SDM vol. 3, figure 11-31).
    pub const fn set_base(&mut self, old: u64, new: u64) -> Option<u64> {
        let (was, wants) = (self.on, new & X2APIC != 0);
        let (is_on, stays) = (old & ENABLE != 0, new & ENABLE != 0);
        let allowed = match (was, wants) {
            (false, true) => is_on && stays,
            (true, true) => stays,
            (true, false) => !stays,
            (false, false) => true,
        };
        if !allowed || new & !KNOWN != 0 {
            return None;
        }
        self.on = wants;
        Some(new & !(X2APIC | BOOT) | old & BOOT)
    }

    /// Where the page has what `msr` reads; `None`: #GP.
    #[must_use]
    pub const fn read(&self, msr: u32) -> Option<u64> {
        match offset(msr) {
            Some(END_OF_INTERRUPT | SELF) | None => None,
            Some(_) if !self.on => None,
            readable => readable,
        }
    }

    /// What a register reads, of which the page has `low`; the upper half of the register of commands is `high`.
    #[must_use]
    pub const fn value(offset: u64, low: u32, high: u32) -> u64 {
        // Of QEMU's xAPIC the id has eight bits, and the logical one too.
        match offset {
            ID => (low >> 24) as u64,
            // The cluster, and a bit for each processor in it, out of the id: SDM vol. 3, 11.12.10.2.
            LOGICAL => (low >> 28 << 16 | 1 << (low >> 24 & 0xf)) as u64,
            COMMAND => ((high >> 24) as u64) << 32 | low as u64,
            _ => low as u64,
        }
    }

    /// What a write does; `None`: #GP.
    #[must_use]
    pub const fn write(&self, msr: u32, value: u64) -> Option<Write> {
        let (low, high) = (value as u32, (value >> 32) as u32);
        let Some(offset) = offset(msr) else { return None };
        if !self.on || is_read_only(offset) {
            return None;
        }
        match offset {
            // The page's destination has eight bits; 0xFFFFFFFF is all of them.
            COMMAND => Some(Write::Command(high << 24, low)),
            _ if high != 0 => None,
            SELF if low > 0xff => None,
            SELF => Some(Write::Command(0, TO_SELF | low)),
            END_OF_INTERRUPT if low != 0 => None,
            _ => Some(Write::Page(offset, low)),
        }
    }
}

/// The register at this offset in the page that `msr` is: those that the mode has (SDM vol. 3, table 11-6), and AMD's extended ones.
const fn offset(msr: u32) -> Option<u64> {
    if msr < REGISTERS.0 || msr > REGISTERS.1 {
        return None;
    }
    let offset = ((msr - REGISTERS.0) as u64) << 4;
    match offset {
        0x20 | 0x30 | 0x80 | 0xa0..=0xb0 | 0xd0 | 0xf0 | 0x100..=0x280 => Some(offset),
        0x2f0..=0x300 | 0x320..=0x390 | 0x3e0 | SELF => Some(offset),
        _ if ExtendedApic::has(offset) => Some(offset),
        _ => None,
    }
}

/// Id, version, priority of the processor, logical id; in service, trigger mode, requested; the current count; the extended features.
const fn is_read_only(offset: u64) -> bool {
    matches!(offset, ID | 0x30 | 0xa0 | LOGICAL | 0x100..=0x270 | 0x390 | 0x400)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 0xfee0_0000;

    fn on() -> X2Apic {
        let mut apic = X2Apic::new(true);
        assert_eq!(
            apic.set_base(PAGE | ENABLE | BOOT, PAGE | ENABLE | X2APIC),
            Some(PAGE | ENABLE | BOOT)
        );
        apic
    }

    #[test]
    fn the_mode_is_entered_from_an_apic_that_is_on_and_left_by_switching_it_off() {
        let mut apic = X2Apic::new(true);
        assert!(apic.has(0x1b) && apic.has(0x800) && apic.has(0x8ff) && !apic.has(0x900));
        assert!(!X2Apic::new(false).has(0x1b));
        assert_eq!(apic.set_base(PAGE, PAGE | ENABLE | X2APIC), None, "it was off");
        assert_eq!(apic.set_base(PAGE | ENABLE, PAGE | X2APIC), None, "not without the APIC");
        assert_eq!(apic.set_base(PAGE | ENABLE, PAGE | ENABLE | 1), None, "a reserved bit");
        assert_eq!(apic.base(PAGE | ENABLE), PAGE | ENABLE);
        let mut apic = on();
        assert_eq!(apic.base(PAGE | ENABLE), PAGE | ENABLE | X2APIC);
        assert_eq!(apic.set_base(PAGE | ENABLE, PAGE | ENABLE), None, "not back to the page");
        assert_eq!(apic.set_base(PAGE | ENABLE, PAGE), Some(PAGE));
        assert_eq!(apic.base(PAGE), PAGE);
    }

    #[test]
    fn registers_are_those_of_the_manual() {
        let apic = on();
        assert_eq!(apic.read(0x802), Some(0x20));
        assert_eq!(apic.read(0x834), Some(0x340));
        assert_eq!(apic.read(0x82f), Some(0x2f0));
        // AMD's extended ones: features, control and four entries.
        assert_eq!(
            [0x840, 0x841, 0x850, 0x853].map(|msr| apic.read(msr)),
            [0x400, 0x410, 0x500, 0x530].map(Some)
        );
        // There is no arbitration priority, no destination format, and the upper half of commands is none of its own.
        for absent in [0x800, 0x809, 0x80c, 0x80e, 0x831, 0x83a, 0x842, 0x854, 0x8ff] {
            assert_eq!((apic.read(absent), apic.write(absent, 0)), (None, None), "{absent:#x}");
        }
        // Only written, and only read.
        assert_eq!((apic.read(0x80b), apic.read(0x83f)), (None, None));
        for fixed in [0x802, 0x803, 0x80a, 0x80d, 0x810, 0x827, 0x839, 0x840] {
            assert_eq!(apic.write(fixed, 0), None, "{fixed:#x}");
        }
        let off = X2Apic::new(true);
        assert_eq!((off.read(0x802), off.write(0x80b, 0)), (None, None), "not in the other mode");
    }

    #[test]
    fn writes_become_those_of_the_page() {
        let apic = on();
        assert_eq!(apic.write(0x850, 0x400), Some(Write::Page(0x500, 0x400)));
        assert_eq!(apic.write(0x850, 1 << 32), None);
        assert_eq!(apic.write(0x80b, 0), Some(Write::Page(0xb0, 0)));
        assert_eq!(apic.write(0x80b, 1), None);
        assert_eq!(apic.write(0x830, 3 << 32 | 0x4400), Some(Write::Command(3 << 24, 0x4400)));
        assert_eq!(apic.write(0x830, 0xffff_ffff << 32), Some(Write::Command(0xff << 24, 0)));
        assert_eq!(apic.write(0x83f, 0xe2), Some(Write::Command(0, 1 << 18 | 0xe2)));
        assert_eq!(apic.write(0x83f, 0x100), None);
    }

    #[test]
    fn values_have_the_width_of_the_mode() {
        assert_eq!(X2Apic::value(0x20, 5 << 24, 0), 5);
        assert_eq!(X2Apic::value(0xd0, 0x12 << 24, 0), 0x1_0004);
        assert_eq!(X2Apic::value(0x300, 0xc4400, 7 << 24), 7 << 32 | 0xc4400);
        assert_eq!(X2Apic::value(0x340, 0x1_0000, 9), 0x1_0000);
    }
}
