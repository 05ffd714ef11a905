//! The mode of the local APIC: the one that was chosen, and the way back to it.

use super::registers::Registers;
use super::{APIC_ENABLE, Mode, Register, SVR_ENABLE, X2APIC_ENABLE, lvt};
use crate::msr;
use crate::state;
use crate::vectors::SPURIOUS_VECTOR;

/// Bits of IA32_APIC_BASE that say the mode.
pub(super) const BITS: u64 = X2APIC_ENABLE | APIC_ENABLE;

/// What is written to IA32_APIC_BASE, one after the other, to get from `base` to `mode`: through the disabled state, which each
/// mode can go to, and from there through xAPIC mode. Any shorter way to x2APIC mode raises #GP, and so does one from it to xAPIC
/// mode (SDM vol. 3, 10.12.5).
fn steps(base: u64, mode: Mode) -> [u64; 3] {
    [0, APIC_ENABLE, mode.bits()].map(|bits| base & !BITS | bits)
}

/// Puts the APIC back in `mode`, which foreign code has changed, and says that it was put back. Disabling has reset the APIC's
/// registers, and it is enabled by software again, because every LVT entry is masked without that (SDM vol. 3, 10.4.7.2). What
/// stood in the entries is for those who compare or use them. Returns its registers; `None` if the processor did not take it.
///
/// # Safety
/// Ring 0, interrupt table loaded, physical memory mapped, `base` the value of IA32_APIC_BASE, and `mode` one that the processor has.
pub(super) unsafe fn put_back(base: u64, mode: Mode) -> Option<Registers> {
    // SAFETY: the processor has the register; a value that it does not take changes nothing.
    let takes = |value| unsafe { msr::try_write(msr::IA32_APIC_BASE, value) }.is_ok();
    if !steps(base, mode).into_iter().all(takes) {
        return None;
    }
    // SAFETY: it is in the mode now; the caller promises the rest.
    let mut registers = unsafe { Registers::new(mode, base) };
    registers.write(Register::SpuriousVector, SVR_ENABLE | u32::from(SPURIOUS_VECTOR));
    lvt::keep_thermal(&mut registers);
    state::note_apic_base();
    Some(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a write that changes the mode bits raises no #GP: SDM vol. 3, 10.12.5.
    fn is_legal(from: u64, to: u64) -> bool {
        let [off, xapic, x2apic] = [0, APIC_ENABLE, APIC_ENABLE | X2APIC_ENABLE];
        let ways = [(off, xapic), (xapic, off), (xapic, x2apic), (x2apic, off)];
        from == to && from != X2APIC_ENABLE || ways.contains(&(from, to))
    }

    #[test]
    fn x1_the_apic_is_put_back_in_its_mode_by_steps_that_the_processor_takes() {
        /// The page, and the boot processor's bit.
        const REST: u64 = 0xfee0_0100;
        for mode in [Mode::XApic, Mode::X2Apic] {
            for found in [0, APIC_ENABLE, APIC_ENABLE | X2APIC_ENABLE] {
                let mut now = found;
                for step in steps(REST | found, mode) {
                    assert!(is_legal(now, step & BITS), "{mode:?}: {now:#x} to {step:#x}");
                    assert_eq!(step & !BITS, REST);
                    now = step & BITS;
                }
                assert_eq!(now, mode.bits(), "{mode:?} from {found:#x}");
            }
        }
        assert!(!is_legal(0, Mode::X2Apic.bits()), "what was written before");
    }
}
