//! Each bound, and that nothing makes the check panic.

use super::*;
use crate::job::control::Ring;
use crate::job::count::{Bind, Count, CountRequest, CountSet};
use crate::job::exact::Filter;
use crate::job::tests::{any_job, snippet};
use crate::job::workload::Workload;
use crate::job::{LoopCounter, Snippet};
use alloc::string::ToString;

mod combined;
mod counting;
pub(super) mod edges;
mod figures;

#[test]
fn the_largest_snippet_that_fits_is_taken_and_one_more_copy_is_not() {
    let body = 1000;
    let fits = (CODE_AREA_BYTES - HARNESS_BYTES) / (2 * body);
    let mut item = snippet("s", &alloc::vec![0x90; body as usize]);
    item.unroll = fits as u32;
    assert_eq!(check_item(&Item::Snippet(item.clone())), Ok(()));
    item.unroll += 1;
    let error = check_item(&Item::Snippet(item)).unwrap_err();
    assert!(matches!(error, LimitError::CodeArea { .. }), "{error}");
}

#[test]
fn each_number_has_both_bounds() {
    let check = |change: fn(&mut Snippet)| {
        let mut item = snippet("s", &[0x90]);
        change(&mut item);
        check_item(&Item::Snippet(item))
    };
    assert_eq!(check(|_| ()), Ok(()));
    for (change, field) in [
        ((|s| s.unroll = 0) as fn(&mut Snippet), "unroll"),
        (|s| s.unroll = MAX_UNROLL + 1, "unroll"),
        (|s| s.loop_count = MAX_LOOP + 1, "loop"),
        (|s| s.warmup = MAX_WARMUP + 1, "warmup"),
        (|s| s.setup.initial_warmup = MAX_WARMUP + 1, "initial-warmup"),
        (|s| s.setup.alignment_offset = 64, "alignment-offset"),
        (|s| s.runs = 0, "runs"),
        (|s| s.runs = MAX_RUNS + 1, "runs"),
    ] {
        let error = check(change).unwrap_err();
        assert!(matches!(error, LimitError::Range { field: f, .. } if f == field), "{error}");
    }
}

#[test]
fn n5_ring_3_refuses_what_it_cannot_have() {
    let check = |change: fn(&mut Snippet)| {
        let mut item = snippet("s", &[0x90]);
        item.setup.control.ring = Ring::User;
        change(&mut item);
        check_item(&Item::Snippet(item))
    };
    assert_eq!(check(|_| ()), Ok(()));
    for change in [
        (|s| s.setup.no_memory = true) as fn(&mut Snippet),
        |s| (s.loop_count, s.loop_counter) = (1, LoopCounter::Memory),
        |s| s.body = crate::marker::PAUSE.to_vec().into(),
    ] {
        assert!(matches!(check(change), Err(LimitError::UserRing(_))));
    }
}

#[test]
fn n2_events_are_bounded_in_number_and_length() {
    let check = |events: &[&str]| {
        let mut item = snippet("s", &[0x90]);
        item.events = events.iter().map(|text| text.to_string().into()).collect();
        check_item(&Item::Snippet(item))
    };
    let many = ["cycles"; MAX_EVENTS + 1];
    assert_eq!(check(&many[1..]), Ok(()));
    assert!(matches!(check(&many), Err(LimitError::Range { value: 501, .. })));
    let group = alloc::format!("{{a{}}}", ",a".repeat(400));
    assert_eq!(check(&[&group, "b"]), Ok(()));
    assert!(matches!(check(&[&group, &group]), Err(LimitError::Range { value: 802, .. })));
    assert!(matches!(check(&[&"a".repeat(1001)]), Err(LimitError::TooLong { .. })));
}

#[test]
fn t8_a_filter_that_cannot_be_applied_is_refused() {
    let filter = |instructions: &str, verify| {
        let filter = Filter { instructions: instructions.parse().ok(), ..Filter::default() };
        let snippet = snippet("s", &[0x90]);
        check_item(&Item::Exact(Exact { snippet, filter, verify, steps: 1 }))
    };
    assert_eq!(filter("0..4", false), Ok(()));
    assert_eq!(filter("", true), Ok(()));
    assert_eq!(filter("rsp:0..4", false), Err(LimitError::InstructionBase));
    assert_eq!(filter("0..4", true), Err(LimitError::VerifyFiltered));
    for steps in [0, MAX_STEPS + 1] {
        let (snippet, filter) = (snippet("s", &[0x90]), Filter::default());
        let error = check_item(&Item::Exact(Exact { snippet, filter, verify: false, steps }));
        let named = matches!(error, Err(LimitError::Range { field: "exact.steps", .. }));
        assert!(named, "{error:?}");
    }
}

#[test]
fn i8_tasks_that_cannot_run_are_refused() {
    use crate::job::workload::Task;
    let task = |parent| Task {
        name: "t".into(),
        init: [][..].into(),
        body: [0x90][..].into(),
        turns: 1,
        loop_counter: crate::job::LoopCounter::R15,
        extended_state: false,
        ring: crate::job::workload::Ring::Kernel,
        parent,
        cpu: None,
        core: None,
        cpus: None,
        outlives: false,
        program: None,
        bits: crate::bits::Bits::SixtyFour,
    };
    let count = |tasks, request: CountRequest<'static>, tick_ns| {
        check_item(&Item::Count(Count {
            nested: false,
            uncore: alloc::vec![],
            console: false,
            name: "c".into(),
            requests: alloc::vec![request],
            together: false,
            at_overflow: Default::default(),
            passes: 0,
            interval_ns: 0,
            limit_us: 1,
            workload: crate::job::workload::Workload { tasks, tick_ns, jitter: None },
            bind: Bind::System,
            alone: false,
            sets: alloc::vec![],
            gate: alloc::vec![],
            energy: alloc::vec![],
        }))
    };
    let request = CountRequest { event: "cycles".into(), ..CountRequest::default() };
    let two = |parent| alloc::vec![task(None), task(Some(parent))];
    assert_eq!(count(two(0), request.clone(), 0), Ok(()));
    let error = count(two(1), request.clone(), 0).unwrap_err();
    assert!(error.to_string().starts_with("task 1 (`t`): its parent is task 1"), "{error}");
    for (tasks, request, tick_ns, field) in [
        (alloc::vec![], request.clone(), 0, "the number of tasks"),
        (two(0), request.clone(), 1, "tick-ns"),
        (two(0), CountRequest { every: Some(0), ..request.clone() }, 0, "every"),
        (two(0), CountRequest { starts: alloc::vec![1], ..request }, 0, "starts"),
    ] {
        let error = count(tasks, request, tick_ns).unwrap_err();
        assert!(matches!(error, LimitError::Range { field: f, .. } if f == field), "{error}");
    }
}

#[test]
fn c3_a_set_is_bound_to_what_there_is() {
    use crate::job::workload::Task;
    use crate::job::workload::tests::task;
    let request = CountRequest { event: "cycles".into(), ..CountRequest::default() };
    let set = |bind, force| CountSet {
        name: "s".into(),
        requests: alloc::vec![request.clone()],
        together: false,
        bind,
        alone: false,
        force,
        ..CountSet::default()
    };
    let item = |sets: &[CountSet<'static>]| Count {
        name: "c".into(),
        requests: alloc::vec![],
        nested: false,
        uncore: alloc::vec![],
        console: false,
        together: false,
        at_overflow: Default::default(),
        passes: 0,
        interval_ns: 0,
        limit_us: 1,
        workload: Workload {
            tasks: alloc::vec![task("a", None), Task { cpu: Some(1), ..task("b", None) }],
            tick_ns: 1_000_000,
            jitter: None,
        },
        bind: Bind::System,
        alone: false,
        sets: sets.to_vec(),
        gate: alloc::vec![],
        energy: alloc::vec![],
    };
    let check = |count: Count<'static>| check_item(&Item::Count(count));
    let sets = [set(Bind::Tasks(alloc::vec![1, 0]), false), set(Bind::System, true)];
    assert_eq!(check(item(&sets)), Ok(()));
    let alone = |bind| Count { bind, requests: sets[0].requests.clone(), ..item(&[]) };
    assert_eq!(check(alone(Bind::AllProcessors)), Ok(()));
    for (bad, part) in [
        (item(&[]), "the number of events is 0"),
        (Count { requests: sets[0].requests.clone(), ..item(&sets) }, "stand beside sets"),
        (item(&[set(Bind::Tasks(alloc::vec![]), false)]), "tasks that are bound is 0"),
        (item(&[set(Bind::Tasks(alloc::vec![2]), false)]), "the index of a task is 2"),
        (alone(Bind::Tasks(alloc::vec![1, 1])), "names task 1 twice"),
        (alone(Bind::Processor(256)), "cpu is 256"),
        (Count { console: true, ..alone(Bind::AllProcessors) }, "on several processors"),
        (
            Count {
                console: true,
                workload: Workload { tasks: alloc::vec![task("a", None)], ..item(&[]).workload },
                ..item(&[CountSet {
                    schedule: crate::job::count::Schedule { wait: true, ..Default::default() },
                    ..set(Bind::System, false)
                }])
            },
            "console is given beside sets with at",
        ),
        (item(&alloc::vec![sets[0].clone(); 17]), "the number of sets is 17"),
    ] {
        let error = check(bad).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn bauds_are_the_ones_a_16550_can_make() {
    for good in [300, 9600, 38400, 57600, 115_200] {
        assert_eq!(check_baud(good), Ok(()));
    }
    for bad in [0, 299, 100_000, 115_201, 921_600] {
        assert!(check_baud(bad).is_err(), "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn no_job_makes_the_check_panic(job in any_job()) {
        let _ = check_job(&job);
        for item in &job.items {
            let _ = check_item(item);
        }
    }
}

/// A marker takes the room of the longest code that it jumps to: eight writes of 17 bytes, six moves of 7, a fence, a jump.
#[test]
fn n1_each_copy_of_a_marker_has_room_for_its_jump() {
    let body = [&crate::marker::PAUSE[..], &crate::marker::RESUME, &[0x90; 12]].concat();
    // 28 bytes, and twice 136 + 42 + 3 + 5; each copy is there twice.
    let fits = (CODE_AREA_BYTES - HARNESS_BYTES) / (2 * (28 + 2 * 186));
    let mut item = snippet("s", &body);
    item.unroll = fits as u32;
    assert_eq!(check_item(&Item::Snippet(item.clone())), Ok(()));
    item.unroll += 1;
    let error = check_item(&Item::Snippet(item)).unwrap_err();
    assert!(matches!(error, LimitError::CodeArea { body: 400, .. }), "{error}");
}

/// On several processors the machine is taken as it is, but for the limit of time.
#[test]
fn i6_processors_take_a_limit_of_time_and_no_other_option_of_the_machine() {
    let check = |change: fn(&mut Processors)| {
        let snippet = snippet("s", &[0x90]);
        let mut item =
            Processors { snippet, cpu: None, core: None, interrupt_every: None, contention: None };
        change(&mut item);
        check_item(&Item::Processors(item))
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert_eq!(check(|item| item.snippet.setup.control.time_limit_ms = 7), Ok(()));
    assert_eq!(check(|item| item.cpu = Some(MAX_CPU)), Ok(()));
    let error = check(|item| item.snippet.setup.control.ring = Ring::User).unwrap_err();
    assert_eq!(error, LimitError::ProcessorsMachine);
    for (change, field) in [
        ((|item| item.cpu = Some(MAX_CPU + 1)) as fn(&mut Processors), "cpu"),
        (|item| item.interrupt_every = Some(MIN_INTERRUPT_EVERY - 1), "interrupt-every"),
        (|item| item.interrupt_every = Some(MAX_INTERRUPT_EVERY + 1), "interrupt-every"),
        (|item| item.contention = Some(0), "contention"),
        (|item| item.contention = Some(MAX_CONTENTION + 1), "contention"),
    ] {
        let error = check(change).unwrap_err();
        assert!(matches!(error, LimitError::Range { field: f, .. } if f == field), "{error}");
    }
}

/// In figures: the guide's page of jobs names some of them.
#[test]
fn bounds_in_bytes_and_entries_are_what_their_documentation_says() {
    assert_eq!((MAX_CODE_BYTES, CODE_AREA_BYTES), (1_048_576, 16_777_216));
    // 16 MiB of the target's memory, and 10 MiB.
    assert_eq!((MAX_SAMPLES * 32, MAX_SAMPLES_WITH_REGISTERS * 160), (16_777_216, 10_485_760));
    // 256 GiB and 64 MiB.
    assert_eq!((memory::MAX_MEMORY_BYTES, memory::MAX_FILE_BYTES), (274_877_906_944, 67_108_864));
}
