//! The processors as those that run tasks.

mod local;
mod moving;
mod ring3;

use super::per_cpu::{AllProcessors, BOOT};
use super::probe;
use super::programs::{Owner, Programs};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::memory::{Frames, Space};
use arch::pmu::Capabilities;
use arch::smp::{self, Handover};
use arch::task::memory::{self, Memory};
use arch::task::{Context, Extended, MovingContexts};
use kernel::heartbeat::Beat;
use kernel::snippet::{Place, emit};
use kernel::tasks::{self, AssignedProcessor, Emitted, Left, Summary};
use local::{LocalTasks, Sampled, timer};
use moving::Moving;
use protocol::bits::Bits;
use protocol::checksum::crc32;
use protocol::program::{STACK_BYTES, STACK_END};
use protocol::record::{ProgramKey, TaskResult, Together};
use protocol::workload::{Ring, Task, Tasks, Workload};
use ring3::UserInstructions;
use spin::{Mutex, MutexGuard};

/// Memory of tasks, kept from one workload for the next.
#[derive(Default)]
pub struct Slots(Vec<Memory>);

impl Slots {
    /// Machine code of a task at `address`, `most` bytes at most; empty if no task's code lies there.
    pub fn code(&mut self, address: u64, most: usize) -> Vec<u8> {
        for (index, memory) in self.0.iter_mut().enumerate() {
            let at = address.wrapping_sub(memory::code(index));
            if at < memory::CODE_BYTES {
                let code = &memory.code_mut()[at as usize..];
                return code[..code.len().min(most)].to_vec();
            }
        }
        Vec::new()
    }
}

/// Runs a workload, and counts each task's instructions in ring 3 if every processor that runs one has a PMU.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run(item: &Tasks, processors: &mut Processors) -> Result<Summary, String> {
    let (workload, limit_us) = (&item.workload, item.limit_us);
    let tasks = workload.tasks.len();
    let counter = |cpu| {
        let has = processors.pmu(cpu).ok()?;
        // One counter for the tasks, one for what is counted through.
        (has.generals().count() > 1).then(|| (cpu, UserInstructions::new(has.clone(), tasks)))
    };
    let counters: Option<Vec<_>> = workload.cpus().into_iter().map(counter).collect();
    let mut counters = counters.unwrap_or_default();
    let heart = processors.heart;
    let mut summary = tasks::run_beating(workload, limit_us, processors, &mut counters, heart)?;
    processors.explain(workload, &mut summary.tasks);
    let through: Option<Vec<u64>> = counters.iter().map(|(_, counter)| counter.through).collect();
    let Some(through) = through.filter(|through| !through.is_empty()) else { return Ok(summary) };
    summary.user_instructions = Some(through.iter().sum());
    let shares = summary.together.iter_mut().flat_map(|together| &mut together.shares);
    shares.zip(&through).for_each(|(share, &through)| share.user_instructions = Some(through));
    for (index, task) in summary.tasks.iter_mut().enumerate() {
        let counts = || counters.iter().map(|(_, counter)| counter.counts[index]);
        task.user_instructions = Some(counts().map(|counts| counts.own).sum());
        task.child_user_instructions = Some(counts().map(|counts| counts.children).sum());
        for share in &mut task.shares {
            let there = counters.iter().find(|(cpu, _)| u32::from(*cpu) == share.processor);
            share.user_instructions = there.map(|(_, counter)| counter.counts[index].own);
        }
    }
    Ok(summary)
}

/// The processors with the tasks that they are to run.
pub struct Processors<'a> {
    machine: &'a probe::Machine,
    space: &'a Space,
    frames: &'a mut Frames,
    slots: &'a mut Slots,
    programs: &'a mut Programs,
    /// What is known of the others; `None`: the boot processor alone runs tasks.
    processors: Option<&'a AllProcessors>,
    /// Tasks that are loaded, by processor.
    loaded: Vec<LocalTasks>,
    /// Those that move, in their order.
    moving: Vec<Context>,
    /// Where the code of each task lies.
    emitted: Vec<Emitted>,
    sampled: Option<Sampled>,
    /// Where to tell how far the tasks are.
    heart: Option<&'a dyn Beat>,
}

impl<'a> Processors<'a> {
    /// Without tasks, in the address space in use.
    pub fn new(
        machine: &'a probe::Machine,
        space: &'a Space,
        frames: &'a mut Frames,
        (slots, programs): (&'a mut Slots, &'a mut Programs),
        processors: Option<&'a AllProcessors>,
    ) -> Self {
        let (loaded, moving, emitted) = (Vec::new(), Vec::new(), Vec::new());
        let (sampled, heart) = (None, None);
        Self {
            machine,
            space,
            frames,
            slots,
            programs,
            processors,
            loaded,
            moving,
            emitted,
            sampled,
            heart,
        }
    }

    /// Completes the faults of tasks that call functions.
    pub fn explain(&self, workload: &Workload, results: &mut [TaskResult]) {
        for (number, (task, result)) in workload.tasks.iter().zip(results).enumerate() {
            if let (Some(_), Some(fault)) = (task.program, &mut result.fault) {
                self.programs.explain(Owner::Task(number), fault, STACK_END - STACK_BYTES);
            }
        }
    }

    /// What the report calls the program of each task, if it calls a function.
    pub fn called(&self, workload: &Workload) -> Vec<Option<ProgramKey>> {
        let owners = workload.tasks.iter().enumerate();
        let name = |(number, task): (usize, &Task)| {
            task.program.and_then(|_| self.programs.name(Owner::Task(number)))
        };
        owners.map(name).collect()
    }

    /// The same for tasks that are sampled with the blocks that `pmi::install` has taken on their processors. `interval`: TSC ticks
    /// from one sample to the next that the scheduler's timer takes beside its own ticks, if there are such.
    #[must_use]
    pub fn sampled(self, interval: Option<u64>) -> Self {
        Self { sampled: Some(Sampled { interval }), ..self }
    }

    /// The same, which tells at ticks how far the tasks are.
    #[must_use]
    pub fn beating(self, heart: &'a dyn Beat) -> Self {
        Self { heart: Some(heart), ..self }
    }

    /// Where to tell how far the tasks are.
    #[must_use]
    pub fn heart(&self) -> Option<&'a dyn Beat> {
        self.heart
    }

    /// Where the code of each loaded task lies.
    #[must_use]
    pub fn emitted(&self) -> &[Emitted] {
        &self.emitted
    }

    /// What is known of the others.
    #[must_use]
    pub fn processors(&self) -> Option<&'a AllProcessors> {
        self.processors
    }

    /// The PMU of a processor.
    ///
    /// # Errors
    /// Why it has none, in a sentence.
    pub fn pmu(&self, cpu: u16) -> Result<&Capabilities, String> {
        let member = self.processors.map(AllProcessors::members).unwrap_or_default();
        match member.iter().find(|member| member.number == u32::from(cpu)) {
            Some(member) => member.pmu.as_ref().map_err(String::clone),
            None => self.machine.pmu.as_ref().map_err(|why| format!("there is no PMU: {why}")),
        }
    }
}

impl Processors<'_> {
    /// Makes one task ready, as the next one.
    fn prepare(&mut self, number: usize, task: &Task) -> Result<(Context, Emitted), String> {
        if self.slots.0.len() == number {
            let memory = Memory::allocate(number, self.frames);
            self.slots.0.push(memory.map_err(|error| format!("task `{}`: {error}", task.name))?);
        }
        let memory = &mut self.slots.0[number];
        let user = task.ring == Ring::User;
        let compatibility = task.bits == Bits::Compatibility;
        // SAFETY: no task runs; physical memory is mapped, and the space has the kernel at its place.
        let root = unsafe { memory.clear(self.space.root(), user) };
        if let Some(program) = task.program {
            let (programs, frames) = (&mut *self.programs, &mut *self.frames);
            let map = |space: &mut Space| {
                programs.select(Owner::Task(number), (program, user), space, frames)
            };
            // SAFETY: as above.
            let mapped = unsafe { memory.with_program(map) };
            mapped.map_err(|error| format!("task `{}`: {error}", task.name))?;
        }
        let place = Place {
            code: memory::code(number),
            data: memory::count(number),
            pointers: pointers(number),
        };
        let emitted = tasks::emit::emit(memory.code_mut(), &place, task);
        let count = &mut memory.count_mut()[emit::COUNT_AT..][..8];
        count.copy_from_slice(&task.turns.to_le_bytes());
        let frame = tasks::emit::registers(&place, task, &emitted);
        let extended = task.extended_state.then(|| Extended::new(self.machine.extended));
        Ok((Context::new(&frame, user, compatibility, root.as_u64(), extended), emitted))
    }
}

/// What RSP, RBP, RDI, RSI and R14 of a task point to.
pub fn pointers(number: usize) -> [u64; 5] {
    let area = |area| memory::area(number, area);
    [memory::stack(number), area(0), area(1), area(2), area(VALUE_AREA)]
}

/// The memory area that R14 points to.
pub const VALUE_AREA: u64 = memory::AREAS - 1;

impl tasks::Machine for Processors<'_> {
    fn has(&self, cpu: u16) -> Result<(), String> {
        let number = usize::from(cpu);
        let missing = || smp::CallError::NoProcessor(number, smp::count()).to_string();
        smp::processor(number).map(|_| ()).ok_or_else(missing)
    }

    fn tsc_hz(&self) -> u64 {
        self.machine.clock.hz
    }

    fn load(&mut self, workload: &Workload) -> Result<Vec<Emitted>, String> {
        if timer(self.machine).is_none() {
            return Err("tasks need the local APIC's timer, which does not count here".to_string());
        }
        self.loaded = workload.cpus().into_iter().map(LocalTasks::new).collect();
        self.moving.clear();
        self.emitted.clear();
        for (index, task) in workload.tasks.iter().enumerate() {
            let (context, emitted) = self.prepare(index, task)?;
            self.emitted.push(emitted);
            if workload.moves() {
                self.moving.push(context);
                continue;
            }
            let cpu = workload.cpu_of(index);
            let here = self.loaded.iter_mut().find(|here| here.cpu == cpu);
            here.expect("every task has its processor").push(index as u16, context);
        }
        Ok(self.emitted.clone())
    }

    fn run(&mut self, assigned: &mut [AssignedProcessor]) -> Option<Together> {
        let mut loaded = core::mem::take(&mut self.loaded);
        let mut idle: Vec<LocalTasks> = Vec::new();
        for processor in
            assigned.iter().filter(|processor| !loaded.iter().any(|here| here.cpu == processor.cpu))
        {
            idle.push(LocalTasks::new(processor.cpu));
        }
        loaded.append(&mut idle);
        let work = assigned.iter_mut().map(|processor| {
            let here = loaded.iter().position(|here| here.cpu == processor.cpu);
            let here = loaded.swap_remove(here.expect("made above"));
            Mutex::new(Work { here, scheduler: &mut *processor.scheduler })
        });
        let work: Vec<Mutex<Work>> = work.collect();
        let (machine, sampled) = (self.machine, self.sampled);
        let cpus: Vec<u16> = work.iter().map(|one| one.lock().here.cpu).collect();
        let together = match (&work[..], self.processors) {
            // What each does is counted by a clock of all.
            (several, _) if several.len() == 1 || machine.emulated.is_some() => {
                for (one, &cpu) in several.iter().zip(&cpus) {
                    let whole = || one.lock().whole(machine, sampled);
                    smp::run_on(cpu.into(), whole).expect("the boot processor, and those in use");
                }
                let in_turn = several.len() > 1;
                Together { in_turn, ..Together::default() }
            }
            (several, processors) => at_once(several, &cpus, (machine, sampled), processors),
        };
        self.loaded = work.into_iter().map(|one| one.into_inner().here).collect();
        let processors: Vec<u32> = cpus.iter().map(|&cpu| u32::from(cpu)).collect();
        (processors != [0]).then_some(Together { processors, ..together })
    }

    fn works_in_turn(&self) -> bool {
        self.machine.emulated.is_some()
    }

    fn run_moving(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together> {
        let cpus: Vec<u32> = assigned.iter().map(|one| u32::from(one.cpu)).collect();
        let contexts = MovingContexts::new(core::mem::take(&mut self.moving));
        let (moving, in_turn) = (Moving { contexts: &contexts, handovers }, self.works_in_turn());
        let (together, visited) =
            moving::run(moving, assigned, self.machine, self.processors, in_turn);
        (self.loaded, self.moving) = (visited, contexts.into_inner());
        Some(Together { processors: cpus, ..together })
    }

    fn left(&mut self, task: usize) -> Left {
        let (frame, cr2) = match self.moving.get(task) {
            // It faulted on one of them, if it did.
            Some(context) => {
                let cr2 = self.loaded.iter().filter_map(|here| here.cr2.get(task)).max();
                (*context.frame(), cr2.copied().unwrap_or_default())
            }
            None => {
                let found = self.loaded.iter().find_map(|here| here.left(task as u16));
                found.map(|(context, cr2)| (*context.frame(), cr2)).unwrap_or_default()
            }
        };
        let memory = &mut self.slots.0[task];
        let count = memory.count_mut()[emit::COUNT_AT..][..8].try_into();
        Left {
            frame,
            cr2,
            count: u64::from_le_bytes(count.expect("eight bytes")),
            value: memory.value(VALUE_AREA),
            memory_crc32: crc32(memory.data_mut()),
        }
    }

    fn taken(&self, vector: u8) -> u64 {
        arch::interrupts::taken_by_all(vector)
    }
}

/// One processor's part. It alone touches it.
struct Work<'a, 'g> {
    here: LocalTasks,
    scheduler: &'a mut (dyn tasks::ProcessorScheduler + 'g),
}

impl Work<'_, '_> {
    /// From the beginning to the end, on its processor.
    fn whole(&mut self, machine: &probe::Machine, sampled: Option<Sampled>) {
        self.scheduler.open();
        self.scheduler.begin();
        self.tasks(machine, sampled);
        self.scheduler.end();
        self.scheduler.close();
    }

    fn tasks(&mut self, machine: &probe::Machine, sampled: Option<Sampled>) {
        // SAFETY: on the processor of the tasks, which `load` made with memory and address spaces of their own.
        unsafe { self.here.run(machine, sampled, &mut *self.scheduler) };
    }
}

/// From the moment when all are ready to the instant at which they begin, in ticks: longer than it takes to hear of it.
const LEAD_TICKS: u64 = 20_000;

/// What some processors do, for those that are told their place among all in use.
struct Places<'w, W> {
    all: &'w [Mutex<W>],
    /// Of each processor in use: its part among `all`.
    parts: Vec<Option<usize>>,
}

impl<'w, W> Places<'w, W> {
    /// Of `all`, those of `cpus`.
    fn new(all: &'w [Mutex<W>], cpus: &[u16]) -> Self {
        let has = |number: usize| cpus.iter().position(|&cpu| number == usize::from(cpu));
        Self { all, parts: smp::in_use().map(|one| has(one.index())).collect() }
    }

    /// The part of the processor at `place`, if it has one.
    fn of(&self, place: usize) -> Option<MutexGuard<'w, W>> {
        self.parts.get(place).copied().flatten().map(|at| self.all[at].lock())
    }

    /// How far times of those that have a part are apart, among the times of all.
    fn skew(&self, tsc: &[u64]) -> u64 {
        let own = tsc.iter().zip(&self.parts).filter(|(_, part)| part.is_some());
        smp::skew(&own.map(|(tsc, _)| *tsc).collect::<Vec<u64>>())
    }
}

/// What a processor does at the same time as the others.
enum Phase {
    Open,
    Run,
    End,
    Close,
}

/// Has all processors do `each` phase at the same time, each told its place among all in use.
fn together(
    processors: Option<&AllProcessors>,
    skew: impl Fn(&[u64]) -> u64,
    each: &(dyn Fn(usize, &Phase) + Sync),
) -> Together {
    let offsets = processors.map(AllProcessors::offsets).unwrap_or_default();
    let on_all = |phase: Phase| smp::on_all(|place| each(place, &phase)).expect(BOOT);
    let at_once = |phase: Phase| {
        let done = smp::at_instant(&offsets, LEAD_TICKS, |place| each(place, &phase));
        Some(skew(&done.expect(BOOT).tsc))
    };
    on_all(Phase::Open);
    let (begin_skew, end_skew) = (at_once(Phase::Run), at_once(Phase::End));
    on_all(Phase::Close);
    Together { begin_skew, end_skew, ..Together::default() }
}

/// All at the same time.
fn at_once(
    work: &[Mutex<Work>],
    cpus: &[u16],
    (machine, sampled): (&probe::Machine, Option<Sampled>),
    processors: Option<&AllProcessors>,
) -> Together {
    let places = Places::new(work, cpus);
    together(processors, |tsc| places.skew(tsc), &|place, phase| {
        let Some(mut one) = places.of(place) else { return };
        match phase {
            Phase::Open => one.scheduler.open(),
            Phase::Run => {
                one.scheduler.begin();
                one.tasks(machine, sampled);
            }
            Phase::End => one.scheduler.end(),
            Phase::Close => one.scheduler.close(),
        }
    })
}
