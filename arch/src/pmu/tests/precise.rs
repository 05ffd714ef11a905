//! PEBS through the driver and the interrupt's handler, on the models that have it.

use super::interrupt::Processor;
use super::pebs::{Drain, Format, Store};
use super::pmi::{Bucket, ControlBlock, Interrupted, Sample, drain, pause};
use super::*;

/// The model, the counter and the event that every instruction is.
const MODELS: [(Model, Counter, u16); 10] = [
    (Model::Core2, Counter::General(0), 0),
    (Model::Nehalem, Counter::General(0), 1),
    (Model::Haswell, Counter::General(1), 1),
    (Model::Skylake, Counter::General(1), 1),
    (Model::IceLake, Counter::General(7), 0),
    (Model::IceLake, Counter::Fixed(0), 0),
    (Model::SapphireRapids, Counter::General(4), 0),
    (Model::SapphireRapids, Counter::Fixed(0), 0),
    (Model::ArrowLake, Counter::General(9), 0),
    (Model::ArrowLake, Counter::Fixed(0), 0),
];
const PERIOD: u64 = 10;

/// A processor that writes a record every [`PERIOD`] instructions into a store of `records`, and its block.
fn recording(
    (model, counter, umask): (Model, Counter, u16),
    records: usize,
    threshold: usize,
    freeze: bool,
) -> (Processor, Driver, Store, ControlBlock) {
    let mut pmu = machine(model);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    let format = driver.capabilities().pebs_format().unwrap();
    let mut store = Store::new(format, records, threshold);
    let preset = driver.preset(counter, PERIOD - 1).unwrap();
    store.set_reset(counter, preset);
    driver.use_store(&mut pmu, &store).unwrap();
    let selection = Selection::of(0xc0, umask).with_records();
    driver.program(&mut pmu, counter, &selection).unwrap();
    driver.write(&mut pmu, counter, preset).unwrap();
    let mut block = ControlBlock::of(&driver);
    block.take_records(Drain::new(&mut store, driver.recording()));
    if freeze {
        driver.set_freeze(&mut pmu, Freeze::COUNTERS).unwrap();
        block.resume_in_handler(&driver);
    }
    driver.start(&mut pmu).unwrap();
    (Processor::new(pmu, &driver), driver, store, block)
}

#[test]
fn m9_s1_records_are_taken_out_at_their_threshold_and_none_is_lost() {
    for one in MODELS {
        for freeze in [false, true] {
            let mut log = [Sample::default(); 64];
            let (mut processor, driver, store, mut block) = recording(one, 8, 4, freeze);
            block.log_to(&mut log);
            processor.run(&mut block, 57 * PERIOD + 3);
            let counter = one.1.index();
            // 14 interrupts of four records; the last one is still in the buffer.
            assert_eq!((block.pmis, block.slot(counter).overflows), (14, 56), "{one:?}");
            drain(&mut block, &mut processor, &Interrupted::default());
            assert_eq!(block.slot(counter).overflows, 57, "{one:?}");
            let records = block.records().unwrap();
            assert_eq!((records.records, records.full, records.malformed), (57, 0, 0), "{one:?}");
            let exact = store.format().is_exact();
            for (n, sample) in (1..).zip(&log[..57]) {
                let ip = n * PERIOD - u64::from(exact);
                assert_eq!((sample.rip, sample.status), (ip, one.1.bit()), "{one:?} {n}");
            }
            let value = driver.read(&mut processor.pmu, one.1).unwrap();
            let began = (PERIOD - 1).wrapping_neg();
            let mask = driver.capabilities().mask(one.1);
            assert_eq!(value.wrapping_sub(began) & mask, 3, "{one:?}");
        }
    }
}

#[test]
fn m9_s1_stopping_the_counters_takes_the_records_out() {
    for one in MODELS {
        let mut buckets = [Bucket::default(); 64];
        let (mut processor, _, _store, mut block) = recording(one, 100, 90, true);
        block.count_addresses(&mut buckets);
        processor.run(&mut block, 7 * PERIOD);
        assert_eq!(block.pmis, 0, "{one:?}");
        block.task = 5;
        pause(&mut block, &mut processor, &Interrupted { cs: 3, ..Interrupted::default() });
        let histogram = block.histogram().unwrap();
        assert_eq!(histogram.used().count(), 7, "{one:?}");
        assert!(histogram.used().all(|bucket| (bucket.task, bucket.ring()) == (5, 3)), "{one:?}");
    }
}

/// Records do not state their ring: one at an address of the upper half is the kernel's, whoever was interrupted when the
/// records were taken out.
#[test]
fn t5_a_record_of_the_kernel_is_not_of_the_ring_that_was_interrupted() {
    use pmu_model::{Delta, Retirement, Ring};
    const KERNEL: u64 = 0xffff_8000_0000_1000;
    for one in MODELS {
        let mut buckets = [Bucket::default(); 64];
        let (mut processor, _, _store, mut block) = recording(one, 100, 90, true);
        block.count_addresses(&mut buckets);
        for (base, ring) in [(KERNEL, Ring::Kernel), (0x1000, Ring::User)] {
            for at in 0..3 * PERIOD {
                let (ip, next) = (base + at, base + at + 1);
                let retired = Retirement { ip, next, ..Retirement::default() };
                model::retire(&mut processor.pmu, &Delta::bulk(ring, 1), &retired);
            }
        }
        pause(&mut block, &mut processor, &Interrupted { cs: 0x23, ..Interrupted::default() });
        let histogram = block.histogram().unwrap();
        let rings = |upper: bool| {
            let of = histogram.used().filter(move |bucket| (bucket.address >> 63 != 0) == upper);
            of.map(Bucket::ring).collect::<Vec<_>>()
        };
        assert_eq!((rings(true), rings(false)), (vec![0; 3], vec![3; 3]), "{one:?}");
    }
}

#[test]
fn m11_s1_a_full_buffer_keeps_what_it_has_and_says_so() {
    for one in MODELS {
        let (mut processor, _, _store, mut block) = recording(one, 8, 8, false);
        // No interrupt comes through.
        let mut nobody = ControlBlock::EMPTY;
        processor.run(&mut nobody, 20 * PERIOD);
        drain(&mut block, &mut processor, &Interrupted::default());
        let records = block.records().unwrap();
        assert_eq!((records.records, records.full), (8, 1), "{one:?}");
    }
}

#[test]
fn i6_s1_pebs_is_off_and_without_memory_once_the_driver_is_reset_and_what_was_found_comes_back() {
    for one in MODELS {
        let mut pmu = machine(one.0);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        for (msr, value) in [(numbers::DS_AREA, 0x5000), (numbers::PEBS_ENABLE, 1)] {
            pmu.wrmsr(msr, value).unwrap();
        }
        let own = Ownership::claim(&mut pmu, driver.capabilities());
        let left = Conflict::LeftOn { msr: numbers::PEBS_ENABLE.0, value: 1 };
        assert_eq!(own.conflicts, [left], "{one:?}");
        let store = Store::new(driver.capabilities().pebs_format().unwrap(), 4, 2);
        driver.use_store(&mut pmu, &store).unwrap();
        let counter = one.1;
        let selection = Selection::of(0xc0, one.2).with_records();
        driver.program(&mut pmu, counter, &selection).unwrap();
        assert_eq!(driver.recording(), counter.bit());
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(counter.bit()));
        driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
        assert_eq!((driver.recording(), pmu.rdmsr(numbers::PEBS_ENABLE)), (0, Ok(0)));
        driver.program(&mut pmu, counter, &selection).unwrap();
        driver.reset(&mut pmu).unwrap();
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(0), "{one:?}");
        assert_eq!(pmu.rdmsr(numbers::DS_AREA), Ok(0), "{one:?}");
        own.restore(&mut pmu);
        assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(1), "{one:?}");
        assert_eq!(pmu.rdmsr(numbers::DS_AREA), Ok(0x5000), "{one:?}");
    }
}

#[test]
fn m5_a_load_latency_event_has_its_bit_and_its_threshold() {
    let mut pmu = machine(Model::Skylake);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    let extra = Some((numbers::LOAD_LATENCY, 32));
    let selection = Selection { extra, ..Selection::of(0xcd, 1).with_records() };
    driver.program(&mut pmu, Counter::General(2), &selection).unwrap();
    assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(1 << 34 | 1 << 2));
    assert_eq!(pmu.rdmsr(numbers::LOAD_LATENCY), Ok(32));
    driver.release(&mut pmu, Counter::General(2)).unwrap();
    assert_eq!(pmu.rdmsr(numbers::PEBS_ENABLE), Ok(0));
}

#[test]
fn c7_what_cannot_write_records_is_refused_with_the_reason() {
    let selection = INSTRUCTIONS.with_records();
    let refused = |model, counter, selection: Selection| {
        let mut pmu = machine(model);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        driver.program(&mut pmu, counter, &selection).unwrap_err().to_string()
    };
    let first = Counter::General(0);
    assert!(refused(Model::Zen4, first, selection).contains("does not offer"));
    assert!(refused(Model::Core2, Counter::General(1), selection).contains("does not offer"));
    assert!(refused(Model::Skylake, Counter::General(4), selection).contains("does not offer"));
    assert!(refused(Model::Skylake, Counter::Fixed(0), selection).contains("general-purpose"));
    let both = Selection { interrupt: true, ..selection };
    assert!(refused(Model::Skylake, first, both).contains("PEBS buffer raises"));
    let mut pmu = machine(Model::Zen4);
    let driver = Driver::new(find(&mut pmu).unwrap());
    let store = Store::new(Format::Core, 4, 2);
    assert!(driver.use_store(&mut pmu, &store).is_err());
}

/// IA32_PEBS_ENABLE[63] goes with counter 3 alone, and with this event alone.
#[test]
fn m5_precise_stores_have_their_bit_on_counter_3() {
    use crate::pmu::driver::PmuError;
    use std::collections::BTreeMap;

    /// Registers that hold what is written.
    #[derive(Default)]
    struct Plain(BTreeMap<u32, u64>);

    impl Registers for Plain {
        fn cpuid(&self, _: u32, _: u32) -> raw_cpuid::CpuIdResult {
            raw_cpuid::CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
        }
        fn rdmsr(&mut self, msr: crate::msr::Msr) -> Result<u64, crate::msr::Absent> {
            Ok(self.0.get(&msr.0).copied().unwrap_or(0))
        }
        fn wrmsr(&mut self, msr: crate::msr::Msr, value: u64) -> Result<(), crate::msr::Absent> {
            self.0.insert(msr.0, value);
            Ok(())
        }
        fn rdpmc(&mut self, _: u32) -> Result<u64, crate::msr::Absent> {
            Ok(0)
        }
    }

    let mut has = find(&mut machine(Model::Haswell)).unwrap();
    has.memory.precise_stores = true;
    let (mut driver, mut pmu) = (Driver::new(has), Plain::default());
    let store = Selection::of(0xcd, 2).with_records();
    let refused = driver.program(&mut pmu, Counter::General(2), &store).unwrap_err();
    assert!(matches!(refused, PmuError::Attribute { attribute: "PEBS", .. }), "{refused}");
    let third = Counter::General(3);
    driver.program(&mut pmu, third, &store).unwrap();
    assert_eq!(pmu.0[&numbers::PEBS_ENABLE.0], 1 << 63 | 1 << 3);
    assert_eq!(driver.recording(), 1 << 3);
    // Another counter's records come and go beside it.
    driver.program(&mut pmu, Counter::General(0), &INSTRUCTIONS.with_records()).unwrap();
    assert_eq!(pmu.0[&numbers::PEBS_ENABLE.0], 1 << 63 | 1 << 3 | 1);
    driver.release(&mut pmu, Counter::General(0)).unwrap();
    assert_eq!(pmu.0[&numbers::PEBS_ENABLE.0], 1 << 63 | 1 << 3);
    driver.program(&mut pmu, third, &INSTRUCTIONS.with_records()).unwrap();
    assert_eq!(pmu.0[&numbers::PEBS_ENABLE.0], 1 << 3, "another event states no store");
    driver.program(&mut pmu, third, &store).unwrap();
    driver.release(&mut pmu, third).unwrap();
    assert_eq!(pmu.0[&numbers::PEBS_ENABLE.0], 0);
}
