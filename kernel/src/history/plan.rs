//! Counters for a history: in each pass the clock and the witness, and as many events as fit.

use crate::events::Known;
use crate::snippet::events::{Counted, Plan, metrics_apart, plan_beside};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use events::parse::parse_list;
use events::request::Request;
use protocol::job::history::{History, WITNESS};
use protocol::record::Uncounted;

/// Numbers of the clock and of the witness in a plan.
pub(super) const CLOCK_NUMBER: usize = 0;
pub(super) const WITNESS_NUMBER: usize = 1;

/// What is counted when.
#[derive(Debug)]
pub(super) struct Planned {
    /// The passes.
    pub passes: Vec<Vec<Counted>>,
    /// What cannot be counted.
    pub uncounted: Vec<Uncounted>,
    /// The job requests the witness, or for nothing.
    pub shows_witness: bool,
}

/// Finds counters.
///
/// # Errors
/// Why there is no clock, in a sentence.
pub(super) fn plan(history: &History, known: &Known) -> Result<Planned, String> {
    let beside = [one(&history.clock)?, one(WITNESS)?];
    let texts: Vec<Cow<str>> =
        history.snippet.events.iter().filter(|text| *text != WITNESS).cloned().collect();
    let refused = |one: Uncounted| format!("`{}` cannot be counted: {}", one.event, one.reason);
    let mut plan = plan_beside(&beside, &texts, known).map_err(refused)?;
    if plan.passes.is_empty() && !texts.is_empty() {
        // None of them can be counted together with these two, which have something to say by themselves.
        let alone = plan_beside(&beside, &[], known).map_err(refused)?;
        plan = Plan { passes: alone.passes, ..plan };
    }
    let is_whole = |pass: &Vec<Counted>| {
        [CLOCK_NUMBER, WITNESS_NUMBER].iter().all(|&number| place(pass, number).is_some())
    };
    if plan.passes.is_empty() || !plan.passes.iter().all(is_whole) {
        let reason = plan.uncounted.first().map_or("no counter is free for it", |one| &one.reason);
        return Err(format!(
            "the clock `{}` and {WITNESS}, which tell where the snippet begins, cannot be counted together: {reason}",
            history.clock
        ));
    }
    if plan.passes.iter().flatten().any(|one| one.number == CLOCK_NUMBER && one.merges) {
        return Err(format!(
            "the clock `{}` takes two counters, which overflow as one",
            beside[0].text
        ));
    }
    for pass in &plan.passes {
        if let Some((_, reason)) = metrics_apart(&pass.iter().collect::<Vec<_>>()) {
            return Err(reason);
        }
        let has_fields = pass.iter().any(|one| one.metric.is_some());
        // Its shares are of the slots since both were 0, and a clock begins elsewhere.
        if has_fields && pass.iter().any(|one| one.number == CLOCK_NUMBER && one.counter == SLOTS) {
            return Err(format!(
                "the clock `{}` takes the counter of slots, which PERF_METRICS divides; take another clock",
                history.clock
            ));
        }
    }
    let Plan { passes, uncounted, .. } = plan;
    Ok(Planned {
        passes,
        uncounted,
        shows_witness: texts.is_empty() || texts.len() < history.snippet.events.len(),
    })
}

/// Where the event with a number is in a pass.
pub(super) fn place(pass: &[Counted], number: usize) -> Option<usize> {
    pass.iter().position(|one| one.number == number)
}

/// The single event that a text names.
fn one(text: &str) -> Result<Request, String> {
    let list = parse_list(text).map_err(|error| format!("the clock `{text}`: {error}"))?;
    let mut requests = list.into_iter().flat_map(|item| item.requests);
    match (requests.next(), requests.next()) {
        (Some(request), None) => Ok(request),
        _ => Err(format!("the clock `{text}` has to be one event")),
    }
}
