//! The local vector table: all of it is masked, but for what belongs to the machine's firmware.

use super::registers::Registers;
use super::{LVT_MASK, Register};
use core::sync::atomic::{AtomicU32, Ordering};

/// The boot processor's entry of the thermal sensor, if it raises SMIs; else 0.
static THERMAL: AtomicU32 = AtomicU32::new(0);

/// Each entry, by its index in the order in which the version register counts them.
static ENTRIES: [Register; 7] = [
    Register::LvtTimer,
    Register::LvtLint0,
    Register::LvtLint1,
    Register::LvtError,
    Register::LvtPmc,
    Register::LvtThermal,
    Register::LvtCmci,
];

/// Those that the APIC has: the version register's bits 23:16 are the index of the last one (SDM vol. 3, 10.4.8).
fn entries(registers: &Registers) -> &'static [Register] {
    let last = registers.read(Register::Version) >> 16 & 0xff;
    &ENTRIES[..ENTRIES.len().min(last as usize + 1)]
}

/// Bits 10:8, the delivery mode, are 010: SMI (SDM vol. 3, 10.5.1).
const fn is_smi(entry: u32) -> bool {
    entry >> 8 & 0b111 == 0b010
}

/// Whether `entry`, in which `found` stands, is masked. The sensor and corrected machine checks may have the machine's firmware
/// as their handler, by SMIs: it relies on them (Linux, `intel_init_thermal`).
fn is_masked(entry: Register, found: u32) -> bool {
    !(matches!(entry, Register::LvtThermal | Register::LvtCmci) && is_smi(found))
}

pub(super) fn mask_all(registers: &mut Registers) {
    for &entry in entries(registers) {
        if is_masked(entry, registers.read(entry)) {
            registers.write(entry, LVT_MASK);
        }
    }
}

/// Gives this processor the boot processor's entry of the thermal sensor if that raises SMIs and its own does not: INIT has
/// cleared it, and the machine's firmware made it the same on every one (Linux, `intel_init_thermal`). The APIC is enabled by
/// software: no mask is taken off else.
pub(super) fn keep_thermal(registers: &mut Registers) {
    if !entries(registers).contains(&Register::LvtThermal) {
        return;
    }
    let found = registers.read(Register::LvtThermal);
    if is_smi(found) {
        THERMAL.store(found, Ordering::Relaxed);
    } else if let Some(entry) = Some(THERMAL.load(Ordering::Relaxed)).filter(|&one| is_smi(one)) {
        registers.write(Register::LvtThermal, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_entries_that_raise_smis_for_the_machines_firmware_are_left_as_they_are() {
        let [fixed, smi, nmi] = [0xfa, 0b010 << 8, 0b100 << 8];
        for entry in [Register::LvtThermal, Register::LvtCmci] {
            assert!(!is_masked(entry, smi) && !is_masked(entry, smi | LVT_MASK), "{entry:?}");
            let others = [fixed, nmi, LVT_MASK, 0b110 << 8 | 2];
            assert!(others.iter().all(|&found| is_masked(entry, found)), "{entry:?}");
        }
        // The PMU and the wires are the kernel's, whoever had them.
        for entry in [Register::LvtPmc, Register::LvtLint0, Register::LvtLint1] {
            assert!(is_masked(entry, smi), "{entry:?}");
        }
    }
}
