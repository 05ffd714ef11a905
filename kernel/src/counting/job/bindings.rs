//! When the sets of a job have this processor's counters: what its ledger decides is done here, and kept for the record.

use super::super::Platform;
use super::super::allocate::{Allocation, Evicted};
use super::super::contexts::{ContextError, Contexts};
use super::super::ledger::Ledger;
use super::super::owner::Claim;
use super::Held;
use alloc::vec;
use alloc::vec::Vec;
use protocol::job::count::{Count, When};
use protocol::job::limits::MAX_BINDINGS;
use protocol::record::{BindMoment, CountBinding};

/// Most figures of the bindings of a processor: some 10 bytes each on the serial line.
const MAX_FIGURES: usize = 5_000;

/// The sets of one processor.
#[derive(Clone, Debug)]
pub(super) struct Bindings {
    cpu: u16,
    ledger: Ledger,
    /// Whether anything can change while tasks run.
    scheduled: bool,
    /// Times at which something happens, the last one first: the tick, and the microseconds that the job says.
    due: Vec<(u64, u64)>,
    states: Vec<State>,
    rows: Vec<Row>,
    /// What each event of each row came to, one row behind the other.
    raw: Vec<u64>,
    dropped: u64,
}

/// How it stands with one of the sets that are held here.
#[derive(Clone, Debug)]
struct State {
    number: usize,
    /// Its first claim here, while it has the counters.
    claim: Option<Claim>,
    since: BindMoment,
    waited: Option<BindMoment>,
    /// Since when it waits.
    waits: Option<BindMoment>,
    /// Whether it has ever had the counters.
    counted: bool,
    /// What its events had come to when it lost them last.
    last: Vec<u64>,
    now: Vec<u64>,
}

/// A time for which a set had the counters.
#[derive(Clone, Copy, Debug)]
struct Row {
    number: usize,
    generation: u64,
    waited: Option<BindMoment>,
    since: BindMoment,
    until: Option<BindMoment>,
    evicted: Option<Evicted>,
    /// How many figures are its.
    events: usize,
}

/// A binding with the set that it is of, and the set that ended it by force.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingOfSet {
    /// The set's number.
    pub number: usize,
    /// The number of the set that evicted it.
    pub by: Option<usize>,
    /// The binding, without the other's name.
    pub binding: CountBinding,
}

/// How it stood with a set at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The set's number.
    pub number: usize,
    /// Whether it has the counters.
    pub allocation: Allocation,
    /// Who has taken them, if it has not had them since.
    pub evicted: Option<Evicted>,
    /// Since when it waits.
    pub waiting: Option<BindMoment>,
}

impl Bindings {
    /// Nobody has the counters yet, which `ledger` has decided about up to the start.
    pub(super) fn new(
        item: &Count,
        (cpu, ledger): (u16, Ledger),
        held: &[Held],
        contexts: &mut Contexts,
    ) -> Self {
        let sets = &item.sets;
        let moments = || sets.iter().flat_map(|set| set.schedule.moments());
        let tick_ns = item.workload.tick_ns;
        let time = |when: When| match when {
            When::Microseconds(us) => Some((when.tick(tick_ns)?, us)),
            When::Marker(_) => None,
        };
        let mut due: Vec<(u64, u64)> = moments().filter_map(time).collect();
        due.sort_unstable_by(|one, other| other.cmp(one));
        due.dedup();
        let scheduled = sets.iter().any(|set| set.schedule.is_given());
        let [rows, figures] = if scheduled { [MAX_BINDINGS, MAX_FIGURES] } else { [0; 2] };
        let mut state = |held: &Held| {
            let mut last = vec![0; held.events.len()];
            for &binding in &held.bindings {
                let requests = contexts.session_of(binding).map(|session| session.set().requests());
                for (last, request) in last.iter_mut().zip(requests.unwrap_or_default()) {
                    // What its counter starts from is no count.
                    *last = u64::wrapping_add(*last, request.preset);
                }
            }
            let (now, since) = (vec![0; last.len()], BindMoment::default());
            let (claim, waited, waits, counted) = (None, None, None, false);
            State { number: held.number, claim, since, waited, waits, counted, last, now }
        };
        Self {
            cpu,
            ledger,
            scheduled,
            due,
            states: held.iter().map(&mut state).collect(),
            rows: Vec::with_capacity(rows),
            raw: Vec::with_capacity(figures),
            dropped: 0,
        }
    }

    /// The next of the times that have come with this tick, in microseconds: several times of one tick are told one after the other,
    /// in their order.
    #[inline]
    pub(super) fn take_due(&mut self, tick: u64) -> Option<u64> {
        let &(at, us) = self.due.last()?;
        if at > tick {
            return None;
        }
        self.due.pop();
        Some(us)
    }

    /// Whether a marker means anything.
    pub(super) fn heeds(&self, marker: u32) -> bool {
        let mut sets = self.states.iter().map(|state| self.ledger.request(state.number));
        sets.any(|set| set.schedule.moments().any(|when| when == When::Marker(marker)))
    }

    /// A moment has come: a marker, or a time.
    pub(super) fn happens(
        &mut self,
        moment: BindMoment,
        held: &[Held],
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let any = match (moment.marker, moment.due_us) {
            (Some(marker), _) => {
                self.ledger.happens(|when| when == When::Marker(marker), Some(self.cpu))
            }
            (None, Some(us)) => self.ledger.happens(|when| when == When::Microseconds(us), None),
            (None, None) => false,
        };
        if any { self.settle(moment, held, contexts, platform) } else { Ok(()) }
    }

    /// Gives the counters to whom the ledger says.
    pub(super) fn settle(
        &mut self,
        moment: BindMoment,
        held: &[Held],
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let (ledger, cpu) = (&self.ledger, self.cpu);
        let Some(owner) = ledger.owner(cpu) else { return Ok(()) };
        let claims = held
            .iter()
            .flat_map(|held| held.bindings.iter().copied().zip(ledger.claims(held.number, cpu)));
        contexts.assign(owner, claims, platform)?;
        for (index, held) in held.iter().enumerate() {
            let state = &self.states[index];
            let claim = self.ledger.claims(state.number, cpu).next();
            if state.claim != claim {
                let evicted = self.ledger.evicted(state.number);
                self.close(index, Some((moment, evicted)), held, contexts, platform)?;
                let state = &mut self.states[index];
                state.claim = claim;
                if claim.is_some() {
                    (state.since, state.waited, state.counted) = (moment, state.waits.take(), true);
                }
            }
            let state = &mut self.states[index];
            match self.ledger.allocation(state.number) {
                Allocation::Waits { .. } => {
                    state.waits.get_or_insert(moment);
                }
                _ => state.waits = None,
            }
        }
        Ok(())
    }

    /// The time is over for which a set had the counters, if it has them: it lost them, or all ends.
    fn close(
        &mut self,
        index: usize,
        lost: Option<(BindMoment, Option<Evicted>)>,
        held: &Held,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let State { number, claim, since, waited, last, now, .. } = &mut self.states[index];
        let Some(claim) = claim.filter(|_| self.scheduled) else { return Ok(()) };
        now.fill(0);
        for &binding in &held.bindings {
            contexts.add_raw(binding, now, platform)?;
        }
        let events = now.len();
        let room = self.raw.capacity() - self.raw.len();
        if self.rows.len() == self.rows.capacity() || room < events {
            self.dropped += 1;
        } else {
            let figures = now.iter().zip(&*last).map(|(now, last)| now.wrapping_sub(*last));
            self.raw.extend(figures);
            self.rows.push(Row {
                number: *number,
                generation: claim.generation,
                waited: *waited,
                since: *since,
                until: lost.map(|(moment, _)| moment),
                evicted: lost.and_then(|(_, evicted)| evicted),
                events,
            });
        }
        last.copy_from_slice(now);
        Ok(())
    }

    /// Everything stands still: what is left goes to those that have the counters.
    pub(super) fn end(
        &mut self,
        held: &[Held],
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        for (index, held) in held.iter().enumerate() {
            self.close(index, None, held, contexts, platform)?;
        }
        Ok(())
    }

    /// Whether a set has ever had counters here.
    pub(super) fn has_counted(&self, number: usize) -> bool {
        self.states.iter().any(|state| state.number == number && state.counted)
    }

    /// The bindings in the order in which they ended, how many found no room, and how it stands with each set.
    pub(super) fn rows(self) -> (Vec<BindingOfSet>, u64, Vec<Outcome>) {
        let mut raw = &self.raw[..];
        let rows = self.rows.iter().map(|row| {
            let (own, rest) = raw.split_at(row.events);
            raw = rest;
            let binding = CountBinding {
                processor: self.cpu.into(),
                generation: row.generation,
                waited: row.waited,
                since: row.since,
                until: row.until,
                evicted_by: None,
                evicted: row.evicted.map(|evicted| evicted.evicted),
                raw: own.to_vec(),
            };
            BindingOfSet { number: row.number, by: row.evicted.map(|evicted| evicted.by), binding }
        });
        let rows = rows.collect();
        let outcomes = self.states.iter().map(|state| Outcome {
            number: state.number,
            allocation: self.ledger.allocation(state.number).clone(),
            evicted: self.ledger.evicted(state.number),
            waiting: state.waits,
        });
        (rows, self.dropped, outcomes.collect())
    }
}
