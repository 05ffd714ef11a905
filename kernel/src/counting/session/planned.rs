//! The paths that are taken most often, by what was planned when the set was bound. Each has a longer way for all else, which
//! it leaves everything to before it has changed anything that counts.

use super::Session;
use super::group::{FROZEN, Readings};
use crate::counting::Counts;
use crate::counting::access::Access;
use crate::counting::charged::Charged;
use arch::pmu::driver::Write;

impl Session {
    /// Reads the counts of all requests into `counts`. Returns whether that is all; else [`Session::sample`] has to go the
    /// longer way.
    #[inline]
    pub fn read_planned(&mut self, machine: &mut impl Access, counts: &mut Counts) -> bool {
        if !self.readings.now.is_whole(counts) {
            return self.read_some(machine, counts);
        }
        counts.generation = self.generation;
        let reading = &mut *self.readings.now;
        let now = machine.tsc();
        counts.tsc = now;
        reading.run(machine, now, counts.counts_mut())
    }

    /// The same of a set of several groups.
    #[inline(never)]
    fn read_some(&mut self, machine: &mut impl Access, counts: &mut Counts) -> bool {
        if !counts.is_of(self.set.id()) {
            return false;
        }
        let now = machine.tsc();
        (counts.generation, counts.tsc) = (self.generation, now);
        let counts = counts.counts_mut();
        self.readings.now.run_some(machine, now, &self.totals, &self.timed, counts)
    }

    /// Adds what was counted since `last` to `to`, and brings `last` up to date. Returns whether that is all; else what is
    /// missing lies between `last` and the counts of [`Session::sample`].
    #[inline(always)]
    pub fn charge_planned(
        &mut self,
        machine: &mut impl Access,
        last: &mut Charged,
        to: &mut Counts,
    ) -> bool {
        let reading = &mut *self.readings.now;
        if !reading.is_whole(to) {
            return false;
        }
        let now = machine.tsc();
        (to.generation, to.tsc) = (self.generation, now);
        reading.charge(machine, now, last, to.counts_mut())
    }

    /// Gives the counters to the next group, if nothing has overflowed and that group's turn was planned. Returns whether it
    /// did; else the counters may stand still already, and [`Session::next`] has to go the longer way.
    #[inline]
    pub fn next_planned(&mut self, machine: &mut impl Access) -> bool {
        let next = if self.group + 1 < self.turns.len() { self.group + 1 } else { 0 };
        let Some(turn) = self.turns.get_mut(next).filter(|_| self.running) else { return false };
        // The last pass ends the set.
        if next == 0 && self.passes + 1 == self.run.passes {
            return false;
        }
        if !machine.write(&turn.stop) {
            return false;
        }
        let now = machine.tsc();
        let ticks = now.wrapping_sub(self.since);
        let Readings { now: reading, .. } = &mut self.readings;
        if !reading.is_quiet(machine, FROZEN) || !reading.end(machine, ticks, &mut self.totals) {
            return false;
        }
        // All is well: the turn is over.
        for total in &mut self.totals {
            total.enabled = total.enabled.wrapping_add(ticks);
        }
        reading.discard();
        self.readings.turn(self.group, next);
        (self.group, self.by_plan) = (next, true);
        let reading = &mut self.readings.now;
        let mut refused = turn.writes.iter().find(|write| !machine.write(write)).copied();
        for line in &mut reading.lines {
            let zero = Write::new(line.msr, 0);
            if !machine.write(&zero) {
                refused = Some(zero);
            }
            line.begin(self.totals.get(line.request()).map_or(0, |total| total.raw));
        }
        let interrupts = machine.interrupts();
        if interrupts != turn.interrupts {
            // As long as none comes, the overflows stay as they are.
            turn.interrupts = interrupts;
            for active in &mut self.active[next] {
                active.told = machine.overflows(active.count.counter());
            }
        }
        machine.follow(turn.counters, turn.start.value);
        let start = turn.start;
        if next == 0 {
            self.pass(now);
        }
        self.since = machine.tsc();
        self.readings.now.resume(interrupts, self.since);
        if !machine.write(&start) {
            refused = Some(start);
        }
        self.refused = refused;
        refused.is_none()
    }
}
