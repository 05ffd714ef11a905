//! Events of the uncore in addition to counts: from what a job requests to rounds, which are counted in turn, and to their names in the
//! report.

mod whole;

pub use whole::{Whole, begin};

use crate::snippet::Runner;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::energy::Shared;
use arch::pmu::uncore::{Event, NoUncore, Placed, Register, Uncore, Unit};
use events::request::Request;
use events::uncore;
use protocol::record::{Counting, Uncounted};

/// An event that a job requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// What the figure is called: the label that the job gives it, or its text.
    pub event: String,
    /// What is counted, by perf's name of the unit.
    pub name: String,
    /// The event.
    pub what: Event,
}

impl Wanted {
    /// What a request requests, if it is of the uncore.
    ///
    /// # Errors
    /// Why it means nothing.
    #[must_use]
    pub fn of(request: &Request) -> Option<Result<Self, String>> {
        let event = match uncore::of(request)? {
            Ok(event) => event,
            Err(refused) => return Some(Err(refused.to_string())),
        };
        let unit = match event.unit {
            uncore::Unit::Clock => Unit::Clock,
            uncore::Unit::Arbiter => Unit::Arbiter,
            uncore::Unit::Caching => Unit::Caching,
            uncore::Unit::Memory => Unit::Memory,
            uncore::Unit::Link => Unit::Link,
            uncore::Unit::Io => Unit::Io,
            uncore::Unit::Coherence => Unit::Coherence,
            uncore::Unit::Mesh => Unit::Mesh,
            uncore::Unit::Power => Unit::Power,
        };
        let what = Event { unit, select: event.select, filter: event.filter, first: event.first };
        let label = request.attributes.label.as_ref().unwrap_or(&request.text);
        let name = format!("{}/config={:#x}/", event.unit.name(), event.select);
        Some(Ok(Self { event: label.clone(), name, what }))
    }
}

/// An event with its counter.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What it is called.
    pub event: String,
    /// What is counted, by perf's name of the unit.
    pub name: String,
    /// Where it is counted.
    pub placed: Placed,
}

/// Events that are counted at the same time.
pub type Round = Vec<Counted>;

/// Counters that run: those of an event in one package.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The number of the event in its round.
    pub event: usize,
    /// How many units count it, and the first register.
    pub place: (u32, Register),
    /// Who reads it, and for which processors.
    pub shared: Shared,
}

impl Counter {
    /// That of the processor which measures alone.
    #[must_use]
    pub const fn of_one(event: usize, place: (u32, Register)) -> Self {
        Self { event, place, shared: Shared { reader: 0, processors: Vec::new() } }
    }
}

/// The rounds of what can be counted; the rest goes to `uncounted`. Those of a group are in one round, if that is possible.
#[must_use]
pub fn rounds(
    wanted: &[Vec<Wanted>],
    uncore: impl FnOnce() -> Result<Uncore, NoUncore>,
    uncounted: &mut Vec<Uncounted>,
) -> Vec<Round> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let uncore = uncore();
    let mut names: Vec<&Wanted> = Vec::new();
    let mut refuse = |one: &Wanted, reason: String| {
        if uncounted.iter().all(|other| other.event != one.event) {
            uncounted.push(Uncounted { event: one.event.clone(), reason });
        }
    };
    let mut groups = Vec::new();
    for group in wanted {
        let mut events = Vec::new();
        for one in group {
            let checked = uncore.as_ref().map_err(ToString::to_string);
            let checked = checked
                .and_then(|uncore| uncore.check(&one.what).map_err(|refusal| refusal.to_string()));
            let known = names.iter().find(|known| known.what == one.what);
            match (checked, known) {
                (Err(reason), _) => refuse(one, reason),
                (Ok(()), Some(known)) if known.event != one.event => {
                    refuse(one, format!("it is counted as {}", known.event));
                }
                (Ok(()), known) => {
                    if known.is_none() {
                        names.push(one);
                    }
                    events.push(one.what);
                }
            }
        }
        if !events.is_empty() {
            groups.push(events);
        }
    }
    let Ok(uncore) = uncore else { return Vec::new() };
    let counted = |placed: Placed| {
        let known = names.iter().find(|known| known.what == placed.event)?;
        Some(Counted { event: known.event.clone(), name: known.name.clone(), placed })
    };
    uncore
        .rounds(&groups)
        .into_iter()
        .map(|all| all.into_iter().filter_map(counted).collect())
        .collect()
}

/// Programs the round of a pass: they take turns. What cannot be programmed is left out from then on. Returns the names of the others, and
/// how they are counted: each once for every package.
pub fn programmed(
    runner: &mut impl Runner,
    rounds: &mut [Round],
    pass: usize,
    uncounted: &mut Vec<Uncounted>,
) -> Vec<(String, Counting)> {
    let Some(number) = pass.checked_rem(rounds.len()) else { return Vec::new() };
    let round = &mut rounds[number];
    loop {
        let placed: Vec<Placed> = round.iter().map(|one| one.placed).collect();
        match runner.program_uncore(&placed) {
            Ok(counters) => {
                let named = |counter| named(round, counter, pass as u32);
                return counters.into_iter().filter_map(named).collect();
            }
            Err((number, refusal)) => {
                let event = round.remove(number).event;
                uncounted.push(Uncounted { event, reason: refusal.to_string() });
            }
        }
    }
}

fn named(round: &[Counted], of: Counter, pass: u32) -> Option<(String, Counting)> {
    let (units, first) = of.place;
    let one = round.get(of.event)?;
    let unit = one.name.split('/').next().unwrap_or_default();
    let counter = format!("counter {} of the package's {unit}, {first}", one.placed.counter);
    let (name, Shared { reader, processors }) = (one.name.clone(), of.shared);
    let counting =
        Counting { name, counter, pass, units, reader, processors, ..Counting::default() };
    Some((one.event.clone(), counting))
}

#[cfg(test)]
mod tests;
