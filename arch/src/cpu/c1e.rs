//! C1E of AMD's old processors.

use crate::msr::{self, Msr};

/// AMD: interrupt pending and CMP-halt.
const CMP_HALT: Msr = Msr(0xc001_0055);

/// Where all cores halt, C1E stops the timers of their APICs too, and the firmware, which halts for its timer, would never go on
/// (erratum 400; BKDG of families 0FH to 11H, MSRC001_0055). So the processor keeps to C1.
///
/// # Safety
/// Ring 0 on an AMD processor, interrupt table loaded.
pub(super) unsafe fn switch_off(family: u32) {
    // SAFETY: guarded; the bits have no other effect.
    unsafe {
        let found = msr::try_read(CMP_HALT).ok();
        if let Some(value) = found.and_then(|found| without_c1e(family, found)) {
            let _ = msr::try_write(CMP_HALT, value);
        }
    }
}

/// What the register is to hold in place of `found`, if that starts C1E. Later families use the bits for nothing.
fn without_c1e(family: u32, found: u64) -> Option<u64> {
    /// SmiOnCmpHalt and C1eOnCmpHalt.
    const ON_CMP_HALT: u64 = 0b11 << 27;
    let starts = matches!(family, 0xf..=0x11) && found & ON_CMP_HALT != 0;
    starts.then_some(found & !ON_CMP_HALT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_cores_of_family_0fh_to_11h_that_all_halt_keep_their_timers() {
        // C1eOnCmpHalt on K10, SmiOnCmpHalt on K8, and what else firmware has there.
        assert_eq!(without_c1e(0x10, 0x3815_0814), Some(0x2015_0814));
        assert_eq!(without_c1e(0xf, 0x0815_0814), Some(0x0015_0814));
        assert_eq!(without_c1e(0x10, 0x2015_0814), None);
        assert_eq!(without_c1e(0x17, 0x1800_0000), None);
    }
}
