//! On the register-level model of every processor: it is told what each instruction of a task does.

mod around;
mod branches;
mod edges;
mod faults;
mod groups;
mod host;
mod ibs;
mod memory;
mod only;
mod plan;
mod precise;
mod processors;
mod sessions;
mod shares;
mod stacks;
mod tasks;
mod whole;

use super::plan::MIN_PERIOD;
use super::*;
use host::Host;
use pmu_model::Model;
use protocol::job::LoopCounter;
use protocol::job::sampling::{self, Keep, OnFull, Rate, SampledEvent, Sampling};
use protocol::job::workload::{Ring as TaskRing, Workload};
use protocol::record::{SampleResult, Samples};
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
        energy: Vec::new(),
        uncore: Vec::new(),
        limit_per_ms: 0,
        precise: false,
        branches: false,
        randomise: false,
        call_graph: None,
        vectors: vec![],
        counters: Vec::new(),
        only: protocol::job::exact::Filter::default(),
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
    let result = measure(host, 3, item, &mut (), &mut |chunk| chunks.push(chunk));
    (result.unwrap_or_else(|error| panic!("{error:?}")), chunks)
}

fn refused(item: &Sampling) -> String {
    match measure(&mut Host::new(Model::Skylake), 0, item, &mut (), &mut |_| ()) {
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

/// A group in braces has one rate, which is that of all its members.
#[test]
fn i4_members_of_a_group_have_the_groups_period() {
    for (model, mut host) in hosts() {
        let intel = host.driver.capabilities().is_intel();
        let (group, cycles) =
            if intel { ("{r00c0,r00c4}", "r003c") } else { ("{r00c0,r00c2}", "r0076") };
        let events = [event(group, 100), event(cycles, 333)];
        let (result, _) = run(&mut host, &item(&events, 1000));
        let periods: Vec<u64> = result.events.iter().map(|one| one.period).collect();
        assert_eq!(periods, [100, 100, 333], "{model:?}: {:?}", result.events);
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
