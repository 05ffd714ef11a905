//! What VMRUN refuses: APM vol. 2, 15.5.1, "Canonicalization and Consistency Checks".

use super::permissions::{IO_BYTES, MSR_BYTES};
use super::{Control, State};
use crate::control;
use crate::vmcb::{Event, Intercepts};
use thiserror::Error;

/// EFER.SVME.
const SVME: u64 = 1 << 12;
/// EFER: LME, LMA. Without long mode neither may be set; every processor that is presented has it.
const LMA: u64 = 1 << 10;
/// EFER: SCE, LME, LMA, NXE, SVME, FFXSR.
const EFER_BITS: u64 = 1 | 1 << 8 | LMA | 1 << 11 | SVME | 1 << 14;

/// Why a block is refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refused {
    /// EFER.SVME is clear.
    #[error("EFER.SVME is clear")]
    NotSvm,
    /// EFER has reserved bits.
    #[error("EFER has reserved bits")]
    Efer,
    /// CR0, CR3, CR4, EFER or CS do not go together.
    #[error("CR0, CR3, CR4, EFER or CS")]
    Registers,
    /// The upper half of DR6 or DR7 is not zero.
    #[error("DR6 or DR7")]
    Debug,
    /// VMRUN is not intercepted.
    #[error("VMRUN is not intercepted")]
    Vmrun,
    /// The ASID is zero, which is the host's.
    #[error("the ASID is zero")]
    Asid,
    /// A permission map is beyond the physical addresses.
    #[error("a permission map is beyond the physical addresses")]
    Maps,
    /// The nested page tables lie there.
    #[error("the nested page tables are beyond the physical addresses")]
    Tables,
    /// What is to be injected cannot be.
    #[error("an injected event that does not exist")]
    Event,
}

/// Whether VMRUN takes the block.
///
/// # Errors
/// The first reason why not.
pub fn check(
    control: &Control,
    state: &State,
    features: &control::Features,
) -> Result<(), Refused> {
    let physical = 1u64 << features.physical_bits;
    let ends_beyond = |start: u64, bytes: usize| start >= physical - bytes as u64;
    let registers = control::Control {
        cr0: state.cr0,
        cr3: state.cr3,
        cr4: state.cr4,
        efer: state.efer | LMA,
        cs: state.cs.attributes,
    };
    if state.efer & SVME == 0 {
        return Err(Refused::NotSvm);
    }
    if state.efer & !EFER_BITS != 0 {
        return Err(Refused::Efer);
    }
    if !registers.may_enter(features) {
        return Err(Refused::Registers);
    }
    if (state.dr6 | state.dr7) >> 32 != 0 {
        return Err(Refused::Debug);
    }
    if !control.intercepts.contains(Intercepts::VMRUN) {
        return Err(Refused::Vmrun);
    }
    if control.asid == 0 {
        return Err(Refused::Asid);
    }
    if ends_beyond(control.msr_permissions, MSR_BYTES)
        || ends_beyond(control.io_permissions, IO_BYTES)
    {
        return Err(Refused::Maps);
    }
    if control.nested_cr3.is_some_and(|tables| tables >= physical) {
        return Err(Refused::Tables);
    }
    Event::injected(control.event).map(|_| ()).map_err(|_| Refused::Event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmcb::Vmcb;

    /// CR4: PAE. CR0: PG, ET, PE.
    const PAE: u64 = 1 << 5;
    const CR0: u64 = 1 << 31 | 0x11;
    const FEATURES: control::Features = control::Features { cr4: 0x7ff, physical_bits: 40 };

    fn good() -> Vmcb {
        let mut block = Vmcb::zeroed();
        block.set_intercepts(Intercepts::VMRUN);
        block.asid = 1;
        (block.cr0, block.cr3, block.cr4) = (CR0, 0x1000, PAE);
        block.efer = SVME | LMA | 1 << 8;
        block.cs.attributes = 0xa9b;
        block
    }

    fn of(change: impl FnOnce(&mut Vmcb)) -> Result<(), Refused> {
        let mut block = good();
        change(&mut block);
        check(&Control::of(&block), &State::of(&block), &FEATURES)
    }

    #[test]
    fn a_64_bit_guest_and_one_in_real_mode_are_taken() {
        assert_eq!(of(|_| ()), Ok(()));
        let real = of(|block| {
            (block.cr0, block.cr4, block.efer) = (1 << 4, 0, SVME);
            block.cs.attributes = 0x9b;
        });
        assert_eq!(real, Ok(()));
        // Real mode under nested paging with CR0.CD and NW, as after RESET.
        assert_eq!(of(|block| (block.cr0, block.nested_control) = (0x6000_0010, 1)), Ok(()));
    }

    #[test]
    fn each_inconsistency_is_refused() {
        type Change = fn(&mut Vmcb);
        let refused: [(Refused, Change); 18] = [
            (Refused::NotSvm, |block| block.efer &= !SVME),
            (Refused::Efer, |block| block.efer |= 1 << 2),
            (Refused::Efer, |block| block.efer |= 1 << 40),
            (Refused::Registers, |block| block.cr0 |= 1 << 29),
            (Refused::Registers, |block| block.cr0 |= 1 << 32),
            (Refused::Registers, |block| block.cr3 |= 1 << 40),
            (Refused::Registers, |block| block.cr4 |= 1 << 12),
            (Refused::Registers, |block| block.cr4 &= !PAE),
            (Refused::Registers, |block| block.cr0 &= !1),
            (Refused::Registers, |block| block.cs.attributes |= 1 << 10),
            (Refused::Debug, |block| block.dr6 |= 1 << 32),
            (Refused::Debug, |block| block.dr7 |= 1 << 63),
            (Refused::Vmrun, |block| {
                block.set_intercepts(Intercepts::all().difference(Intercepts::VMRUN));
            }),
            (Refused::Asid, |block| block.asid = 0),
            (Refused::Maps, |block| block.msr_permissions = (1 << 40) - 0x1000),
            (Refused::Maps, |block| block.io_permissions = 1 << 45),
            (Refused::Tables, |block| (block.nested_control, block.nested_cr3) = (1, 1 << 40)),
            (Refused::Event, |block| block.event = 1 << 31 | 1 << 8),
        ];
        for (index, (expected, change)) in refused.into_iter().enumerate() {
            assert_eq!(of(change), Err(expected), "{index}");
        }
    }

    #[test]
    fn what_is_switched_off_is_not_looked_at() {
        assert_eq!(of(|block| block.nested_cr3 = 1 << 45), Ok(()));
        assert_eq!(of(|block| block.event = 0x7fff_ffff), Ok(()));
    }
}
