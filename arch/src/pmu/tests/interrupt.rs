use super::pmi::{
    ControlBlock, Interrupted, MOST_SPURIOUS, REGISTERS, Raw, Sample, pause, resume, service,
};
use super::*;
use pmu_model::{Delta, Retirement, Ring, RingMask};
use proptest::prelude::*;

/// The processor around the model: a local APIC's LVTPC, and what the handler did to it.
pub(super) struct Processor {
    pub(super) pmu: Pmu,
    masks_lvt: bool,
    masked: bool,
    pending: bool,
    pub(super) ends: u64,
    pub(super) order: Vec<&'static str>,
    /// What was written to the register that clears the status.
    acknowledged: Vec<u64>,
    clear: u32,
    status: u32,
}

impl Raw for Processor {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        if msr == self.status {
            self.order.push("status");
        }
        self.pmu.read_msr(msr).expect("a register of the PMU")
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        if msr == self.clear {
            self.acknowledged.push(value);
        }
        self.order.push(if msr == self.clear { "acknowledge" } else { "reload" });
        self.pmu.write_msr(msr, value).expect("a register of the PMU");
    }
    fn unmask(&mut self) {
        self.order.push("unmask");
        self.masked = false;
    }
    fn end(&mut self) {
        self.order.push("end");
        self.ends += 1;
    }
    fn tsc(&mut self) -> u64 {
        42
    }
}

impl Processor {
    pub(super) fn new(pmu: Pmu, driver: &Driver) -> Self {
        let global = driver.layout().global;
        Self {
            pmu,
            masks_lvt: driver.capabilities().is_intel(),
            masked: false,
            pending: false,
            ends: 0,
            order: Vec::new(),
            acknowledged: Vec::new(),
            clear: global.map_or(0, |global| global.clear.0),
            status: global.map_or(0, |global| global.status.0),
        }
    }

    /// Runs so many instructions of ring 0, taking PMIs where they are raised.
    pub(super) fn run(&mut self, block: &mut ControlBlock, instructions: u64) {
        let mut at = 0;
        while at < instructions {
            // Up to where something can happen.
            let far = self.pmu.until_overflow(RingMask::BOTH).unwrap_or(u64::MAX);
            let part = far.clamp(1, instructions - at);
            let (ip, next) = (at, at + 1);
            let retired = Retirement { ip, next, ..Retirement::default() };
            let outcome = model::retire(&mut self.pmu, &Delta::bulk(Ring::Kernel, part), &retired);
            at += part;
            self.take(block, outcome.pmi, at - 1);
        }
    }

    fn take(&mut self, block: &mut ControlBlock, pmi: bool, at: u64) {
        // A PMI that finds LVTPC masked is lost.
        self.pending |= pmi && !self.masked;
        if self.pending {
            self.pending = false;
            self.masked |= self.masks_lvt;
            let mut from = [0; REGISTERS];
            from[0] = at;
            let from = Interrupted { rip: at, registers: from, ..Interrupted::default() };
            service(block, self, &from);
        }
    }
}

pub(super) const PERIOD: u64 = 37;

/// One counter with an interrupt every [`PERIOD`] instructions, one without that shows what is lost.
pub(super) fn armed(pmu: &mut Pmu, driver: &mut Driver, freeze: Freeze) -> ControlBlock {
    let counter = Counter::General(0);
    driver.reset(pmu).unwrap();
    driver.program(pmu, counter, &INSTRUCTIONS.with_interrupt()).unwrap();
    driver.program(pmu, Counter::General(1), &INSTRUCTIONS).unwrap();
    driver.write(pmu, Counter::General(1), 0).unwrap();
    let preset = driver.preset(counter, PERIOD).unwrap();
    driver.write(pmu, counter, preset).unwrap();
    let mut block = ControlBlock::of(driver);
    block.reload(driver, counter, preset).unwrap();
    if !freeze.is_empty() {
        driver.set_freeze(pmu, freeze).unwrap();
        block.resume_in_handler(driver);
    }
    driver.start(pmu).unwrap();
    block
}

#[test]
fn i3_m12_every_period_is_one_interrupt_and_counting_goes_on() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, 100 * PERIOD + 5);
        assert_eq!(block.overflows(Counter::General(0)), 100, "{model:?}");
        assert_eq!((block.pmis, block.spurious, block.back_to_back), (100, 0, 0), "{model:?}");
        assert_eq!(processor.ends, 100);
        let seen = driver.read(&mut processor.pmu, Counter::General(1));
        assert_eq!(seen, Ok(100 * PERIOD + 5), "{model:?}");
    }
}

#[test]
fn the_order_is_status_acknowledge_reload_unmask_end() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, PERIOD);
        let expected: &[&str] = match driver.capabilities().has_global() {
            true => &["status", "acknowledge", "reload", "unmask", "status", "end"],
            false => &["reload", "unmask", "end"],
        };
        assert_eq!(processor.order, expected, "{model:?}");
    }
}

/// An overflow that comes between the look at the status and its acknowledgement keeps its bit, and is handled next.
#[test]
fn m12_what_was_not_found_is_not_acknowledged() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, 5 * PERIOD);
        let times = if driver.capabilities().has_global() { 5 } else { 0 };
        assert_eq!(processor.acknowledged, vec![Counter::General(0).bit(); times], "{model:?}");
    }
}

#[test]
fn c5_t7_frozen_counters_are_let_go_on_by_the_handler() {
    for (model, mut pmu, mut driver) in machines() {
        if driver.capabilities().freeze == FreezeKind::None {
            let refused = driver.set_freeze(&mut pmu, Freeze::COUNTERS);
            assert!(matches!(refused, Err(PmuError::Unsupported(_))), "{model:?}");
            continue;
        }
        let mut block = armed(&mut pmu, &mut driver, Freeze::COUNTERS);
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, 10 * PERIOD + 5);
        assert_eq!(block.pmis, 10, "{model:?}");
        let seen = driver.read(&mut processor.pmu, Counter::General(1));
        assert_eq!(seen, Ok(10 * PERIOD + 5), "{model:?}");
    }
}

#[test]
fn t7_without_a_freeze_the_handler_stops_the_counters_itself() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        block.stop_in_handler(&driver).unwrap();
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, 3 * PERIOD);
        assert_eq!(block.pmis, 3, "{model:?}");
    }
}

#[test]
fn an_interrupt_without_an_overflow_is_spurious_and_leaves_lvtpc_open() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        let mut processor = Processor::new(pmu, &driver);
        processor.masked = true;
        service(&mut block, &mut processor, &Interrupted::default());
        assert_eq!((block.spurious, block.pmis, processor.masked), (1, 0, false), "{model:?}");
        assert_eq!(processor.ends, 1);
    }
}

#[test]
fn m11_a_full_log_counts_what_it_drops() {
    let (_, mut pmu, mut driver) = machines().nth(3).unwrap();
    let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
    let mut log = [Sample::default(); 4];
    block.log_to(&mut log);
    block.task = 7;
    Processor::new(pmu, &driver).run(&mut block, 6 * PERIOD);
    assert_eq!((block.logged(log.as_ptr()), block.dropped, block.pmis), (4, 2, 6));
    let expected = |n: u64| Sample {
        rip: n * PERIOD - 1,
        status: 1,
        tsc: 42,
        task: 7,
        cs: 0,
        retire_latency: 0,
    };
    assert_eq!(log, [1, 2, 3, 4].map(expected));
}

proptest! {
    /// Whatever the two periods: no overflow of either counter is lost, together or apart.
    #[test]
    fn m12_two_counters_lose_nothing(first in 5u64..60, second in 5u64..60, which in 0..machines().count()) {
        let (model, mut pmu, mut driver) = machines().nth(which).unwrap();
        driver.reset(&mut pmu).unwrap();
        let periods = [(Counter::General(0), first), (Counter::General(1), second)];
        for (counter, _) in periods {
            driver.program(&mut pmu, counter, &INSTRUCTIONS.with_interrupt()).unwrap();
        }
        let mut block = ControlBlock::of(&driver);
        for (counter, period) in periods {
            let preset = driver.preset(counter, period).unwrap();
            driver.write(&mut pmu, counter, preset).unwrap();
            block.reload(&driver, counter, preset).unwrap();
        }
        driver.start(&mut pmu).unwrap();
        Processor::new(pmu, &driver).run(&mut block, 600);
        let seen = periods.map(|(counter, _)| block.overflows(counter));
        prop_assert_eq!(seen, [600 / first, 600 / second], "{:?}", model);
    }
}

/// A status register that reads so, one value after the other, and then 0.
struct Script(Vec<u64>);

impl Raw for Script {
    fn rdmsr(&mut self, _: u32) -> u64 {
        self.0.pop().unwrap_or(0)
    }
    fn wrmsr(&mut self, _: u32, _: u64) {}
    fn unmask(&mut self) {}
    fn end(&mut self) {}
    fn tsc(&mut self) -> u64 {
        0
    }
}

/// What overflows while an interrupt is handled is counted together with it, each counter by itself.
#[test]
fn m12_overflows_that_come_during_an_interrupt_are_counted() {
    let mut pmu = machine(Model::Skylake);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    for n in 0..4 {
        driver.program(&mut pmu, Counter::General(n), &INSTRUCTIONS.with_interrupt()).unwrap();
    }
    let mut block = ControlBlock::of(&driver);
    let mut buckets = [super::pmi::Bucket::default(); 16];
    block.count_addresses(&mut buckets);
    service(&mut block, &mut Script(vec![0b1000, 0b0101, 0b1011]), &Interrupted::default());
    assert_eq!((block.pmis, block.back_to_back, block.spurious), (1, 2, 0));
    let overflows: Vec<u64> = (0..4).map(|n| block.slot(n).overflows).collect();
    assert_eq!(overflows, [2, 1, 1, 2]);
    let mut counted: Vec<(u8, u64)> =
        block.histogram().unwrap().used().map(|one| (one.bit, one.count)).collect();
    counted.sort_unstable();
    assert_eq!(counted, [(0, 2), (1, 1), (2, 1), (3, 2)]);
    service(&mut block, &mut Script(vec![]), &Interrupted::default());
    assert_eq!((block.pmis, block.back_to_back, block.spurious), (1, 2, 1));
}

/// On AMD each overflow that comes while another one is handled leaves an interrupt that finds nothing: those are no storm,
/// however many they are.
#[test]
fn i4_an_empty_interrupt_after_each_overflow_is_no_storm() {
    let mut pmu = machine(Model::Skylake);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    driver.program(&mut pmu, Counter::General(0), &INSTRUCTIONS.with_interrupt()).unwrap();
    let mut block = ControlBlock::of(&driver);
    let mut interrupt = |status| service(&mut block, &mut Script(status), &Interrupted::default());
    for _ in 0..5 * MOST_SPURIOUS {
        interrupt(vec![1]);
        interrupt(vec![]);
    }
    (1..MOST_SPURIOUS).for_each(|_| interrupt(vec![]));
    assert_eq!((block.pmis, block.spurious), (5 * MOST_SPURIOUS, 6 * MOST_SPURIOUS - 1));
    assert!(!block.storms());
    service(&mut block, &mut Script(vec![]), &Interrupted::default());
    assert!(block.storms());
}

/// The interrupt of an overflow at the very end of the window comes when the gate is closed, and finds counters that stand as
/// frozen ones do.
#[test]
fn i6_a_pending_interrupt_does_not_start_the_counters_of_a_closed_gate() {
    const CLOSED: u64 = 0x1000;
    for (model, mut pmu, mut driver) in machines() {
        let freeze = match driver.capabilities().freeze {
            FreezeKind::None => Freeze::empty(),
            FreezeKind::Legacy | FreezeKind::Streamlined => Freeze::COUNTERS,
        };
        let mut block = armed(&mut pmu, &mut driver, freeze);
        if freeze.is_empty() {
            block.stop_in_handler(&driver).unwrap();
        }
        block.closes_in(&(CLOSED..CLOSED + 0x10));
        let mut processor = Processor::new(pmu, &driver);
        let seen = |processor: &mut Processor| driver.read(&mut processor.pmu, Counter::General(1));
        // The instruction that closes the gate is the last one of the period.
        let delta = Delta::bulk(Ring::Kernel, PERIOD);
        assert!(processor.pmu.advance(&delta).pmi, "{model:?}");
        driver.stop(&mut processor.pmu).unwrap();
        let at = |rip| Interrupted { rip, ..Interrupted::default() };
        service(&mut block, &mut processor, &at(CLOSED));
        processor.pmu.advance(&delta);
        assert_eq!((block.pmis, seen(&mut processor)), (1, Ok(PERIOD)), "{model:?}");
        // An interrupt that finds nothing, anywhere, once the gate has been shut for good.
        pause(&mut block, &mut processor, &at(0));
        service(&mut block, &mut processor, &at(0));
        processor.pmu.advance(&delta);
        assert_eq!((block.spurious, seen(&mut processor)), (1, Ok(PERIOD)), "{model:?}");
        // And continues where it is opened again.
        resume(&mut block, &mut processor);
        processor.run(&mut block, 2 * PERIOD);
        assert_eq!((block.pmis, seen(&mut processor)), (3, Ok(3 * PERIOD)), "{model:?}");
    }
}
