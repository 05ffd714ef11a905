//! Faults of instruction-based sampling.

use super::{jump, user};
use crate::common::{read, write};
use pmu_model::{BranchKind, Delta, Mutation, Occurrence, Pmu, Ring};

/// A sample of a load by every sixteenth operation, and one of a fetch.
pub(super) fn ibs_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use crate::common::ibs::{self, COUNTS_OPS, FETCH_CTL, FETCH_EN, FETCH_VAL, OP_CTL, VAL};
    use Mutation::*;
    const EN: u64 = ibs::EN | COUNTS_OPS;
    let nothing = pmu_model::CpuidResult::default();
    let features = pmu.cpuid(0x8000_001B, 0, nothing).eax;
    match fault {
        IbsRegistersAbsent => return features != 0 && pmu.read_msr(OP_CTL).is_ok(),
        IbsFeatureTooMany => {
            return pmu.read_msr(ibs::OP_DATA4).is_ok() == (features >> 10 & 1 != 0);
        }
        IbsLvtOffsetInvalid => return read(pmu, ibs::IBS_CTL) == 1 << 8,
        IbsCountWriteIgnored => {
            write(pmu, OP_CTL, EN | 1 | 10 << 32);
            return ibs::first_sample(pmu) == 7;
        }
        IbsCountControlIgnored => {
            // A misprediction takes more cycles than there are operations to the sample.
            write(pmu, OP_CTL, EN | 1);
            pmu.advance(&Delta::step(Ring::User).with(Occurrence::MissedReturn, 1));
            return ibs::first_sample(pmu) == 16;
        }
        IbsFetchOfNext | IbsFetchIncomplete => {
            write(pmu, FETCH_CTL, FETCH_EN | 1);
            let n = ibs::first_sample(pmu);
            let status = read(pmu, FETCH_CTL) & (FETCH_VAL | 1 << 50);
            let whole = status == FETCH_VAL | 1 << 50;
            return whole && read(pmu, ibs::FETCH_LINEAR) == 0x1000 + n;
        }
        _ => {}
    }
    write(pmu, OP_CTL, EN | 1);
    pmu.advance(&user(16));
    let access = pmu_model::uarch::Access {
        physical: 0x5000,
        ..pmu_model::uarch::Access::identity(0x9000, 8, pmu_model::uarch::AccessKind::Load)
    };
    let sampled = pmu_model::Sampled {
        branch: Some(jump(0x2000, BranchKind::RelativeJump, false)),
        access: Some((access, pmu_model::PageSize::Small)),
        code: None,
    };
    let missed = Delta::step(Ring::User).with(Occurrence::LoadLlcMiss, 1);
    let outcome = ibs::sample(pmu, &missed, sampled);
    match fault {
        IbsValidNeverSets => read(pmu, OP_CTL) & VAL != 0,
        IbsRipOfNext => read(pmu, ibs::OP_RIP) == 0x1000,
        IbsDataAddressLost => read(pmu, ibs::DATA_LINEAR) == 0x9000,
        IbsPhysicalIsLinear => read(pmu, ibs::DATA_PHYSICAL) == 0x5000,
        IbsBranchFlagsLost => read(pmu, ibs::OP_DATA) >> 37 & 1 == 1,
        IbsTakenLost => read(pmu, ibs::OP_DATA) >> 35 & 1 == 1,
        IbsLatencyLost => read(pmu, ibs::OP_DATA3) >> 32 & 0xFFFF == 200,
        IbsCountsOn => (0..100).all(|n| !ibs::step(pmu, n).ibs),
        IbsInterruptLost | IbsPeriodDoubled => outcome.ibs,
        _ => unreachable!("{fault:?} is none of IBS"),
    }
}
