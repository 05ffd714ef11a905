//! What `status` and `list` say of a set.

use super::console::{begun, turn, two_sets};
use super::jobs::event;
use super::*;
use protocol::console::parse;
use protocol::hex::Hex;
use protocol::record::{ConsoleEvent, ConsoleSet, ConsoleState, CountValue};

fn value(raw: u64) -> CountValue {
    // An instruction is a tick here.
    CountValue { raw, scaled: Some(raw), counted: raw, enabled: raw }
}

/// The whole answer on a Skylake: its counters' registers are those of the SDM, vol. 4, table 2-2; bits as in vol. 3, 19.2.
#[test]
fn m7_status_tells_each_request_and_the_registers_that_count_it() {
    let (_, mut bench, driver, known) = machines().find(|one| one.0 == Model::Skylake).unwrap();
    let mut job = two_sets();
    let counters = driver.capabilities().general.count_ones() as usize;
    job.sets[0].requests = vec![event("r00c0:u"), event("0xc0.0x00:c=1")];
    job.sets[0].requests[1].every = Some(1_000);
    job.sets[1].requests = vec![event("0xc0.0x00:c=1:u"); counters + 1];
    let (_, mut run) = begun(&job, (&mut bench, &driver), &known);
    turn(&mut run, &mut bench, 0, 300);
    let mut say = |line: &str| run.obey(&parse(line).unwrap(), (&job, &known), &mut bench).unwrap();
    let first = ConsoleEvent {
        event: "r00c0:u".into(),
        counter: "fixed counter 0".into(),
        now: Some(value(300)),
        // IA32_FIXED_CTR_CTRL: ring 3, and an interrupt at its overflow.
        control: Some([Hex(0x38d), Hex(0b1010)]),
        ..ConsoleEvent::default()
    };
    let second = ConsoleEvent {
        event: "0xc0.0x00:c=1".into(),
        counter: "counter 0".into(),
        every: Some(1_000),
        overflows: Some(0),
        now: Some(value(300)),
        // IA32_PERFEVTSEL0: counter mask 1, enabled, an interrupt, both rings.
        control: Some([Hex(0x186), Hex(1 << 24 | 1 << 22 | 1 << 20 | 0b11 << 16 | 0xc0)]),
        ..ConsoleEvent::default()
    };
    let registers = [
        [0x38f, 0],
        [0x38e, 0],
        [0x38d, 0],
        [0x309, 300],
        [0x186, 0],
        // It overflows 1,000 events behind its begin.
        [0x4c1, (1 << 48) - 1_000 + 300],
    ];
    let whole = ConsoleSet {
        set: 1,
        name: "a".into(),
        task: Some(0),
        state: ConsoleState::Counts,
        generation: 0,
        group: [0, 1],
        passes: 0,
        events: vec![first, second],
        registers: registers.map(|pair| pair.map(Hex)).into(),
    };
    assert_eq!(say("status a"), std::slice::from_ref(&whole));
    let without = |of: &ConsoleEvent| ConsoleEvent { control: None, ..of.clone() };
    let counts = ConsoleSet {
        events: whole.events.iter().map(without).collect(),
        registers: Vec::new(),
        ..whole.clone()
    };
    assert_eq!(say("read a"), std::slice::from_ref(&counts));
    let bare = |of: &ConsoleEvent| ConsoleEvent { now: None, ..of.clone() };
    let names = ConsoleSet { events: counts.events.iter().map(bare).collect(), ..counts };
    let [a, b] = &say("list")[..] else { panic!("two sets") };
    assert_eq!(a, &names);
    let groups: Vec<u32> = b.events.iter().map(|event| event.group).collect();
    assert_eq!((b.group, groups.last(), groups[0]), ([0, 2], Some(&1), 0), "{groups:?}");
}

/// An event may be named by its text where that is the only one, and its period may go.
#[test]
fn m7_a_change_finds_its_event_by_its_text() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = two_sets();
        job.sets[0].requests = vec![event("r00c0:u"), event("0xc0.0x00:c=1:u")];
        job.sets[0].requests[1].every = Some(1_000);
        let (_, mut run) = begun(&job, (&mut bench, &driver), &known);
        let mut every = |line: &str| {
            let told = run.obey(&parse(line).unwrap(), (&job, &known), &mut bench).unwrap();
            told[0].events.iter().map(|event| event.every).collect::<Vec<_>>()
        };
        assert_eq!(every("modify a r00c0:u every=500"), [Some(500), Some(1_000)], "{model:?}");
        assert_eq!(every("modify a 2 every=0"), [Some(500), None], "{model:?}");
    }
}

#[test]
fn m7_the_console_says_how_long_after_the_begin() {
    let (_, mut bench, driver, known) = machines().nth(3).unwrap();
    bench.run(Ring::Kernel, 40);
    let (_, mut run) = begun(&two_sets(), (&mut bench, &driver), &known);
    turn(&mut run, &mut bench, 0, 77);
    assert_eq!(run.since_begin(&mut bench), 77);
}
