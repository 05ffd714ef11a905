//! The machine's processors as a crew that runs one snippet together.

use super::control::PLACE;
use super::counters::Counters;
use super::passes::Counting;
use super::probe::Machine;
use super::programs::{Owner, Programs};
use super::target::once_alone;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::{Function, Trap};
use arch::cpu::{self, extended};
use arch::memory::arena::{self, Arena, Code};
use arch::memory::space::MapError;
use arch::memory::{Frames, Space, cache};
use arch::pmu::pmi::{self, ControlBlock, Delivery};
use arch::pmu::workload::Piece;
use arch::pmu::{
    self, Capabilities, Counter, Driver, Gate, Ownership, PmuError, Selection, window,
};
use arch::smp::{self, Offset};
use arch::time::tsc;
use kernel::heartbeat::Beat;
use kernel::processors::{self, Member, Ran, Shot};
use kernel::snippet::events::{Counted, Plan};
use kernel::snippet::{Emitted, Phase, emit, fault};
use protocol::job::Snippet;
use protocol::record::{Fault, Interrupts, Within};
use spin::Mutex;
use x86_64::instructions::interrupts;
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::PhysFrame;

/// From the moment when all are ready to the instant at which they begin, in ticks: longer than it takes to hear of it.
const LEAD_TICKS: u64 = 20_000;

/// What belongs to a processor, for its own hands alone.
struct Hand {
    counters: Counters,
    ownership: Ownership,
    /// Its address space; the boot processor's is the target's.
    space: Option<Space>,
}

/// All processors in use, made ready once.
pub struct Team {
    members: Vec<Member>,
    hands: Vec<Mutex<Hand>>,
}

/// Held while a processor's PMU is tried.
static TRIAL: Mutex<()> = Mutex::new(());

/// The team does what the boot processor, which alone gives work, says.
const BOOT: &str = "the boot processor gives the work";

impl Team {
    /// Reads each processor's PMU, takes it over, and gives each an arena.
    ///
    /// # Errors
    /// Out of memory.
    pub fn form(
        machine: &Machine,
        arena: &mut Arena,
        space: &mut Space,
        frames: &mut Frames,
    ) -> Result<Self, MapError> {
        let found = smp::on_all(|place| {
            // SAFETY: ring 0, interrupt table loaded, the firmware owns the PMU; the boot processor's was claimed before.
            let mut registers = unsafe { pmu::Machine::new() };
            let pmu = if place == 0 { machine.pmu.clone() } else { pmu::find(&mut registers) };
            let claim = |has: &Capabilities| Ownership::claim(&mut registers, has);
            let others = pmu.as_ref().ok().filter(|_| place > 0);
            let ownership = others.map(claim).unwrap_or_default();
            let pmu = match place {
                0 => pmu,
                // One at a time: the handler of the freeze is one for all.
                _ => pmu.and_then(|has| {
                    let _alone = TRIAL.lock();
                    pmu::trial::run(&has, &mut registers)
                }),
            };
            // SAFETY: as above; these are the processor's own.
            let counters = unsafe { Counters::new(pmu.clone().ok()) };
            (pmu, Hand { counters, ownership, space: None })
        })
        .expect(BOOT);
        let offsets = smp::offsets().expect(BOOT);
        let (mut members, mut hands) = (Vec::new(), Vec::new());
        for ((processor, (pmu, mut hand)), offset) in smp::in_use().zip(found).zip(offsets) {
            let number = processor.index() as u32;
            if number > 0 {
                let alike = pmu.is_ok() == machine.pmu.is_ok();
                let code = if alike { Code::Shared } else { Code::Second };
                let own = arena.twin(space, frames, code)?;
                let root = PhysFrame::containing_address(own.root());
                let flags = Cr3::read().1;
                // SAFETY: the space has everything that the one in use has, and an arena.
                let change = || unsafe { Cr3::write(root, flags) };
                smp::run_on(processor.index(), change).expect(BOOT);
                hand.space = Some(own);
            }
            let covered = machine.emulated.map_or(u32::MAX, |emulated| emulated.processors);
            let pmu = pmu.map_err(|missing| match number < covered {
                true => format!("there is no PMU: {missing}"),
                false => format!("the emulated PMU does not reach this processor ({missing})"),
            });
            members.push(Member { number, apic_id: processor.apic_id(), pmu, offset });
            hands.push(Mutex::new(hand));
        }
        Ok(Self { members, hands })
    }

    /// Gives every other processor program `number`, with its data as they were linked.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn provide(
        &self,
        programs: &mut Programs,
        number: u16,
        frames: &mut Frames,
    ) -> Result<(), String> {
        for (place, hand) in self.hands.iter().enumerate() {
            let mut hand = hand.lock();
            let Some(space) = &mut hand.space else { continue };
            programs.select(Owner::Processor(place), (number, false), space, frames)?;
            // SAFETY: ring 0; what is mapped stays mapped.
            let forget = || unsafe { cache::flush_tlb() };
            smp::run_on(self.members[place].number as usize, forget).expect(BOOT);
        }
        Ok(())
    }

    /// The processors, in the order of their numbers.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// How far their time stamp counters are apart.
    pub fn offsets(&self) -> Vec<Offset> {
        self.members.iter().map(|member| member.offset).collect()
    }

    /// Calls `each` with the address space of every other processor.
    pub fn each_space(&self, mut each: impl FnMut(&mut Space)) {
        for hand in &self.hands {
            hand.lock().space.iter_mut().for_each(&mut each);
        }
    }

    /// Gives the PMUs back as they were found; the boot processor's goes with the machine's.
    pub fn release(&self) {
        let restore = |place: usize| {
            // SAFETY: ring 0, interrupt table loaded; nothing counts any more.
            let mut registers = unsafe { pmu::Machine::new() };
            self.hands[place].lock().ownership.restore(&mut registers);
        };
        smp::on_all(restore).expect(BOOT);
    }
}

/// The members of one item.
pub struct Crew<'a> {
    team: &'a Team,
    arena: &'a mut Arena,
    counting: &'a mut Counting,
    machine: &'a Machine,
    /// Places in the team of those who take part.
    chosen: Vec<usize>,
    members: Vec<Member>,
    offsets: Vec<Offset>,
    emitted: Option<Emitted>,
    second: Option<Emitted>,
    phase: Phase,
    resets_extended: bool,
    heart: &'a dyn Beat,
}

impl<'a> Crew<'a> {
    /// All processors, or the one with number `cpu`. Their memory areas are zero.
    ///
    /// # Errors
    /// There is none with that number.
    pub fn new(
        team: &'a mut Team,
        arena: &'a mut Arena,
        counting: &'a mut Counting,
        machine: &'a Machine,
        cpu: Option<u16>,
        heart: &'a dyn Beat,
    ) -> Result<Self, String> {
        let is_chosen = |member: &Member| cpu.is_none_or(|cpu| member.number == u32::from(cpu));
        let places = team.members.iter().enumerate().filter(|(_, member)| is_chosen(member));
        let chosen: Vec<usize> = places.map(|(place, _)| place).collect();
        if chosen.is_empty() {
            let cpu = cpu.unwrap_or_default();
            return Err(smp::CallError::NoProcessor(cpu.into(), smp::count()).to_string());
        }
        let clean = |place: usize| {
            if let Some(space) = &mut team.hands[place].lock().space {
                // SAFETY: its own arena, of which nothing is held between two items.
                unsafe { arena::reset(space) };
            }
        };
        smp::on_all(clean).expect(BOOT);
        Ok(Self {
            members: chosen.iter().map(|&place| team.members[place].clone()).collect(),
            offsets: team.offsets(),
            team,
            arena,
            counting,
            machine,
            heart,
            chosen,
            emitted: None,
            second: None,
            phase: Phase::Measured,
            resets_extended: false,
        })
    }

    /// Emits with the gate of those who count, and for the others without.
    fn emit(&mut self, phase: Phase, snippet: &Snippet, copies: u64, counts: bool) {
        let gate_of = |place: usize| {
            if counts { self.team.hands[place].lock().counters.gate } else { Gate::EMPTY }
        };
        let boot_counts = self.team.members[0].pmu.is_ok();
        let of = |with_pmu: bool| {
            let alike = |place: &&usize| self.team.members[**place].pmu.is_ok() == with_pmu;
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
        let alike = self.team.members[place].pmu.is_ok() == self.team.members[0].pmu.is_ok();
        let second = self.second.as_ref().filter(|_| !alike);
        second.or(self.emitted.as_ref()).expect("loaded before")
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
        let ended = function.run();
        counters.collect();
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
        pmi::install(block, Delivery::Fixed);
        interrupts::enable();
        window::run(&driver.gate(), Piece::Loop.address(), [turns, 0]);
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

impl processors::Crew for Crew<'_> {
    fn beat(&mut self, within: Within) {
        self.heart.beat(tsc::now(), within);
    }

    fn members(&self) -> &[Member] {
        &self.members
    }

    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        self.counting.prepare(snippet, self.machine)
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        let (team, chosen) = (self.team, &self.chosen);
        let done = smp::on_all(|place| {
            let takes_part = chosen.contains(&place) && team.members[place].pmu.is_ok();
            let pass = if takes_part { pass } else { &[] };
            team.hands[place].lock().counters.program(pass, None)
        })
        .expect(BOOT);
        let named = |(member, done): (&Member, Result<(), (usize, String)>)| {
            let on = member.number;
            done.map_err(|(index, reason)| (index, format!("on processor {on}: {reason}")))
        };
        self.team.members.iter().zip(done).try_for_each(named)
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.emit(Phase::Measured, snippet, copies, true);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.emit(Phase::Once, &once_alone(snippet), 0, false);
    }

    fn run(&mut self) -> Vec<Ran> {
        let extended = self.resets_extended.then_some(self.machine.extended);
        let function = |place| {
            let emitted = self.emitted_for(place);
            Function { entry: emitted.function.start, exit: emitted.exit }
        };
        let functions: Vec<Function> = (0..self.team.members.len()).map(function).collect();
        let (team, chosen, offsets) = (self.team, &self.chosen, &self.offsets);
        let run = |place: usize| {
            let counters = &mut team.hands[place].lock().counters;
            let (start, ended) = run_here(counters, functions[place], extended);
            let start = start.wrapping_add_signed(-offsets[place].ticks);
            Ran { start, ended, counts: counters.counts().to_vec() }
        };
        if self.in_turn() {
            let number = |place: usize| team.members[place].number as usize;
            let one = |&place: &usize| smp::run_on(number(place), || run(place)).expect(BOOT);
            return chosen.iter().map(one).collect();
        }
        let takes_part = |place: usize| chosen.contains(&place).then(|| run(place));
        let done = smp::at_instant(offsets, LEAD_TICKS, takes_part).expect(BOOT);
        self.of_chosen(done.values)
    }

    fn interrupts(&mut self, period: u64) -> Result<Vec<Option<Interrupts>>, (u32, String)> {
        let (members, chosen) = (&self.team.members, &self.chosen);
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
        self.machine.emulated.is_some() && self.team.members.len() > 1
    }

    fn snapshot(&mut self) -> Shot {
        let team = self.team;
        let start = |place: usize| {
            let counters = &mut team.hands[place].lock().counters;
            counters.clear();
            counters.start();
        };
        smp::on_all(start).expect(BOOT);
        let shot = smp::at_instant(&self.offsets, LEAD_TICKS, |place| {
            team.hands[place].lock().counters.peek()
        })
        .expect(BOOT);
        smp::on_all(|place| team.hands[place].lock().counters.collect()).expect(BOOT);
        Shot {
            deadline: shot.deadline,
            tsc: self.of_chosen(shot.tsc.into_iter().map(Some).collect()),
            counts: self.of_chosen(shot.values.into_iter().map(Some).collect()),
        }
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        fault::explain(trap, self.emitted.as_ref().expect("it ran"), self.phase, snippet)
    }
}
