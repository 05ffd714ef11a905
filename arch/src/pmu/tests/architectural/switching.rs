//! Architectural PEBS is switched on and off, and given back.

use super::processor::Small;
use super::*;
use crate::pmu::tests::pebs::{Architectural, Contents};
use crate::pmu::tests::registers::GlobalStatus;

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
