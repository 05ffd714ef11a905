//! Architectural PEBS against a model of a few registers, made here out of Linux' definitions alone.

mod processor;
mod switching;

use super::access::Registers;
use super::pebs::{DataConfig, Drain, Format, Groups, Store};
use super::pmi::{Bucket, ControlBlock, Interrupted, Raw, Sample, drain, service};
use super::*;
use crate::msr::Msr;
use processor::Small;

const PERIOD: u64 = 4;
const BASE: u32 = 0x3f4;
const INDEX: u32 = 0x3f5;
const WIDTH: u64 = (1 << 48) - 1;

/// The handler's way to it.
struct Handler<'a>(&'a mut Small);

impl Raw for Handler<'_> {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.0.get(msr)
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.0.wrmsr(Msr(msr), value).expect("a register that takes the value");
    }
    fn unmask(&mut self) {}
    fn end(&mut self) {}
    fn tsc(&mut self) -> u64 {
        0
    }
}

fn ports(small: &mut Small) -> &mut dyn Registers {
    small
}

/// A PMU whose `counter` writes records with those groups, and counts.
fn recording(
    counter: Counter,
    config: DataConfig,
    [records, threshold]: [usize; 2],
) -> (Small, Driver, Store, Drain) {
    let mut small = Small::new();
    let mut driver = Driver::new(find(&mut small).unwrap());
    let mut store = Store::with_groups(Format::Architectural, config, records, threshold);
    let preset = driver.preset(counter, PERIOD - 1).unwrap();
    store.set_reset(counter, preset);
    driver.use_store(&mut small, &store).unwrap();
    driver.program(&mut small, counter, &INSTRUCTIONS.with_records()).unwrap();
    driver.write(&mut small, counter, preset).unwrap();
    let drain = Drain::new(&mut store, driver.recording());
    driver.start(&mut small).unwrap();
    (small, driver, store, drain)
}

#[test]
fn s1_architectural_pebs_is_what_leaf_23_and_the_format_say() {
    let read = |change: fn(&mut Small)| {
        let mut small = Small::new();
        change(&mut small);
        find(&mut small).unwrap()
    };
    let has = read(|_| ());
    assert_eq!(has.pebs_format(), Some(Format::Architectural));
    assert_eq!((has.pebs_counters(), has.pebs_fixed()), (0x7f, 1), "sub-leaf 5");
    assert_eq!(has.record_groups(), Groups::all());
    let narrow = read(|small| small.groups = 0x6002_0378);
    assert_eq!(narrow.record_groups(), Groups::all().difference(Groups::BEYOND_XMM));
    assert!(has.features().contains(&"PEBS (architectural)"));
    assert!(!has.has_adaptive_records());
    // Another format, or no registers: none.
    let other = read(|small| *small.msrs.get_mut(&0x345).unwrap() = 0x2600);
    assert_eq!(other.pebs_format(), None);
    let absent = read(|small| {
        small.msrs.remove(&INDEX);
    });
    assert_eq!((absent.pebs_format(), absent.faults.len()), (None, 1));
    let fewer = read(|small| small.groups = 0x2000_0000);
    assert_eq!(fewer.record_groups(), Groups::GENERAL);
}

#[test]
fn s1_architectural_records_have_the_groups_that_were_asked_for() {
    let plain = [Groups::MEMORY, Groups::GENERAL, Groups::VECTORS, Groups::BRANCHES];
    for bits in 0..16 {
        let wanted = (0..4).filter(|n| bits >> n & 1 != 0).map(|n| plain[n]);
        let groups = wanted.fold(Groups::empty(), |sum, one| sum | one);
        let config = DataConfig { groups, branches: 4, ..DataConfig::BASIC };
        let (mut small, _, store, mut drain) = recording(Counter::General(2), config, [64, 64]);
        (1..=50).for_each(|n| small.retire(n));
        let mut seen = 0;
        while drain.fetch(ports(&mut small)) {
            drain.run_groups(&mut |record| {
                seen += 1;
                let n = PERIOD * seen;
                assert_eq!(
                    (record.ip, record.tsc, record.retire_latency),
                    (0x1000 + n, 10 * n, Some(7))
                );
                assert_eq!((record.counters, record.groups()), (0b100, groups));
                if let Some(access) = record.access {
                    assert_eq!((access.address, access.source), (0x5000 + n, 0x21));
                    assert_eq!(
                        (access.instruction_latency(), access.cache_latency()),
                        (0x34, 0x12)
                    );
                }
                if let Some(general) = record.general {
                    assert_eq!((general.flags, general.next), (0x202, 0x1001 + n));
                    assert_eq!(general.registers, core::array::from_fn(|r| 100 * n + r as u64));
                }
                let vectors = core::array::from_fn(|half| 1000 * n + half as u64);
                assert!(record.vectors.is_none_or(|all| *all == vectors));
                let froms: Vec<u64> = record.branch_records().map(|one| one.from).collect();
                assert!(froms.is_empty() || froms == [0x2000, 0x2001, 0x2002, 0x2003]);
            });
        }
        assert_eq!(
            (seen, drain.records, drain.full, drain.malformed),
            (12, 12, 0, 0),
            "{groups:?}"
        );
        assert!(!store.is_overrun());
        assert_eq!(small.get(INDEX) & 0x7ff_fff0, 0, "the buffer is empty again");
    }
}

/// Each combination of the groups of vector registers, as a sample's words.
#[test]
fn s1_architectural_records_have_the_vector_registers_that_were_asked_for() {
    use super::pebs::vectors::GROUPS;
    for bits in 1..32usize {
        let wanted = (0..5).filter(|n| bits >> n & 1 != 0);
        let groups = wanted.clone().fold(Groups::empty(), |all, n| all | GROUPS[n].0);
        let config = DataConfig { groups, ..DataConfig::BASIC };
        let counter = Counter::General(2);
        let (mut small, driver, mut store, _) = recording(counter, config, [64, 64]);
        assert_eq!(store.record_words(), config.architectural_words());
        let mut log = [Sample::default(); 12];
        let each: usize = wanted.clone().map(|n| GROUPS[n].1).sum();
        let mut words = vec![99; 12 * each];
        let mut block = ControlBlock::of(&driver);
        block.log_to(&mut log);
        block.groups_to(&mut words, groups, 0);
        block.take_records(Drain::new(&mut store, driver.recording()));
        (1..=50).for_each(|n| small.retire(n));
        drain(&mut block, &mut Handler(&mut small), &Interrupted::default());
        let records = block.records().unwrap();
        assert_eq!((records.records, records.malformed), (12, 0), "{groups:?}");
        let of = |n: u64| {
            wanted.clone().flat_map(move |group| {
                let base = 1000 * n * (group as u64 + 1);
                base..base + GROUPS[group].1 as u64
            })
        };
        let expected: Vec<u64> = (1..=12).flat_map(|record| of(PERIOD * record)).collect();
        assert_eq!(words, expected, "{groups:?}");
        assert!(!store.is_overrun());
    }
}

#[test]
fn s1_m11_of_many_architectural_records_none_is_lost_unaccounted() {
    const RECORDS: u64 = 100_000;
    let (mut small, driver, mut store, _) =
        recording(Counter::Fixed(0), DataConfig::SAMPLES, [300, 200]);
    let mut block = ControlBlock::of(&driver);
    let mut buckets = [Bucket::default(); 64];
    block.count_addresses(&mut buckets);
    block.take_records(Drain::new(&mut store, driver.recording()));
    let (mut served, from) = (0, Interrupted::default());
    for n in 1..=RECORDS * PERIOD {
        small.retire(n);
        if small.interrupts > served {
            served = small.interrupts;
            service(&mut block, &mut Handler(&mut small), &from);
        }
    }
    drain(&mut block, &mut Handler(&mut small), &from);
    let records = block.records().unwrap();
    assert_eq!((records.records, records.full, records.malformed), (RECORDS, 0, 0));
    assert_eq!((served, block.pmis, block.spurious), (RECORDS / 200, RECORDS / 200, 0));
    assert_eq!(block.slot(32).overflows, RECORDS);
    assert!(!store.is_overrun());
}

#[test]
fn s1_a_full_architectural_buffer_is_told_and_goes_on() {
    let (mut small, driver, store, mut drain) =
        recording(Counter::General(0), DataConfig::SAMPLES, [2, 2]);
    let bytes = 8 * store.record_words() as u64;
    let fit = 4096 / bytes;
    assert_eq!(store.base().unwrap().bytes(), 4096);
    (1..=PERIOD * (fit + 5)).for_each(|n| small.retire(n));
    let mut seen = 0;
    while drain.fetch(ports(&mut small)) {
        drain.run(|_| seen += 1);
    }
    assert_eq!((seen, drain.records, drain.full, drain.malformed), (fit, fit, 1, 0));
    assert!(!store.is_overrun());
    // Neither full nor off.
    assert_eq!(small.get(INDEX) & 0x1_ffff_fff0, 1 << 32);
    (1..=PERIOD * 3).for_each(|n| small.retire(n));
    while drain.fetch(ports(&mut small)) {
        drain.run(|_| seen += 1);
    }
    assert_eq!((seen, drain.full), (fit + 3, 1));
    // Emptied where records are to begin again.
    (1..=PERIOD).for_each(|n| small.retire(n));
    driver.empty_store(&mut small).unwrap();
    drain.clear();
    assert!(!drain.fetch(ports(&mut small)));
    assert_eq!(small.get(INDEX), store.index().0);
}

/// The emulated PMU was written apart from this driver.
#[test]
fn s1_every_group_of_an_architectural_record_is_what_retired() {
    use pmu_model::{Delta, Retirement, Ring};
    // It has no ZMM and no masks.
    let groups = Format::Snapshot.groups() | Groups::YMM_UPPER;
    let config = DataConfig { groups, branches: 32, general: 0b101, fixed: 0b1 };
    let mut pmu = machine(Model::CougarCove);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    let counter = Counter::General(1);
    let mut store = Store::with_groups(Format::Architectural, config, 30, 20);
    let preset = driver.preset(counter, PERIOD - 1).unwrap();
    store.set_reset(counter, preset);
    driver.use_store(&mut pmu, &store).unwrap();
    driver.program(&mut pmu, counter, &INSTRUCTIONS.with_records()).unwrap();
    driver.write(&mut pmu, counter, preset).unwrap();
    for beside in [Counter::General(2), Counter::Fixed(0)] {
        driver.program(&mut pmu, beside, &INSTRUCTIONS).unwrap();
        driver.write(&mut pmu, beside, 0).unwrap();
    }
    driver.start(&mut pmu).unwrap();
    let mut drain = Drain::new(&mut store, driver.recording());
    for n in 1..=100 {
        let retired = Retirement {
            ip: 0x1000 + n,
            next: 0x1001 + n,
            flags: 0x202,
            registers: core::array::from_fn(|r| 100 * n + r as u64),
            vectors: core::array::from_fn(|half| 1000 * n + half as u64),
            ymm_upper: Some(core::array::from_fn(|half| 2000 * n + half as u64)),
            tsc: 10 * n,
            ..Retirement::default()
        };
        model::retire(&mut pmu, &Delta::bulk(Ring::User, 1), &retired);
    }
    let (mut seen, mut pieces) = (0, 0);
    while drain.fetch(&mut pmu as &mut dyn Registers) {
        drain.take_architectural(&mut |record| {
            seen += 1;
            let (n, common) = (PERIOD * seen, record.common);
            pieces += record.fragments;
            assert_eq!((common.ip, common.tsc, common.counters), (0x1000 + n, 10 * n, 0b10));
            let general = common.general.unwrap();
            assert_eq!((general.flags, general.next), (0x202, 0x1001 + n));
            assert_eq!(general.registers, core::array::from_fn(|r| 100 * n + r as u64));
            let vectors = core::array::from_fn(|half| 1000 * n + half as u64);
            assert_eq!(common.vectors, Some(&vectors));
            let upper = core::array::from_fn(|half| 2000 * n + half as u64);
            assert_eq!(record.beyond.ymm_upper, Some(&upper));
            assert_eq!((common.branches.len(), record.groups()), (32, groups));
            let snapshot = common.snapshot.unwrap();
            assert_eq!((snapshot.general, snapshot.fixed), (0b101, 1));
            assert_eq!(snapshot.values, [0, n, n]);
        });
    }
    assert_eq!((seen, drain.records, drain.full, drain.malformed), (25, 25, 0, 0));
    assert_eq!(pieces, 50, "each came in two fragments");
    assert!(!store.is_overrun());
}
