//! Architectural PEBS against a model of a few registers, made here out of Linux' definitions alone.

use super::access::Registers;
use super::pebs::{Architectural, Contents, DataConfig, Drain, Format, Groups, Store};
use super::pmi::{Bucket, ControlBlock, Interrupted, Raw, drain, service};
use super::registers::GlobalStatus;
use super::*;
use crate::msr::{Absent, Msr};
use raw_cpuid::CpuIdResult;
use std::collections::BTreeMap;

const PERIOD: u64 = 4;
const BASE: u32 = 0x3f4;
const INDEX: u32 = 0x3f5;
const WIDTH: u64 = (1 << 48) - 1;

/// Registers, eight counters and three fixed ones. Every counter that is on counts each instruction.
struct Small {
    msrs: BTreeMap<u32, u64>,
    /// Counters whose overflow has armed them.
    armed: Vec<u32>,
    /// Leaf 0x23.4 EBX.
    groups: u32,
    interrupts: u64,
}

impl Small {
    fn new() -> Self {
        let counters = (0..8).flat_map(|n| (0x1900 + 4 * n..).take(4));
        let fixed = (0..3).flat_map(|n| [0x1980, 0x1982, 0x1983].map(|msr| msr + 4 * n));
        let others = [0x1d9, 0x345, 0x38d, 0x38e, 0x38f, 0x390, 0x391, 0x392, BASE, INDEX, 0x3f6];
        let mut msrs: BTreeMap<u32, u64> =
            counters.chain(fixed).chain(others).map(|msr| (msr, 0)).collect();
        // Format 15, full-width writes.
        msrs.insert(0x345, 0x2f00);
        Self { msrs, armed: Vec::new(), groups: 0x6002_0378, interrupts: 0 }
    }

    fn get(&self, msr: u32) -> u64 {
        self.msrs[&msr]
    }

    /// An instruction retires, the n-th.
    fn retire(&mut self, n: u64) {
        let control = self.get(0x38f);
        if self.get(0x38e) & 1 << 59 != 0 {
            return;
        }
        let general =
            (0..8).filter(|i| self.get(0x1901 + 4 * i) & 1 << 22 != 0).map(|i| (i, 0x1900 + 4 * i));
        let fixed = (0..3)
            .filter(|i| self.get(0x38d) >> (4 * i) & 3 != 0)
            .map(|i| (32 + i, 0x1980 + 4 * i));
        let on: Vec<(u32, u32)> =
            general.chain(fixed).filter(|(bit, _)| control >> bit & 1 != 0).collect();
        for (bit, msr) in on {
            let config = self.get(msr + 3);
            if config >> 63 == 0 {
                let next = (self.get(msr) + 1) & WIDTH;
                self.msrs.insert(msr, next);
                continue;
            }
            if let Some(place) = self.armed.iter().position(|one| *one == bit) {
                self.armed.remove(place);
                self.msrs.insert(msr, config & 0xffff_ffff | WIDTH & !0xffff_ffff);
                self.write(n, bit, config);
                continue;
            }
            let next = (self.get(msr) + 1) & WIDTH;
            self.msrs.insert(msr, next);
            if next == 0 {
                self.armed.push(bit);
            }
        }
    }

    /// Writes the record of the n-th instruction, if the buffer is on and has room.
    fn write(&mut self, n: u64, bit: u32, config: u64) {
        let index = self.get(INDEX);
        if index >> 32 & 1 == 0 {
            return;
        }
        let mut words = vec![0, 0, 0x1000 + n, 1 << bit, 10 * n, 1 << 16 | 7, 0, 0];
        if config >> 62 & 1 != 0 {
            words.extend([0x5000 + n, 0, 0, 0, 0, 0x21, 0x0012_0000_0034, 0]);
        }
        if config >> 61 & 1 != 0 {
            words.extend([0x202, 0x1001 + n]);
            words.extend((0..16).map(|r| 100 * n + r));
            words.extend([0xdead, 0]);
        }
        if config >> 49 & 1 != 0 {
            words.extend([2, 0]);
            words.extend((0..32).map(|half| 1000 * n + half));
        }
        if config >> 40 & 3 == 3 {
            words.extend([0, 1, 4, 0, 0, 0]);
            words.extend((0..4).flat_map(|b| [0x2000 + b, 0x3000 + b, b]));
        }
        if config >> 36 & 7 != 0 {
            let allowed: u64 =
                (0..8).filter(|i| self.get(0x1903 + 4 * i) >> 35 & 1 != 0).map(|i| 1 << i).sum();
            words.extend([allowed, 0]);
            words
                .extend((0..8).filter(|i| allowed >> i & 1 != 0).map(|i| self.get(0x1900 + 4 * i)));
        }
        if words.len() % 2 != 0 {
            words.push(0);
        }
        words[0] = (config >> 36 << 36) | (8 * words.len() as u64);
        let size = 4096 << (self.get(BASE) & 0x1f);
        let at = index & 0x7ff_fff0;
        let behind = at + 8 * words.len() as u64;
        if behind > size {
            self.msrs.insert(INDEX, index | 1 << 31);
            return;
        }
        let to = (self.get(BASE) & !0xfff) + at;
        for (place, word) in (0..).zip(words) {
            // SAFETY: the driver's buffer, which is as large as it says.
            unsafe { ((to + 8 * place) as *mut u64).write_volatile(word) };
        }
        self.msrs.insert(INDEX, index & !0x7ff_fff0 | behind);
        if behind >> 4 >= index >> 36 & 0x7f_ffff && self.get(0x38e) >> 54 & 1 == 0 {
            let status = self.get(0x38e);
            self.msrs.insert(0x38e, status | 1 << 54);
            self.interrupts += 1;
        }
    }
}

impl Registers for Small {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = match (leaf, subleaf) {
            (0, _) => [0x23, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
            // Panther Lake: family 6, model 0xCC. PDCM; no debug store.
            (1, _) => [0xc06c0, 0, 1 << 15, 0],
            (7, 0) => [1, 0, 0, 0],
            (7, 1) => [1 << 8, 0, 0, 0],
            (0xa, _) => [0x0830_0806, 0, 7, 0x603],
            (0x23, 0) => [0b11_1011, 3, 0, 0],
            (0x23, 1) => [0xff, 7, 0, 0],
            (0x23, 3) => [0xff, 0, 0, 0],
            (0x23, 4) => [0, self.groups, 0, 0],
            (0x23, 5) => [0x7f, 1, 1, 1],
            _ => [0; 4],
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.msrs.get(&msr.0).copied().ok_or(Absent)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        let reserved = match msr.0 {
            BASE => 0xfe0 | u64::MAX << 52,
            INDEX => 0xf | 0xf << 27 | 7 << 33 | u64::MAX << 59,
            0x1900.. if msr.0 % 4 == 3 => !(u64::from(self.groups) << 32 | 0xffff_ffff | 1 << 63),
            _ => 0,
        };
        if value & reserved != 0 || !self.msrs.contains_key(&msr.0) {
            return Err(Absent);
        }
        match msr.0 {
            0x390 => *self.msrs.get_mut(&0x38e).unwrap() &= !value,
            _ => {
                self.msrs.insert(msr.0, value);
            }
        }
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}

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

#[test]
fn s1_architectural_pebs_is_switched_off_by_name_and_given_back() {
    let config = DataConfig { groups: Groups::COUNTERS, general: 0b11, ..DataConfig::BASIC };
    let (mut small, mut driver, store, mut drain) = recording(Counter::General(1), config, [8, 8]);
    assert_eq!(small.get(BASE), store.base().unwrap().bits());
    assert_eq!(small.get(0x1903), 1 << 35 | 1 << 36, "allowed in the others' records");
    assert_eq!(small.get(0x1907) >> 32, 1 << 31 | 0b11 << 3, "and writes them");
    assert_eq!(driver.recording(), 0b10);
    (1..=8).for_each(|n| small.retire(n));
    let mut values = Vec::new();
    while drain.fetch(ports(&mut small)) {
        drain.run(|taken| values.push(taken.snapshot.unwrap().values.to_vec()));
    }
    // Its own value is the reload's.
    assert_eq!(values, vec![vec![0, WIDTH - 2]; 2]);
    driver.release(&mut small, Counter::General(1)).unwrap();
    assert_eq!((small.get(0x1907), driver.recording()), (0, 0));
    driver.reset(&mut small).unwrap();
    assert!([BASE, INDEX, 0x1903].map(|msr| small.get(msr)).iter().all(|value| *value == 0));
    // A fixed counter without it, a counter above, an interrupt of its own, another format's store, groups that are not there.
    let precise = INSTRUCTIONS.with_records();
    let mut refused = |counter, selection: &Selection| {
        driver.program(&mut small, counter, selection).unwrap_err().to_string()
    };
    assert!(refused(Counter::Fixed(1), &precise).contains("does not offer it there"));
    assert!(refused(Counter::General(7), &precise).contains("does not offer it there"));
    let both = Selection { interrupt: true, ..precise };
    assert!(refused(Counter::General(0), &both).contains("the PEBS buffer raises"));
    let other = Store::new(Format::Skylake, 4, 2);
    assert!(driver.use_store(&mut small, &other).unwrap_err().to_string().contains("format"));
    small.groups = 0x2000_0000;
    let driver = Driver::new(find(&mut small).unwrap());
    let samples = Store::new(Format::Architectural, 4, 2);
    assert!(driver.use_store(&mut small, &samples).unwrap_err().to_string().contains("groups"));
}

#[test]
fn s1_what_held_architectural_pebs_gets_it_back() {
    let mut small = Small::new();
    let found = [(BASE, 0x12_3004), (INDEX, 0xf00 << 36 | 1 << 32 | 0x120), (0x190b, 1 << 61 | 5)];
    small.msrs.extend(found);
    let has = find(&mut small).unwrap();
    let own = Ownership::claim(&mut small, &has);
    assert!([INDEX, 0x190b].map(|msr| small.get(msr)).iter().all(|value| *value == 0));
    small.msrs.extend([(BASE, 0x7000), (INDEX, 1), (0x190b, 7)]);
    own.restore(&mut small);
    assert_eq!(found.map(|(msr, _)| (msr, small.get(msr))), found);
}

#[test]
fn s1_the_status_of_architectural_records_is_bit_54() {
    let (_, driver, mut store, drain) = recording(Counter::General(0), DataConfig::SAMPLES, [8, 4]);
    assert_eq!((drain.status(), 1 << 54), (GlobalStatus::RECORDS, GlobalStatus::RECORDS.bits()));
    let drain = Drain::new(&mut store, driver.recording());
    assert_eq!(drain.format(), Format::Architectural);
    assert_eq!(Contents::BASIC.bits(), Architectural::default().encode()[0] & !0xffff);
}

/// The emulated PMU was written apart from this driver.
#[test]
fn s1_every_group_of_an_architectural_record_is_what_retired() {
    use pmu_model::{Delta, Retirement, Ring};
    let groups = Groups::all();
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
            assert_eq!((common.branches.len(), common.groups()), (32, groups));
            let snapshot = common.snapshot.unwrap();
            assert_eq!((snapshot.general, snapshot.fixed), (0b101, 1));
            assert_eq!(snapshot.values, [0, n, n]);
        });
    }
    assert_eq!((seen, drain.records, drain.full, drain.malformed), (25, 25, 0, 0));
    assert_eq!(pieces, 50, "each came in two fragments");
    assert!(!store.is_overrun());
}

/// Sub-leaf 5 offers seven of the eight counters, and one of the fixed ones: the registers of the others are left alone.
#[test]
fn s1_only_counters_that_write_records_are_told_what_these_have() {
    const OTHERS: [u32; 3] = [0x191f, 0x1987, 0x198b];
    let mut small = Small::new();
    for msr in OTHERS {
        small.msrs.insert(msr, 0x55);
    }
    let has = find(&mut small).unwrap();
    let own = Ownership::claim(&mut small, &has);
    assert_eq!([0x191b, 0x1983].map(|msr| own.found(Msr(msr))), [Some(0); 2]);
    let mut driver = Driver::new(has);
    let store = Store::new(Format::Architectural, 4, 2);
    driver.use_store(&mut small, &store).unwrap();
    assert_eq!([0x191b, 0x1983].map(|msr| small.get(msr) >> 61), [0b11; 2]);
    driver.reset(&mut small).unwrap();
    assert_eq!([0x191b, 0x1983].map(|msr| small.get(msr)), [0; 2]);
    for msr in OTHERS {
        assert_eq!((own.found(Msr(msr)), small.get(msr)), (None, 0x55), "{msr:#x}");
    }
}

#[test]
fn s1_a_counter_that_is_programmed_again_goes_on_writing_records() {
    let (mut small, mut driver, ..) = recording(Counter::General(2), DataConfig::SAMPLES, [8, 4]);
    let before = small.get(0x190b);
    assert_eq!(before >> 63, 1);
    driver.program(&mut small, Counter::General(2), &INSTRUCTIONS.with_records()).unwrap();
    assert_eq!(small.get(0x190b), before);
}

/// The debug store is not architectural PEBS': what its register holds is somebody else's.
#[test]
fn i6_the_debug_store_is_saved_where_it_takes_the_records() {
    let found = |pebs, architectural: bool| {
        let mut small = Small::new();
        small.msrs.insert(0x600, 0x77);
        small.msrs.insert(0x3f1, 0);
        let mut has = find(&mut small).unwrap();
        has.pebs = pebs;
        if !architectural {
            has.architectural_pebs = None;
        }
        Ownership::claim(&mut small, &has).found(numbers::DS_AREA)
    };
    assert_eq!(
        [found(true, true), found(true, false), found(false, false)],
        [None, Some(0x77), None]
    );
}
