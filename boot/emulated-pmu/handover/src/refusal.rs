//! Why the hypervisor does not start. The guest then boots without a PMU.

use strum::{EnumCount, VariantArray};
use thiserror::Error;

/// Why the hypervisor does not start.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq, EnumCount, VariantArray)]
#[repr(u64)]
pub enum Refusal {
    /// Another version of the hand-over.
    #[error("the loader and the hypervisor are of different versions")]
    Version = 1,
    /// The options name no model, or an unknown one.
    #[error("the options name no known PMU model")]
    Options = 2,
    /// CPUID 0x80000001 ECX bit 2 is clear.
    #[error(
        "this processor has no SVM (under KVM it usually has not; QEMU's TCG has it on -cpu max)"
    )]
    NoSvm = 3,
    /// VM_CR forbids it, or EFER does not take the bit.
    #[error("SVM is switched off on this processor")]
    SvmDisabled = 4,
    /// CPUID 0x8000000A EDX bit 0 is clear.
    #[error("SVM has no nested paging here")]
    NoNestedPaging = 5,
    /// The TSC does not advance by the same power of two for each instruction.
    #[error("the TSC does not count instructions; start QEMU with -icount shift=N,sleep=off")]
    NoIcount = 6,
    /// The options say another shift than the machine has.
    #[error("QEMU's icount shift differs from the options")]
    WrongShift = 7,
    /// No HPET at its usual place.
    #[error("there is no HPET")]
    NoHpet = 8,
    /// The HPET cannot send messages.
    #[error("the HPET cannot send message interrupts; start QEMU with -global hpet.msi=on")]
    NoHpetMsi = 9,
    /// The calibration guest did not behave as expected.
    #[error("the machine's accounting of instructions is not understood (another QEMU version?)")]
    Calibration = 10,
    /// The local APIC is off or in a mode that cannot be used.
    #[error("the local APIC is not usable")]
    NoApic = 11,
    /// The file is not a hypervisor, or does not fit into the memory for it.
    #[error("the hypervisor's file is damaged")]
    Image = 12,
    /// No memory to put it into.
    #[error("there is no memory for the hypervisor")]
    NoMemory = 13,
    /// Each processor needs one of the HPET's timers.
    #[error(
        "the HPET has too few timers for the processors; start QEMU with -global hpet.timers=N, two more than processors"
    )]
    NoTimer = 14,
    /// What the host tool put into the file is not a processor that can be presented.
    #[error("the recorded processor in the hypervisor's file cannot be presented")]
    Recording = 15,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The refusal with number `code`; `None` for 0 and for unknown numbers.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| *refusal as u64 == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_leads_back_and_0_is_success() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::from_code(refusal as u64), Some(refusal));
            assert!(!refusal.to_string().is_empty());
        }
        assert_eq!(Refusal::from_code(0), None);
        assert_eq!(Refusal::from_code(1000), None);
    }
}
