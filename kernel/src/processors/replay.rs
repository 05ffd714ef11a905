//! The leading processor's measurement, which takes notes for the others, and a measurement out of such notes.

use super::{ProcessorSet, Ran};
use crate::energy::Meters;
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::Runner;
use crate::uncore::Counter;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::Trap;
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Uncore};
use arch::smp::skew;
use protocol::job::Snippet;
use protocol::record::{Fault, Within};

/// What happened at one call of the measurement.
#[derive(Clone, Debug)]
pub enum Note {
    /// A pass was programmed, or not.
    Programmed(Result<(), (usize, String)>),
    /// A run: ticks and counts, and whether PERF_METRICS overflowed on any member.
    Ran(u64, Vec<u64>, bool),
    /// Events of the uncore were programmed, or not.
    Uncore(Result<Vec<Counter>, (usize, Refusal)>),
}

/// Runs all members, and is the first of them to the measurement.
pub struct Recorder<'a, C> {
    set: &'a mut C,
    plan: Rc<Plan>,
    counts: Vec<u64>,
    metrics_overflowed: bool,
    /// The counters of the uncore, if they were asked for.
    pub uncore: Option<Result<Uncore, NoUncore>>,
    /// Notes for each of the others.
    pub notes: Vec<VecDeque<Note>>,
    /// From the first to the last beginning of each run.
    pub skews: Vec<u64>,
    /// The processor on which the snippet raised an exception.
    pub trapped: Option<u32>,
}

impl<'a, C: ProcessorSet> Recorder<'a, C> {
    /// Nothing noted yet.
    pub fn new(set: &'a mut C, plan: Rc<Plan>) -> Self {
        let notes = set.members()[1..].iter().map(|_| VecDeque::new()).collect();
        let (counts, skews) = (Vec::new(), Vec::new());
        let metrics_overflowed = false;
        Self { set, plan, counts, metrics_overflowed, uncore: None, notes, skews, trapped: None }
    }

    fn note(&mut self, note: &Note) {
        self.notes.iter_mut().for_each(|notes| notes.push_back(note.clone()));
    }
}

impl<C: ProcessorSet> Runner for Recorder<'_, C> {
    fn prepare(&mut self, _: &Snippet) -> Rc<Plan> {
        self.plan.clone()
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        // A leader without PMU counts nothing, and so does nobody: the plan is made for its PMU.
        let missing = self.set.members()[0].pmu.as_ref().err().filter(|_| !pass.is_empty());
        let done = match missing {
            Some(reason) => Err((0, reason.clone())),
            None => self.set.program(pass),
        };
        self.metrics_overflowed = false;
        self.note(&Note::Programmed(done.clone()));
        done
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.set.load(snippet, copies);
    }

    fn beat(&mut self, within: Within) {
        self.set.beat(within);
    }

    fn meters(&mut self) -> Meters<'_> {
        self.set.meters()
    }

    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        let set = &mut self.set;
        *self.uncore.get_or_insert_with(|| set.uncore())
    }

    fn program_uncore(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        let done = self.set.program_uncore(round);
        self.note(&Note::Uncore(done.clone()));
        done
    }

    fn uncore_counts(&self) -> &[u64] {
        self.set.uncore_counts()
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.set.load_once(snippet);
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        let all = self.set.run();
        let starts: Vec<u64> = all.iter().map(|ran| ran.start).collect();
        self.metrics_overflowed |= all.iter().any(|ran| ran.metrics_overflowed);
        let mut first = None;
        for (place, Ran { ended, counts, .. }) in all.into_iter().enumerate() {
            let ticks = ended.inspect_err(|_| {
                self.trapped = Some(self.set.members()[place].number);
            })?;
            match place {
                0 => first = Some((ticks, counts)),
                other => self.notes[other - 1].push_back(Note::Ran(
                    ticks,
                    counts,
                    self.metrics_overflowed,
                )),
            }
        }
        self.skews.push(skew(&starts));
        let (ticks, counts) = first.unwrap_or_default();
        self.counts = counts;
        Ok(ticks)
    }

    fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn metrics_overflowed(&self) -> bool {
        self.metrics_overflowed
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        self.set.explain(trap, snippet)
    }
}

/// A measurement out of notes. The measurement asks in the same order as it did when they were taken.
pub struct Replay {
    plan: Rc<Plan>,
    notes: VecDeque<Note>,
    counts: Vec<u64>,
    metrics_overflowed: bool,
    uncore: Result<Uncore, NoUncore>,
    /// One for each counter of the uncore that the leader had: what they counted is in the leader's figures.
    of_leader: Vec<u64>,
    absent: Option<String>,
}

impl Replay {
    /// `uncore`: what the leader found, if it looked. `absent`: why this processor has no PMU; only its time is then measured.
    #[must_use]
    pub fn new(
        plan: Rc<Plan>,
        notes: VecDeque<Note>,
        uncore: Option<Result<Uncore, NoUncore>>,
        absent: Option<String>,
    ) -> Self {
        let uncore = uncore.filter(|_| absent.is_none()).unwrap_or(Err(NoUncore::NotHere));
        let (counts, of_leader) = (Vec::new(), Vec::new());
        Self { plan, notes, counts, metrics_overflowed: false, uncore, of_leader, absent }
    }
}

impl Runner for Replay {
    fn prepare(&mut self, _: &Snippet) -> Rc<Plan> {
        self.plan.clone()
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        if let Some(reason) = self.absent.as_ref().filter(|_| !pass.is_empty()) {
            return Err((0, reason.clone()));
        }
        while let Some(note) = self.notes.pop_front() {
            match note {
                Note::Programmed(done) if self.absent.is_none() => return done,
                Note::Programmed(Ok(())) => return Ok(()),
                // The leader's refusals of single events, which this processor did not get so far as to meet.
                Note::Programmed(Err(_)) => {}
                // Passed over by one that has no PMU.
                Note::Uncore(_) => {}
                Note::Ran(..) => break,
            }
        }
        Err((pass.len(), "the notes ended".to_string()))
    }

    fn load(&mut self, _: &Snippet, _: u64) {}

    fn load_once(&mut self, _: &Snippet) {}

    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        self.uncore
    }

    fn program_uncore(&mut self, _: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        let Some(Note::Uncore(done)) = self.notes.pop_front() else { return Ok(Vec::new()) };
        self.of_leader = alloc::vec![0; done.as_ref().map_or(0, Vec::len)];
        done
    }

    fn uncore_counts(&self) -> &[u64] {
        &self.of_leader
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        // Passed over by one that has no PMU.
        while matches!(self.notes.front(), Some(Note::Uncore(_))) {
            self.notes.pop_front();
        }
        let (ticks, counts, overflowed) = match self.notes.pop_front() {
            Some(Note::Ran(ticks, counts, overflowed)) => (ticks, counts, overflowed),
            // `measure` asks for nothing that was not noted.
            _ => {
                let most = self.plan.passes.iter().map(Vec::len).max();
                (0, alloc::vec![0; most.unwrap_or(0)], false)
            }
        };
        (self.counts, self.metrics_overflowed) = (counts, overflowed);
        Ok(ticks)
    }

    fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn metrics_overflowed(&self) -> bool {
        self.metrics_overflowed
    }

    fn explain(&self, trap: &Trap, _: &Snippet) -> Fault {
        // No run of this runner traps; an exception ends the leader's measurement.
        crate::snippet::fault::unknown(trap)
    }
}
