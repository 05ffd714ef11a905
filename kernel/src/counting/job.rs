//! The job kind `count`: from its requests to its record.
//!
//! Whoever runs the tasks tells [`CountRun`] of every switch, interrupts off. All that runs is counted for the system,
//! so that the tasks and the kernel add up to the machine.

use super::address::{AddressError, AddressGate};
use super::contexts::{ContextError, Contexts};
use super::gate::{Gate, IN_RING_0};
use super::owner::{Ask, Claim, Force, Owner, Right, Scope};
use super::request::{AtOverflow, Notify, Request, Run};
use super::session::Session;
use super::snapshot::{Clocks, Events, Snapshot, SnapshotError, Sources, take};
use super::{Count, CountingError, Counts, Platform, Set, SetError, Sharing};
use crate::events::Known;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::Driver;
use protocol::count::{self, CountRequest};
use protocol::limits::MAX_INTERVALS;
use protocol::record::{
    CountInterval, CountResult, CountSnapshot, CountValue, CountedEvent, Uncounted, VectorCount,
};

/// Most figures of a series: some 10 bytes each on the serial line.
const MAX_FIGURES: usize = 5_000;

/// A job's set, and what of it cannot be counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The set; `None`: nothing can be counted.
    pub set: Option<Set>,
    /// Left out, each with its reason.
    pub uncounted: Vec<Uncounted>,
}

/// Builds the set of a job. A request that cannot be counted is left out with its reason, and the rest goes on; a
/// request that it was to start counts from the beginning.
#[must_use]
pub fn plan(item: &count::Count, known: &Known) -> Planned {
    let mut left: Vec<usize> = (0..item.requests.len()).collect();
    let mut uncounted = Vec::new();
    let sharing = if item.together { Sharing::Together } else { Sharing::InTurns };
    while !left.is_empty() {
        let requests = left.iter().map(|&index| request(&item.requests[index], &left));
        let (index, reason) = match Set::build(requests.collect(), sharing, known) {
            Ok(set) => match super::gate::in_ring_0(&set).filter(|_| !item.gate.is_empty()) {
                None => return Planned { set: Some(set), uncounted },
                Some(index) => (index, IN_RING_0.to_string()),
            },
            Err(SetError::Request { index, reason, attribute, .. }) => {
                let attribute = attribute.map_or(String::new(), |name| alloc::format!("{name}: "));
                (index, attribute + &reason)
            }
            Err(SetError::Conflict(conflict)) if conflict.requests.len() == 1 => {
                (conflict.requests[0].0, conflict.to_string())
            }
            // All of them are to blame.
            Err(error) => {
                let all = left.iter().map(|&index| refused(&item.requests[index], &error));
                uncounted.extend(all);
                break;
            }
        };
        uncounted.push(refused(&item.requests[left[index]], &reason));
        left.remove(index);
    }
    Planned { set: None, uncounted }
}

fn refused(request: &CountRequest, reason: impl ToString) -> Uncounted {
    Uncounted { event: request.event.to_string(), reason: reason.to_string() }
}

/// A request of a job in the library's terms; `left` are the numbers of those that are still there.
fn request(request: &CountRequest, left: &[usize]) -> Request {
    let place = |&other: &u16| left.iter().position(|&index| index == usize::from(other));
    Request {
        preset: request.preset,
        every: request.every,
        starts: request.starts.iter().filter_map(place).collect(),
        correlate: request.correlate,
        ..Request::new(&request.event)
    }
}

/// The machine's own figures beside a session's counts.
struct Beside<'a> {
    session: &'a mut Session,
    platform: &'a mut dyn Platform,
    switches: u64,
    /// Which registers there are.
    clocks: Clocks,
}

impl Sources for Beside<'_> {
    fn sequence(&mut self) -> u64 {
        let all = (0..=255).map(|vector| self.platform.taken(vector));
        all.fold(self.switches, u64::wrapping_add)
    }

    fn tsc(&mut self) -> u64 {
        self.platform.tsc()
    }

    fn clocks(&mut self) -> Clocks {
        self.clocks.again(self.platform)
    }

    fn events(&mut self) -> Events {
        let taken = core::array::from_fn(|vector| self.platform.taken(vector as u8));
        Events { taken, context_switches: self.switches }
    }

    fn counts(&mut self, counts: &mut Counts) -> Result<(), CountingError> {
        self.session.sample(self.platform, counts)
    }
}

/// What lies between two snapshots.
fn between(first: &Snapshot, last: &Snapshot) -> CountSnapshot {
    let since = |read: fn(&Clocks) -> Option<u64>| {
        Some(read(&last.clocks)?.wrapping_sub(read(&first.clocks)?))
    };
    let both = first.events.taken.iter().zip(&last.events.taken);
    let taken = (0..=255)
        .zip(both)
        .map(|(vector, (first, last))| VectorCount { vector, count: last.wrapping_sub(*first) });
    CountSnapshot {
        tsc: last.tsc[0].wrapping_sub(first.tsc[1]),
        width: last.tsc[1].wrapping_sub(last.tsc[0]),
        aperf: since(|clocks| clocks.aperf),
        mperf: since(|clocks| clocks.mperf),
        smis: since(|clocks| clocks.smi_count),
        interrupts: taken.filter(|taken| taken.count > 0).collect(),
        switches: last.events.context_switches.wrapping_sub(first.events.context_switches),
        retries: first.retries + last.retries,
    }
}

/// A job that is being counted.
#[derive(Clone, Debug)]
pub struct CountRun {
    contexts: Contexts,
    claim: Claim,
    /// TSC at the beginning.
    begin: u64,
    ticks: u64,
    /// Ticks of a row of the series; 0: there is none.
    row_ticks: u64,
    /// Rows: TSC, and the raw counts.
    rows: Vec<(u64, Vec<u64>)>,
    /// How many of them are full.
    full: usize,
    dropped: u64,
    last: Counts,
    now: Counts,
    clocks: Clocks,
    /// At the start.
    first: Option<Snapshot>,
    /// From there to the end.
    snapshot: Option<CountSnapshot>,
    /// Counting starts and stops at addresses.
    gate: Option<Gate>,
}

impl CountRun {
    /// Programs the set of `item`. Nothing counts yet.
    ///
    /// # Errors
    /// The PMU refuses a request.
    pub fn begin(
        item: &count::Count,
        set: Set,
        driver: Driver,
        platform: &mut dyn Platform,
    ) -> Result<Self, ContextError> {
        let at_overflow = match item.at_overflow {
            count::AtOverflow::Same => AtOverflow::Same,
            count::AtOverflow::Next => AtOverflow::Next,
            count::AtOverflow::Stop => AtOverflow::Stop,
        };
        let run = Run { at_overflow, passes: item.passes, notify: Notify::empty() };
        let tasks = u16::try_from(item.workload.tasks.len()).unwrap_or(u16::MAX);
        let (mut last, now) = (Counts::new(&set), Counts::new(&set));
        let requests = set.requests().len();
        for (count, request) in last.counts_mut().iter_mut().zip(set.requests()) {
            count.raw = request.preset;
        }
        let mut contexts = Contexts::new(Owner::new(Ok(()), tasks), tasks);
        let row_ticks = match item.workload.tick_ns {
            0 => 0,
            tick_ns => item.interval_ns.div_ceil(tick_ns),
        };
        let rows = match row_ticks {
            0 => 0,
            _ => MAX_INTERVALS.min(MAX_FIGURES / requests),
        };
        // A tick comes in an interrupt, so the rows are there beforehand.
        let rows = alloc::vec![(0, alloc::vec![0; requests]); rows];
        let ask = Ask { scope: Scope::System, right: Right::Any, force: Force::Ask };
        let claim = contexts.bind(set, run, driver, ask, platform)?;
        // A binding counts at once; the kernel keeps what little that is.
        contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
        Ok(Self {
            contexts,
            claim,
            begin: 0,
            ticks: 0,
            row_ticks,
            rows,
            full: 0,
            dropped: 0,
            last,
            now,
            clocks: Clocks::read(platform),
            first: None,
            snapshot: None,
            gate: Gate::of(item),
        })
    }

    /// The tasks are in memory, each at one of `begins`. Returns what the debug registers are to have, and during which
    /// task, if counting starts and stops at addresses.
    ///
    /// # Errors
    /// The addresses cannot be watched.
    pub fn place(
        &mut self,
        mut begins: impl Iterator<Item = u64>,
    ) -> Result<Option<(u16, AddressGate)>, AddressError> {
        let Some(gate) = &mut self.gate else { return Ok(None) };
        let task = gate.task();
        let Some(begin) = begins.nth(usize::from(task)) else { return Ok(None) };
        Ok(Some((task, gate.place(begin)?)))
    }

    /// A debug exception. Returns whether it was one of the gate's.
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(&mut self, dr6: u64, platform: &mut dyn Platform) -> Result<bool, ContextError> {
        let Some(gate) = &mut self.gate else { return Ok(false) };
        let session = self.contexts.session(&self.claim)?;
        Ok(gate.trapped(dr6, session, platform).map_err(CountingError::from)?)
    }

    /// Counts from here on, for the kernel until the first switch; or from the gate's first address on.
    ///
    /// # Errors
    /// A register refuses.
    pub fn start(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        let first = self.snapshot(platform)?;
        self.first = Some(first);
        self.begin = platform.tsc();
        if self.gate.is_some() {
            return Ok(());
        }
        Ok(self.contexts.session(&self.claim)?.start(platform).map_err(CountingError::from)?)
    }

    /// Counts no more. The rest is for the one that ran last.
    ///
    /// # Errors
    /// A register refuses.
    pub fn stop(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.contexts.session(&self.claim)?.stop(platform).map_err(CountingError::from)?;
        if let (Some(first), None) = (self.first, &self.snapshot) {
            let last = self.snapshot(platform)?;
            self.snapshot = Some(between(&first, &last));
        }
        Ok(())
    }

    /// The counts, into `now`, and the machine's figures of the same moment.
    fn snapshot(&mut self, platform: &mut dyn Platform) -> Result<Snapshot, ContextError> {
        let switches = self.contexts.switches();
        let session = self.contexts.session(&self.claim)?;
        let clocks = self.clocks;
        let taken = take(&mut Beside { session, platform, switches, clocks }, &mut self.now);
        taken.map_err(|error| match error {
            SnapshotError::Counting(error) => error.into(),
            // Interrupts are off here.
            SnapshotError::Unsettled => ContextError::Unsettled,
        })
    }

    /// A task has begun.
    pub fn created(&mut self, task: u16, parent: Option<u16>) {
        self.contexts.created(task, parent);
    }

    /// `from` ran until now, `to` runs from here on; `None` is the kernel.
    ///
    /// # Errors
    /// A register refuses.
    pub fn switched(
        &mut self,
        from: Option<u16>,
        to: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let Some(gate) = &mut self.gate else {
            return Ok(self.contexts.switched(from, to, platform)?);
        };
        let session = self.contexts.session(&self.claim)?;
        gate.suspend(from, session, platform).map_err(CountingError::from)?;
        self.contexts.switched(from, to, platform)?;
        let session = self.contexts.session(&self.claim)?;
        Ok(gate.resume(to, session, platform).map_err(CountingError::from)?)
    }

    /// A task has ended.
    ///
    /// # Errors
    /// A register refuses.
    pub fn exited(
        &mut self,
        task: u16,
        parent: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        self.contexts.exited(task, parent, platform)
    }

    /// The timer has ticked.
    ///
    /// # Errors
    /// A register refuses.
    pub fn tick(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.ticks += 1;
        if self.row_ticks != 0 && self.ticks.is_multiple_of(self.row_ticks) {
            self.row(platform)?;
        }
        // Only requests that count take turns: those of a gate's task that is not over.
        let task = self.gate.as_ref().map(Gate::task);
        if let Some(gate) = &mut self.gate {
            let session = self.contexts.session(&self.claim)?;
            gate.resume(task, session, platform).map_err(CountingError::from)?;
        }
        self.contexts.tick(platform)?;
        if let Some(gate) = &mut self.gate {
            let session = self.contexts.session(&self.claim)?;
            gate.suspend(task, session, platform).map_err(CountingError::from)?;
        }
        Ok(())
    }

    /// The PMU's interrupt, after the handler.
    ///
    /// # Errors
    /// A register refuses.
    pub fn interrupt(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.contexts.interrupt(platform)
    }

    fn row(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.contexts.session(&self.claim)?.sample(platform, &mut self.now)?;
        let Some((tsc, raw)) = self.rows.get_mut(self.full) else {
            self.dropped += 1;
            return Ok(());
        };
        *tsc = self.now.tsc.wrapping_sub(self.begin);
        let both = self.now.counts().iter().zip(self.last.counts());
        for (row, (now, last)) in raw.iter_mut().zip(both) {
            *row = now.raw.wrapping_sub(last.raw);
        }
        self.full += 1;
        Ok(self.last.copy(&self.now).map_err(CountingError::from)?)
    }

    /// Ends it, and gives the counters back. Item, name, times, how the tasks ran and what could not be counted are the
    /// caller's to fill in.
    ///
    /// # Errors
    /// A register refuses.
    pub fn finish(
        mut self,
        item: &count::Count,
        platform: &mut dyn Platform,
    ) -> Result<CountResult, ContextError> {
        // Nothing more for the kernel, so that the parts add up to the whole.
        self.stop(platform)?;
        // The last row may be a short one, of what came after the last tick.
        if self.row_ticks != 0 {
            self.row(platform)?;
        }
        let mut tasks = Vec::new();
        for task in 0..item.workload.tasks.len() {
            tasks.push(self.contexts.task(&self.claim, task as u16, platform)?.clone());
        }
        let kernel = self.contexts.kernel(&self.claim, platform)?.clone();
        let switches = self.contexts.switches();
        let session = self.contexts.session(&self.claim)?;
        session.sample(platform, &mut self.now)?;
        let mut events = Vec::new();
        for (number, request) in session.set().requests().iter().enumerate() {
            let place = session.set().groups().iter().enumerate().find_map(|(group, members)| {
                let (_, one) = members.iter().find(|(request, _)| *request == number)?;
                Some((group, one))
            });
            let Some((group, one)) = place else { continue };
            let sum = value(&self.now.counts()[number]);
            events.push(CountedEvent {
                event: one.event.clone(),
                name: one.counting.name.clone(),
                counter: one.counting.counter.clone(),
                group: group as u32,
                sum,
                // The boot processor alone counts.
                cpus: alloc::vec![sum],
                kernel: value(&kernel.counts()[number]),
                tasks: tasks.iter().map(|counts| value(&counts.counts()[number])).collect(),
                overflows: request.every.map(|_| session.overflows()[number]),
                remarks: one.counting.remarks.clone(),
            });
        }
        let (groups, passes) = (session.set().groups().len() as u32, session.passes());
        self.contexts.unbind(&self.claim, platform)?;
        let rows = self.rows.into_iter().take(self.full);
        Ok(CountResult {
            events,
            intervals: rows.map(|(tsc, raw)| CountInterval { tsc, raw }).collect(),
            groups,
            passes,
            ticks: self.ticks,
            switches,
            dropped: self.dropped,
            snapshot: self.snapshot,
            gate: self.gate.as_ref().map(Gate::result),
            ..CountResult::default()
        })
    }
}

fn value(count: &Count) -> CountValue {
    let Count { raw, counted, enabled } = *count;
    CountValue { raw, scaled: count.scaled(), counted, enabled }
}
