//! Fields of PERF_METRICS, and slots with them, counted while other events are sampled. No sample is taken by them: they neither
//! overflow nor continue from where they were, so they begin at 0 with the workload and are read once, after it.

use super::Armed;
use crate::events::Known;
use crate::snippet::events::{self, Counted, Use, metrics_apart};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use arch::pmu::{Driver, PmuError, Registers, Selection};
use protocol::job::sampling::Sampling;
use protocol::record::{SampleResult, SampledCount, Uncounted};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
struct Share {
    event: String,
    /// The field; `None`: the slots themselves.
    field: Option<u8>,
    selection: Selection,
    /// What counts it, and doubts.
    counter: String,
    remarks: Vec<String>,
}

/// Those of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares(Vec<Share>);

/// The events of an item that are counted so: fields of PERF_METRICS, and if there are some, what counts slots. None where the
/// processor has no such register: why not is found with the other events.
pub(super) fn texts<'a>(item: &'a Sampling, known: &Known) -> Vec<&'a Cow<'a, str>> {
    let planned = |text: &Cow<str>| {
        let plan = events::plan_for(Use::Counting, core::slice::from_ref(text), known);
        let all: Vec<Counted> = plan.passes.into_iter().flatten().collect();
        (!all.is_empty() && all.iter().all(|one| one.counter == SLOTS)).then_some(all)
    };
    let all = item.events.iter().map(|event| &event.event);
    let of_slots: Vec<_> = all.filter_map(|text| Some((text, planned(text)?))).collect();
    let is_field = |one: &Counted| one.metric.is_some();
    if !of_slots.iter().any(|(_, all)| all.iter().any(is_field)) {
        return Vec::new();
    }
    of_slots.into_iter().map(|(text, _)| text).collect()
}

/// Finds what the item asks for, beside the events that are `armed`.
///
/// # Errors
/// They cannot be counted beside those.
pub(super) fn plan(item: &Sampling, known: &Known, armed: &[Armed]) -> Result<Shares, String> {
    let texts = texts(item, known);
    if texts.is_empty() {
        return Ok(Shares::default());
    }
    if armed.is_empty() {
        return Err(NOT_SAMPLED.to_string());
    }
    if let Some(one) = armed.iter().find(|one| one.counter == SLOTS) {
        return Err(format!(
            "{}: it would be sampled by in its group, and the fields of PERF_METRICS take its counter: name it by itself",
            one.event
        ));
    }
    let owned: Vec<Cow<str>> = texts.iter().map(|text| Cow::Borrowed(&***text)).collect();
    let planned = events::plan_for(Use::Counting, &owned, known);
    if let Some(one) = planned.uncounted.first() {
        return Err(format!("{}: {}", one.event, one.reason));
    }
    let all: Vec<Counted> = planned.passes.into_iter().flatten().collect();
    if let Some((_, reason)) = metrics_apart(&all.iter().collect::<Vec<_>>()) {
        return Err(reason);
    }
    let shares = all.into_iter().map(|one| Share {
        event: one.event,
        field: one.metric,
        selection: one.selection,
        counter: one.counting.counter,
        remarks: one.counting.remarks,
    });
    Ok(Shares(shares.collect()))
}

impl Shares {
    /// What the counter of slots is programmed with, and for which event.
    pub(super) fn selection(&self) -> Option<(&str, Selection)> {
        self.0.first().map(|one| (&*one.event, one.selection))
    }

    /// Programs the counter of slots, with which PERF_METRICS counts.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn program(
        &self,
        registers: &mut dyn Registers,
        driver: &mut Driver,
    ) -> Result<(), PmuError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        driver.program(registers, SLOTS, &first.selection)?;
        driver.enable_metrics()
    }

    /// Both to 0.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn clear(
        &self,
        registers: &mut dyn Registers,
        driver: &Driver,
    ) -> Result<(), PmuError> {
        if self.0.is_empty() { Ok(()) } else { driver.clear_metrics(registers) }
    }

    /// What they counted. A period of 0 says that no sample was taken by them. After an overflow of PERF_METRICS its fields are of no
    /// known slots, and have no count.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn counts(
        &self,
        registers: &mut dyn Registers,
        driver: &Driver,
    ) -> Result<Vec<SampledCount>, PmuError> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let slots = driver.slots(registers)?;
        let overflowed = driver.metrics_overflowed(registers)?;
        let count = |share: &Share| {
            let is_lost = overflowed && share.field.is_some();
            SampledCount {
                event: share.event.clone(),
                counter: Some(share.counter.clone()),
                witness: (!is_lost).then(|| slots.of(share.field)),
                remarks: share.remarks.clone(),
                ..SampledCount::default()
            }
        };
        Ok(self.0.iter().map(count).collect())
    }
}

/// Takes those that have no count out of a result's events, and says why.
pub(super) fn leave_out(result: &mut SampleResult) {
    let is_lost = |one: &SampledCount| !one.is_sampled() && one.witness.is_none();
    let lost = result
        .events
        .iter()
        .filter(|one| is_lost(one))
        .map(|one| Uncounted { event: one.event.clone(), reason: OVERFLOWED.to_string() });
    result.uncounted.extend(lost);
    result.events.retain(|one| !is_lost(one));
}

/// The reason why they are refused by themselves.
pub(super) const NOT_SAMPLED: &str = "PERF_METRICS and slots are counted beside samples, and there is no event to sample by: name one";

/// The reason why a field is not known.
const OVERFLOWED: &str = "PERF_METRICS overflowed while the workload ran, so its shares are of no known slots: run it for less time";
