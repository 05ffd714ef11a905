//! What items may not ask for together.

use super::edges::sampling;
use super::*;
use crate::bits::Bits;
use crate::job::exact::Exact;
use crate::job::history::History;
use crate::job::memory::tests::piece;
use crate::job::memory::{Fill, Memory};
use crate::job::sampling::{Delivery, SampledEvent, VectorRegisters};
use crate::job::workload::tests::task;
use crate::job::workload::{Task, Tasks};
use alloc::vec;

fn job(items: Vec<Item<'static>>, memory: Vec<Memory<'static>>) -> Job<'static> {
    Job {
        name: "j".into(),
        baud: 115_200,
        on_end: Default::default(),
        exit_port: None,
        self_test: None,
        requires: vec![],
        items,
        criteria: vec![],
        memory,
    }
}

fn said(job: &Job) -> Option<alloc::string::String> {
    check_job(job).err().map(|error| error.to_string())
}

#[test]
fn m9_m11_a_histogram_takes_no_option_of_single_samples_and_a_timer_no_nmi() {
    let check = |change: fn(&mut Sampling)| {
        let mut item = sampling();
        change(&mut item);
        check_item(&Item::Sample(item))
    };
    let by_event: fn(&mut Sampling) = |s| {
        let rate = Rate::Period(1);
        s.events = vec![SampledEvent { event: "cycles".into(), rate }];
        (s.interval_ns, s.delivery) = (0, Delivery::Nmi);
    };
    assert_eq!(check(by_event), Ok(()), "events may come as NMI");
    assert_eq!(check(|s| s.delivery = Delivery::Nmi), Err(LimitError::TimerWithNmi));
    assert_eq!(check(|s| s.registers = 1), Err(LimitError::NeedsSamples));
    assert_eq!(check(|s| s.on_full = OnFull::Stop), Err(LimitError::NeedsSamples));
    assert_eq!(check(|s| s.vectors = vec![VectorRegisters::Ymm]), Err(LimitError::NeedsSamples));
    assert_eq!(check(|s| s.counters = vec!["cycles".into()]), Err(LimitError::NeedsSamples));
    let besides =
        |s: &mut Sampling| (s.keep, s.vectors) = (Keep::Samples, vec![VectorRegisters::Xmm]);
    assert_eq!(check(besides), Ok(()));
    let kept = |s: &mut Sampling| {
        (s.keep, s.registers, s.on_full) = (Keep::Samples, 1, OnFull::Stop);
    };
    assert_eq!(check(kept), Ok(()));
}

/// One task of ring 0 that nothing preempts is called, and has the room of a snippet; any other is scheduled, and has that
/// of a task.
#[test]
fn m9_a_task_alone_in_ring_0_is_not_scheduled_and_may_be_longer() {
    use crate::job::workload::{MAX_TASK_CODE_BYTES, Ring as TaskRing};
    let with = |change: fn(&mut Workload)| {
        let mut item = sampling();
        (item.interval_ns, item.events) =
            (0, vec![SampledEvent { event: "cycles".into(), rate: Rate::Period(1) }]);
        item.workload.tasks[0].body = vec![0x90; MAX_TASK_CODE_BYTES + 1].into();
        change(&mut item.workload);
        item
    };
    let alone = with(|_| ());
    assert!(!alone.is_scheduled());
    assert_eq!(check_item(&Item::Sample(alone)), Ok(()));
    let same: fn(&mut Workload) = |workload| workload.tasks[0].cpu = Some(0);
    assert!(!with(same).is_scheduled(), "the processor that it would be on anyway");
    for change in [
        (|workload| workload.tick_ns = 1_000) as fn(&mut Workload),
        |workload| workload.tasks[0].ring = TaskRing::User,
        |workload| workload.tasks[0].parent = Some(0),
        |workload| workload.tasks[0].cpu = Some(1),
        |workload| workload.tasks.push(task("b", None)),
        |workload| workload.tasks.clear(),
    ] {
        let item = with(change);
        assert!(item.is_scheduled(), "{:?}", item.workload);
        assert!(check_item(&Item::Sample(item)).is_err());
    }
    // The bounds of a task that is called are looked at too.
    let mut nameless = with(|_| ());
    nameless.workload.tasks[0].name = "".into();
    assert!(check_item(&Item::Sample(nameless)).is_err());
}

#[test]
fn i10_m6_there_is_a_series_wherever_tasks_run_if_there_are_ticks() {
    let count = |bind, cpus: [Option<u16>; 2]| {
        let task = |name, cpu| Task { cpu, ..task(name, None) };
        Count {
            name: "c".into(),
            requests: vec![CountRequest { event: "cycles".into(), ..CountRequest::default() }],
            interval_ns: 1_000_000,
            limit_us: 1,
            bind,
            workload: Workload {
                tasks: vec![task("a", cpus[0]), task("b", cpus[1])],
                tick_ns: 1_000_000,
                jitter: None,
            },
            ..Count::default()
        }
    };
    for (bind, cpus) in [
        (Bind::System, [None, None]),
        (Bind::Processor(1), [Some(2), Some(2)]),
        (Bind::System, [Some(1), Some(2)]),
        (Bind::AllProcessors, [None, None]),
        (Bind::Tasks(vec![0]), [None, None]),
    ] {
        let mut item = count(bind, cpus);
        assert_eq!(check_item(&Item::Count(item.clone())), Ok(()));
        item.workload.tick_ns = 0;
        assert_eq!(check_item(&Item::Count(item)), Err(LimitError::IntervalWithoutTick));
    }
}

#[test]
fn n5_files_in_memory_are_bounded_together_and_items_stand_in_order() {
    let bytes = MAX_FILE_BYTES / 2;
    let file = |name, at, bytes: u64, items: Vec<u32>| Memory {
        fill: Fill::Bytes(vec![0; bytes as usize].into()),
        items,
        ..piece(name, at, bytes.max(1))
    };
    let items = || vec![Item::Snippet(snippet("s", &[0x90])), Item::Snippet(snippet("t", &[0x90]))];
    let at = crate::job::memory::HIGH.start + (2 << 20);
    let two = |second| {
        let other = (at + 2 * MAX_FILE_BYTES).next_multiple_of(2 << 20);
        job(items(), vec![file("a", at, bytes, vec![0]), file("b", other, second, vec![0])])
    };
    assert_eq!(said(&two(MAX_FILE_BYTES - bytes)), None);
    let over = said(&two(MAX_FILE_BYTES - bytes + 1)).unwrap();
    assert!(
        over.starts_with(&alloc::format!("bytes of files in memory is {}", MAX_FILE_BYTES + 1)),
        "{over}"
    );
    for (list, good) in
        [(vec![0, 1], true), (vec![1, 0], false), (vec![1, 1], false), (vec![2], false)]
    {
        let answer = said(&job(items(), vec![file("a", at, 1, list.clone())]));
        assert_eq!(answer.is_none(), good, "{list:?}: {answer:?}");
        assert!(
            answer.is_none_or(|text| text.contains("items that the job does not have")),
            "{list:?}"
        );
    }
}

/// 32-bit code, wherever it stands in an item, reaches no memory above 4 GiB.
#[test]
fn t6_n5_32_bit_code_has_its_memory_below_4_gib() {
    let compatibility = |name: &str| {
        let mut item = snippet(name, &[0x90]);
        (item.setup.bits, item.loop_counter) = (Bits::Compatibility, LoopCounter::Memory);
        item
    };
    let workload = Workload {
        tasks: vec![
            task("wide", None),
            Task {
                bits: Bits::Compatibility,
                loop_counter: LoopCounter::Memory,
                ..task("t", None)
            },
        ],
        tick_ns: 0,
        jitter: None,
    };
    let exact = Exact {
        snippet: compatibility("s"),
        filter: Filter::default(),
        verify: false,
        steps: 1_000,
    };
    let history = History {
        snippet: compatibility("s"),
        clock: "cycles".into(),
        cycles: 1,
        step: 1,
        end_to_end: false,
    };
    let request = CountRequest { event: "cycles".into(), ..CountRequest::default() };
    let count = Count {
        name: "c".into(),
        requests: vec![request],
        limit_us: 1,
        workload: workload.clone(),
        ..Count::default()
    };
    let rate = Rate::Period(1);
    let sample = Sampling {
        events: vec![SampledEvent { event: "cycles".into(), rate }],
        interval_ns: 0,
        workload: workload.clone(),
        ..sampling()
    };
    let all = [
        Item::Snippet(compatibility("s")),
        Item::Exact(exact),
        Item::Processors(Processors {
            snippet: compatibility("s"),
            cpu: None,
            core: None,
            interrupt_every: None,
            contention: None,
        }),
        Item::History(history),
        Item::Tasks(Tasks {
            name: "n".into(),
            workload,
            limit_us: 1,
            energy: Vec::new(),
            uncore: Vec::new(),
        }),
        Item::Count(count),
        Item::Sample(sample),
    ];
    let (low, high) =
        (crate::job::memory::LOW.start + (2 << 20), crate::job::memory::HIGH.start + (2 << 20));
    for item in all {
        let with = |at| job(vec![item.clone()], vec![piece("m", at, 4096)]);
        assert!(item.has_compatibility(), "{item:?}");
        assert_eq!(said(&with(low)), None, "{item:?}");
        let over = said(&with(high)).unwrap_or_else(|| panic!("{item:?}"));
        assert!(over.contains("above 4 GiB"), "{over}");
    }
    let wide = job(vec![Item::Snippet(snippet("s", &[0x90]))], vec![piece("m", high, 4096)]);
    assert_eq!(said(&wide), None);
}

/// Ring 3 is found in any kind of item.
#[test]
fn n5_code_of_ring_3_is_found_in_each_kind_of_item() {
    let user = Task { ring: crate::job::workload::Ring::User, ..task("t", None) };
    let workload = Workload { tasks: vec![task("k", None), user], tick_ns: 0, jitter: None };
    let sample = Item::Sample(Sampling { workload: workload.clone(), ..sampling() });
    let count = Item::Count(Count { workload: workload.clone(), ..Count::default() });
    let tasks = Item::Tasks(Tasks {
        name: "n".into(),
        workload,
        limit_us: 1,
        energy: Vec::new(),
        uncore: Vec::new(),
    });
    let mut own = snippet("s", &[0x90]);
    own.setup.control.ring = Ring::User;
    let of_ring_3 = [sample, count, tasks, Item::Snippet(own)];
    assert!(of_ring_3.iter().all(Item::has_ring_3));
    assert!(!Item::Sample(sampling()).has_ring_3());
}
