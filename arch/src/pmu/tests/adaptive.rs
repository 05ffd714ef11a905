//! Adaptive PEBS records: what the driver requests, and that the model, which is written apart from it, gives it.

use super::interrupt::Processor;
use super::pebs::{Adaptive, BranchRecord, DataConfig, Drain, Format, Groups, Store};
use super::pmi::{Bucket, ControlBlock, Interrupted, drain, service};
use super::*;
use pmu_model::{Branch, BranchKind, Delta, Retirement, Ring};

const MODELS: [(Model, Format); 3] = [
    (Model::IceLake, Format::Adaptive),
    (Model::SapphireRapids, Format::Adaptive),
    (Model::ArrowLake, Format::Snapshot),
];
/// A record of every fourth instruction.
const PERIOD: u64 = 4;

/// A PMU whose `counter` writes records with those groups, and counts.
fn recording(
    model: Model,
    counter: Counter,
    config: DataConfig,
    [records, threshold]: [usize; 2],
) -> (Pmu, Driver, Store, Drain) {
    let mut pmu = machine(model);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    let format = driver.capabilities().pebs_format().unwrap();
    let mut store = Store::with_groups(format, config, records, threshold);
    let preset = driver.preset(counter, PERIOD - 1).unwrap();
    store.set_reset(counter, preset);
    driver.use_store(&mut pmu, &store).unwrap();
    driver.program(&mut pmu, counter, &INSTRUCTIONS.with_records()).unwrap();
    driver.write(&mut pmu, counter, preset).unwrap();
    let drain = Drain::new(&mut store, driver.recording());
    driver.start(&mut pmu).unwrap();
    (pmu, driver, store, drain)
}

/// What retires as the n-th: registers, vectors and time tell of it.
fn retirement(n: u64) -> Retirement {
    Retirement {
        ip: 0x1000 + n,
        next: 0x1001 + n,
        flags: 0x202,
        registers: core::array::from_fn(|r| 100 * n + r as u64),
        vectors: core::array::from_fn(|half| 1000 * n + half as u64),
        load: None,
        store: None,
        tsc: 10 * n,
        ..Retirement::default()
    }
}

fn run(pmu: &mut Pmu, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        model::retire(pmu, &Delta::bulk(Ring::User, 1), &retirement(n));
    }
}

#[test]
fn s1_every_group_of_a_record_is_what_retired() {
    for (model, format) in MODELS {
        for counter in [Counter::General(0), Counter::General(7), Counter::Fixed(0)] {
            for groups in 0..8 {
                let config =
                    DataConfig { groups: Groups::from_bits_truncate(groups), ..DataConfig::BASIC };
                let (mut pmu, driver, store, mut drain) =
                    recording(model, counter, config, [16, 16]);
                assert_eq!((store.format(), driver.recording()), (format, counter.bit()));
                run(&mut pmu, 1..=41);
                let mut n = 0;
                drain.run_groups(&mut |record| {
                    n += PERIOD;
                    let behind = retirement(n);
                    assert_eq!(record.groups(), config.groups, "{model:?} {counter}");
                    assert_eq!(
                        (record.ip, record.tsc),
                        (behind.ip, behind.tsc),
                        "{model:?} {counter}"
                    );
                    let latency = driver.capabilities().states_retirement();
                    let stated = (record.counters, record.retire_latency);
                    assert_eq!(stated, (counter.bit(), Some(latency.into())), "{model:?}");
                    if let Some(general) = record.general {
                        assert_eq!((general.flags, general.next), (0x202, behind.next));
                        assert_eq!(general.registers, behind.registers);
                    }
                    assert!(record.vectors.is_none_or(|vectors| *vectors == behind.vectors));
                });
                assert_eq!((n, drain.records, drain.malformed, drain.full), (40, 10, 0, 0));
            }
        }
    }
}

#[test]
fn s1_branch_records_come_newest_first() {
    for (model, _) in MODELS {
        let config = DataConfig { groups: Groups::BRANCHES, branches: 5, ..DataConfig::BASIC };
        let (mut pmu, _, _store, mut drain) = recording(model, Counter::General(1), config, [8, 8]);
        match model {
            Model::IceLake => pmu.wrmsr(numbers::DEBUGCTL, 1).unwrap(),
            _ => pmu.wrmsr(numbers::ARCH_LBR_CTL, 0x7f_0007).unwrap(),
        }
        for n in 1..=8 {
            let (from, to, kind) = (0x1000 + n, 0x2000 + n, BranchKind::RelativeJump);
            let (ring, taken, mispredicted) = (Ring::User, true, false);
            pmu.record_branch(&Branch { from, to, kind, taken, mispredicted, ring, cycles: 1 });
            run(&mut pmu, n..=n);
        }
        let mut seen = Vec::new();
        drain.run_groups(&mut |record| {
            let places = |one: BranchRecord| (one.from, one.to);
            seen.push(record.branch_records().map(places).collect::<Vec<_>>());
        });
        // At the fourth instruction there are four.
        let branch = |n: u64| if n == 0 { (0, 0) } else { (0x1000 + n, 0x2000 + n) };
        let expected = [[4, 3, 2, 1, 0], [8, 7, 6, 5, 4]].map(|one| one.map(branch).to_vec());
        assert_eq!(seen, expected, "{model:?}");
    }
}

#[test]
fn s1_values_of_counters_come_with_format_6_alone() {
    let groups = Groups::COUNTERS | Groups::METRICS;
    let config = DataConfig { groups, general: 0b101, fixed: 0b1000, ..DataConfig::BASIC };
    for (model, format) in MODELS {
        let (mut pmu, mut driver, _store, mut drain) =
            recording(model, Counter::General(0), config, [8, 8]);
        driver.stop(&mut pmu).unwrap();
        for counter in [Counter::General(2), Counter::Fixed(3)] {
            driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
            driver.write(&mut pmu, counter, 0).unwrap();
        }
        driver.start(&mut pmu).unwrap();
        run(&mut pmu, 1..=8);
        let mut seen = Vec::new();
        drain.run_groups(&mut |record: &Adaptive| {
            seen.push(
                record.snapshot.map(|one| {
                    (one.general, one.fixed, one.values.to_vec(), one.metrics.is_some())
                }),
            );
        });
        match format {
            // The counter itself has gone one beyond its overflow; 8 slots an instruction.
            Format::Snapshot => {
                let at = |n| Some((0b101, 0b1000, vec![1, n, 8 * n], true));
                assert_eq!(seen, [at(4), at(8)]);
            }
            _ => assert_eq!(seen, [None, None], "{model:?}"),
        }
    }
}

/// 10^5 records, with a buffer that does not begin at a page and whose records lie across page boundaries: each is there once,
/// in order, or counted as lost.
#[test]
fn s1_m11_of_many_records_none_is_lost_unaccounted() {
    const RECORDS: u64 = 100_000;
    for (model, _) in MODELS {
        let (mut pmu, _, store, mut drain) =
            recording(model, Counter::Fixed(0), DataConfig::SAMPLES, [300, 200]);
        assert_eq!(store.record_words(), 26);
        let (mut seen, mut interrupts) = (0, 0);
        for n in 1..=RECORDS * PERIOD {
            let outcome = model::retire(&mut pmu, &Delta::bulk(Ring::User, 1), &retirement(n));
            if outcome.pmi {
                interrupts += 1;
                drain.run(|taken| {
                    let (record, counters) = (taken.record, taken.counters);
                    seen += 1;
                    assert_eq!((record.ip, counters), (0x1000 + PERIOD * seen, 1 << 32));
                    assert_eq!(record.registers.unwrap()[15], 100 * PERIOD * seen + 15);
                });
            }
        }
        drain.run(|_| seen += 1);
        assert_eq!((seen, interrupts), (RECORDS, RECORDS / 200), "{model:?}");
        assert_eq!((drain.full, drain.malformed), (0, 0));
        assert!(!store.is_overrun());
    }
}

/// An interrupt that comes while the buffer is being emptied finds it empty or with what came since; nothing is taken twice.
#[test]
fn s1_a_pmi_in_the_middle_of_a_drain_takes_nothing_twice() {
    for (model, _) in MODELS {
        let (pmu, driver, mut store, _) =
            recording(model, Counter::General(3), DataConfig::SAMPLES, [8, 4]);
        let mut block = ControlBlock::of(&driver);
        let mut buckets = [Bucket::default(); 64];
        block.count_addresses(&mut buckets);
        block.take_records(Drain::new(&mut store, driver.recording()));
        let mut processor = Processor::new(pmu, &driver);
        // Four records reach the threshold, and the interrupt that this requests is not let in. A drain from elsewhere takes
        // them out, three more come, and only then the interrupt is served.
        assert!((1..=4 * PERIOD).any(|n| {
            let step = Delta::bulk(Ring::User, 1);
            model::retire(&mut processor.pmu, &step, &retirement(n)).pmi
        }));
        drain(&mut block, &mut processor, &Interrupted::default());
        assert_eq!(block.overflows(Counter::General(3)), 4);
        run(&mut processor.pmu, 4 * PERIOD + 1..=7 * PERIOD);
        service(&mut block, &mut processor, &Interrupted::default());
        drain(&mut block, &mut processor, &Interrupted::default());
        let counted: u64 = block.histogram().unwrap().used().map(|bucket| bucket.count).sum();
        assert_eq!(
            (counted, block.overflows(Counter::General(3)), block.pmis),
            (7, 7, 1),
            "{model:?}"
        );
        let records = block.records().unwrap();
        assert_eq!((records.records, records.full, records.malformed), (7, 0, 0), "{model:?}");
    }
}

#[test]
fn s1_the_registers_are_what_the_manual_says() {
    for (model, format) in MODELS {
        let mut pmu = machine(model);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        assert_eq!(driver.capabilities().pebs_format(), Some(format));
        assert!(driver.capabilities().features().contains(&"PEBS (adaptive)"));
        let config = DataConfig {
            groups: Groups::MEMORY | Groups::BRANCHES,
            branches: 32,
            ..DataConfig::BASIC
        };
        let store = Store::with_groups(format, config, 4, 2);
        driver.use_store(&mut pmu, &store).unwrap();
        assert_eq!(pmu.rdmsr(numbers::PEBS_DATA_CFG), Ok(0x1f00_0009));
        assert_eq!(pmu.rdmsr(numbers::DS_AREA), Ok(store.address()));
        let records = INSTRUCTIONS.with_records();
        for counter in [Counter::General(5), Counter::Fixed(0), Counter::Fixed(2)] {
            driver.program(&mut pmu, counter, &records).unwrap();
        }
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(5 << 32 | 1 << 5));
        assert_eq!(pmu.rdmsr(crate::msr::Msr(0x186 + 5)).unwrap() >> 34, 1);
        assert_eq!(pmu.rdmsr(numbers::FIXED_CTR_CTRL), Ok(0x101_0000_0303));
        // A load-latency event has no bit of its own any more.
        let latency = Selection {
            extra: Some((numbers::LOAD_LATENCY, 32)),
            ..Selection::of(0xcd, 1).with_records()
        };
        driver.program(&mut pmu, Counter::General(2), &latency).unwrap();
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(5 << 32 | 1 << 5 | 1 << 2));
        // Without records, and freed: each bit goes with its counter.
        driver.program(&mut pmu, Counter::General(5), &INSTRUCTIONS).unwrap();
        driver.release(&mut pmu, Counter::Fixed(2)).unwrap();
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(1 << 32 | 1 << 2));
        assert_eq!(pmu.rdmsr(numbers::FIXED_CTR_CTRL), Ok(1 << 32 | 3));
        assert_eq!(pmu.rdmsr(crate::msr::Msr(0x186 + 5)).unwrap() >> 34, 0);
        driver.reset(&mut pmu).unwrap();
        for msr in [
            numbers::PEBS_ENABLE,
            numbers::PEBS_DATA_CFG,
            numbers::DS_AREA,
            numbers::FIXED_CTR_CTRL,
        ] {
            assert_eq!(pmu.rdmsr(msr), Ok(0), "{model:?}");
        }
        // Memory for another kind of record.
        let other = Store::new(Format::Skylake, 4, 2);
        assert!(driver.use_store(&mut pmu, &other).unwrap_err().to_string().contains("format"));
    }
}

#[test]
fn s1_i6_the_groups_that_were_found_come_back() {
    for (model, _) in MODELS {
        let mut pmu = machine(model);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        pmu.wrmsr(numbers::PEBS_DATA_CFG, 3).unwrap();
        let own = Ownership::claim(&mut pmu, driver.capabilities());
        assert_eq!(own.conflicts, [], "the register by itself does nothing");
        driver.reset(&mut pmu).unwrap();
        assert_eq!(pmu.rdmsr(numbers::PEBS_DATA_CFG), Ok(0));
        own.restore(&mut pmu);
        assert_eq!(pmu.rdmsr(numbers::PEBS_DATA_CFG), Ok(3));
    }
}

/// IA32_FIXED_CTR_CTRL\[32\] is for counters that write records.
#[test]
fn a_fixed_counter_without_records_has_no_adaptive_bit() {
    for (model, _) in MODELS {
        let mut pmu = machine(model);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        driver.program(&mut pmu, Counter::Fixed(0), &INSTRUCTIONS).unwrap();
        assert_eq!(pmu.rdmsr(numbers::FIXED_CTR_CTRL), Ok(3), "{model:?}");
    }
}
