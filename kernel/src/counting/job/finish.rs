//! The end: what one processor counted.

use super::{BindingOfSet, CountRun, Held, Outcome, PartOfSet, value};
use crate::counting::contexts::ContextError;
use crate::counting::gate::Gate;
use crate::counting::{Count, Counts, Platform};
use crate::snippet::measure::METRICS_OVERFLOWED;
use alloc::vec::Vec;
use protocol::record::{
    ChangedEvent, CountGate, CountInterval, CountReading, CountSnapshot, CountedEvent, StaleReading,
};

/// What one processor counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Of each set.
    pub sets: Vec<PartOfSet>,
    /// The series.
    pub intervals: Vec<CountInterval>,
    /// Rows that there was no room for.
    pub dropped: u64,
    /// Timer ticks.
    pub ticks: u64,
    /// Context switches.
    pub switches: u64,
    /// The machine's own figures.
    pub snapshot: Option<CountSnapshot>,
    /// How counting started and stopped, if that was at addresses, of each task that has some.
    pub gates: Vec<CountGate>,
    /// What tasks read of themselves.
    pub readings: Vec<CountReading>,
    /// Readings that there was no room for.
    pub readings_dropped: u64,
    /// Events that were replaced by others.
    pub changed: Vec<ChangedEvent>,
    /// Readings of counts that were no longer the task's.
    pub stale: Vec<StaleReading>,
    /// When sets had the counters, if that was not all the time.
    pub bindings: Vec<BindingOfSet>,
    /// Bindings that there was no room for.
    pub bindings_dropped: u64,
    /// How it stood with each set at the end.
    pub outcomes: Vec<Outcome>,
}

impl CountRun {
    /// Ends it, and gives the counters back.
    ///
    /// # Errors
    /// A register refuses.
    pub fn finish(mut self, platform: &mut dyn Platform) -> Result<Part, ContextError> {
        // Nothing more for the kernel, so that the parts add up to the whole.
        self.stop(platform)?;
        // The last row may be a short one, of what came after the last tick.
        if let Some(series) = &mut self.series {
            series.row(self.begin, &mut self.contexts, platform)?;
        }
        let mut part = Part {
            ticks: self.ticks,
            switches: self.contexts.switches(),
            snapshot: self.snapshot.take(),
            gates: self.gate.as_deref().map(Gate::results).unwrap_or_default(),
            ..Part::default()
        };
        if let Some(series) = self.series.take() {
            (part.intervals, part.dropped) = series.rows();
        }
        self.readings.rows(&mut part);
        self.bindings.end(&self.held, &mut self.contexts, platform)?;
        for Held { number, bindings, .. } in core::mem::take(&mut self.held) {
            for binding in bindings {
                let own = self.part_of(number, binding, platform)?;
                part.sets.extend(own.filter(|_| self.bindings.has_counted(number)));
            }
        }
        self.contexts.give_up(platform)?;
        (part.bindings, part.bindings_dropped, part.outcomes) = self.bindings.rows();
        Ok(part)
    }

    fn part_of(
        &mut self,
        number: usize,
        binding: usize,
        platform: &mut dyn Platform,
    ) -> Result<Option<PartOfSet>, ContextError> {
        let mut tasks = self.contexts.counts(binding, platform)?.to_vec();
        let kernel = tasks.pop();
        let session = self.contexts.session_of(binding);
        let (Some(kernel), Some(session)) = (kernel, session) else { return Ok(None) };
        let mut now = Counts::new(session.set());
        session.sample(platform, &mut now)?;
        let mut events = Vec::new();
        for (index, request) in session.set().requests().iter().enumerate() {
            let place = session.set().groups().iter().enumerate().find_map(|(group, members)| {
                let (_, one) = members.iter().find(|(request, _)| *request == index)?;
                Some((group, one))
            });
            let Some((group, one)) = place else { continue };
            let taken_out = self.gate.as_ref().and_then(|gate| gate.taken_out(index));
            let mut remarks = one.counting.remarks.clone();
            if one.metric.is_some() && session.metrics_overflowed() {
                remarks.push(METRICS_OVERFLOWED.into());
            }
            let value = |count: &Count, preset| match taken_out {
                None => value(count, preset),
                Some(_) => value(&not_less(*count, preset), preset),
            };
            events.push(CountedEvent {
                event: one.event.clone(),
                name: one.counting.name.clone(),
                counter: one.counting.counter.clone(),
                group: group as u32,
                sum: value(&now.counts()[index], request.preset),
                cpus: Vec::new(),
                kernel: value(&kernel.counts()[index], 0),
                tasks: tasks.iter().map(|counts| value(&counts.counts()[index], 0)).collect(),
                shares: Vec::new(),
                overflows: request.every.map(|_| session.overflows()[index]),
                taken_out,
                remarks,
            });
        }
        let groups = session.set().groups().len() as u32;
        Ok(Some(PartOfSet { number, events, groups, passes: session.passes() }))
    }
}

/// The count, or where it began if more was taken out than there was: what the kernel comes to varies where events are no
/// instructions.
const fn not_less(count: Count, preset: u64) -> Count {
    let came_to = count.raw.wrapping_sub(preset) as i64;
    if came_to < 0 { Count { raw: preset, ..count } } else { count }
}
