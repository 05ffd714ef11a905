//! Instructions that are allowed to fault.
//!
//! `fixup!("2b", "3b")` inside an `asm!` block notes that a fault at local label 2 continues at label 3.
//! The notes are pairs of distances in a section of their own, so that they need no relocation.

use crate::trap::TrapFrame;

/// One note: distances from the field's own address.
#[repr(C)]
struct Entry {
    faulting: i32,
    recovery: i32,
}

macro_rules! fixup {
    ($faulting:literal, $recovery:literal) => {
        concat!(
            ".pushsection barecount_fixup, \"aR\", @progbits\n",
            ".balign 4\n",
            ".long ",
            $faulting,
            " - .\n",
            ".long ",
            $recovery,
            " - .\n",
            ".popsection"
        )
    };
}
pub(crate) use fixup;

unsafe extern "C" {
    // The linker makes these for every section whose name is a C identifier.
    static __start_barecount_fixup: Entry;
    static __stop_barecount_fixup: Entry;
}

/// Sends the frame to its recovery address, if its instruction has one.
pub(super) fn recover(frame: &mut TrapFrame) -> bool {
    let (start, stop) = (&raw const __start_barecount_fixup, &raw const __stop_barecount_fixup);
    let count = (stop as usize - start as usize) / size_of::<Entry>();
    for index in 0..count {
        let entry = start.wrapping_add(index);
        // SAFETY: `entry` lies between the section's start and stop, which the linker provides.
        let (faulting, recovery) = unsafe {
            let Entry { faulting, recovery } = &*entry;
            (target(faulting), target(recovery))
        };
        if frame.rip == faulting {
            frame.rip = recovery;
            return true;
        }
    }
    false
}

/// The address that a field points to.
fn target(field: &i32) -> u64 {
    (core::ptr::from_ref(field) as u64).wrapping_add_signed(i64::from(*field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::arch::asm;

    #[test]
    fn a_noted_instruction_continues_at_its_recovery_and_others_do_not() {
        let (faulting, recovery): (u64, u64);
        // SAFETY: takes two addresses; the noted instruction is a nop and runs without fault.
        unsafe {
            asm!(
                "lea {0}, [rip + 2f]", "lea {1}, [rip + 3f]", "2: nop", "3:", fixup!("2b", "3b"),
                out(reg) faulting, out(reg) recovery,
            );
        }
        let mut frame = TrapFrame { rip: faulting, ..TrapFrame::default() };
        assert!(recover(&mut frame));
        assert_eq!(frame.rip, recovery);
        assert!(!recover(&mut frame));
        assert_eq!(frame.rip, recovery);
    }
}
