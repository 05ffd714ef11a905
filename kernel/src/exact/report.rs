//! From tallies to the record.

use super::tally::EVENTS;
use super::{Refusal, Stepper, Tally, Unstepped};
use crate::snippet::measure::{Runner, Unmeasured, executions, measure as count, run_once};
use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::bits::Bits;
use protocol::job::exact::Exact;
use protocol::job::limits::MAX_LISTED_INSTRUCTIONS;
use protocol::job::{Difference, Snippet};
use protocol::record::{
    Comparison, ExactCount, ExactResult, ListedInstruction, Metric, Uncounted, Verdict,
};

/// Steps through both code sizes; with [`Exact::verify`], also counts with the PMU. The record's times are left 0.
///
/// # Errors
/// The exception that the snippet raised, an event that cannot be counted, or what cannot be stepped over.
pub fn measure(
    machine: &mut (impl Runner + Stepper),
    item: u32,
    exact: &Exact,
) -> Result<ExactResult, Unmeasured> {
    let snippet = &exact.snippet;
    let counted = if exact.verify { counted(machine, snippet)? } else { Vec::new() };
    if snippet.setup.call.is_some() {
        // The program comes to its place, and its constructors run.
        machine.control(snippet).map_err(Unmeasured::Refused)?;
        run_once(machine, snippet)?;
    }
    let unroll = u64::from(snippet.unroll);
    let sizes = match snippet.difference {
        Difference::Double => [unroll, 2 * unroll],
        Difference::Empty => [0, unroll],
    };
    let mut step =
        |copies| machine.step(snippet, copies, &exact.filter, exact.steps).map_err(unmeasured);
    let tallies = [step(sizes[0])?, step(sizes[1])?];
    let mut result = result(item, exact, &tallies);
    if snippet.setup.call.is_some() {
        result.program = machine.called();
        for row in &mut result.listing {
            let bytes = machine.code(row.offset.into(), row.bytes.len() as u64 / 2);
            row.bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        }
    }
    result.comparisons = compare(&result.counts, &counted);
    Ok(result)
}

fn unmeasured(unstepped: Unstepped) -> Unmeasured {
    match unstepped {
        Unstepped::Fault(fault) => Unmeasured::Fault(fault),
        Unstepped::Refused(refusal @ Refusal::TooLong(_)) => {
            Unmeasured::TooLong(refusal.to_string())
        }
        Unstepped::Refused(refusal) => Unmeasured::Refused(refusal.to_string()),
    }
}

/// Instructions and branches by the PMU, by the names of [`EVENTS`].
fn counted(
    machine: &mut (impl Runner + Stepper),
    snippet: &Snippet,
) -> Result<Vec<(&'static str, Metric)>, Unmeasured> {
    let events = ["instructions", machine.branches()].map(Cow::Borrowed).to_vec();
    let measured = count(machine, &Snippet { events, ..snippet.clone() })?;
    if let Some(uncounted) = measured.uncounted.first() {
        let text = format!("{} cannot be counted: {}", uncounted.event, uncounted.reason);
        return Err(Unmeasured::Refused(text));
    }
    // The first is the TSC's.
    Ok(["instructions", "branches"].into_iter().zip(measured.metrics.into_iter().skip(1)).collect())
}

fn compare(exact: &[ExactCount], counted: &[(&'static str, Metric)]) -> Vec<Comparison> {
    let compare = |(name, metric): &(&'static str, Metric)| {
        let exact = exact.iter().find(|count| count.event == *name)?.value;
        let (pmu_min, pmu_max) = (metric.value.min, metric.value.max);
        let agrees = pmu_min == exact && pmu_max == exact;
        Some(Comparison { event: (*name).to_string(), exact, pmu_min, pmu_max, agrees })
    };
    counted.iter().filter_map(compare).collect()
}

/// An event that the job requests, if stepping does not tell it.
fn uncounted(event: &str) -> Option<Uncounted> {
    if EVENTS.contains(&event) {
        return None;
    }
    let reason = format!("exact mode steps and uses no counter; it tells {}", EVENTS.join(", "));
    Some(Uncounted { event: event.to_string(), reason })
}

/// The larger total minus the smaller, for each execution that the two differ in.
fn per_execution([small, large]: [u64; 2], per: u64) -> f64 {
    (large as f64 - small as f64) / per as f64
}

fn result(item: u32, exact: &Exact, tallies: &[Tally; 2]) -> ExactResult {
    let per = executions(&exact.snippet);
    let entry = |event: String, totals: [u64; 2]| {
        let value = per_execution(totals, per);
        ExactCount { event, value, totals }
    };
    let counts = EVENTS.iter().enumerate().map(|(index, event)| {
        entry((*event).to_string(), tallies.each_ref().map(|tally| tally.counts[index]))
    });
    // Whoever has nothing but 64-bit code is not told so.
    let has_compatibility = exact.snippet.setup.bits == Bits::Compatibility
        || tallies.iter().any(|tally| tally.widths[Bits::Compatibility as usize] > 0);
    let widths = ["instructions_64", "instructions_32"].into_iter().enumerate();
    let widths = widths.filter(|_| has_compatibility).map(|(index, event)| {
        entry(event.to_string(), tallies.each_ref().map(|tally| tally.widths[index]))
    });
    let names: BTreeSet<_> = tallies.iter().flat_map(|tally| tally.opcodes.keys()).collect();
    let opcodes = names.into_iter().map(|mnemonic| {
        let totals = tallies.each_ref().map(|tally| tally.opcodes.get(mnemonic).copied());
        entry(super::name(*mnemonic), totals.map(Option::unwrap_or_default))
    });
    let mut opcodes: Vec<ExactCount> = opcodes.collect();
    opcodes.sort_by(|a, b| a.event.cmp(&b.event));
    let (listing, listed) = listing(&exact.snippet, tallies, per);
    ExactResult {
        item,
        name: exact.snippet.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        restored: Vec::new(),
        uncounted: exact.snippet.events.iter().filter_map(|event| uncounted(event)).collect(),
        per,
        filtered: !exact.filter.is_empty(),
        counts: counts.chain(widths).collect(),
        opcodes,
        listing,
        listed,
        program: None,
        comparisons: Vec::new(),
        emulated: false,
        tsc: [0; 2],
    }
}

fn listing(snippet: &Snippet, tallies: &[Tally; 2], per: u64) -> (Vec<ListedInstruction>, u32) {
    let places: BTreeSet<_> = tallies
        .iter()
        .flat_map(|tally| tally.places.iter().map(|(&place, &(length, _))| (place, length)))
        .collect();
    let row = |&(place @ (offset, bits), length): &((u64, Bits), u8)| {
        let from = offset as usize;
        // Body after body: the last instruction of a copy may reach into the next one.
        // A program's are not known here, but how many there are.
        let body = if snippet.setup.call.is_some() { &[0; 15][..] } else { &*snippet.body };
        let from = if snippet.setup.call.is_some() { 0 } else { from };
        let bytes = body.iter().cycle().skip(from).take(usize::from(length));
        let totals = tallies
            .each_ref()
            .map(|tally| tally.places.get(&place).map_or(0, |&(_, executions)| executions));
        ListedInstruction {
            offset: offset as u32,
            bytes: bytes.map(|byte| format!("{byte:02x}")).collect(),
            value: per_execution(totals, per),
            bits: bits.number(),
            ..ListedInstruction::default()
        }
    };
    (places.iter().take(MAX_LISTED_INSTRUCTIONS).map(row).collect(), places.len() as u32)
}
