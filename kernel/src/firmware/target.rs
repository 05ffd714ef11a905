//! The real machine as the runner of snippets. [`items`] has the other kinds of items, [`stepper`] exact mode.

mod items;
mod stepper;

use super::boot::Handed;
use super::control::{Controls, PLACE};
use super::counters::Counters;
use super::heap;
use super::memory::Provided;
use super::output::Line;
use super::passes::Counting;
use super::per_cpu::AllProcessors;
use super::probe::Machine;
use super::programs::{Owner, Programs};
use super::reset::{self, Reloading};
use super::tasks::Slots;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::{Function, Trap};
use arch::cpu::{self, extended};
use arch::interrupts;
use arch::memory::arena::{AREA_BYTES, Arena};
use arch::memory::user::UserPages;
use arch::memory::{Frames, Space};
use arch::pmu::pmi::Interval;
use arch::pmu::{Gate, workload};
use arch::ring3::SNIPPET_VECTORS;
use arch::state::{self, Baseline, Tables};
use arch::time::tsc;
use kernel::heartbeat::{Beat, Heartbeat};
use kernel::report::Report;
use kernel::run;
use kernel::screen::{Header, Status};
use kernel::snippet::events::{Counted, Plan};
use kernel::snippet::repeat_on_smi::repeat_on_smi;
use kernel::snippet::{Emitted, Phase, Runner, emit, fault};
use protocol::bits::Bits;
use protocol::control::{DEFAULT_TIME_LIMIT_MS, Ring};
use protocol::job::{Control, Job, LoopCounter, Setup, Snippet};
use protocol::limits::MAX_MSRS;
use protocol::ramdisk::RamdiskError;
use protocol::record::{
    Applied, End, ErrorCode, ErrorRecord, Fault, Outcome, ProgramKey, Record, Within,
};

pub(super) struct Target<'a> {
    pub(super) machine: &'a Machine,
    pub(super) space: Space,
    arena: Arena,
    pub(super) emitted: Option<Emitted>,
    pub(super) phase: Phase,
    /// The loaded snippet may leave something in the extended state.
    pub(super) resets_extended: bool,
    pub(super) counting: Counting,
    user: UserPages,
    /// The registers as the job found them.
    baseline: Baseline,
    /// The tables in memory as they should be.
    tables: Tables,
    /// The sum over the firmware's code when the job began.
    image: u64,
    /// There is reason to look at it again.
    is_suspect: bool,
    /// Longest time of a run of the loaded snippet, in ticks of the TSC.
    limit: u64,
    /// It is not the default.
    has_own_limit: bool,
    /// Runs since the snippet was loaded.
    runs: u64,
    pub(super) slots: Slots,
    pub(super) controls: Controls,
    /// Memory that the item asks for.
    memory: Provided,
    pub(super) programs: Programs,
    /// System management interrupts in runs that count.
    smis: u32,
    /// How far the registers moved that are read around a run.
    moved: [u64; MAX_MSRS],
    /// Bits that were ever set in them.
    seen: [u64; MAX_MSRS],
    /// What the job calls them.
    msr_names: Vec<String>,
    /// The other processors, from their first item on.
    processors: Option<AllProcessors>,
    /// Interval of the timer that samples.
    pub(super) timer: Option<Interval>,
    /// Another processor watches the runs of this item.
    guarded: bool,
    /// Nothing has to be done around a run of the loaded snippet but calling it: see [`Target::is_bare`].
    bare: bool,
    /// Where to tell how far an item is.
    pub(super) heart: &'a dyn Beat,
    /// TSC when it was last told by a run.
    told: u64,
}

/// How often in a second the runs of a snippet tell how far they are, at most. What hears it acts once a second.
const TOLD_A_SECOND: u64 = 64;

/// Runs the job.
pub fn run(
    job: &Job,
    machine: &Machine,
    mut handed: Handed,
    mut space: Space,
    report: &mut Report<Line>,
) -> End {
    header(machine, &job.name);
    // At most one progress record a second.
    let heart = Heartbeat::new(report, machine.clock.hz, tsc::now(), job.items.len() as u32);
    let reloading = Reloading { heart: &heart, every: machine.clock.hz };
    let mut arena = map_arena(&mut space, &mut handed.frames);
    let user = UserPages::map(&mut space, &mut handed.frames, workload::user_code())
        .unwrap_or_else(|error| panic!("no memory for ring 3: {error}"));
    let counting = Counting {
        // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and arms no interrupt here.
        own: unsafe { Counters::new(machine.pmu.clone().ok()) },
        plan: Default::default(),
        nothing: Default::default(),
    };
    // The upper levels of the code area's page tables keep what the first snippet of ring 3 would change.
    arena.set_user_code(&mut space, true);
    arena.set_user_code(&mut space, false);
    // SAFETY: ring 0, the tables are the firmware's, and no foreign code has run yet.
    let (tables, image) = unsafe { (Tables::take(&mut space), state::image::sum()) };
    let mut target = Target {
        machine,
        tables,
        image,
        is_suspect: false,
        space,
        arena,
        emitted: None,
        phase: Phase::Measured,
        resets_extended: false,
        counting,
        user,
        // SAFETY: ring 0, interrupt table loaded.
        baseline: unsafe { Baseline::take(machine.extended) },
        limit: 0,
        has_own_limit: false,
        runs: 0,
        slots: Slots::default(),
        // SAFETY: as for the counters.
        controls: unsafe { Controls::new(machine, handed.frames) },
        memory: Provided::default(),
        programs: Programs::new(handed.ramdisk.unwrap_or_default()),
        smis: 0,
        moved: [0; MAX_MSRS],
        seen: [0; MAX_MSRS],
        msr_names: Vec::new(),
        processors: None,
        timer: None,
        heart: &reloading,
        told: 0,
        bare: false,
        guarded: false,
    };
    let before = heap::mark();
    let end = run::run(job, &mut target, &heart);
    reset::stop();
    let end = End { heap: Some(heap::used_since(before)), ..end };
    if let Some(processors) = &target.processors {
        processors.release();
    }
    end
}

/// The snippet's one-time init and nothing else.
pub fn once_alone<'a>(snippet: &'a Snippet) -> Snippet<'a> {
    Snippet {
        init: snippet.setup.one_time_init.clone(),
        body: Cow::Borrowed(&[]),
        loop_count: 0,
        loop_counter: LoopCounter::R15,
        setup: Setup {
            control: Control { msrs: Vec::new(), ..snippet.setup.control.clone() },
            bits: snippet.setup.bits,
            ..Setup::default()
        },
        ..snippet.clone()
    }
}

fn map_arena(space: &mut Space, frames: &mut Frames) -> Arena {
    Arena::map(space, frames).unwrap_or_else(|error| panic!("no memory for snippets: {error}"))
}

fn header(machine: &Machine, job: &str) {
    if let Some(display) = &machine.display {
        display.lock().header(Header {
            title: concat!("barecount ", env!("CARGO_PKG_VERSION")).to_string(),
            job: job.to_string(),
            machine: machine.lines.clone(),
            ways: machine.ways.clone(),
        });
    }
}

/// Reports that the job cannot be run.
pub fn no_job(error: &RamdiskError, machine: &Machine, report: &mut Report<Line>) -> End {
    let (code, text) = (ErrorCode::BadJob, format!("the job cannot be used: {error}"));
    header(machine, "none");
    if let Some(display) = &machine.display {
        let (outcome, last_error) = (Some(Outcome::BadJob), Some(text.clone()));
        display.lock().status(&Status { outcome, last_error, ..Status::default() });
    }
    report.send(&Record::Error(ErrorRecord {
        code,
        item: None,
        name: None,
        text,
        fault: None,
        restored: Vec::new(),
    }));
    End::without_items(Outcome::BadJob)
}

impl Target<'_> {
    pub(super) fn emit(&mut self, phase: Phase, snippet: &Snippet, copies: u64, gate: &Gate) {
        let emitted =
            emit::emit(self.arena.code_mut(), &self.controls.place, snippet, copies, gate);
        for (vector, landing) in SNIPPET_VECTORS.into_iter().zip(emitted.landings.iter().flatten())
        {
            // SAFETY: what is emitted there ends the interrupt by going back to ring 3 or to its caller.
            unsafe { interrupts::set_entry(vector, *landing) };
        }
        self.emitted = Some(emitted);
        self.phase = phase;
        self.runs = 0;
        self.resets_extended = snippet.extended_state;
        self.bare = self.is_bare();
        // The code was written through another address than it runs at: a serialising instruction has to
        // stand between (SDM vol. 3, 8.1.3).
        cpu::serialise();
    }
}

impl Target<'_> {
    /// The emulated PMU takes time for what it counts. Where time is what is measured, the first run of a code size does
    /// not count: it is watched.
    fn times_alone(&self) -> bool {
        self.machine.emulated.is_some() && self.counting.own.counters.is_empty()
    }

    fn is_watched_now(&self) -> bool {
        self.runs == 0 || !self.times_alone()
    }

    /// Whether runs that count `events` events are to be watched. Watching costs an emulated PMU some 10 ms of host time a
    /// run, so there a job has to ask for it with a limit of its own; else the first runs, which only take the time, are.
    fn wants_watch(&self, events: usize) -> bool {
        let asked = events == 0 || self.has_own_limit || self.machine.emulated.is_none();
        self.machine.watchdog.is_ok() && self.limit > 0 && asked
    }

    /// Has the other processor, if there is one, watch the runs of the item that comes, or of none.
    pub(super) fn guard(&mut self, watches: bool) {
        let Some(guard) = self.machine.guard.filter(|_| watches != self.guarded) else { return };
        if watches {
            guard.begin(self.limit);
        } else {
            guard.end();
        }
        self.guarded = watches;
    }

    /// Brings the machine into the state in which what was loaded begins, and returns it.
    pub(super) fn made_ready(&self) -> Function {
        let emitted = self.emitted.as_ref().expect("loaded before");
        // SAFETY: the firmware keeps nothing in the extended state; the code is mapped.
        unsafe {
            if self.resets_extended {
                extended::reset(self.machine.extended);
            }
            self.controls.before_run(emitted.function.clone());
        }
        Function { entry: emitted.function.start, exit: emitted.exit }
    }

    /// Whether a run is the call of what was loaded and nothing else: nothing is counted, read, reset or watched. It is asked
    /// once, when a snippet is loaded: what it asks of the machine is in force by then.
    fn is_bare(&self) -> bool {
        let own = &self.counting.own;
        own.counters.is_empty()
            && own.watchdog.is_none()
            && !self.guarded
            && !self.resets_extended
            && self.controls.is_bare()
    }

    /// A run of what needs nothing around it.
    fn bare(&self) -> Result<u64, Box<Trap>> {
        let emitted = self.emitted.as_ref().expect("loaded before");
        let function = Function { entry: emitted.function.start, exit: emitted.exit };
        // SAFETY: as in `once`.
        unsafe {
            function.run()?;
            let data = &*(PLACE.data as *const emit::Data);
            Ok(data.stop.wrapping_sub(data.start))
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
            self.runs += 1;
            // Reading stops the events' counters, but not the watchdog's, which is stopped last.
            let mut run = || {
                let ended = function.run();
                self.counting.own.collect();
                ended
            };
            let mut watched = || match dog {
                Some(dog) => dog.watch(&mut run),
                None => run(),
            };
            let ended = match self.machine.guard.filter(|_| self.guarded) {
                Some(guard) => guard.watch(self.limit, watched),
                None => watched(),
            };
            ended?;
            let data = &*(PLACE.data as *const emit::Data);
            let both = self.moved.iter_mut().zip(&mut self.seen).take(self.controls.msrs());
            for ((moved, seen), [before, behind]) in both.zip(&data.msrs) {
                *moved = behind.wrapping_sub(*before);
                *seen |= before | behind;
            }
            Ok(data.stop.wrapping_sub(data.start))
        }
    }
}

impl Runner for Target<'_> {
    fn control(&mut self, snippet: &Snippet) -> Result<Vec<Applied>, String> {
        let control = &snippet.setup.control;
        self.limit = self.machine.clock.hz / 1000 * u64::from(control.time_limit_ms);
        self.has_own_limit = control.time_limit_ms != DEFAULT_TIME_LIMIT_MS;
        reset::limit(control.time_limit_ms);
        self.guard(self.limit > 0);
        self.msr_names = control.msrs.iter().map(|register| register.name.to_string()).collect();
        self.seen = [0; MAX_MSRS];
        let mut applied = self.controls.apply(control, &mut self.space)?;
        if let (Err(reason), true) = (self.machine.watchdog, self.has_own_limit && self.limit > 0) {
            applied.push(Applied {
                option: format!("time-limit={}", control.time_limit_ms),
                applied: false,
                note: format!("nothing ends a run that does not end by itself: {reason}"),
            });
        }
        if snippet.setup.bits == Bits::Compatibility {
            let way = match control.ring {
                Ring::Kernel => "far jumps",
                Ring::User => "IRETQ and INT",
            };
            applied.push(Applied {
                option: "bits=32".to_string(),
                applied: true,
                note: format!("compatibility mode; {way}, the way in and out, cancel"),
            });
        }
        if let Some(call) = &snippet.setup.call {
            let (frames, user) = (&mut self.controls.frames, control.ring == Ring::User);
            let wanted = (call.program, user);
            self.programs.select(Owner::Processor(0), wanted, &mut self.space, frames)?;
        }
        // What ring 3 may execute is taken back before the tables are compared.
        self.refresh();
        if self.controls.user {
            self.arena.set_user_code(&mut self.space, true);
        }
        Ok(applied)
    }

    fn finish(&mut self, controls: &mut Vec<Applied>) {
        self.controls.finish(controls);
        let silent = self.msr_names.iter().zip(self.seen).filter(|(_, seen)| *seen == 0);
        controls.extend(silent.map(|(name, _)| Applied {
            option: format!("msrs={name}"),
            applied: true,
            note: "it read 0 before and behind every run; QEMU's translator shows a register that it lacks so"
                .to_string(),
        }));
    }

    fn msrs(&self) -> &[u64] {
        &self.moved[..self.controls.msrs()]
    }

    fn is_unwatched(&self) -> bool {
        let own = &self.counting.own;
        self.wants_watch(own.counters.len()) && own.watchdog.is_none() && !self.guarded
    }

    fn trial_runs(&self) -> u32 {
        u32::from(self.counting.own.watchdog.is_some() && self.times_alone())
    }

    fn take_smis(&mut self) -> u32 {
        core::mem::take(&mut self.smis)
    }

    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        self.counting.prepare(snippet, self.machine, None)
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        let limit = self.wants_watch(pass.len()).then_some(self.limit);
        self.counting.own.program(pass, limit)
    }

    fn counts(&self) -> &[u64] {
        self.counting.own.counts()
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        let gate = self.counting.own.gate;
        self.emit(Phase::Measured, snippet, copies, &gate);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.emit(Phase::Once, &once_alone(snippet), 0, &Gate::EMPTY);
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        if self.bare {
            return self.bare();
        }
        let repeats = self.controls.smi_repeats();
        let repeated =
            repeat_on_smi(self, repeats, |target| target.controls.smi_count(), Self::once)?;
        self.smis = self.smis.saturating_add(repeated.came.try_into().unwrap_or(u32::MAX));
        Ok(repeated.result)
    }

    fn beat(&mut self, within: Within) {
        let now = tsc::now();
        if now.wrapping_sub(self.told) >= self.machine.clock.hz / TOLD_A_SECOND {
            self.told = now;
            self.heart.beat(now, within);
        }
    }

    fn called(&self) -> Option<ProgramKey> {
        self.programs.name(Owner::Processor(0))
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        let emitted = self.emitted.as_ref().expect("it ran");
        let mut fault = fault::explain(trap, emitted, self.phase, snippet);
        if snippet.setup.call.is_some() {
            let stack = self.controls.place.pointers[0] - AREA_BYTES / 2;
            self.programs.explain(Owner::Processor(0), &mut fault, stack);
        }
        fault
    }
}
