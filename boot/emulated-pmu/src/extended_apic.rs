//! AMD's extended registers of the local APIC, by their offsets in its page: APM vol. 2, 16.7; family 10h BKDG, APIC400 to
//! APIC530. Specific end of interrupt (420) and interrupt enables (480 to 4F0) are not there, as the feature register says.

/// Features, read-only: the number of entries in bits 23:16.
const FEATURES: u64 = 0x400;
/// Control: nothing can be enabled.
const CONTROL: u64 = 0x410;
/// Entries of the extended local vector table, 0x10 apart.
const FIRST_ENTRY: u64 = 0x500;
const ENTRIES: usize = 4;
/// Version: the extended registers are there.
const VERSION: u64 = 0x30;
const IS_EXTENDED: u32 = 1 << 31;
/// Vector, delivery mode and mask.
const WRITABLE: u32 = 0xff | 0b111 << 8 | MASKED;
const MASKED: u32 = 1 << 16;

/// The registers of one processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExtendedApic {
    entries: [u32; ENTRIES],
}

impl ExtendedApic {
    /// After RESET: every entry is masked.
    pub const RESET: Self = Self { entries: [MASKED; ENTRIES] };

    /// Whether `register` is one of these.
    #[must_use]
    pub const fn has(register: u64) -> bool {
        matches!(register, FEATURES | CONTROL) || number(register).is_some()
    }

    /// What `register` reads, if `plain` is what the local APIC without them reads there.
    #[must_use]
    pub fn read(&self, register: u64, plain: impl FnOnce() -> u32) -> u32 {
        match (register, number(register)) {
            (FEATURES, _) => (ENTRIES as u32) << 16,
            (CONTROL, _) => 0,
            (VERSION, _) => plain() | IS_EXTENDED,
            (_, Some(number)) => self.entries[number],
            _ => plain(),
        }
    }

    /// A write. False if it is none of these registers.
    pub const fn write(&mut self, register: u64, value: u32) -> bool {
        if let Some(number) = number(register) {
            self.entries[number] = value & WRITABLE;
        }
        Self::has(register)
    }

    /// An entry, if it is there.
    #[must_use]
    pub fn entry(&self, number: usize) -> Option<u32> {
        self.entries.get(number).copied()
    }
}

/// Which entry a register is.
const fn number(register: u64) -> Option<usize> {
    const LAST: u64 = FIRST_ENTRY + 0x10 * (ENTRIES as u64 - 1);
    match register {
        FIRST_ENTRY..=LAST if register.is_multiple_of(0x10) => {
            Some(((register - FIRST_ENTRY) / 0x10) as usize)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_entries_begin_masked_and_hold_vector_mode_and_mask() {
        let mut apic = ExtendedApic::RESET;
        let none = || panic!("the APIC has no such register");
        assert_eq!(apic.read(0x400, none), 4 << 16);
        for register in [0x500, 0x510, 0x520, 0x530] {
            assert_eq!(apic.read(register, none), 0x1_0000);
            assert!(apic.write(register, 0xffff_ffff));
            assert_eq!(apic.read(register, none), 0x1_07ff);
        }
        assert!(apic.write(0x510, 0x400));
        assert_eq!(
            (apic.entry(1), apic.entry(3), apic.entry(4)),
            (Some(0x400), Some(0x1_07ff), None)
        );
    }

    #[test]
    fn features_and_control_cannot_be_changed() {
        let mut apic = ExtendedApic::RESET;
        assert!(apic.write(0x400, 0) && apic.write(0x410, u32::MAX));
        assert_eq!(apic.read(0x400, || 1), 4 << 16);
        assert_eq!(apic.read(0x410, || 1), 0);
    }

    #[test]
    fn the_others_are_the_apics() {
        let mut apic = ExtendedApic::RESET;
        for register in [0x20, 0x340, 0x3f0, 0x420, 0x480, 0x4f0, 0x504, 0x540] {
            assert!(!ExtendedApic::has(register) && !apic.write(register, 0), "{register:#x}");
            assert_eq!(apic.read(register, || 0x55), 0x55);
        }
        assert_eq!(apic.read(0x30, || 0x0005_0014), 0x8005_0014, "the version says so");
        assert_eq!(apic, ExtendedApic::RESET);
    }
}
