//! On the register-level model of every processor: it is told what each instruction of a task does.

mod branches;
mod edges;
mod faults;
mod groups;
mod ibs;
mod memory;
mod only;
mod plan;
mod precise;
mod processors;
mod sessions;
mod stacks;
mod tasks;
mod whole;

use super::plan::MIN_PERIOD;
use super::*;
use arch::pmu::data_source::Told;
use arch::pmu::driver::Write;
use arch::pmu::pmi::{
    Access, Accesses, Interrupted, Raw, drain, note_tick, pause, resume, service, tick,
};
use arch::pmu::{Capabilities, Missing, find, trial};
use pmu_model::uarch::{Access as Access_, AccessKind};
use pmu_model::{
    Branch, BranchKind, Delta, Model, Mutation, Occurrence, Outcome, PageSize, Pmu as Registers_,
    Retirement, Ring, Timing,
};
use protocol::job::LoopCounter;
use protocol::record::{Hex, SampleResult, Samples, Ticks};
use protocol::sampling::{self, Keep, OnFull, Rate, SampledEvent, Sampling};
use protocol::workload::{Ring as TaskRing, Workload};
use std::borrow::Cow;

/// Where code lies.
const AT: u64 = 0x1000;

/// An instruction that loads, out of the first level.
const LOAD: u8 = 0x8b;
/// From where.
const DATA: u64 = 0x7000;
/// One that loads out of memory, and one that stores there.
const FAR: u8 = 0x8a;
const STORE: u8 = 0x89;
const FAR_DATA: u64 = 0x9000;
/// Branches to the next instruction.
const CALL: u8 = 0xe8;
const RETURN: u8 = 0xc3;
const JUMP: u8 = 0xeb;

/// A machine whose tasks are one-byte instructions, `body.len()` of them each turn.
struct Host {
    pmu: Registers_,
    driver: Driver,
    known: Known<'static>,
    block: Option<ControlBlock>,
    gate: Gate,
    masks: bool,
    masked: bool,
    tsc: u64,
    /// Ticks between two of the timer.
    timer: Option<u64>,
    next_tick: u64,
    /// Instructions of the handler, which advance the TSC but are not counted.
    handler: u64,
    /// Of the TSC and of the timer.
    clock_hz: u64,
    /// Interrupts do not come through.
    deaf: bool,
    /// The table of addresses is gone at the end.
    forgets: bool,
    /// There is no PMU.
    absent: bool,
    /// Its number.
    cpu: u16,
    /// Whether interrupts as vectors were asked for, in each run of a task that was called.
    vectors: Vec<bool>,
    /// Whether its processors were to have a PMU.
    counts: Option<bool>,
    /// There is one place for the sources of accesses.
    few_sources: bool,
    /// Nothing says that the PMU is emulated.
    real: bool,
    /// Its local APIC has no extended LVT.
    plain_apic: bool,
    /// Samples of IBS that had no address.
    invalid: u64,
}

impl Host {
    fn new(model: Model) -> Self {
        let mut pmu = Registers_::new(model, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
        let has = find(&mut pmu).expect("a PMU");
        Self::of(pmu, has)
    }

    /// With a fault, found as the firmware finds it.
    fn with(model: Model, fault: Mutation) -> Result<Self, Missing> {
        let mut pmu = Registers_::new(model, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
        pmu.set_mutation(Some(fault));
        pmu.reset();
        let has = find(&mut pmu).and_then(|has| trial::run(&has, &mut pmu))?;
        Ok(Self::of(pmu, has))
    }

    fn of(mut pmu: Registers_, has: Capabilities) -> Self {
        let model = pmu.model();
        let known = Known::new(&has, None, &mut pmu);
        Self {
            pmu,
            driver: Driver::new(has),
            known,
            block: None,
            gate: Gate::EMPTY,
            masks: model.spec().intel().is_some(),
            masked: true,
            tsc: 0,
            timer: None,
            next_tick: 0,
            handler: 100,
            clock_hz: 1_000_000_000,
            deaf: false,
            forgets: false,
            absent: false,
            cpu: 0,
            vectors: Vec::new(),
            counts: None,
            few_sources: false,
            real: false,
            plain_apic: false,
            invalid: 0,
        }
    }

    fn write(&mut self, writes: &[Write]) {
        for write in writes {
            self.pmu.write_msr(write.msr, write.value).expect("a register of the PMU");
        }
    }

    /// The instruction at `rip` retires; [`LOAD`] loads.
    fn retire(&mut self, ring: Ring, rip: u64, next: u64, byte: u8) -> Outcome {
        let mut delta = Delta::step(ring);
        let mut retired = Retirement { ip: rip, next, tsc: self.tsc, ..Retirement::default() };
        retired.registers[3] = next;
        retired.vectors = core::array::from_fn(|half| next + half as u64);
        // What IBS reports of an access beside it.
        let access = |linear, kind| {
            let (physical, physical_next_page, bytes) = (linear, 0, 8);
            let (locked, page_bits) = (false, 12);
            let access =
                Access_ { linear, physical, physical_next_page, bytes, kind, locked, page_bits };
            Some((access, PageSize::Small))
        };
        let mut adds = |list: &[Occurrence]| list.iter().for_each(|&one| delta.add(one, 1));
        match byte {
            LOAD => {
                adds(&[Occurrence::Load, Occurrence::LoadL1Hit]);
                let at = DATA + 8 * (self.tsc % 4);
                (retired.load, retired.sampled.access) = (Some(at), access(at, AccessKind::Load));
            }
            FAR => {
                adds(&[Occurrence::Load, Occurrence::LoadLlcMiss, Occurrence::LoadWalk]);
                retired.load = Some(FAR_DATA);
            }
            STORE => {
                adds(&[Occurrence::Store, Occurrence::StoreLlcMiss]);
                retired.store = Some(FAR_DATA + 8);
            }
            _ => {}
        }
        let kind = match byte {
            CALL => Some(BranchKind::RelativeCall),
            RETURN => Some(BranchKind::Return),
            JUMP => Some(BranchKind::RelativeJump),
            _ => None,
        };
        if let Some(kind) = kind {
            let (from, to, taken, mispredicted) = (rip, next, true, false);
            let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 7 };
            self.pmu.record_branch(&branch);
            retired.sampled.branch = Some(branch);
        }
        arch::pmu::model::retire(&mut self.pmu, &delta, &retired)
    }

    fn interrupt(&mut self, rip: u64, timer: bool) {
        if self.deaf {
            return;
        }
        let Some(mut block) = self.block.take() else { return };
        self.tsc += self.handler;
        let mut from = Interrupted { rip, ..Interrupted::default() };
        from.registers[3] = rip;
        if timer {
            tick(&mut block, self, &from);
        } else {
            self.masked = self.masks;
            service(&mut block, self, &from);
        }
        self.block = Some(block);
    }
}

impl Raw for Host {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.pmu.read_msr(msr).expect("a register of the PMU")
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.pmu.write_msr(msr, value).expect("a register of the PMU");
    }
    fn unmask(&mut self) {
        self.masked = false;
    }
    fn mask(&mut self) {
        self.masked = true;
    }
    fn end(&mut self) {}
    fn tsc(&mut self) -> u64 {
        self.tsc
    }
}

impl Sampler for Host {
    fn pmu(&mut self) -> Result<Pmu<'_>, String> {
        if self.absent {
            return Err("there is no PMU: none".to_string());
        }
        Ok(Pmu { registers: &mut self.pmu, driver: &mut self.driver, known: &self.known })
    }

    fn gather(&mut self, cpus: &[u16], counts: bool) -> Result<(), String> {
        self.counts = Some(counts);
        if cpus == [0] { Ok(()) } else { Err("there is one processor".to_string()) }
    }

    fn on(
        &mut self,
        _: u16,
        work: &mut dyn FnMut(&mut dyn Registers, &mut Driver),
    ) -> Result<(), String> {
        let pmu = self.pmu()?;
        work(pmu.registers, pmu.driver);
        Ok(())
    }

    fn load_task(&mut self, task: &Task, gate: &Gate) -> (CodePlace, core::ops::Range<u64>) {
        self.gate = *gate;
        let [body, init, function] =
            [task.body.len() as u64, 0, 100].map(|len| [Hex(AT), Hex(AT + len)]);
        (CodePlace { body, init, function, program: None }, 0..0)
    }

    fn run_task(&mut self, task: &Task, vectors: bool) -> Result<u64, Unmeasured> {
        self.vectors.push(vectors);
        let start = self.tsc;
        let gate = self.gate;
        self.write(gate.on());
        self.next_tick = self.tsc + self.timer.unwrap_or(u64::MAX / 2);
        let len = task.body.len() as u64;
        for at in 0..task.turns * len {
            // The next instruction is where the interrupt comes.
            let rip = AT + (at + 1) % len;
            let byte = task.body[(at % len) as usize];
            let outcome = self.retire(Ring::Kernel, AT + at % len, rip, byte);
            self.tsc += 1;
            if self.timer.is_some() && self.tsc >= self.next_tick {
                self.next_tick += self.timer.unwrap_or(u64::MAX / 2);
                self.interrupt(rip, true);
            }
            if outcome.pmi && !self.masked {
                self.interrupt(rip, false);
            }
        }
        self.write(gate.off());
        Ok(self.tsc - start)
    }

    /// Round robin, seven instructions at a time. The PMI of a slice's last instruction waits for the scheduler's end.
    fn run_tasks(&mut self, item: &Sampling, interval: Option<u64>) -> Result<Scheduled, String> {
        self.next_tick = self.tsc + interval.unwrap_or(u64::MAX / 2);
        let start = self.tsc;
        let tasks = &item.workload.tasks;
        let at = |task: usize| AT + 0x100 * task as u64;
        let mut done = vec![0; tasks.len()];
        let length = |task: &Task| task.turns * task.body.len() as u64;
        let here = |index| item.workload.cpu_of(index) == self.cpu;
        let work: Vec<u64> = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| if here(index) { length(task) } else { 0 })
            .collect();
        while done != work {
            for (index, task) in tasks.iter().enumerate() {
                let slice = 7.min(work[index] - done[index]);
                if slice == 0 {
                    continue;
                }
                let mut block = self.block.take().expect("delivered before");
                block.task = index as u32;
                resume(&mut block, self);
                self.block = Some(block);
                for left in (0..slice).rev() {
                    let ring = match task.ring {
                        TaskRing::User => Ring::User,
                        TaskRing::Kernel => Ring::Kernel,
                    };
                    let ip = at(index) + done[index] % task.body.len() as u64;
                    done[index] += 1;
                    let rip = at(index) + done[index] % task.body.len() as u64;
                    let byte = task.body[(ip - at(index)) as usize];
                    let outcome = self.retire(ring, ip, rip, byte);
                    self.tsc += 1;
                    if outcome.pmi && !self.masked && left > 0 {
                        self.interrupt(rip, false);
                    }
                    // The scheduler's timer samples beside its ticks.
                    let sampled = self.tsc >= self.next_tick;
                    if left == 0 || sampled {
                        let mut block = self.block.take().expect("delivered before");
                        let cs = if ring == Ring::User { 3 } else { 0 };
                        let from = Interrupted { rip, cs, ..Interrupted::default() };
                        pause(&mut block, self, &from);
                        if sampled {
                            self.next_tick += interval.unwrap_or(u64::MAX / 2);
                            note_tick(&mut block, self, &from);
                        }
                        if left > 0 {
                            resume(&mut block, self);
                        }
                        self.block = Some(block);
                    }
                }
                // The scheduler's own work is not counted.
                for _ in 0..20 {
                    let outcome = self.pmu.advance(&Delta::step(Ring::Kernel));
                    assert!(!outcome.pmi, "{outcome:?}");
                }
            }
        }
        let places = (0..tasks.len()).map(|index| {
            let range = [Hex(at(index)), Hex(at(index + 1))];
            CodePlace { body: range, init: range, function: range, program: None }
        });
        let summary = Summary {
            tasks: vec![],
            switches: 0,
            ticks: Ticks::default(),
            interrupts: vec![],
            user_instructions: None,
            together: None,
        };
        Ok(Scheduled { summary, places: places.collect(), ticks: self.tsc - start })
    }

    fn deliver(&mut self, _: u16, block: &ControlBlock, _: Delivery, timer: Option<Interval>) {
        let mut block = block.clone();
        if let Some(accesses) = block.accesses().filter(|_| self.few_sources) {
            let [sources, addresses] = [1, 64].map(|len| vec![Access::default(); len].leak());
            let few = Accesses::new(*accesses.words(), sources, addresses).expect("places");
            block.count_accesses(few.telling(u64::MAX, Told::Load));
        }
        self.block = Some(block);
        self.masked = false;
        // The timer counts as fast as the TSC.
        self.timer = timer.map(|interval| u64::from(interval.count) << interval.divider);
    }

    fn withdraw(&mut self, _: u16, left: &mut ControlBlock) {
        self.timer = None;
        self.masked = true;
        let mut block = self.block.take().expect("delivered before");
        drain(&mut block, self, &Interrupted::default());
        if self.forgets {
            block.count_addresses(&mut []);
        }
        if let Some(mut unit) = block.sampling().copied().filter(|_| self.invalid > 0) {
            unit.invalid = self.invalid;
            block.sample_by(unit);
        }
        *left = block;
    }

    fn clocks(&self) -> [u64; 2] {
        [self.clock_hz; 2]
    }

    fn code(&mut self, address: u64) -> Vec<u8> {
        vec![0x90; usize::from(address < AT + 10)]
    }

    fn pointers(&self, task: Option<usize>) -> [u64; 5] {
        [task.map_or(0, |task| 0x1000 * (1 + task as u64)); 5]
    }

    fn has_extended_lvt(&mut self, _: u8) -> bool {
        !self.plain_apic
    }
    fn has_emulated_pmu(&self) -> bool {
        !self.real
    }
}

fn event(text: &'static str, period: u64) -> SampledEvent<'static> {
    SampledEvent { event: Cow::Borrowed(text), rate: Rate::Period(period) }
}

/// `turns` of ten instructions.
fn item(events: &[SampledEvent<'static>], turns: u64) -> Sampling<'static> {
    let task = Task {
        name: Cow::Borrowed("ten"),
        init: Cow::Borrowed(&[]),
        body: Cow::Borrowed(&[0x90; 10]),
        turns,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        ring: TaskRing::Kernel,
        parent: None,
        cpu: None,
        core: None,
        cpus: None,
        outlives: false,
        program: None,
        bits: protocol::bits::Bits::SixtyFour,
    };
    Sampling {
        name: Cow::Borrowed("s"),
        events: events.to_vec(),
        interval_ns: 0,
        workload: Workload { tasks: vec![task], tick_ns: 0, jitter: None },
        keep: Keep::Histogram,
        capacity: 64,
        on_full: OnFull::Drop,
        delivery: sampling::Delivery::Fixed,
        freeze: sampling::Freeze::Auto,
        registers: 0,
        limit_per_ms: 0,
        precise: false,
        branches: false,
        randomise: false,
        call_graph: None,
        vectors: false,
        counters: Vec::new(),
        only: protocol::exact::Filter::default(),
        limit_us: 1,
    }
}

/// Every model with a PMU.
fn hosts() -> impl Iterator<Item = (Model, Host)> {
    let models = Model::ALL.into_iter().filter(|&model| model != Model::None);
    models.map(|model| (model, Host::new(model)))
}

fn run(host: &mut Host, item: &Sampling) -> (SampleResult, Vec<Samples>) {
    let mut chunks = Vec::new();
    let result = measure(host, 3, item, &mut |chunk| chunks.push(chunk));
    (result.unwrap_or_else(|error| panic!("{error:?}")), chunks)
}

fn refused(item: &Sampling) -> String {
    match measure(&mut Host::new(Model::Skylake), 0, item, &mut |_| ()) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

const RETIRED: &str = "r00c0";

#[test]
fn i4_i5_every_overflow_is_in_the_histogram_on_each_model() {
    for (model, mut host) in hosts() {
        // 30,000 instructions; 7 and 10 have no common factor, so each address comes equally often.
        let (result, chunks) = run(&mut host, &item(&[event(RETIRED, 70 + 7)], 3000));
        let one = &result.events[0];
        assert_eq!((one.overflows, one.samples, one.dropped), (389, 389, 0), "{model:?}");
        // 389 * 77 = 29,953.
        assert_eq!((one.rest, one.witness), (47, Some(30_000)), "{model:?}");
        assert_eq!((result.addresses.len(), chunks.len()), (10, 0), "{model:?}");
        for row in &result.addresses {
            assert!((38..=39).contains(&row.count) && row.bytes == "90", "{model:?}: {row:?}");
        }
        assert_eq!((result.elsewhere, result.interrupts), (0, 389), "{model:?}");
        assert_eq!((result.item, result.logged), (3, 0), "{model:?}");
        let counter = host
            .driver
            .capabilities()
            .counters()
            .find(|counter| one.counter.as_deref() == Some(&counter.to_string()));
        assert!(counter.is_some(), "{model:?}: {one:?}");
    }
}

#[test]
fn i4_several_events_have_each_their_own_period() {
    for (model, mut host) in hosts() {
        let cycles = if host.driver.capabilities().is_intel() { "r003c" } else { "r0076" };
        let (result, _) = run(&mut host, &item(&[event(RETIRED, 100), event(cycles, 333)], 1000));
        let [retired, cycles] = &result.events[..] else { panic!("{:?}", result.events) };
        assert_eq!((retired.overflows, retired.rest), (100, 0), "{model:?}");
        let counted = cycles.overflows * 333 + cycles.rest;
        assert_eq!(cycles.witness.unwrap_or(counted), counted, "{model:?}: {cycles:?}");
        assert!(cycles.overflows >= 30, "{model:?}: {cycles:?}");
        let rows = result.addresses.iter().filter(|row| row.event == 1).map(|row| row.count);
        assert_eq!(rows.sum::<u64>(), cycles.overflows, "{model:?}");
    }
}

#[test]
fn m11_single_samples_come_in_chunks_and_what_finds_no_place_is_counted() {
    for (model, mut host) in hosts() {
        let mut item = item(&[event(RETIRED, 77)], 35_000);
        (item.keep, item.capacity, item.registers) = (Keep::Samples, 2500, 1 << 3);
        let (result, chunks) = run(&mut host, &item);
        // 350,000 / 77.
        let one = &result.events[0];
        assert_eq!((one.overflows, one.samples, one.dropped), (4545, 2500, 2045), "{model:?}");
        assert_eq!(
            chunks.iter().map(|chunk| chunk.first).collect::<Vec<_>>(),
            [0, 500, 1000, 1500, 2000]
        );
        let all: Vec<_> = chunks.iter().flat_map(Samples::iter).collect();
        for (n, &(address, _, events, task)) in (1..).zip(&all) {
            assert_eq!((address, events, task), (AT + n * 77 % 10, 1, 0), "{model:?}");
        }
        let registers: Vec<_> = chunks.iter().flat_map(|chunk| &chunk.registers).collect();
        assert!(chunks.iter().all(|chunk| chunk.item == 3 && chunk.tasks.is_empty()), "{model:?}");
        assert_eq!((result.item, result.logged), (3, 2500), "{model:?}");
        assert!(registers.iter().zip(&all).all(|(register, sample)| register.0 == sample.0));
        assert_eq!((all.len(), registers.len(), result.dropped), (2500, 2500, 2045));
        item.on_full = OnFull::Stop;
        let (result, _) = run(&mut host, &item);
        let one = &result.events[0];
        assert!(result.stopped, "{model:?}");
        assert_eq!((one.overflows, one.samples, one.dropped, one.rest), (2500, 2500, 0, 0));
        assert_eq!(one.witness, Some(192_500), "{model:?}");
    }
}

#[test]
fn m8_a_timer_samples_beside_an_event_and_its_intervals_are_told() {
    for (model, mut host) in hosts() {
        let item = Sampling { interval_ns: 5_000, ..item(&[event(RETIRED, 1000)], 10_000) };
        let (result, _) = run(&mut host, &item);
        let [retired, timer] = &result.events[..] else { panic!("{:?}", result.events) };
        assert_eq!((retired.overflows, retired.samples, retired.rest), (100, 100, 0), "{model:?}");
        assert_eq!((retired.last_period, timer.last_period), (None, None), "{model:?}");
        // 100,000 instructions and 100 for each of the interrupts.
        assert!(timer.overflows >= 22 && timer.samples == timer.overflows, "{model:?}: {timer:?}");
        let measured = result.timer.unwrap();
        let told = (measured.asked_ns, measured.set_ns, measured.doubled);
        assert_eq!(told, (5_000, 5_000, 0), "{model:?}");
        let [least, median, most] = measured.measured_ns.unwrap();
        assert!(least <= median && median == 5_000 && most <= 5_200, "{model:?}: {measured:?}");
    }
}

#[test]
fn m8_a_rate_that_is_too_high_makes_the_period_longer_and_says_so() {
    for (model, mut host) in hosts() {
        // A millisecond is a million instructions here.
        let item = Sampling { limit_per_ms: 50, ..item(&[event(RETIRED, 100)], 20_000) };
        let (result, _) = run(&mut host, &item);
        let one = &result.events[0];
        assert!(result.throttled >= 3, "{model:?}: {result:?}");
        assert_eq!(one.last_period, Some(100 << result.throttled), "{model:?}");
        assert!(one.throttled > 0 && one.samples == one.overflows, "{model:?}: {one:?}");
        // Of the period that runs at the end, which is longer, no interrupt was lost.
        assert!(one.rest > (2 * 100) >> result.throttled, "{model:?}: {one:?}");
        assert_eq!(one.remarks, [""; 0], "{model:?}");
        assert_eq!((one.overflows + one.throttled) * 100 + one.rest, 200_000, "{model:?}");
        assert_eq!(one.witness, Some(200_000), "{model:?}");
    }
}

#[test]
fn m8_a_frequency_becomes_a_period_by_a_counting_run() {
    for (model, mut host) in hosts() {
        let rate = SampledEvent { rate: Rate::PerSecond(1_000_000), ..event(RETIRED, 1) };
        let (result, _) = run(&mut host, &item(&[rate], 1000));
        // One instruction a nanosecond.
        assert_eq!((result.events[0].period, result.events[0].overflows), (1000, 10), "{model:?}");
        let rate = SampledEvent { rate: Rate::PerSecond(u32::MAX), ..event(RETIRED, 1) };
        let (result, _) = run(&mut host, &item(&[rate], 1000));
        assert_eq!(result.events[0].period, MIN_PERIOD, "{model:?}");
        assert!(result.events[0].remarks[0].contains("shortest"), "{model:?}: {result:?}");
    }
}
