//! The real machine as the runner of snippets.

use super::bench::Processor;
use super::boot::Handed;
use super::crash;
use super::output::Line;
use super::probe::Machine;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::{Function, Trap};
use arch::cpu::{self, extended};
use arch::memory::arena::{self, Arena};
use arch::memory::user::UserPages;
use arch::memory::{Frames, Space};
use arch::pmu::pmi::Interval;
use arch::pmu::{self, Capabilities, Counter, Driver, Gate, workload};
use arch::step;
use arch::time::tsc;
use iced_x86::Register;
use kernel::conformance::{self, Subject};
use kernel::exact::{Processor as Segments, Qualifier, Stepper, Tally, Tracker, Unstepped};
use kernel::report::Report;
use kernel::run;
use kernel::screen::{Header, Status};
use kernel::snippet::events::{Counted, Plan};
use kernel::snippet::{Emitted, Phase, Place, Runner, emit, events, fault};
use protocol::exact::Filter;
use protocol::job::{Conformance, Job, LoopCounter, Setup, Snippet};
use protocol::ramdisk::RamdiskError;
use protocol::record::{Check, Suite};
use protocol::record::{End, ErrorCode, ErrorRecord, Fault, Outcome, Record};
use raw_cpuid::{CpuIdReader, CpuIdResult};
use x86_64::registers::model_specific::{FsBase, GsBase};

/// Where snippets run: see `arch::memory::arena`.
pub(super) const PLACE: Place = Place {
    code: arena::CODE_AT,
    data: arena::DATA_AT,
    pointers: [
        arena::area_middle(0),
        arena::area_middle(1),
        arena::area_middle(2),
        arena::area_middle(3),
        arena::area_middle(4),
    ],
};

pub(super) struct Target<'a> {
    pub(super) machine: &'a Machine,
    space: Space,
    arena: Arena,
    pub(super) emitted: Option<Emitted>,
    pub(super) phase: Phase,
    /// The loaded snippet may leave something in the extended state.
    pub(super) resets_extended: bool,
    pub(super) counting: Counting,
    user: UserPages,
    /// Interval of the timer that samples.
    pub(super) timer: Option<Interval>,
}

/// The counters of the current snippet.
pub(super) struct Counting {
    pub(super) registers: pmu::Machine,
    pub(super) driver: Option<Driver>,
    counters: Vec<Counter>,
    counts: Vec<u64>,
    gate: Gate,
    /// The last plan and what it is for: most items of a job ask for the same events.
    plan: (Vec<String>, Rc<Plan>),
}

impl Counting {
    fn prepare(&mut self, snippet: &Snippet, machine: &Machine) -> Rc<Plan> {
        let texts = &snippet.events;
        if !texts.is_empty() && self.plan.0 == *texts {
            return self.plan.1.clone();
        }
        let begin = tsc::now();
        let plan = match (&machine.known, &machine.pmu) {
            (Some(known), _) if machine.emulated.is_some() => {
                events::plan(texts, known).with_time_apart()
            }
            (Some(known), _) => events::plan(texts, known),
            (_, Err(missing)) => Plan::without_pmu(texts, &format!("there is no PMU: {missing}")),
            (_, Ok(_)) => Plan::without_pmu(texts, "the PMU's events are not known"),
        };
        let ticks = if texts.is_empty() { 0 } else { tsc::now().wrapping_sub(begin) };
        let texts = texts.iter().map(ToString::to_string).collect();
        // The ticks are those of the item that the plan was made for.
        self.plan = (texts, Rc::new(plan.clone()));
        Rc::new(Plan { ticks, ..plan })
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        (self.counters, self.counts, self.gate) = (Vec::new(), Vec::new(), Gate::EMPTY);
        let Some(driver) = self.driver.as_mut().filter(|_| !pass.is_empty()) else {
            return Ok(());
        };
        driver.reset(&mut self.registers).map_err(|error| (0, error.to_string()))?;
        for (index, one) in pass.iter().enumerate() {
            for (counter, selection) in one.programs() {
                let done = driver.program(&mut self.registers, counter, &selection);
                done.map_err(|error| (index, error.to_string()))?;
            }
        }
        self.gate = driver.gate();
        self.counters = pass.iter().map(|one| one.counter).collect();
        self.counts = alloc::vec![0; pass.len()];
        Ok(())
    }

    /// Everything to 0. The registers took their values in `prepare`, so they take these.
    fn clear(&mut self) {
        let Some(driver) = &self.driver else { return };
        for &counter in &self.counters {
            let _ = driver.write(&mut self.registers, counter, 0);
        }
    }

    /// Reads the counters. A snippet that ended early left them running.
    fn collect(&mut self) {
        let Some(driver) = self.driver.as_ref().filter(|_| !self.counters.is_empty()) else {
            return;
        };
        let _ = driver.stop(&mut self.registers);
        for (count, &counter) in self.counts.iter_mut().zip(&self.counters) {
            *count = driver.read(&mut self.registers, counter).unwrap_or(0);
        }
    }
}

/// Runs the job.
pub fn run(
    job: &Job,
    machine: &Machine,
    mut handed: Handed,
    mut space: Space,
    report: &mut Report<Line>,
) -> End {
    header(machine, &job.name);
    let arena = map_arena(&mut space, &mut handed.frames);
    let user = UserPages::map(&mut space, &mut handed.frames, workload::user_code())
        .unwrap_or_else(|error| panic!("no memory for ring 3: {error}"));
    let counting = Counting {
        // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and arms no interrupt here.
        registers: unsafe { pmu::Machine::new() },
        driver: machine.pmu.clone().ok().map(Driver::new),
        counters: Vec::new(),
        counts: Vec::new(),
        gate: Gate::EMPTY,
        plan: Default::default(),
    };
    let mut target = Target {
        machine,
        space,
        arena,
        emitted: None,
        phase: Phase::Measured,
        resets_extended: false,
        counting,
        user,
        timer: None,
    };
    run::run(job, &mut target, report)
}

fn map_arena(space: &mut Space, frames: &mut Frames) -> Arena {
    Arena::map(space, frames).unwrap_or_else(|error| panic!("no memory for snippets: {error}"))
}

fn header(machine: &Machine, job: &str) {
    if let Some(display) = &machine.display {
        let title = concat!("barecount ", env!("CARGO_PKG_VERSION"));
        display.lock().header(&Header { title, job, machine: &machine.lines });
    }
}

/// Reports that there is nothing to run.
pub fn no_job(error: Option<&RamdiskError>, machine: &Machine, report: &mut Report<Line>) -> End {
    let (code, text) = match error {
        None => (ErrorCode::NoJob, "no job: the boot loader handed over no ramdisk".to_string()),
        Some(error) => (ErrorCode::BadJob, format!("the job cannot be used: {error}")),
    };
    header(machine, "none");
    if let Some(display) = &machine.display {
        let (outcome, last_error) = (Some(Outcome::BadJob), Some(text.clone()));
        display.lock().status(&Status { outcome, last_error, ..Status::default() });
    }
    report.send(&Record::Error(ErrorRecord { code, item: None, name: None, text, fault: None }));
    End::without_items(Outcome::BadJob)
}

impl Target<'_> {
    pub(super) fn emit(&mut self, phase: Phase, snippet: &Snippet, copies: u64, gate: &Gate) {
        let emitted = emit::emit(self.arena.code_mut(), &PLACE, snippet, copies, gate);
        self.emitted = Some(emitted);
        self.phase = phase;
        self.resets_extended = snippet.extended_state;
        // The code was written through another address than it runs at: a serialising instruction has to
        // stand between (SDM vol. 3, 8.1.3).
        cpu::serialise();
    }
}

impl Runner for Target<'_> {
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        self.counting.prepare(snippet, self.machine)
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        self.counting.program(pass)
    }

    fn counts(&self) -> &[u64] {
        &self.counting.counts
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        let gate = self.counting.gate;
        self.emit(Phase::Measured, snippet, copies, &gate);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        let alone = Snippet {
            init: snippet.setup.one_time_init.clone(),
            body: Cow::Borrowed(&[]),
            loop_count: 0,
            loop_counter: LoopCounter::R15,
            setup: Setup::default(),
            ..snippet.clone()
        };
        self.emit(Phase::Once, &alone, 0, &Gate::EMPTY);
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        let emitted = self.emitted.as_ref().expect("loaded before");
        let function = Function { entry: emitted.function.start, exit: emitted.exit };
        // SAFETY: the firmware keeps nothing in the extended state; the function was emitted with its exit,
        // its code is mapped executable, interrupts are off, and this is the only processor. What the
        // snippet itself writes to is its author's business: ring 0 is what it was asked to run in.
        unsafe {
            if self.resets_extended {
                extended::reset(self.machine.extended);
            }
            self.counting.clear();
            let ended = function.run();
            self.counting.collect();
            ended?;
            let data = &*(PLACE.data as *const emit::Data);
            Ok(data.stop.wrapping_sub(data.start))
        }
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        fault::explain(trap, self.emitted.as_ref().expect("it ran"), self.phase, snippet)
    }
}

/// The processor as exact mode sees it.
struct Stepped;

impl Segments for Stepped {
    fn base(&self, segment: Register) -> u64 {
        match segment {
            Register::FS => FsBase::read().as_u64(),
            _ => GsBase::read().as_u64(),
        }
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        let CpuIdResult { eax, ebx, ecx, edx } = cpu::native().cpuid2(leaf, subleaf);
        [eax, ebx, ecx, edx]
    }

    fn clear_pushed_trap_flag(&mut self, stack: u64) {
        // SAFETY: the instruction before this trap has pushed at least two bytes there.
        unsafe {
            let flags = (stack as *mut u16).read_unaligned();
            (stack as *mut u16).write_unaligned(flags & !(step::TRAP_FLAG as u16));
        }
    }
}

impl Stepper for Target<'_> {
    fn step(
        &mut self,
        snippet: &Snippet,
        copies: u64,
        filter: &Filter,
    ) -> Result<Tally, Unstepped> {
        let qualifier = Qualifier::new(filter, PLACE.pointers).map_err(Unstepped::Refused)?;
        // Counters are not involved.
        self.counting.gate = Gate::EMPTY;
        self.load(snippet, copies);
        let emitted = self.emitted.as_ref().expect("just loaded");
        let bytes = (emitted.function.end - emitted.function.start) as usize;
        // SAFETY: the emitted code, which nothing writes to while it runs.
        let code =
            unsafe { core::slice::from_raw_parts(emitted.function.start as *const u8, bytes) };
        let mut tracker = Tracker::new(emitted, code, &qualifier);
        let function = Function { entry: emitted.function.start, exit: emitted.exit };
        // SAFETY: as in `run`. The tracker allocates in the exception's handler: what it interrupts is the emitted
        // code alone, which does not.
        let ended = unsafe {
            if self.resets_extended {
                extended::reset(self.machine.extended);
            }
            step::run(&function, &mut |frame| tracker.trap(frame, &mut Stepped))
        };
        let (tally, refusal) = (tracker.tally, tracker.refusal);
        if let Err(trap) = ended {
            return Err(Unstepped::Fault(Box::new(self.explain(&trap, snippet))));
        }
        refusal.map_or(Ok(tally), |refusal| Err(Unstepped::Refused(refusal)))
    }

    fn branches(&self) -> &'static str {
        // Intel: BR_INST_RETIRED.ALL_BRANCHES, architectural (SDM vol. 3, table 20-1). AMD: retired branch
        // instructions, PMCx0C2.
        let is_intel = self.machine.pmu.as_ref().is_ok_and(Capabilities::is_intel);
        if is_intel { "r00c4" } else { "r00c2" }
    }
}

impl run::Machine for Target<'_> {
    fn now(&self) -> u64 {
        tsc::now()
    }

    fn progress_ticks(&self) -> u64 {
        self.machine.clock.hz
    }

    fn next_item(&mut self, index: u32) {
        crash::at_item(index);
        self.arena.reset(&mut self.space);
    }

    fn conformance(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite {
        let subject = Subject {
            pmu: self.machine.pmu.as_ref().map_err(|missing| *missing),
            found: &self.machine.ownership,
            hypervisor: self.machine.hypervisor,
        };
        // SAFETY: the firmware owns the PMU, the handler of its interrupt is the bench's, and the APIC is on.
        let mut bench = unsafe { Processor::new(&self.user) };
        conformance::run(suite, index, &subject, &mut bench, report)
    }

    fn is_emulated(&self) -> bool {
        self.machine.emulated.is_some()
    }

    fn show(&mut self, status: &Status) {
        if let Some(display) = &self.machine.display {
            display.lock().status(status);
        }
    }
}
