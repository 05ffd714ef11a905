//! The processors that run one snippet together: all of them, or the one that the item names.

use super::contention::contend;
use super::control::PLACE;
use super::counters::Counters;
use super::energy::EnergyMeters;
use super::passes::Counting;
use super::per_cpu::{AllProcessors, BOOT};
use super::probe::Machine;
use super::target::once_alone;
use super::uncore::UncoreCounters;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::{Function, Trap};
use arch::cpu::{self, extended};
use arch::memory::arena::{self, Arena};
use arch::pmu::energy::{NoEnergy, Source};
use arch::pmu::pmi::{self, ControlBlock, Delivery};
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Uncore};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{self, Capabilities, Counter, Driver, Gate, PmuError, Selection, window};
use arch::smp::{self, Offset};
use arch::time::tsc;
use arch::watchdog;
use kernel::energy::Meters;
use kernel::heartbeat::Beat;
use kernel::processors::contention::Together;
use kernel::processors::{self, Member, Ran, SnapshotCounts};
use kernel::snippet::events::{Counted, Plan};
use kernel::snippet::{Emitted, Phase, emit, fault};
use kernel::uncore;
use protocol::job::control::DEFAULT_TIME_LIMIT_MS;
use protocol::job::{CoreKind, Snippet};
use protocol::record::{Fault, Interrupts, Within};
use x86_64::instructions::interrupts;

/// From the moment when all are ready to the instant at which they begin, in ticks: longer than it takes to hear of it.
const LEAD_TICKS: u64 = 20_000;

/// The processors of one item.
pub struct SelectedProcessors<'a> {
    all: &'a AllProcessors,
    arena: &'a mut Arena,
    counting: &'a mut Counting,
    machine: &'a Machine,
    /// Indices into `all` of those that take part.
    chosen: Vec<usize>,
    members: Vec<Member>,
    offsets: Vec<Offset>,
    emitted: Option<Emitted>,
    second: Option<Emitted>,
    phase: Phase,
    resets_extended: bool,
    /// Longest time of a run, in ticks of the TSC; `None`: nothing ends one.
    limit: Option<u64>,
    meters: Result<EnergyMeters, NoEnergy>,
    uncore: UncoreCounters,
    heart: &'a dyn Beat,
}

impl<'a> SelectedProcessors<'a> {
    /// All processors, those of a kind of core, or the one with number `cpu`. Their memory areas are zero.
    ///
    /// # Errors
    /// There is none with that number.
    pub fn new(
        all: &'a mut AllProcessors,
        arena: &'a mut Arena,
        counting: &'a mut Counting,
        machine: &'a Machine,
        (cpu, core): (Option<u16>, Option<CoreKind>),
        heart: &'a dyn Beat,
    ) -> Result<Self, String> {
        let is_chosen = |member: &Member| match cpu {
            Some(cpu) => member.number == u32::from(cpu),
            None => core.is_none() || member.core == core,
        };
        let places = all.members.iter().enumerate().filter(|(_, member)| is_chosen(member));
        let chosen: Vec<usize> = places.map(|(place, _)| place).collect();
        if chosen.is_empty() {
            let cpu = cpu.unwrap_or_default();
            return Err(smp::CallError::NoProcessor(cpu.into(), smp::count()).to_string());
        }
        let clean = |place: usize| {
            if let Some(space) = &mut all.per_cpu[place].lock().space {
                // SAFETY: its own arena, of which nothing is held between two items.
                unsafe { arena::reset(space) };
            }
        };
        smp::on_all(clean).expect(BOOT);
        Ok(Self {
            members: chosen.iter().map(|&place| all.members[place].clone()).collect(),
            meters: EnergyMeters::new(machine),
            uncore: UncoreCounters::default(),
            offsets: all.offsets(),
            all,
            arena,
            counting,
            machine,
            heart,
            chosen,
            emitted: None,
            second: None,
            phase: Phase::Measured,
            resets_extended: false,
            limit: None,
        })
    }

    /// Emits with the gate of those who count, and for the others without.
    fn emit(&mut self, phase: Phase, snippet: &Snippet, copies: u64, counts: bool) {
        let gate_of = |place: usize| {
            if counts { self.all.per_cpu[place].lock().counters.gate } else { Gate::EMPTY }
        };
        let boot_counts = self.all.members[0].pmu.is_ok();
        let of = |with_pmu: bool| {
            let alike = |place: &&usize| self.all.members[**place].pmu.is_ok() == with_pmu;
            self.chosen.iter().find(alike).map_or(Gate::EMPTY, |&place| gate_of(place))
        };
        let (first, second) = (of(boot_counts), of(!boot_counts));
        self.emitted = Some(emit::emit(self.arena.code_mut(), &PLACE, snippet, copies, &first));
        let code = self.arena.second_code_mut();
        self.second = code.map(|code| emit::emit(code, &PLACE, snippet, copies, &second));
        self.phase = phase;
        self.resets_extended = snippet.extended_state;
    }

    fn emitted_for(&self, place: usize) -> &Emitted {
        let alike = self.all.members[place].pmu.is_ok() == self.all.members[0].pmu.is_ok();
        let second = self.second.as_ref().filter(|_| !alike);
        second.or(self.emitted.as_ref()).expect("loaded before")
    }

    /// Gives the counters of the uncore back as they were.
    pub fn release_uncore(&mut self) {
        self.uncore.release();
    }

    /// Has each member run what was loaded.
    fn run_members(&mut self) -> Vec<Ran> {
        let extended = self.resets_extended.then_some(self.machine.extended);
        let function = |place| {
            let emitted = self.emitted_for(place);
            Function { entry: emitted.function.start, exit: emitted.exit }
        };
        let functions: Vec<Function> = (0..self.all.members.len()).map(function).collect();
        let (all, chosen, offsets) = (self.all, &self.chosen, &self.offsets);
        let run = |place: usize| {
            let counters = &mut all.per_cpu[place].lock().counters;
            let (start, ended) = run_here(counters, functions[place], extended);
            let start = start.wrapping_add_signed(-offsets[place].ticks);
            let (counts, metrics_overflowed) =
                (counters.counts().to_vec(), counters.metrics_overflowed);
            Ran { start, ended, counts, metrics_overflowed }
        };
        if processors::ProcessorSet::in_turn(self) {
            let number = |place: usize| all.members[place].number as usize;
            let one = |&place: &usize| smp::run_on(number(place), || run(place)).expect(BOOT);
            return chosen.iter().map(one).collect();
        }
        let takes_part = |place: usize| chosen.contains(&place).then(|| run(place));
        let done = smp::at_instant(offsets, LEAD_TICKS, takes_part).expect(BOOT);
        self.of_chosen(done.values)
    }

    fn of_chosen<R>(&self, all: Vec<Option<R>>) -> Vec<R> {
        let mut all = all;
        self.chosen.iter().filter_map(|&place| all[place].take()).collect()
    }
}

/// One run on this processor. Returns the TSC at the beginning of the body, and the ticks.
fn run_here(
    counters: &mut Counters,
    function: Function,
    extended: Option<u64>,
) -> (u64, Result<u64, Box<Trap>>) {
    // The code was written by another processor: a serialising instruction has to stand between (SDM vol. 3, 8.1.3).
    cpu::serialise();
    // SAFETY: nothing of the firmware is kept in the extended state; the function was emitted with its exit, its code is
    // mapped executable and its data is this processor's own; interrupts are off. What the snippet itself writes
    // to is its author's business.
    unsafe {
        if let Some(components) = extended {
            extended::reset(components);
        }
        counters.clear();
        let dog = counters.watchdog;
        let mut run = || {
            let ended = function.run();
            counters.collect(ended.is_err());
            ended
        };
        let ended = match dog {
            Some(dog) => dog.watch_here(run),
            None => run(),
        };
        let data = &*(PLACE.data as *const emit::Data);
        (data.start, ended.map(|()| data.stop.wrapping_sub(data.start)))
    }
}

/// Turns of the loop on the first processor.
const TURNS: u64 = 10_000;
/// Instructions retired, on both vendors.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

/// A loop on this processor with an interrupt at every `period` instructions.
fn interrupted(has: &Capabilities, period: u64, turns: u64) -> Result<Interrupts, PmuError> {
    // SAFETY: ring 0, interrupt table loaded; the counters are ours, and their interrupt is handled from `install` on.
    let mut registers = unsafe { pmu::Machine::new() };
    let mut driver = Driver::new(has.clone());
    driver.reset(&mut registers)?;
    let counter = has.generals().next().unwrap_or(Counter::General(0));
    driver.program(&mut registers, counter, &INSTRUCTIONS.with_interrupt())?;
    let preset = driver.preset(counter, period)?;
    driver.write(&mut registers, counter, preset)?;
    let mut block = ControlBlock::of(&driver);
    block.reload(&driver, counter, preset)?;
    // SAFETY: the block is that of the driver's counter and has no log; the gate's writes are the driver's, and the code
    // is a piece with its arguments.
    let block = unsafe {
        pmi::install(&block, Delivery::Fixed);
        interrupts::enable();
        window::run(&driver.gate(), Ring0Code::Loop.address(), [turns, 0]);
        // One that was raised at the end is still on its way.
        x86_64::instructions::nop();
        x86_64::instructions::nop();
        interrupts::disable();
        pmi::uninstall();
        (*pmi::block()).clone()
    };
    let rest = driver.read(&mut registers, counter)?.wrapping_sub(preset) & has.mask(counter);
    driver.reset(&mut registers)?;
    let overflows = block.overflows(counter);
    let instructions = overflows * period + rest;
    let (taken, spurious) = (block.pmis, block.spurious);
    Ok(Interrupts { turns, taken, spurious, overflows, instructions })
}

impl processors::ProcessorSet for SelectedProcessors<'_> {
    fn beat(&mut self, within: Within) {
        self.heart.beat(tsc::now(), within);
    }

    fn meters(&mut self) -> Meters<'_> {
        self.meters.as_mut().map(|meters| meters as &mut dyn Source).map_err(|none| *none)
    }

    fn members(&self) -> &[Member] {
        &self.members
    }

    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        let ms = snippet.setup.control.time_limit_ms;
        // Watching takes an emulated PMU some 10 ms of host time a run, so there a job has to request a limit of its own.
        let watches = self.machine.watchdog.is_ok()
            && (ms != DEFAULT_TIME_LIMIT_MS || self.machine.emulated.is_none());
        let ticks = self.machine.clock.hz / 1000 * u64::from(ms);
        self.limit = Some(ticks).filter(|&ticks| watches && ticks > 0);
        // Those that take part are of one kind.
        let own = self.chosen.first().and_then(|&place| Some((place, self.all.known(place)?)));
        let plan = self.counting.prepare(snippet, self.machine, own);
        let numbers: Vec<u32> = self.members.iter().map(|member| member.number).collect();
        if let Ok(meters) = &mut self.meters
            && !plan.energy.is_empty()
        {
            meters.measure(&numbers);
        }
        if !plan.uncore.is_empty() {
            self.uncore.measure(&numbers);
        }
        plan
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        let (all, chosen, limit) = (self.all, &self.chosen, self.limit);
        let done = smp::on_all(|place| {
            let takes_part = chosen.contains(&place) && all.members[place].pmu.is_ok();
            let pass = if takes_part { pass } else { &[] };
            all.per_cpu[place].lock().counters.program(pass, limit.filter(|_| takes_part))
        })
        .expect(BOOT);
        let named = |(member, done): (&Member, Result<(), (usize, String)>)| {
            let on = member.number;
            done.map_err(|(index, reason)| (index, format!("on processor {on}: {reason}")))
        };
        self.all.members.iter().zip(done).try_for_each(named)
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.emit(Phase::Measured, snippet, copies, true);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.emit(Phase::Once, &once_alone(snippet), 0, false);
    }

    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        UncoreCounters::find()
    }

    fn program_uncore(
        &mut self,
        round: &[Placed],
    ) -> Result<Vec<uncore::Counter>, (usize, Refusal)> {
        self.uncore.program(round)
    }

    fn uncore_counts(&self) -> &[u64] {
        self.uncore.counts()
    }

    fn run(&mut self) -> Vec<Ran> {
        self.uncore.begin();
        let all = watchdog::handling(|| self.run_members());
        self.uncore.end();
        all
    }

    fn interrupts(&mut self, period: u64) -> Result<Vec<Option<Interrupts>>, (u32, String)> {
        let (members, chosen) = (&self.all.members, &self.chosen);
        let one = |place: usize| {
            let member = &members[place];
            let pmu = member.pmu.as_ref().ok().filter(|_| chosen.contains(&place));
            // Each has work of another length, so that no two blocks come to the same.
            let turns = TURNS * (u64::from(member.number) + 1);
            let done = pmu.map(|has| interrupted(has, period, turns)).transpose();
            done.map_err(|error| (member.number, error.to_string()))
        };
        let all: Vec<_> = match self.in_turn() {
            true => {
                let number = |place: usize| members[place].number as usize;
                let run = |place| smp::run_on(number(place), || one(place)).expect(BOOT);
                (0..members.len()).map(run).collect()
            }
            false => smp::on_all(one).expect(BOOT),
        };
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(chosen.iter().map(|&place| all[place]).collect())
    }

    fn in_turn(&self) -> bool {
        self.machine.emulated.is_some() && self.all.members.len() > 1
    }

    fn contend(&mut self, rounds: u32) -> Result<Together, (usize, String)> {
        contend(self.all, &self.chosen, rounds, self.in_turn())
    }

    fn snapshot(&mut self) -> SnapshotCounts {
        let all = self.all;
        let start = |place: usize| {
            let counters = &mut all.per_cpu[place].lock().counters;
            counters.clear();
            counters.start();
        };
        smp::on_all(start).expect(BOOT);
        let taken = smp::at_instant(&self.offsets, LEAD_TICKS, |place| {
            all.per_cpu[place].lock().counters.peek()
        })
        .expect(BOOT);
        smp::on_all(|place| all.per_cpu[place].lock().counters.collect(true)).expect(BOOT);
        SnapshotCounts {
            deadline: taken.deadline,
            tsc: self.of_chosen(taken.tsc.into_iter().map(Some).collect()),
            counts: self.of_chosen(taken.values.into_iter().map(Some).collect()),
        }
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        fault::explain(trap, self.emitted.as_ref().expect("it ran"), self.phase, snippet)
    }
}
