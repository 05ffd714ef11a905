//! The processor as the runner of snippets.

use super::Target;
use super::loaded::once_alone;
use crate::firmware::control::PLACE;
use crate::firmware::programs::Owner;
use crate::firmware::uncore::UncoreCounters;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use arch::call::{Function, Trap};
use arch::cpu::extended;
use arch::memory::arena::AREA_BYTES;
use arch::pmu::Gate;
use arch::pmu::energy::Source;
use arch::pmu::pmi::Retired;
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Uncore};
use arch::time::tsc;
use kernel::energy::Meters;
use kernel::snippet::events::{Counted, Plan};
use kernel::snippet::repeat_on_smi::repeat_on_smi;
use kernel::snippet::retired::Records;
use kernel::snippet::{Phase, Runner, emit, fault};
use kernel::uncore::Counter;
use protocol::job::Snippet;
use protocol::job::control::Ring;
use protocol::program::ProgramKey;
use protocol::record::{Applied, Fault, Within};

/// How often in a second the runs of a snippet tell how far they are, at most. What hears it acts once a second.
const TOLD_A_SECOND: u64 = 64;

impl Target<'_> {
    /// Loads a snippet. What it asks of the machine is in force by then, and its counters are programmed.
    pub(in crate::firmware) fn emit(
        &mut self,
        phase: Phase,
        snippet: &Snippet,
        copies: u64,
        gate: &Gate,
    ) {
        self.loaded.emit((phase, &self.asked.controls.place), snippet, copies, gate);
        self.loaded.is_bare = self.is_bare();
    }

    /// The emulated PMU takes time for what it counts. Where time is what is measured, the first run of a code size does
    /// not count: it is watched.
    fn times_alone(&self) -> bool {
        self.machine.emulated.is_some() && self.counting.own.counters.is_empty()
    }

    fn is_watched_now(&self) -> bool {
        self.loaded.runs == 0 || !self.times_alone()
    }

    /// Whether runs that count `events` events are to be watched. Watching costs an emulated PMU some 10 ms of host time a
    /// run, so there a job has to ask for it with a limit of its own; else the first runs, which only take the time, are.
    fn wants_watch(&self, events: usize) -> bool {
        let asked = events == 0 || self.asked.has_own_limit || self.machine.emulated.is_none();
        self.machine.watchdog.is_ok() && self.asked.limit > 0 && asked
    }

    /// Brings the machine into the state in which what was loaded begins, and returns it.
    pub(in crate::firmware) fn made_ready(&self) -> Function {
        // SAFETY: the firmware keeps nothing in the extended state; the code is mapped.
        unsafe {
            if self.loaded.resets_extended {
                extended::reset(self.machine.extended);
            }
            self.asked.controls.before_run(self.loaded.emitted().function.clone());
        }
        self.loaded.function()
    }

    /// Whether a run is the call of what was loaded and nothing else: nothing is counted, read, reset or watched. It is asked
    /// once, when a snippet is loaded: what it asks of the machine is in force by then.
    fn is_bare(&self) -> bool {
        let own = &self.counting.own;
        own.counters.is_empty()
            && own.watchdog.is_none()
            && !self.others.guarded
            && !self.loaded.resets_extended
            && !self.uncore.is_running()
            && self.asked.controls.is_bare()
    }

    /// What the last run left in memory.
    ///
    /// # Safety
    /// The arena is mapped, and no foreign code runs while this is borrowed.
    unsafe fn left<'a>() -> &'a emit::Data {
        // SAFETY: the caller's promise; any bytes are such data.
        unsafe { &*(PLACE.data as *const emit::Data) }
    }

    /// A run of what needs nothing around it.
    fn bare(&self) -> Result<u64, Box<Trap>> {
        // SAFETY: as in `once`.
        unsafe {
            self.loaded.function().run()?;
            let data = Self::left();
            Ok(data.stop.wrapping_sub(data.start))
        }
    }

    /// Tells how far the item is, unless that was told just before `now`.
    #[inline]
    fn tell(&mut self, now: u64, within: Within) {
        if now.wrapping_sub(self.told) >= self.machine.clock.hz / TOLD_A_SECOND {
            self.told = now;
            self.heart.beat(now, within);
        }
    }

    fn once(&mut self) -> Result<u64, Box<Trap>> {
        let function = self.made_ready();
        // SAFETY: the function was emitted with its exit, its code is mapped executable, interrupts are off, and
        // this is the only processor. What the snippet itself writes to is its author's business: ring 0 is what it
        // was asked to run in.
        unsafe {
            self.counting.own.clear();
            let dog = self.counting.own.watchdog.filter(|_| self.is_watched_now());
            self.loaded.runs += 1;
            // The events' counters stand still then, but not the watchdog's, which is stopped last.
            let mut run = || {
                self.uncore.begin();
                let ended = function.run();
                self.counting.own.collect(ended.is_err());
                self.uncore.end();
                ended
            };
            let mut watched = || match dog {
                Some(dog) => dog.watch(&mut run),
                None => run(),
            };
            let ended = match self.machine.guard.filter(|_| self.others.guarded) {
                Some(guard) => guard.watch(self.asked.limit, watched),
                None => watched(),
            };
            ended?;
            let data = Self::left();
            self.asked.note(data);
            Ok(data.stop.wrapping_sub(data.start))
        }
    }
}

impl Runner for Target<'_> {
    fn control(&mut self, snippet: &Snippet) -> Result<Vec<Applied>, String> {
        self.asked.limit(snippet, self.machine);
        let limit = Some(self.asked.limit).filter(|&limit| limit > 0);
        self.others.guard(self.machine, limit);
        let mut applied = self.asked.apply(snippet, self.machine, &mut self.space)?;
        applied.extend(self.qualify(snippet)?);
        if let Some(call) = &snippet.setup.call {
            let user = snippet.setup.control.ring == Ring::User;
            let frames = &mut self.asked.controls.frames;
            let wanted = (call.program, user);
            self.programs.select(Owner::Processor(0), wanted, &mut self.space, frames)?;
        }
        // What ring 3 may execute is taken back before the tables are compared.
        self.found.refresh(&mut self.space);
        if self.asked.controls.user {
            self.loaded.arena.set_user_code(&mut self.space, true);
        }
        Ok(applied)
    }

    fn finish(&mut self, controls: &mut Vec<Applied>) -> Result<(), String> {
        self.asked.finish(controls);
        self.asked.unqualified.take().map_or(Ok(()), Err)
    }

    fn msrs(&self) -> &[u64] {
        self.asked.msrs()
    }

    fn meters(&mut self) -> Meters<'_> {
        self.meters.as_mut().map(|meters| meters as &mut dyn Source).map_err(|none| *none)
    }

    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        UncoreCounters::find()
    }

    fn program_uncore(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        self.uncore.program(round)
    }

    fn begin_uncore(&mut self) {
        self.uncore.begin();
    }

    fn end_uncore(&mut self) {
        self.uncore.end();
    }

    fn uncore_counts(&self) -> &[u64] {
        self.uncore.counts()
    }

    fn metrics_overflowed(&self) -> bool {
        self.counting.own.metrics_overflowed
    }

    fn is_unwatched(&self) -> bool {
        let own = &self.counting.own;
        self.wants_watch(own.counters.len()) && own.watchdog.is_none() && !self.others.guarded
    }

    fn trial_runs(&self) -> u32 {
        u32::from(self.counting.own.watchdog.is_some() && self.times_alone())
    }

    fn take_smis(&mut self) -> u32 {
        core::mem::take(&mut self.asked.smis)
    }

    fn take_smi_repeats(&mut self) -> u32 {
        core::mem::take(&mut self.asked.smi_repeats)
    }

    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        self.counting.prepare(snippet, self.machine, None)
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        self.unqualified(pass)?;
        let limit = self.wants_watch(pass.len()).then_some(self.asked.limit);
        self.counting.own.program(pass, limit)
    }

    fn program_records(
        &mut self,
        pass: &[Counted],
        periods: &[u64],
    ) -> Result<(), (usize, String)> {
        self.unqualified(pass)?;
        self.counting.own.program_records(pass, periods)
    }

    fn retired(&self) -> (&[Retired], bool) {
        self.counting.own.records.as_ref().map_or((&[], false), Records::last)
    }

    fn counts(&self) -> &[u64] {
        self.counting.own.counts()
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        let gate = self.counting.own.gate;
        self.emit(Phase::Measured, snippet, copies, &gate);
        self.set_qualifiers(snippet);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.emit(Phase::Once, &once_alone(snippet), 0, &Gate::EMPTY);
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        if self.loaded.is_bare {
            return self.bare();
        }
        let repeats = self.asked.controls.smi_repeats();
        let repeated =
            repeat_on_smi(self, repeats, |target| target.asked.controls.smi_count(), Self::once)?;
        self.asked.smis =
            self.asked.smis.saturating_add(repeated.came.try_into().unwrap_or(u32::MAX));
        self.asked.smi_repeats = self.asked.smi_repeats.saturating_add(repeated.repeats);
        Ok(repeated.result)
    }

    fn run_bare(
        &mut self,
        [warmup, runs]: [u64; 2],
        ticks: &mut Vec<u64>,
        within: &mut Within,
    ) -> Option<Result<(), Box<Trap>>> {
        if !self.loaded.is_bare || warmup + runs == 0 {
            return None;
        }
        let function = self.loaded.function();
        let mut done = 0;
        let again = || {
            // SAFETY: the arena is mapped, and the run has ended.
            let data = unsafe { Self::left() };
            if done >= warmup {
                ticks.push(data.stop.wrapping_sub(data.start));
            }
            done += 1;
            within.done += 1;
            // The run's own second reading of the TSC is as good as another one now.
            self.tell(data.stop, *within);
            done < warmup + runs
        };
        // SAFETY: as in `once`.
        Some(unsafe { function.run_while(again) })
    }

    fn beat(&mut self, within: Within) {
        self.tell(tsc::now(), within);
    }

    fn called(&self) -> Option<ProgramKey> {
        self.programs.name(Owner::Processor(0))
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        let (emitted, phase) = (self.loaded.emitted(), self.loaded.phase());
        let mut fault = fault::explain(trap, emitted, phase, snippet);
        if snippet.setup.call.is_some() {
            let stack = self.asked.controls.place.pointers[0] - AREA_BYTES / 2;
            self.programs.explain(Owner::Processor(0), &mut fault, stack);
        }
        fault
    }
}
