//! What is told of a tagged operation.

use super::unit::{Seen, of_ops, tag};
use super::{BRANCH, BYTES, JUMP, LOAD, LOADS, LONG, NEEDS, TURN, features};
use crate::conformance::check::{All, Finding, Outcome};
use crate::conformance::context::Context;
use crate::conformance::machine::Work;
use alloc::vec::Vec;
use arch::pmu::PmuError;
use arch::pmu::data_source::{Level, ibs_datum};
use arch::pmu::ibs::{Features, OpData, Unit};
use arch::pmu::workload::Ring0Code;

/// Samples of each instruction of a turn, by periods that begin one further each time.
pub(super) fn each(
    context: &mut Context,
    has: Features,
    take: &mut dyn FnMut(&Seen),
) -> Result<bool, PmuError> {
    let Some(period) = of_ops(has, LONG) else { return Ok(false) };
    // Where the count cannot be begun elsewhere, what is around the piece has to do.
    for start in 0..2 * TURN {
        let start = if has.contains(Features::READ_WRITE_COUNT) { start } else { 0 };
        // Enough where operations are fused.
        let work = Work::kernel(Ring0Code::ColdLoads, LONG / 2);
        let seen = tag(context, period, start, work)?;
        take(&seen);
    }
    Ok(true)
}

pub(super) fn address(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut all = All::of("branches are sampled at the jump, loads at the load");
    let (mut samples, mut branches) = (0, 0);
    let mut look = |seen: &Seen| {
        let inside = (at..at + BYTES).contains(&seen.rip);
        if seen.control & Unit::Op.valid() == 0 || !inside {
            return;
        }
        samples += 1;
        if seen.what & BRANCH != 0 {
            branches += 1;
            all.same("a branch's address", at + JUMP, seen.rip);
        } else {
            all.that(seen.rip != at + JUMP, format_args!("no branch at {:#x}", seen.rip));
        }
        // CLFLUSH may count as a load.
        if seen.access.0 & LOADS != 0 && seen.rip != at {
            all.same("a load's address", at + LOAD, seen.rip);
        }
    };
    each(context, has, &mut look)?;
    all.that(samples > 0, format_args!("no sample in the piece"));
    if context.emulated.is_some() {
        all.that(branches == 2, format_args!("{branches} branches in two iterations"));
    }
    Ok(all.finish())
}

pub(super) fn data_address(context: &mut Context) -> Outcome {
    const LINE: u64 = 64;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut all = All::of(
        "a load of the code has an address in its memory; any other load's is elsewhere or invalid",
    );
    let (mut loads, mut first) = (0, None);
    let mut addresses = Vec::new();
    let mut look = |seen: &Seen| {
        if seen.control & Unit::Op.valid() == 0 || seen.rip != at + LOAD {
            return;
        }
        loads += 1;
        let linear = seen.linear;
        all.that(seen.access.has_address(), format_args!("the load has no address"));
        let far = linear.wrapping_sub(*first.get_or_insert(linear));
        // The same number of turns has gone by, but for what the beginning moves.
        let near = far.is_multiple_of(LINE) && far.wrapping_add(LONG * LINE) < 2 * LONG * LINE;
        all.that(linear != 0 && near, format_args!("{linear:#x}, {far:#x} from the first"));
        if seen.access.has_physical() {
            addresses.push((linear, seen.physical));
        }
    };
    each(context, has, &mut look)?;
    for (linear, physical) in addresses {
        let wanted = context.machine.physical(linear).unwrap_or(0);
        all.same(format_args!("the physical address of {linear:#x}"), wanted, physical);
    }
    if context.emulated.is_some() {
        all.that(loads == 2, format_args!("{loads} loads in two iterations"));
    }
    Ok(all.finish())
}

pub(super) fn latency(context: &mut Context) -> Outcome {
    const MISS: u64 = 1 << 7;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut seen_loads = Vec::new();
    let mut look = |seen: &Seen| {
        if seen.control & Unit::Op.valid() != 0 && seen.rip == at + LOAD {
            seen_loads.push((seen.access.0, seen.data_2, seen.linear));
        }
    };
    each(context, has, &mut look)?;
    let mut all = All::of(
        "a load of a flushed line missed, with a latency, and its data came from beyond the first level",
    );
    for &(data_3, data_2, linear) in &seen_loads {
        let datum = ibs_datum(data_2, data_3, linear).unwrap_or_default();
        let source = context.has().memory.source(&datum).unwrap_or_default();
        all.that(data_3 & MISS != 0, format_args!("{linear:#x} did not miss"));
        all.that(datum.latency > 0, format_args!("{linear:#x} has a latency of 0"));
        let good = match context.emulated {
            Some(_) => source.level == Level::Memory,
            None => source.level != Level::L1,
        };
        all.that(good, format_args!("{linear:#x} came from {}", source.level.name()));
    }
    if context.emulated.is_some() {
        all.that(
            seen_loads.len() == 2,
            format_args!("{} loads in two iterations", seen_loads.len()),
        );
    }
    Ok(all.finish())
}

pub(super) fn outcome(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let (mut branches, mut taken, mut returns) = (0, 0, 0);
    let mut look = |seen: &Seen| {
        let what = OpData(seen.what);
        if seen.control & Unit::Op.valid() != 0 && seen.rip == at + JUMP && what.is_branch() {
            branches += 1;
            taken += u32::from(what.is_taken());
            returns += u32::from(what.is_return());
        }
    };
    each(context, has, &mut look)?;
    let mut all = All::of("each sampled jump of a loop was taken, and none is a return");
    all.same("jumps that were taken", branches, u64::from(taken));
    all.same("jumps that were returns", 0, u64::from(returns));
    if context.emulated.is_some() {
        all.same("jumps in two iterations", 2, branches);
    }
    Ok(all.finish())
}
