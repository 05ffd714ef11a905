//! Each format of PEBS records, through the driver and the handler: many of them, an interrupt in the middle of a drain, and what each
//! field has. The model writes them, which is written apart from the driver.

use super::interrupt::Processor;
use super::pebs::{Drain, Format, Store};
use super::pmi::{ControlBlock, Interrupted, Sample, drain, service};
use super::*;
use pmu_model::{Delta, Occurrence, Retirement, Ring};

/// The model, its format, a counter and a unit mask by which every instruction is the event 0xC0. No processor that is emulated has
/// format 5, whose records are those of format 4.
const MODELS: [(Model, Format, Counter, u16); 8] = [
    (Model::Core2, Format::Core, Counter::General(0), 0),
    (Model::Nehalem, Format::Nehalem, Counter::General(0), 1),
    (Model::Haswell, Format::Haswell, Counter::General(1), 1),
    (Model::Skylake, Format::Skylake, Counter::General(1), 1),
    (Model::IceLake, Format::Adaptive, Counter::Fixed(0), 0),
    (Model::SapphireRapids, Format::Adaptive, Counter::General(4), 0),
    (Model::ArrowLake, Format::Snapshot, Counter::General(9), 0),
    (Model::ArrowLake, Format::Snapshot, Counter::Fixed(0), 0),
];
/// A record of every third instruction.
const PERIOD: u64 = 3;

fn recording(
    (model, format, counter, umask): (Model, Format, Counter, u16),
    event: u16,
    [records, threshold]: [usize; 2],
) -> (Processor, Store, ControlBlock) {
    let mut pmu = machine(model);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    assert_eq!(driver.capabilities().pebs_format(), Some(format));
    let mut store = Store::new(format, records, threshold);
    let preset = driver.preset(counter, PERIOD - 1).unwrap();
    store.set_reset(counter, preset);
    driver.use_store(&mut pmu, &store).unwrap();
    let selection = Selection::of(event, umask).with_records();
    driver.program(&mut pmu, counter, &selection).unwrap();
    driver.write(&mut pmu, counter, preset).unwrap();
    let mut block = ControlBlock::of(&driver);
    block.take_records(Drain::new(&mut store, driver.recording()));
    driver.start(&mut pmu).unwrap();
    (Processor::new(pmu, &driver), store, block)
}

/// 10^5 records in a buffer of 300, which is more than ten pages that no size of a record divides: it is filled and emptied 500 times, with
/// records across every boundary of a page. Then nobody answers for a while and it fills up: what is missing is counted by the
/// periods, as the driver does, and what came before and after is whole.
#[test]
fn s1_m11_of_many_records_of_each_format_none_is_lost_unaccounted() {
    const RECORDS: u64 = 100_000;
    for one in MODELS {
        let (mut processor, store, mut block) = recording(one, 0xc0, [300, 200]);
        let exact = u64::from(store.format().is_exact());
        let mut log = vec![Sample::default(); RECORDS as usize];
        block.log_to(&mut log);
        let counter = one.2;
        processor.run(&mut block, RECORDS * PERIOD);
        drain(&mut block, &mut processor, &Interrupted::default());
        let records = block.records().unwrap();
        assert_eq!((records.records, records.full, records.malformed), (RECORDS, 0, 0), "{one:?}");
        assert_eq!((block.overflows(counter), block.pmis), (RECORDS, RECORDS / 200), "{one:?}");
        let wrong = (1..)
            .zip(&log)
            .find(|(n, sample)| (sample.rip, sample.status) != (n * PERIOD - exact, counter.bit()));
        assert!(wrong.is_none(), "{one:?}: {wrong:?}");
        // No interrupt comes through for 1,000 periods.
        let mut nobody = ControlBlock::EMPTY;
        processor.run(&mut nobody, 1_000 * PERIOD);
        drain(&mut block, &mut processor, &Interrupted::default());
        let records = block.records().unwrap();
        assert_eq!((records.records, records.full), (RECORDS + 300, 1), "{one:?}");
        assert_eq!(block.overflows(counter), RECORDS + 300, "{one:?}");
        assert!(!store.is_overrun(), "{one:?}");
    }
}

/// Four records reach the threshold, and the interrupt that this requests is not let in. A drain from elsewhere takes them out, three
/// more come, and only then the interrupt is served: nothing is taken twice, and nothing is left.
#[test]
fn s1_a_pmi_in_the_middle_of_a_drain_of_each_format_takes_nothing_twice() {
    for one in MODELS {
        let (mut processor, store, mut block) = recording(one, 0xc0, [8, 4]);
        let mut log = [Sample::default(); 16];
        block.log_to(&mut log);
        let run = |processor: &mut Processor, from: u64, to: u64| {
            let step = |at: u64| {
                let retired = Retirement { ip: at, next: at + 1, ..Retirement::default() };
                model::retire(&mut processor.pmu, &Delta::bulk(Ring::Kernel, 1), &retired).pmi
            };
            (from..to).map(step).filter(|pmi| *pmi).count()
        };
        assert_eq!(run(&mut processor, 0, 4 * PERIOD), 1, "{one:?}");
        drain(&mut block, &mut processor, &Interrupted::default());
        assert_eq!(block.overflows(one.2), 4, "{one:?}");
        run(&mut processor, 4 * PERIOD, 7 * PERIOD);
        service(&mut block, &mut processor, &Interrupted::default());
        drain(&mut block, &mut processor, &Interrupted::default());
        assert_eq!((block.overflows(one.2), block.pmis), (7, 1), "{one:?}");
        let exact = u64::from(store.format().is_exact());
        let expected: Vec<u64> = (1..=7).map(|n| n * PERIOD - exact).collect();
        let seen: Vec<u64> = log[..7].iter().map(|sample| sample.rip).collect();
        assert_eq!((seen, log[7].rip), (expected, 0), "{one:?}");
    }
}

/// What retires as the n-th: its registers and its time tell of it.
fn retirement(n: u64) -> Retirement {
    Retirement {
        ip: 0x1000 + 2 * n,
        next: 0x1002 + 2 * n,
        flags: 0x202,
        registers: core::array::from_fn(|r| 100 * n + r as u64),
        load: Some(0x8000 + 8 * n),
        tsc: 10 * n,
        ..Retirement::default()
    }
}

/// Every field of a record is that of the instruction that the record is of. By a load that is precise on each model where records tell
/// the address of data.
#[test]
fn s1_every_field_of_a_record_of_each_format_is_what_retired() {
    for one in MODELS {
        let (model, format, ..) = one;
        // MEM_UOPS_RETIRED.ALL_LOADS and MEM_INST_RETIRED.ALL_LOADS, of the first four counters.
        let has_data = !matches!(format, Format::Core | Format::Nehalem);
        let loads = has_data && !matches!(one.2, Counter::Fixed(_));
        let of_loads = (model, format, Counter::General(2), 0x81);
        let (event, one) = if loads { (0xd0, of_loads) } else { (0xc0, one) };
        let counter = one.2;
        let (mut processor, store, _) = recording(one, event, [16, 16]);
        for n in 1..=30 {
            let delta = Delta::bulk(Ring::User, 1).with(Occurrence::Load, 1);
            model::retire(&mut processor.pmu, &delta, &retirement(n));
        }
        let mut store = store;
        let mut drain = Drain::new(&mut store, counter.bit());
        let mut n = 0;
        drain.run(|taken| {
            let (record, counters) = (&taken.record, taken.counters);
            n += PERIOD;
            let of = retirement(n);
            let ip = if format.is_exact() { of.ip } else { of.next };
            assert_eq!((record.ip, counters), (ip, counter.bit()), "{one:?}");
            assert_eq!(record.registers, Some(of.registers), "{one:?}");
            let has_time = !matches!(format, Format::Core | Format::Nehalem | Format::Haswell);
            assert_eq!(record.tsc, has_time.then_some(of.tsc), "{one:?}");
            let address = record.access.map(|access| access.address).filter(|at| *at != 0);
            assert_eq!(address, loads.then_some(of.load.unwrap()), "{one:?}");
        });
        assert_eq!((n, drain.records, drain.malformed, drain.full), (30, 10, 0, 0), "{one:?}");
    }
}
