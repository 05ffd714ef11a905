//! Counters for the events of a snippet: from their texts to passes, in each of which every event has a counter.

mod select;

use super::retired;
use crate::energy::Wanted;
use crate::events::Known;
use crate::uncore;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use arch::pmu::{Counter, Rings, Selection};
use events::assign::{self, Place};
use events::encode::{Choice, Counters, Encoded, encode};
use events::energy;
use events::hybrid::check_list;
use events::msr::AMD_MERGE_EVENT;
use events::parse::parse_list;
use events::passes::{self, Effort};
use events::request::Request;
use events::set::EventSet;
use protocol::record::{Counting, Uncounted};
use select::selection;

/// How long a plan with fewer passes is looked for: 2,000 sets of events, each a few microseconds.
pub(crate) const EFFORT: Effort = Effort { sets: 2_000 };

/// An event with its counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Its number among all events of the snippet, for the order of the results.
    pub number: usize,
    /// What the result is called: the label that the job gives it, or its text.
    pub event: String,
    /// The counter.
    pub counter: Counter,
    /// What the counter is programmed with.
    pub selection: Selection,
    /// AMD's large increments: the next counter, which takes the merge event.
    pub merges: bool,
    /// General-purpose counters that could have been taken, as a bitmap.
    pub counters: u64,
    /// The field of MSR_PERF_METRICS, whose share of `counter` is meant.
    pub metric: Option<u8>,
    /// 0: not precise; 1 to 3: the level of PEBS, `:p` to `:ppp`.
    pub level: u8,
    /// Not counted, but sampled for its retire latency: one record for so many events, 0 if that is left to whoever samples.
    pub retired: Option<u64>,
    /// For the report.
    pub counting: Counting,
}

impl Counted {
    /// What to program into which counter.
    pub fn programs(&self) -> impl Iterator<Item = (Counter, Selection)> + use<> {
        let merge = match self.counter {
            Counter::General(n) if self.merges => {
                let selection = Selection::of(AMD_MERGE_EVENT, 0).in_rings(Rings::empty());
                Some((Counter::General(n + 1), selection))
            }
            _ => None,
        };
        // The merge event comes first, so that the pair never counts without it.
        merge.into_iter().chain([(self.counter, self.selection)])
    }
}

/// Which event of a pass cannot be counted, and why, if PERF_METRICS is in it: it divides the slots of fixed counter 3 by what
/// happens in the rings of that counter, so all that stand on it want the same rings.
#[must_use]
pub fn metrics_apart(pass: &[&Counted]) -> Option<(usize, String)> {
    pass.iter().any(|one| one.metric.is_some()).then_some(())?;
    let first = pass.iter().find(|one| one.counter == SLOTS)?;
    let other =
        |one: &&Counted| one.counter == SLOTS && one.selection.rings != first.selection.rings;
    let at = pass.iter().position(other)?;
    let reason = format!(
        "PERF_METRICS and slots count in the same rings, and {} is for others than {}",
        pass[at].event, first.event
    );
    Some((at, reason))
}

/// What is counted when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Events that are counted at the same time, pass by pass.
    pub passes: Vec<Vec<Counted>>,
    /// Events that cannot be counted.
    pub uncounted: Vec<Uncounted>,
    /// Ticks that making the plan took; set by whoever has a clock.
    pub ticks: u64,
    /// Energy that is read in the first pass.
    pub energy: Vec<Wanted>,
    /// Events of the uncore, in groups that are to be counted at the same time.
    pub uncore: Vec<Vec<uncore::Wanted>>,
}

impl Plan {
    /// The same with a pass for the TSC alone in front. An emulated PMU takes time for what it counts, and what makes
    /// it look at each instruction takes thousands of ticks for each.
    #[must_use]
    pub fn with_time_apart(mut self) -> Self {
        if !self.passes.is_empty() {
            self.passes.insert(0, Vec::new());
        }
        self
    }

    /// The plan where there is no PMU: every event is refused with `reason`.
    #[must_use]
    pub fn without_pmu(texts: &[Cow<str>], reason: &str) -> Self {
        // Energy is none of the PMU's.
        let of_energy = |text: &&Cow<str>| Wanted::of_text(text).is_some();
        let (energy, events): (Vec<_>, Vec<_>) = texts.iter().partition(of_energy);
        Self {
            uncounted: events.into_iter().map(|text| uncounted(text, reason)).collect(),
            energy: energy.into_iter().filter_map(|text| Wanted::of_text(text)).collect(),
            ..Self::default()
        }
    }
}

fn uncounted(event: &str, reason: impl ToString) -> Uncounted {
    Uncounted { event: event.to_string(), reason: reason.to_string() }
}

/// What events are wanted for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    /// Their counts between two instructions at which the counters stand still.
    Counting,
    /// The same, and the retire latencies of some.
    Measuring,
    /// Their counts together with others that overflow.
    Beside,
    /// The same in runs that end with that overflow, and begin with counters of 0.
    Stopped,
    /// Samples; with `precise` out of PEBS records, whether their attributes request that or not.
    Sampling {
        /// Every event.
        precise: bool,
    },
}

/// Finds counters for events and groups, in the fewest passes. What cannot be counted is left out with its reason, and
/// the rest continues.
#[must_use]
pub fn plan(texts: &[Cow<str>], known: &Known) -> Plan {
    plan_for(Use::Counting, texts, known)
}

/// As [`plan`], with the retire latencies of some events, in passes after the others.
#[must_use]
pub fn plan_with_latencies(texts: &[Cow<str>], known: &Known) -> Plan {
    plan_for(Use::Measuring, texts, known)
}

/// As [`plan`], for other uses than counting.
pub(crate) fn plan_for(purpose: Use, texts: &[Cow<str>], known: &Known) -> Plan {
    fill(EventSet::default(), purpose, texts, known)
}

/// As [`plan`], with requests that are counted in every pass, also if there are no others. Their numbers are the first.
///
/// # Errors
/// One of them cannot be counted at all.
pub fn plan_beside(
    beside: &[Request],
    texts: &[Cow<str>],
    known: &Known,
) -> Result<Plan, Uncounted> {
    let mut set = EventSet::default();
    for request in beside {
        let encoded = countable(Use::Beside, request, known);
        set.correlates.push(set.requests.len());
        set.requests.push(encoded.map_err(|reason| uncounted(&request.text, reason))?);
    }
    Ok(fill(set, Use::Stopped, texts, known))
}

/// Adds the texts to a set that has nothing but requests for every pass, and plans it.
fn fill(mut set: EventSet, purpose: Use, texts: &[Cow<str>], known: &Known) -> Plan {
    let (mut refused, mut energy, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    let mut items = Vec::new();
    for text in texts {
        match parse_list(text) {
            Ok(list) => items.extend(list),
            Err(error) => refused.push(uncounted(text, error)),
        }
    }
    if matches!(purpose, Use::Counting | Use::Measuring) {
        for item in &mut items {
            energy.extend(item.requests.iter().filter_map(Wanted::of));
            item.requests.retain(|request| energy::of(request).is_none());
            let mut group = Vec::new();
            item.requests.retain(|request| match uncore::Wanted::of(request) {
                None => true,
                Some(Ok(wanted)) => {
                    group.push(wanted);
                    false
                }
                Some(Err(reason)) => {
                    refused.push(uncounted(&request.text, reason));
                    false
                }
            });
            if !group.is_empty() {
                apart.push(group);
            }
        }
        items.retain(|item| !item.requests.is_empty());
    }
    if purpose == (Use::Sampling { precise: true }) {
        // Without skid where records have the instruction's own address.
        let exact = known.processor.pebs.is_some_and(|pebs| pebs.format >= 2);
        for request in items.iter_mut().flat_map(|item| &mut item.requests) {
            let level = request.attributes.precise.unwrap_or(0);
            request.attributes.precise = Some(level.max(1 + u8::from(exact)));
        }
    }
    if let Err(mixed) = check_list(&items) {
        let all = items.iter().flat_map(|item| &item.requests);
        refused.extend(all.map(|request| uncounted(&request.text, &mixed)));
        return Plan { uncounted: refused, energy, uncore: apart, ..Plan::default() };
    }
    for item in &items {
        let mut members = Vec::new();
        for request in &item.requests {
            match countable(purpose, request, known) {
                Ok(encoded) => {
                    members.push(set.requests.len());
                    set.requests.push(encoded);
                }
                Err(reason) => refused.push(uncounted(&request.text, reason)),
            }
        }
        if !members.is_empty() {
            set.items.push(members);
        }
    }
    if set.items.is_empty() && !set.correlates.is_empty() {
        // A pass of their own, as one group.
        set.items.push(core::mem::take(&mut set.correlates));
    }
    let records = retired::apart(&mut set, &mut refused);
    let mut all = Vec::new();
    bind(&set, known, &mut all, &mut refused);
    if !records.items.is_empty() {
        if all.is_empty() {
            // The time's.
            all.push(Vec::new());
        }
        bind(&records, known, &mut all, &mut refused);
    }
    Plan { passes: all, uncounted: refused, ticks: 0, energy, uncore: apart }
}

/// Finds counters for a set, in passes after those that there are.
fn bind(set: &EventSet, known: &Known, all: &mut Vec<Vec<Counted>>, refused: &mut Vec<Uncounted>) {
    let planned = match passes::plan(set, EFFORT) {
        Ok(planned) => planned,
        // Events that every pass has to count conflict with each other.
        Err(error) => {
            refused.extend(set.requests.iter().map(|request| uncounted(&request.text, &error)));
            return;
        }
    };
    for item in &planned.refused {
        let members = set.items[item.item].iter().map(|&number| &set.requests[number]);
        refused.extend(members.map(|request| uncounted(&request.text, item)));
    }
    for (index, pass) in (all.len() as u32..).zip(&planned.passes) {
        let mut counted = Vec::with_capacity(pass.requests.len());
        for (&number, place) in pass.requests.iter().zip(&pass.assignment.places) {
            match at(number, &set.requests[number], place, index, known) {
                Ok(one) => counted.push(one),
                Err(reason) => refused.push(uncounted(&set.requests[number].text, reason)),
            }
        }
        all.push(counted);
    }
}

/// The ways to count a request that the driver can program.
fn countable(purpose: Use, request: &Request, known: &Known) -> Result<Encoded, String> {
    let encoded = encode(request, &known.processor, known.core.as_ref());
    let encoded = encoded.map_err(|error| error.reason.to_string())?;
    match purpose {
        Use::Measuring if encoded.retire_latency.is_some() => offered(encoded, known),
        Use::Counting | Use::Measuring | Use::Stopped => countable_at_rest(encoded, known),
        Use::Beside => {
            without_metrics(&encoded, METRICS_BESIDE)?;
            countable_at_rest(encoded, known)
        }
        Use::Sampling { .. } if encoded.retire_latency.is_some() => {
            Err(retired::IN_SAMPLES.to_string())
        }
        Use::Sampling { .. } => {
            without_metrics(&encoded, METRICS_IN_GROUP)?;
            offered(encoded, known)
        }
    }
}

/// Why it is not counted together with what overflows.
const METRICS_BESIDE: &str = "PERF_METRICS neither overflows nor continues from where it was; slots and the TOPDOWN events are counted here";
/// And not in a text with events that are sampled by (`sampling::shares` has those by themselves).
const METRICS_IN_GROUP: &str = "no sample is taken by PERF_METRICS: beside samples a field of it is an event of its own, in no group with others";

/// PERF_METRICS is not a counter: it neither overflows nor continues from where it was.
fn without_metrics(encoded: &Encoded, why: &str) -> Result<(), String> {
    let is_metric = |choice: &Choice| matches!(choice.counters, Counters::Metric { .. });
    match encoded.choices.iter().any(is_metric) {
        true => Err(why.to_string()),
        false => Ok(()),
    }
}

/// The same of a request that is encoded already.
pub(crate) fn countable_at_rest(encoded: Encoded, known: &Known) -> Result<Encoded, String> {
    if encoded.retire_latency.is_some() {
        return Err(retired::ELSEWHERE.to_string());
    }
    if encoded.precise > 0 {
        return Err("a precise event (PEBS) is for sampling: it writes records".to_string());
    }
    offered(encoded, known)
}

/// The ways that the driver can program, on counters that can be relied on.
fn offered(mut encoded: Encoded, known: &Known) -> Result<Encoded, String> {
    let mut refusals = Vec::new();
    encoded.choices.retain_mut(|choice| {
        let reason = match selection(choice) {
            Ok((selection, merges)) => reliable(choice, &selection, merges, known).err(),
            Err(reason) => Some(reason.to_string()),
        };
        let good = reason.is_none();
        refusals.extend(reason);
        good
    });
    match encoded.choices.is_empty() && !refusals.is_empty() {
        true => Err(refusals.join("; ")),
        false => Ok(encoded),
    }
}

/// Takes the counters out of a choice that were given up.
fn reliable(
    choice: &mut Choice,
    selection: &Selection,
    merges: bool,
    known: &Known,
) -> Result<(), String> {
    match &mut choice.counters {
        Counters::Metric { .. } => {
            known.fixed_given_up(3).map_or(Ok(()), |why| Err(why.to_string()))
        }
        Counters::Fixed { index, .. } => {
            known.fixed_given_up(*index).map_or(Ok(()), |why| Err(why.to_string()))
        }
        Counters::General { counters, .. } => {
            if let Some(why) = known.event_given_up(selection.event, selection.umask) {
                return Err(why.to_string());
            }
            // A pair of counters takes both.
            let pairs = if merges { *counters | *counters << 1 } else { *counters };
            let usable = known.usable(pairs)?;
            *counters &= if merges { usable & usable >> 1 } else { usable };
            if *counters == 0 {
                Err("no pair of its counters is reliable".to_string())
            } else {
                Ok(())
            }
        }
    }
}

/// What to program for a request at its place.
pub(crate) fn at(
    number: usize,
    request: &Encoded,
    place: &Place,
    pass: u32,
    known: &Known,
) -> Result<Counted, String> {
    let choice = request.choices.get(place.choice).ok_or("it was not assigned to a counter")?;
    let (mut selection, merges) = selection(choice)?;
    selection.precise = request.precise > 0;
    let counters = match choice.counters {
        Counters::General { counters, .. } => counters,
        Counters::Fixed { .. } | Counters::Metric { .. } => 0,
    };
    let metric = match choice.counters {
        Counters::Metric { field, .. } => Some(field),
        _ => None,
    };
    let counter = match place.counter {
        assign::Counter::General(n) => Counter::General(n),
        assign::Counter::Fixed(n) => Counter::Fixed(n),
        assign::Counter::Metric(_) => Counter::Fixed(3),
    };
    let errata = request.errata.split('|').filter(|id| !id.is_empty());
    let errata = errata.map(|id| format!("erratum {id}"));
    let table = known.core.as_ref().filter(|core| core.find(&request.name).is_some());
    let notes = request.notes.iter().map(ToString::to_string);
    Ok(Counted {
        number,
        event: request.label.clone().unwrap_or_else(|| request.text.clone()),
        counter,
        selection,
        merges,
        counters,
        metric,
        level: request.precise,
        retired: request.retire_latency,
        counting: Counting {
            name: match table {
                Some(core) => format!("{}::{}", core.name(), request.name),
                None => request.name.clone(),
            },
            counter: match metric {
                Some(field) => format!("PERF_METRICS field {field}, in 255ths of {counter}"),
                None => counter.to_string(),
            },
            pass,
            remarks: errata.chain(notes).collect(),
            ..Counting::default()
        },
    })
}

#[cfg(test)]
mod tests;
