//! Samples of the unit by registers that hold what is written.

use super::*;
use crate::pmu::driver::Gate;
use crate::pmu::ibs::Features;
use crate::pmu::pmi::{Bucket, Sample, pause, resume};
use std::collections::BTreeMap;

const CONTROL: u32 = 0xc001_1033;
const GLOBAL: crate::msr::Msr = crate::msr::Msr(0xc000_0301);

/// Registers that hold what is written, and the order of the writes.
#[derive(Default)]
struct Machine {
    registers: BTreeMap<u32, u64>,
    writes: Vec<(u32, u64)>,
    ended: u32,
    masked: Option<u8>,
}

impl Raw for Machine {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.registers.get(&msr).copied().unwrap_or(0)
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.registers.insert(msr, value);
        self.writes.push((msr, value));
    }
    fn unmask(&mut self) {}
    fn mask_extended(&mut self, entry: u8) {
        self.masked = Some(entry);
    }
    fn end(&mut self) {
        self.ended += 1;
    }
    fn tsc(&mut self) -> u64 {
        77
    }
}

impl Machine {
    /// An operation was tagged: a load, where `data` says from where.
    fn tags(&mut self, rip: u64, data: Option<u64>) {
        *self.registers.entry(CONTROL).or_default() |= 1 << 18;
        self.registers.insert(0xc001_1034, rip);
        self.registers.insert(0xc001_1037, if data.is_some() { 1 << 17 | 1 } else { 0 });
        self.registers.insert(0xc001_1038, data.unwrap_or(0xdead));
    }
}

fn period(length: u64) -> Period {
    Period::new(Unit::Op, true, length, Features::all()).unwrap()
}

fn block(log: &mut [Sample], data: &mut [Datum], sampling: Sampling) -> ControlBlock {
    let mut block = ControlBlock::EMPTY;
    block.gate = Gate::EMPTY.with(GLOBAL, 3, 0);
    block.resume = Write::new(GLOBAL, 3);
    block.stop = Write::new(GLOBAL, 0);
    block.log_to(log);
    block.data_to(data);
    block.sample_by(sampling);
    block
}

#[test]
fn s1_a_sample_is_of_the_tagged_instruction_with_its_data() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let mut block = block(&mut log, &mut data, Sampling::new(period(64), 2, 0));
    let mut machine = Machine::default();
    let from = Interrupted { rip: 0x1050, cs: 3, ..Interrupted::default() };
    machine.tags(0x1040, Some(0x7008));
    sampled(&mut block, &mut machine, &from);
    machine.tags(0x1044, None);
    sampled(&mut block, &mut machine, &from);
    let logged = block.logged(log.as_ptr());
    let seen: Vec<_> = log[..logged].iter().map(|one| (one.rip, one.status, one.cs)).collect();
    assert_eq!(seen, [(0x1040, 1 << 2, 3), (0x1044, 1 << 2, 3)]);
    assert_eq!(data.map(|one| one.address), [0x7008, 0, 0, 0]);
    assert_eq!((block.slot(2).overflows, block.pmis, block.spurious), (2, 2, 0));
    // The counters stop first; the unit goes off with its sample, and on last.
    let on = period(64).on();
    let writes = [(GLOBAL.0, 0), (CONTROL, on & !(1 << 17)), (GLOBAL.0, 3), (CONTROL, on)];
    assert_eq!(machine.writes, [writes, writes].concat());
    assert_eq!(machine.ended, 2);
}

#[test]
fn s1_a_period_goes_on_where_it_was_stopped() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let sampling = Sampling::new(period(64), 0, 0).keeping_count(true);
    let mut block = block(&mut log, &mut data, sampling);
    let mut machine = Machine::default();
    resume(&mut block, &mut machine);
    assert_eq!(machine.registers[&CONTROL], period(64).on());
    *machine.registers.get_mut(&CONTROL).unwrap() |= 40 << 32;
    pause(&mut block, &mut machine, &Interrupted::default());
    assert_eq!(machine.registers[&CONTROL], period(64).off());
    assert_eq!(block.sampling().unwrap().rest(), 40);
    resume(&mut block, &mut machine);
    assert_eq!(machine.registers[&CONTROL], period(64).on() | 40 << 32);
    // A sample that waits where the task stops is taken there; its interrupt finds none, and begins no new period.
    machine.tags(0x1000, None);
    pause(&mut block, &mut machine, &Interrupted::default());
    resume(&mut block, &mut machine);
    *machine.registers.get_mut(&CONTROL).unwrap() |= 7 << 32;
    sampled(&mut block, &mut machine, &Interrupted::default());
    assert_eq!((block.slot(0).overflows, block.spurious), (1, 0), "it was awaited");
    assert_eq!(machine.registers[&CONTROL], period(64).on() | 7 << 32);
    assert_eq!(machine.registers[&GLOBAL.0], 3, "the counters go on");
    // Another one is not, and too many are kept out.
    let most = crate::pmu::pmi::MOST_SPURIOUS + block.pmis;
    for _ in 0..most {
        assert_eq!(machine.masked, None);
        sampled(&mut block, &mut machine, &Interrupted::default());
    }
    assert_eq!((block.spurious, machine.masked), (most, Some(0)));
    // Where the count cannot be written the period begins anew.
    block.sample_by(Sampling { keeps_count: false, ..*block.sampling().unwrap() });
    pause(&mut block, &mut machine, &Interrupted::default());
    resume(&mut block, &mut machine);
    assert_eq!(machine.registers[&CONTROL], period(64).on());
}

#[test]
fn s1_random_periods_start_each_from_a_count_of_its_own_and_add_up() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let random = period(256).randomised(Features::all()).unwrap();
    let sampling = Sampling::new(random, 0, 0).keeping_count(true).randomised_from(7);
    let mut block = block(&mut log, &mut data, sampling);
    let mut machine = Machine::default();
    resume(&mut block, &mut machine);
    let start = |machine: &Machine| machine.registers[&CONTROL] >> 32;
    let (mut starts, mut sum) = (vec![], 0);
    for _ in 0..500 {
        assert_eq!(machine.registers[&CONTROL] & 0xffff_ffff, random.on());
        starts.push(start(&machine));
        sum += 320 - start(&machine);
        machine.tags(0x1000, None);
        sampled(&mut block, &mut machine, &Interrupted::default());
        assert_eq!(block.sampling().unwrap().ended(), Some(sum));
    }
    assert!((127_000..=129_000).contains(&sum), "500 of 256 come to 128,000: {sum}");
    let mut different = starts.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 110, "{} of 127", different.len());
    assert!(different[0] >= 1 && different[different.len() - 1] <= 127);
    // What was counted of a period is without where it started.
    *machine.registers.get_mut(&CONTROL).unwrap() += 9 << 32;
    pause(&mut block, &mut machine, &Interrupted::default());
    assert_eq!(block.sampling().unwrap().rest(), 9);
    // A sample that is taken there begins a period from its own start.
    machine.tags(0x1000, None);
    pause(&mut block, &mut machine, &Interrupted::default());
    assert_eq!(block.sampling().unwrap().rest(), 0);
    resume(&mut block, &mut machine);
    assert!((1..128).contains(&start(&machine)), "{}", start(&machine));
    // The same again from the same seed.
    block.clear();
    resume(&mut block, &mut machine);
    assert_eq!((start(&machine), block.sampling().unwrap().ended()), (starts[0], Some(0)));
}

/// Erratum 420 of family 10h: the maximum count goes first, then the enable, and only then all comes back.
#[test]
fn s1_the_unit_of_family_10h_goes_off_in_two_writes() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let sampling = Sampling::new(period(64), 0, 0).clearing_maximum(true);
    let mut block = block(&mut log, &mut data, sampling);
    let mut machine = Machine::default();
    machine.tags(0x1000, None);
    sampled(&mut block, &mut machine, &Interrupted::default());
    let control = machine.writes.iter().filter(|(msr, _)| *msr == CONTROL);
    let written: Vec<u64> = control.map(|(_, value)| *value).collect();
    let (enable, maximum) = (1 << 17, 64 >> 4);
    assert_eq!(written[..2], [1 << 19 | enable, 1 << 19]);
    assert_eq!(written.last().unwrap() & (enable | 0xffff), enable | maximum);
    machine.writes.clear();
    pause(&mut block, &mut machine, &Interrupted::default());
    let written: Vec<u64> = machine.writes.iter().map(|(_, value)| *value).collect();
    assert!(written.ends_with(&[1 << 19 | enable, 1 << 19]), "{written:x?}");
}

#[test]
fn s1_a_sample_without_an_address_is_lost_and_counted_so() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let sampling = Sampling::new(period(64), 0, 0).checking_address(true);
    let mut block = block(&mut log, &mut data, sampling);
    let mut machine = Machine::default();
    machine.tags(0x1000, None);
    machine.registers.insert(0xc001_1035, 1 << 38);
    sampled(&mut block, &mut machine, &Interrupted::default());
    assert_eq!((block.sampling().unwrap().invalid, block.slot(0).overflows), (1, 0));
    assert_eq!(block.logged(log.as_ptr()), 0);
    // It continues all the same.
    assert_eq!(machine.registers[&CONTROL], period(64).on());
    block.clear();
    assert_eq!(block.sampling().unwrap().invalid, 0);
}

#[test]
fn s1_branches_are_counted_with_what_became_of_them() {
    let (mut log, mut data) = ([Sample::default(); 8], [Datum::default(); 8]);
    let mut outcomes = [Outcome::default(); 4];
    let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
    block.count_outcomes(&mut outcomes);
    let mut machine = Machine::default();
    const BRANCH: u64 = 1 << 37;
    // The flags mean nothing of what is not a branch.
    for (rip, what) in [
        (0x1000, BRANCH | 1 << 35),
        (0x1000, BRANCH | 1 << 36 | 1 << 35),
        (0x1000, BRANCH),
        (0x1008, 1 << 34 | 1 << 35 | 1 << 36),
        (0x1010, BRANCH | 1 << 34 | 1 << 35),
    ] {
        machine.tags(rip, None);
        machine.registers.insert(0xc001_1035, what);
        sampled(&mut block, &mut machine, &Interrupted::default());
    }
    let mut seen: Vec<_> = block
        .outcomes()
        .unwrap()
        .used()
        .map(|one| (one.address, [one.count, one.taken, one.mispredicted, one.returns]))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0x1000, [3, 2, 1, 0]), (0x1010, [1, 1, 0, 1])]);
}

#[test]
fn s1_m5_a_filter_keeps_slow_loads_or_stores_and_counts_the_rest() {
    let of = |filter, accesses: &[(u64, u64)]| {
        let (mut log, mut data) = ([Sample::default(); 8], [Datum::default(); 8]);
        let sampling = Sampling::new(period(64), 0, 0).filtered_by(Some(filter));
        let mut block = block(&mut log, &mut data, sampling);
        let mut machine = Machine::default();
        for &(flags, latency) in accesses {
            machine.tags(0x1000, Some(0x7000));
            machine.registers.insert(0xc001_1037, flags | latency << 32 | 1 << 17);
            sampled(&mut block, &mut machine, &Interrupted::default());
        }
        let kept = block.logged(log.as_ptr());
        let latencies = data[..kept].iter().map(|one| one.latency).collect::<Vec<_>>();
        (latencies, block.sampling().unwrap().filtered, block.pmis)
    };
    const MISS: u64 = 1 << 7;
    let seen = [(1 | MISS, 30), (1 | MISS, 31), (1, 200), (2, 0), (0, 0)];
    assert_eq!(of(Filter::Loads { beyond: 30 }, &seen), (vec![31], 4, 5));
    assert_eq!(of(Filter::Loads { beyond: 0 }, &seen), (vec![30, 31, 0], 2, 5));
    assert_eq!(of(Filter::Stores, &seen), (vec![0], 4, 5));
}

#[test]
fn s1_a_full_log_stops_the_unit_with_the_counters() {
    let (mut log, mut data) = ([Sample::default(); 1], [Datum::default(); 1]);
    let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
    block.stop_when_full();
    let mut machine = Machine::default();
    machine.tags(0x1000, None);
    sampled(&mut block, &mut machine, &Interrupted::default());
    assert!(block.stopped);
    assert_eq!([machine.registers[&CONTROL], machine.registers[&GLOBAL.0]], [period(64).off(), 0]);
    resume(&mut block, &mut machine);
    assert_eq!(machine.registers[&CONTROL], period(64).off());
}

#[test]
fn s1_fetches_have_an_address_of_their_own() {
    let fetch = Period::new(Unit::Fetch, false, 64, Features::all()).unwrap();
    let mut buckets = [Bucket::default(); 4];
    let mut block = ControlBlock::EMPTY;
    block.count_addresses(&mut buckets);
    block.sample_by(Sampling::new(fetch, 1, 0));
    let mut machine = Machine::default();
    // Erratum 1197: the second one's address reads 0.
    for address in [0x1040, 0] {
        machine.registers.insert(0xc001_1030, fetch.on() | 1 << 49);
        machine.registers.insert(0xc001_1031, address);
        sampled(&mut block, &mut machine, &Interrupted::default());
    }
    let seen: Vec<_> = block.histogram().unwrap().used().map(|one| one.address).collect();
    assert_eq!((seen, block.sampling().unwrap().invalid), (vec![0x1040], 1));
}

/// Families 16h to 18h reset the count of fetches where IbsFetchEn goes from 0 to 1, and not where the register is written (Linux,
/// `fetch_count_reset_broken`).
#[test]
fn s1_the_next_period_of_fetches_begins_with_the_unit_going_from_off_to_on() {
    let fetch = Period::new(Unit::Fetch, false, 64, Features::all()).unwrap();
    let mut block = ControlBlock::EMPTY;
    block.sample_by(Sampling::new(fetch, 1, 0));
    let mut machine = Machine::default();
    machine.registers.insert(0xc001_1030, fetch.on() | 1 << 49);
    machine.registers.insert(0xc001_1031, 0x1040);
    sampled(&mut block, &mut machine, &Interrupted::default());
    let control = machine.writes.iter().filter(|(msr, _)| *msr == 0xc001_1030);
    let enables: Vec<u64> = control.map(|(_, value)| value >> 48 & 1).collect();
    assert_eq!(enables, [0, 1]);
}

/// The ring is that of what ran, but for addresses of the upper half; odd ones are no others.
#[test]
fn t5_a_sample_of_the_kernel_is_not_of_the_ring_that_was_interrupted() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
    let mut machine = Machine::default();
    let from = Interrupted { rip: 0x1050, cs: 0x33, ..Interrupted::default() };
    for rip in [0x1041, 1 << 63 | 0x1040, 1 << 63 | 0x1041] {
        machine.tags(rip, None);
        sampled(&mut block, &mut machine, &from);
    }
    assert_eq!(log.map(|one| one.cs), [0x33, 0, 0, 0]);
}

/// Two tasks stop one after the other, each with a sample that waits: one interrupt is awaited still.
#[test]
fn s1_a_sample_is_awaited_until_its_interrupt_came() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
    let mut machine = Machine::default();
    let from = Interrupted::default();
    for _ in 0..2 {
        resume(&mut block, &mut machine);
        machine.tags(0x1000, None);
        pause(&mut block, &mut machine, &from);
    }
    // Nothing waits here, and that is still so.
    resume(&mut block, &mut machine);
    pause(&mut block, &mut machine, &from);
    sampled(&mut block, &mut machine, &from);
    assert_eq!((block.slot(0).overflows, block.spurious), (2, 0));
    sampled(&mut block, &mut machine, &from);
    assert_eq!(block.spurious, 1);
}

/// An interrupt that waited until the task had stopped starts nothing.
#[test]
fn t5_an_interrupt_behind_a_closed_gate_lets_nothing_go_on() {
    let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
    let go_on = |shut, rip| {
        let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
        block.closes_in(&(0x2000..0x2010));
        block.shut = shut;
        let mut machine = Machine::default();
        machine.tags(0x1000, None);
        sampled(&mut block, &mut machine, &Interrupted { rip, ..Interrupted::default() });
        machine.registers.get(&GLOBAL.0) == Some(&3)
    };
    let mut go_on = go_on;
    assert_eq!(
        [(0, 0x1000), (1, 0x1000), (0, 0x2004)].map(|(s, r)| go_on(s, r)),
        [true, false, false]
    );
}

/// Marsaglia's generator of 32 bits (13, 17, 5), from 1 on: known numbers.
#[test]
fn s1_random_periods_follow_the_generator_that_is_named() {
    let all = Features::from_bits_retain(u32::MAX);
    let period = Period::new(Unit::Op, true, 4096, all).unwrap().randomised(all).unwrap();
    let first = RandomPeriods::new(1, &period);
    let second = first.next(&period);
    let states = [first.state, second.state, second.next(&period).state];
    assert_eq!(states, [270_369, 67_634_689, 2_647_435_461]);
}
