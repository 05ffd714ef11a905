//! What a PMU can tell about an overflow.

use alloc::string::ToString;
use arch::pmu::pebs::{Format, Groups};
use arch::pmu::{Capabilities, Fault, FreezeKind};
use protocol::record::SamplingCapability;

/// The data addresses of PEBS records (SDM vol. 3, 20.3.1.1.2 and 20.3.6.3; Linux, `arch/x86/events/intel/ds.c`).
fn of_records(has: &Capabilities) -> &'static str {
    match has.pebs_format() {
        Some(format) if format.has_groups() && !has.record_groups().contains(Groups::MEMORY) => {
            "not available: this processor's PEBS records have none"
        }
        None => "not available: PEBS records of this format are not used",
        Some(Format::Core) => "not available: PEBS records of format 0 have none",
        Some(Format::Nehalem) => "with PEBS (precise), of load-latency events",
        Some(_) => "with PEBS (precise), of events of loads and stores",
    }
}

/// The report where there is no PMU, for this reason.
#[must_use]
pub fn none(reason: &str) -> SamplingCapability {
    SamplingCapability {
        overflow_interrupt: false,
        culprit: reason.to_string(),
        freeze: "there is nothing to freeze".to_string(),
        skid: "none: the timer's tick comes where it comes".to_string(),
        data_address: "not available: there is no PMU".to_string(),
    }
}

/// The report of what `has` can tell.
#[must_use]
pub fn capability(has: &Capabilities, emulated: bool) -> SamplingCapability {
    let culprit = match has.has_global() {
        true => "each counter has its bit in the status register",
        false => "by each counter's top bit, which its preset sets and its overflow clears",
    };
    let freeze = match has.freeze {
        FreezeKind::Streamlined => "by the processor (streamlined freeze on PMI)",
        FreezeKind::Legacy => "by the processor (legacy freeze on PMI)",
        FreezeKind::None if has.has_global() => "by the handler, at once",
        FreezeKind::None => "by the handler, one counter after the other",
    };
    let given_up = has.faults.iter().find(|fault| matches!(fault, Fault::Freeze(_)));
    let freeze = match given_up {
        Some(why) => alloc::format!("{freeze}: {why}"),
        None => freeze.to_string(),
    };
    let skid = match (emulated, has.is_intel()) {
        (true, _) => "none: the emulated PMU interrupts where the overflow is",
        (false, true) if has.pebs_format().is_some() => {
            "up to tens of instructions, without PEBS (precise)"
        }
        (false, true) => {
            "up to tens of instructions, not precise: there is no PEBS that can be used"
        }
        (false, false) if has.ibs.is_some() => "up to tens of instructions, without IBS (precise)",
        (false, false) => "up to tens of instructions, not precise: this processor has no IBS",
    };
    let data_address = match (has.is_intel(), has.pebs, has.ibs.is_some()) {
        (true, true, _) if has.memory.precise_stores => {
            "with PEBS (precise), of load-latency events and precise stores".to_string()
        }
        (true, true, _) => of_records(has).to_string(),
        (true, false, _) => "not available: this PMU has no PEBS that can be used".to_string(),
        (false, _, true) => "with IBS (precise), of operations that load or store".to_string(),
        (false, _, false) => "not available: this processor has no IBS".to_string(),
    };
    SamplingCapability {
        // Every counter that the driver knows has its INT bit.
        overflow_interrupt: true,
        culprit: culprit.to_string(),
        freeze,
        skid: skid.to_string(),
        data_address,
    }
}
