//! Registers of instruction-based sampling.

use super::unit::{get, set};
use super::{NEEDS, features};
use crate::conformance::check::{All, Finding, Outcome};
use crate::conformance::context::Context;
use arch::pmu::ibs::{Features, LvtOffset, OpData, OpData3, Period, Unit};

/// Registers that came later, and the bits of CPUID 0x8000001B EAX that announce them: IbsBrTarget, IbsFetchCtlExtd, IbsOpData4.
const BY_FEATURE: [(Features, arch::msr::Msr); 3] = [
    (Features::BRANCH_TARGET, arch::msr::Msr(0xc001_103b)),
    (Features::FETCH_EXTENDED, arch::msr::Msr(0xc001_103c)),
    (Features::OP_DATA_4, arch::msr::Msr(0xc001_103d)),
];

pub(super) fn registers(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of(
        "each unit's maximum count can be written, no sample is valid, and the announced registers exist",
    );
    for (unit, length) in [(Unit::Op, 0x1_2340), (Unit::Op, 0x765_4320), (Unit::Fetch, 0xf_fff0)] {
        let Ok(period) = Period::new(unit, false, length, has) else { continue };
        let done = set(context, unit.control(), period.off()).is_ok();
        let seen = get(context, unit.control()).unwrap_or(0);
        let wanted = period.off();
        all.that(done && seen == wanted, format_args!("{unit:?}: {seen:#x}, not {wanted:#x}"));
        let _ = set(context, unit.control(), 0);
        all.that(get(context, unit.address()).is_ok(), format_args!("{unit:?}: no address"));
    }
    for (feature, msr) in BY_FEATURE {
        let there = !has.contains(feature) || get(context, msr).is_ok();
        all.that(there, format_args!("MSR {:#x}, which CPUID announces, cannot be read", msr.0));
    }
    for msr in [OpData::MSR, OpData3::MSR, OpData3::LINEAR, OpData3::PHYSICAL, LvtOffset::MSR] {
        all.that(get(context, msr).is_ok(), format_args!("MSR {:#x} cannot be read", msr.0));
    }
    Ok(all.finish())
}
