//! The paths that are taken most often, by what was planned when the set was bound. Each has a longer way for all else, which
//! it leaves everything to before it has changed anything that counts.

use super::Session;
use super::group::FROZEN;
use crate::counting::access::Access;
use crate::counting::session::Occasion;
use crate::counting::{Counts, Notify};
use arch::pmu::PmuError;

impl Session {
    /// Reads the counts of all requests into `counts`. Returns whether that is all; else [`Session::sample`] has to go the
    /// longer way.
    #[inline]
    pub fn read_planned(&mut self, machine: &mut impl Access, counts: &mut Counts) -> bool {
        if !counts.is_of(&self.set) {
            return false;
        }
        let now = machine.tsc();
        (counts.generation, counts.tsc) = (self.generation, now);
        let all = (&self.totals[..], &self.timed[..]);
        self.reading.run(machine, now, all, counts.counts_mut())
    }

    /// Adds what was counted since `last` to `to`, and brings `last` up to date. Returns whether that is all; else what is
    /// missing lies between `last` and the counts of [`Session::sample`].
    #[inline]
    pub fn charge_planned(
        &mut self,
        machine: &mut impl Access,
        last: &mut Counts,
        to: &mut Counts,
    ) -> bool {
        if !last.is_of(&self.set) || !to.is_of(&self.set) {
            return false;
        }
        let now = machine.tsc();
        for counts in [&mut *last, &mut *to] {
            (counts.generation, counts.tsc) = (self.generation, now);
        }
        self.reading.charge(machine, now, last.counts_mut(), to.counts_mut())
    }

    /// Gives the counters to the next group, if nothing has overflowed and that group's turn was planned. Returns whether it
    /// did; else the counters may stand still already, and [`Session::next`] has to go the longer way.
    ///
    /// # Errors
    /// A register refuses what it took before.
    #[inline]
    pub fn next_planned(&mut self, machine: &mut impl Access) -> Result<bool, PmuError> {
        let next = if self.group + 1 < self.planned.len() { self.group + 1 } else { 0 };
        let passes = self.passes + u64::from(next == 0);
        let is_last = next == 0 && passes == self.run.passes;
        let Ok([from, to]) = self.planned.get_disjoint_mut([self.group, next]) else {
            return Ok(false);
        };
        let Some(turn) = to.turn.as_ref().filter(|_| !is_last && self.running) else {
            return Ok(false);
        };
        if from.turn.is_none() || to.reading.is_none() || !self.reading.is_planned() {
            return Ok(false);
        }
        machine.write(turn.control, turn.off)?;
        let now = machine.tsc();
        if !self.reading.is_quiet(machine, FROZEN) {
            return Ok(false);
        }
        for line in &mut self.reading.lines {
            let total = self.totals.get_mut(line.request());
            let (Some(raw), Some(total)) = (line.read(machine), total) else { return Ok(false) };
            total.raw = raw;
        }
        // All is well: the turn is over.
        let ticks = now.wrapping_sub(self.since);
        for total in &mut self.totals {
            total.enabled = total.enabled.wrapping_add(ticks);
        }
        for line in &self.reading.lines {
            if let Some(total) = self.totals.get_mut(line.request()) {
                total.counted = total.counted.wrapping_add(ticks);
            }
        }
        self.reading.discard();
        if let Some(reading) = to.reading.take() {
            from.reading = Some(core::mem::replace(&mut self.reading, reading));
        }
        for write in &turn.writes {
            machine.write(arch::msr::Msr(write.msr), write.value)?;
        }
        for (active, line) in to.active.iter_mut().zip(&mut self.reading.lines) {
            machine.write(line.msr, 0)?;
            let raw = self.totals.get(line.request()).map_or(0, |total| total.raw);
            active.told = machine.overflows(active.count.counter());
            active.count.begin(raw, active.told);
            line.begin(raw);
        }
        machine.follow(turn.counters, turn.on);
        (self.group, self.passes, self.by_plan) = (next, passes, true);
        if next == 0 && self.run.notify.contains(Notify::PASS) {
            self.notifications.push(Occasion::Pass(passes), now);
        }
        self.since = machine.tsc();
        self.reading.resume(machine.interrupts(), self.since);
        machine.write(turn.control, turn.on)?;
        Ok(true)
    }
}
