//! The last value that is taken and the first that is not, where no other test stands at the edge.

use super::*;
use crate::bits::Bits;
use crate::job::facts::{Parts, Watch};
use crate::job::sampling::{Delivery, SampledEvent};
use crate::job::workload::tests::task;
use crate::job::workload::{Task, Tasks};
use crate::job::{Difference, Facts};
use crate::program::{Call, LOWEST, MAX_PROGRAMS};
use alloc::borrow::Cow;

fn said(item: Item) -> Option<alloc::string::String> {
    check_item(&item).err().map(|error| error.to_string())
}

pub(in crate::job::limits) fn sampling() -> Sampling<'static> {
    Sampling {
        name: "s".into(),
        events: alloc::vec![],
        interval_ns: MIN_INTERVAL_NS,
        workload: Workload { tasks: alloc::vec![task("t", None)], tick_ns: 0, jitter: None },
        keep: Keep::Histogram,
        capacity: 1,
        on_full: OnFull::Drop,
        delivery: Delivery::Fixed,
        freeze: crate::job::sampling::Freeze::Software,
        registers: 0,
        precise: false,
        branches: false,
        randomise: false,
        call_graph: None,
        vectors: vec![],
        counters: alloc::vec![],
        only: crate::job::exact::Filter::default(),
        energy: Vec::new(),
        uncore: Vec::new(),
        limit_per_ms: 0,
        limit_us: 1,
    }
}

#[test]
fn a_job_has_its_greatest_number_of_items_and_not_one_more() {
    assert_eq!(check_items(MAX_ITEMS as u64), Ok(()));
    let error = check_items(MAX_ITEMS as u64 + 1).unwrap_err().to_string();
    assert_eq!(error, "the number of items is 100001; it must be 0 to 100000");
}

#[test]
fn each_kind_of_item_has_a_name() {
    let suite = |name| Item::Conformance(Conformance { name, checks: alloc::vec![] });
    let workload = sampling().workload;
    let tasks = |name| {
        Item::Tasks(Tasks {
            name,
            workload: workload.clone(),
            limit_us: 1,
            energy: Vec::new(),
            uncore: Vec::new(),
        })
    };
    let sample = |name| Item::Sample(Sampling { name, ..sampling() });
    let kinds: [&dyn Fn(Cow<'static, str>) -> Item<'static>; 3] = [&suite, &tasks, &sample];
    for kind in kinds {
        assert_eq!(said(kind("a".into())), None);
        assert_eq!(said(kind("".into())).as_deref(), Some("the name is empty"));
    }
}

/// Energy and the uncore are read beside what is sampled by, and are nothing to sample by.
#[test]
fn s3_s4_energy_and_the_uncore_of_a_sample_are_bounded() {
    let with = |energy: usize, uncore: usize, interval_ns| {
        let text = |times| alloc::vec![Cow::Borrowed("e"); times];
        let item = Sampling { energy: text(energy), uncore: text(uncore), ..sampling() };
        said(Item::Sample(Sampling { interval_ns, ..item }))
    };
    let most = MAX_EVENTS;
    assert_eq!(with(most, most, MIN_INTERVAL_NS), None);
    assert!(with(most + 1, 0, MIN_INTERVAL_NS).is_some_and(|why| why.contains("energies")));
    assert!(with(0, most + 1, MIN_INTERVAL_NS).is_some_and(|why| why.contains("of the uncore")));
    assert_eq!(with(1, 1, 0), Some(LimitError::NothingToSampleBy.to_string()));
}

#[test]
fn m9_samples_are_taken_by_a_timer_or_by_events() {
    type Change = fn(&mut Sampling);
    let by_event: Change = |s| {
        let rate = Rate::Period(1);
        s.events = alloc::vec![SampledEvent { event: "cycles".into(), rate }];
        s.interval_ns = 0;
    };
    let cases: [(Change, Option<&str>); 11] = [
        (|_| (), None),
        (by_event, None),
        (|s| s.interval_ns = MIN_INTERVAL_NS - 1, Some("interval-ns is 4999")),
        (|s| s.interval_ns = MAX_INTERVAL_NS + 1, Some("interval-ns is 60000000001")),
        (|s| s.interval_ns = 0, Some("interval-ns")),
        (|s| s.capacity = MAX_ADDRESSES, None),
        (|s| s.capacity = MAX_ADDRESSES + 1, Some("capacity is 4097")),
        (|s| (s.keep, s.capacity) = (Keep::Samples, MAX_SAMPLES), None),
        (|s| (s.keep, s.capacity) = (Keep::Samples, MAX_SAMPLES + 1), Some("capacity is 524289")),
        (
            |s| {
                (s.keep, s.registers, s.capacity) =
                    (Keep::Samples, 1, MAX_SAMPLES_WITH_REGISTERS + 1);
            },
            Some("capacity is 65537"),
        ),
        (|s| s.limit_us = 0, Some("limit-us is 0")),
    ];
    for (change, wanted) in cases {
        let mut item = sampling();
        change(&mut item);
        let said = said(Item::Sample(item));
        let agrees = match (&said, wanted) {
            (Some(said), Some(part)) => said.contains(part),
            (said, part) => said.is_none() && part.is_none(),
        };
        assert!(agrees, "{said:?}, not {wanted:?}");
    }
}

#[test]
fn t6_loops_of_32_bit_code_count_in_32_bits() {
    let check = |bits, loop_counter, loop_count| {
        let mut item = snippet("s", &[0x90]);
        (item.setup.bits, item.loop_counter, item.loop_count) = (bits, loop_counter, loop_count);
        said(Item::Snippet(item))
    };
    let (most, memory) = (u64::from(u32::MAX), LoopCounter::Memory);
    assert_eq!(check(Bits::Compatibility, LoopCounter::R15, 0), None);
    assert_eq!(check(Bits::Compatibility, memory, most), None);
    assert_eq!(check(Bits::SixtyFour, LoopCounter::R15, most + 1), None);
    assert_eq!(check(Bits::SixtyFour, memory, MAX_LOOP), None);
    let over = check(Bits::Compatibility, memory, most + 1).unwrap();
    assert_eq!(over, "loop is 4294967296; it must be 0 to 4294967295");
    assert!(check(Bits::Compatibility, LoopCounter::R15, 1).unwrap().contains("no R15"));
}

#[test]
fn n5_ring_3_needs_r15_for_a_loop_alone() {
    let check = |loop_count, loop_counter| {
        let mut item = snippet("s", &[0x90]);
        item.setup.control.ring = Ring::User;
        (item.loop_count, item.loop_counter) = (loop_count, loop_counter);
        said(Item::Snippet(item))
    };
    assert_eq!(check(0, LoopCounter::Memory), None);
    assert_eq!(check(1, LoopCounter::R15), None);
    assert!(check(1, LoopCounter::Memory).unwrap().contains("must be in R15"));
}

/// A snippet that calls a function.
fn call() -> Snippet<'static> {
    let mut item = snippet("s", &[]);
    (item.unroll, item.difference) = (1, Difference::Empty);
    let call = Call { program: 0, function: LOWEST, teardown: [][..].into() };
    item.setup.call = Some(call);
    item
}

#[test]
fn x3_a_call_refuses_what_would_stand_between_it_and_its_arguments() {
    fn of<'a>(item: &'a mut Snippet<'static>) -> &'a mut Call<'static> {
        item.setup.call.as_mut().expect("it is a call")
    }
    assert_eq!(said(Item::Snippet(call())), None);
    type Case = (fn(&mut Snippet<'static>), &'static str);
    let cases: [Case; 11] = [
        (|s| s.body = [0x90][..].into(), "replaces the body"),
        (|s| s.unroll = 2, "unroll must be 1"),
        (|s| s.loop_count = 1, "loop must be 0"),
        (|s| s.difference = Difference::Double, "difference must be"),
        (|s| s.setup.bits = Bits::Compatibility, "bits must be 64"),
        (|s| s.setup.no_memory = true, "no-memory"),
        (|s| s.setup.late_init = [0x90][..].into(), "late init"),
        (|s| of(s).function = LOWEST - 1, "the function's address is 65535"),
        (|s| of(s).function = crate::program::END, "the function's address is 1073741824"),
        (|s| of(s).program = MAX_PROGRAMS as u16, "the program's number is 256"),
        (|s| of(s).teardown = alloc::vec![0x90; MAX_CODE_BYTES + 1].into(), "the teardown code"),
    ];
    for (change, part) in cases {
        let mut item = call();
        change(&mut item);
        let said = said(Item::Snippet(item)).unwrap_or_else(|| panic!("{part} is not noticed"));
        assert!(said.contains(part), "{said}");
    }
    let mut last = call();
    of(&mut last).program = MAX_PROGRAMS as u16 - 1;
    assert_eq!(said(Item::Snippet(last)), None);
}

/// Init, late init and teardown are there once, copies of the body as often as it is unrolled, all beside the harness.
#[test]
fn all_code_around_the_body_counts_for_the_room() {
    let total = |item: &Snippet| match check_item(&Item::Snippet(item.clone())) {
        Err(LimitError::CodeArea { total, .. }) => total,
        other => panic!("{other:?}"),
    };
    let mut item = snippet("s", &alloc::vec![0x90; MAX_CODE_BYTES]);
    item.unroll = 8;
    let body = 16 * MAX_CODE_BYTES as u64;
    assert_eq!(total(&item), body + HARNESS_BYTES);
    item.init = alloc::vec![0x90; 10].into();
    item.setup.late_init = alloc::vec![0x90; 200].into();
    assert_eq!(total(&item), body + HARNESS_BYTES + 210);
    let mut calls = call();
    let mib = || Cow::from(alloc::vec![0x90; MAX_CODE_BYTES]);
    calls.init = mib();
    calls.setup.call = calls.setup.call.map(|call| Call { teardown: mib(), ..call });
    assert_eq!(said(Item::Snippet(calls.clone())), None);
    // A teardown may be all that there is beside the function.
    calls.init = [][..].into();
    assert_eq!(said(Item::Snippet(calls)), None);
}

#[test]
fn x3_a_task_names_one_of_the_programs_that_there_can_be() {
    let check = |program| {
        let tasks = alloc::vec![Task { program: Some(program), ..task("t", None) }];
        let workload = Workload { tasks, tick_ns: 0, jitter: None };
        said(Item::Tasks(Tasks {
            name: "n".into(),
            workload,
            limit_us: 1,
            energy: Vec::new(),
            uncore: Vec::new(),
        }))
    };
    assert_eq!(check(MAX_PROGRAMS as u16 - 1), None);
    let over = check(MAX_PROGRAMS as u16).unwrap();
    assert!(over.contains("the program's number is 256; it must be 0 to 255"), "{over}");
}

#[test]
fn d3_a_fact_sheet_has_memory_of_a_power_of_two_or_none() {
    let check = |bytes, memory, threshold_ns| {
        let parts = Parts { memory, core: true, cores: false, noise: false };
        let watch = Watch { threshold_ns, ..Watch::default() };
        let item = Item::Facts(Facts { name: "f".into(), bytes, parts, watch });
        assert_eq!(item.name(), "f");
        said(item).is_none()
    };
    let with =
        [4 << 20, 8 << 20, 12 << 20, 1 << 37, 1 << 38, 0].map(|bytes| check(bytes, true, 50));
    assert_eq!(with, [false, true, false, true, false, false]);
    assert_eq!([0, 5].map(|bytes| check(bytes, false, 50)), [true, false], "without memory");
    assert_eq!(
        [49, 1_000_000_000, 1_000_000_001].map(|ns| check(0, false, ns)),
        [false, true, false]
    );
}
