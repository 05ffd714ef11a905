//! What counting refuses, and what is no reason to.

use super::edges::sampling;
use super::*;
use crate::job::Facts;
use crate::job::facts::{Parts, Watch};
use crate::job::memory::tests::piece;
use crate::job::sampling::VectorRegisters;
use crate::job::workload::Task;
use crate::job::workload::tests::task;
use alloc::vec;

fn request() -> CountRequest<'static> {
    CountRequest { event: "cycles".into(), ..CountRequest::default() }
}

/// A count of two tasks on these processors.
fn count(cpus: [Option<u16>; 2]) -> Count<'static> {
    let [a, b] = cpus;
    let tasks = vec![Task { cpu: a, ..task("a", None) }, Task { cpu: b, ..task("b", None) }];
    Count {
        name: "c".into(),
        requests: vec![request()],
        limit_us: 1,
        workload: Workload { tasks, tick_ns: 1_000_000, jitter: None },
        ..Count::default()
    }
}

fn check(count: Count<'static>) -> Result<(), LimitError> {
    check_item(&Item::Count(count))
}

#[test]
fn energy_is_enough_for_an_item_without_sets_and_its_names_are_bounded() {
    let with = |energy: &str, requests, sets| {
        let energy = vec![energy.to_string().into()];
        check(Count { energy, requests, sets, ..count([None, None]) })
    };
    assert_eq!(with("energy-pkg", vec![], vec![]), Ok(()));
    assert_eq!(with("energy-pkg", vec![request()], vec![]), Ok(()));
    assert!(check(Count { requests: vec![], ..count([None, None]) }).is_err(), "nothing at all");
    let set = |requests| vec![CountSet { name: "s".into(), requests, ..CountSet::default() }];
    assert_eq!(with("energy-pkg", vec![], set(vec![request()])), Ok(()));
    assert!(with("energy-pkg", vec![], set(vec![])).is_err(), "a set has its own events");
    let long = "e".repeat(MAX_EVENT_BYTES + 1);
    assert_eq!(with(&long[1..], vec![], vec![]), Ok(()));
    assert!(with(&long, vec![], vec![]).unwrap_err().to_string().contains("the text of an event"));
}

/// An item with sets is none itself: what is said of one that it would be holds for nothing.
#[test]
fn c3_what_is_of_a_set_does_not_stand_beside_sets() {
    let with = |change: fn(&mut Count)| {
        let set = CountSet { name: "s".into(), requests: vec![request()], ..CountSet::default() };
        let mut item = Count { requests: vec![], sets: vec![set], ..count([None, None]) };
        change(&mut item);
        check(item)
    };
    assert_eq!(with(|_| ()), Ok(()));
    assert_eq!(with(|item| item.sets[0].together = true), Ok(()));
    for change in [
        (|item| item.requests.push(request())) as fn(&mut Count),
        |item| item.together = true,
        |item| item.alone = true,
        |item| item.bind = Bind::AllProcessors,
    ] {
        assert_eq!(with(change), Err(LimitError::EventsAndSets));
    }
}

#[test]
fn s3_the_uncore_is_enough_for_an_item_without_sets_and_its_events_are_bounded() {
    let with = |text: &str, times: usize, requests| {
        let uncore = vec![text.to_string().into(); times];
        check(Count { uncore, requests, ..count([None, None]) })
    };
    let event = "uncore_arb/event=0x81,umask=1/";
    assert_eq!(with(event, 1, vec![]), Ok(()));
    assert_eq!(with(event, MAX_EVENTS, vec![request()]), Ok(()));
    let said = |times, text: &str| with(text, times, vec![]).unwrap_err().to_string();
    let many = said(MAX_EVENTS + 1, event);
    assert!(many.contains("the number of events of the uncore"), "{many}");
    let long = said(1, &"e".repeat(MAX_EVENT_BYTES + 1));
    assert!(long.contains("the text of an event"), "{long}");
}

#[test]
fn m3_a_console_is_on_the_processor_of_all_tasks() {
    let with = |cpus, bind| check(Count { console: true, bind, ..count(cpus) });
    let refused = Err(LimitError::ConsoleOfSeveral);
    for cpus in [[None, None], [Some(0), None], [Some(2), Some(2)]] {
        assert_eq!(with(cpus, Bind::System), Ok(()), "{cpus:?}");
        let own = Bind::Processor(cpus[0].unwrap_or(0));
        assert_eq!(with(cpus, own), Ok(()), "{cpus:?}");
        assert_eq!(with(cpus, Bind::Processor(1)), refused, "{cpus:?}");
        assert_eq!(with(cpus, Bind::AllProcessors), refused, "{cpus:?}");
    }
    assert_eq!(with([None, Some(1)], Bind::System), refused);
    assert_eq!(with([Some(2), None], Bind::Processor(2)), refused);
}

#[test]
fn m9_samples_with_vectors_or_counters_have_less_room() {
    let with = |vectors: &[VectorRegisters], counters: &[&'static str], capacity| {
        let vectors = vectors.to_vec();
        let counters = counters.iter().map(|one| (*one).into()).collect();
        let keep = Keep::Samples;
        check_capacity(&Sampling { keep, vectors, counters, capacity, ..sampling() }).is_ok()
    };
    use VectorRegisters::{Opmask, Xmm};
    let (narrow, wide) = (MAX_SAMPLES_WITH_VECTORS, MAX_SAMPLES_WITH_WIDE_VECTORS);
    for (vectors, counters, most) in [
        (&[Xmm][..], &[][..], narrow),
        (&[], &["cycles"], narrow),
        (&[Xmm], &["cycles"], narrow),
        (&[Xmm, Opmask], &[], wide),
    ] {
        let both = [0, 1].map(|more| with(vectors, counters, most + more));
        assert_eq!(both, [true, false], "{vectors:?} {counters:?}");
    }
    assert!(with(&[], &[], narrow + 1));
}

#[test]
fn n5_memory_is_for_code_and_fact_sheets() {
    let said = |item| {
        let memory = vec![piece("m", crate::job::memory::HIGH.start + (2 << 20), 4096)];
        let job = Job {
            name: "j".into(),
            baud: 115_200,
            on_end: Default::default(),
            exit_port: None,
            self_test: None,
            requires: vec![],
            items: vec![item],
            criteria: vec![],
            memory,
        };
        check_job(&job).err().map(|error| error.to_string())
    };
    let parts = Parts { memory: true, core: false, cores: false, noise: false };
    let facts = Facts { name: "f".into(), bytes: 8 << 20, parts, watch: Watch::default() };
    assert_eq!(said(Item::Facts(facts)), None);
    assert_eq!(said(Item::Count(count([None, None]))), None);
    assert_eq!(said(Item::Snippet(snippet("s", &[0x90]))), None);
    for kind in [Item::Conformance, Item::BringUp] {
        let item = kind(Conformance { name: "c".into(), checks: vec![] });
        let over = said(item).expect("it has no code");
        assert!(over.contains("the conformance suite does not use memory"), "{over}");
    }
}
