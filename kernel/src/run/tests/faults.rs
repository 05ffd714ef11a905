//! What goes wrong with an item, and what becomes of the others.

use super::*;
use crate::snippet::fault;
use protocol::hex::Hex;

#[test]
fn x1_a_fault_is_an_error_record_and_the_next_item_runs() {
    let mut machine = Clocked::new(1);
    machine.made.fault_at = Some(1);
    let (records, end) = records(&mut machine, vec![nop("bad"), nop("good")]);
    let Record::Error(error) = &records[0] else { panic!("{records:?}") };
    assert_eq!((error.code, error.item), (ErrorCode::SnippetFault, Some(0)));
    assert_eq!(error.name.as_deref(), Some("bad"));
    assert!(matches!(&records[1], Record::Result(result) if result.name == "good"));
    assert_eq!((end.failed, end.measured), (1, 1));
}

#[test]
fn x1_a_stray_interrupt_costs_the_item_that_it_came_into_and_no_other() {
    // Before and after each item: the fourth time is behind the second one.
    let mut machine = Clocked { stray_at: 4, ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("first"), nop("hit"), nop("last")]);
    let [Record::Result(_), Record::Error(error), Record::Result(_)] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!((error.code, error.item), (ErrorCode::StrayInterrupt, Some(1)));
    assert_eq!(error.text, "a stray interrupt of vector 0 (#DE)");
    assert_eq!((end.measured, end.failed, end.outcome), (2, 1, Outcome::Fail));
    let shown = machine.shown.last().unwrap();
    assert!(
        shown.last_error.as_deref().unwrap().starts_with("hit: a stray interrupt"),
        "{shown:?}"
    );
    // One that came before an item is not that item's.
    let mut machine = Clocked { stray_at: 3, ..Clocked::new(1) };
    let (_, end) = self::records(&mut machine, vec![nop("first"), nop("second")]);
    assert_eq!((end.measured, end.failed), (2, 0));
}

/// Memory of the items with these indices.
fn memory(name: &'static str, bytes: u64, items: &[u32]) -> Memory<'static> {
    Memory {
        name: Cow::Borrowed(name),
        at: 0x7020_0000,
        bytes,
        page_size: PageSize::Small,
        memory_type: MemoryType::WriteBack,
        fill: Fill::Zero,
        items: items.to_vec(),
    }
}

#[test]
fn n5_items_have_their_memory_and_one_that_cannot_have_it_is_refused_alone() {
    let mut ring_3 = nop("ring 3");
    ring_3.setup.control.ring = Ring::User;
    let memory = vec![memory("a", 4096, &[0, 2]), memory("b", 1 << 40, &[1]), memory("c", 1, &[2])];
    let job = Job { memory, ..job(vec![nop("first"), nop("greedy"), ring_3, nop("none")]) };
    let mut machine = Clocked::new(1);
    let (records, end) = run_job(&mut machine, &job);
    assert_eq!(machine.provided, ["a false", "a true", "c true"]);
    assert_eq!((end.measured, end.failed), (3, 1));
    let controls: Vec<Vec<&str>> = records
        .iter()
        .filter_map(|record| match record {
            Record::Result(result) => {
                Some(result.controls.iter().map(|one| &*one.option).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(controls, [vec!["memory=a"], vec!["memory=a", "memory=c"], vec![]]);
    let Record::Error(error) = &records[1] else { panic!("{records:?}") };
    assert_eq!((error.code, &*error.text), (ErrorCode::Unsupported, "memory `b`: too much"));
}

#[test]
fn n5_a_page_fault_behind_memory_names_it() {
    let list = [memory("list", 4096, &[0])];
    let pieces: Vec<&Memory> = list.iter().collect();
    let fault = |vector, cr2| {
        let registers = protocol::record::Registers { cr2: Hex(cr2), ..Default::default() };
        let frame = arch::trap::TrapFrame { vector, ..Default::default() };
        let trap = Trap { frame, cr2, cause: arch::call::Cause::Exception };
        let fault = Fault { registers, ..fault::unknown(&trap) };
        let refused = Failure::refused("it faulted".to_string()).record(0, "x");
        let mut record = Record::Error(ErrorRecord { fault: Some(fault), ..refused });
        with_memory(&mut record, &pieces, Vec::new());
        let Record::Error(error) = record else { unreachable!() };
        error.text
    };
    let text = "it faulted, 8 bytes after the end of memory `list`";
    assert_eq!(fault(14, 0x7020_1008), text);
    assert_eq!(fault(13, 0x7020_1008), "it faulted");
    assert_eq!(fault(14, 0x6000_0000), "it faulted");
}

#[test]
fn x1_behind_a_changed_firmware_no_item_runs_and_each_has_its_record() {
    let mut machine = Clocked { changer: Some(1), ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("a"), nop("b"), nop("c"), nop("d")]);
    assert_eq!(machine.items, [0, 1]);
    assert!(matches!(&records[0], Record::Result(result) if result.item == 0));
    let errors: Vec<_> = records[1..]
        .iter()
        .map(|record| match record {
            Record::Error(error) => (error.code, error.item.unwrap(), error.restored.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected =
        [(ErrorCode::FirmwareChanged, 1, 1), (ErrorCode::NotRun, 2, 0), (ErrorCode::NotRun, 3, 0)];
    assert_eq!(errors, expected);
    assert_eq!((end.outcome, end.failed, end.measured), (Outcome::Fail, 3, 1));
}

#[test]
fn x1_a_change_that_is_noticed_at_the_end_fails_the_run() {
    let mut machine = Clocked { changer: Some(0), noticed_late: true, ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("a"), nop("b")]);
    let Record::Error(error) = &records[2] else { panic!("{records:?}") };
    assert_eq!((error.code, error.item), (ErrorCode::FirmwareChanged, None));
    assert_eq!((end.outcome, end.measured, machine.items), (Outcome::Fail, 2, vec![0, 1]));
}

#[test]
fn i7_an_item_for_processors_that_fails_names_the_processor() {
    let item = Item::Processors(Processors {
        snippet: nop("p"),
        cpu: Some(3),
        core: None,
        interrupt_every: None,
        contention: None,
    });
    let job = Job { items: vec![item], ..job(vec![]) };
    let mut report = Report::new(Buffer::default());
    let end = run(&job, &mut Clocked::new(1), &mut report);
    assert_eq!(end.outcome, Outcome::Fail);
    assert!(report.sink_mut().0.contains("on processor 3: one processor only"));
}

#[test]
fn x13_each_kind_of_core_that_fails_has_its_error_and_the_last_ends_the_item() {
    let on_all = Processors {
        snippet: nop("p"),
        cpu: None,
        core: None,
        interrupt_every: None,
        contention: None,
    };
    let kinds = vec![Some(CoreKind::Performance), Some(CoreKind::Efficient)];
    let mut machine = Clocked { cores: (0..).zip(kinds).collect(), ..Clocked::new(1) };
    let items = vec![Item::Processors(on_all), Item::Snippet(nop("behind"))];
    let (all, end) = run_job(&mut machine, &Job { items, ..job(vec![]) });
    let [Record::Error(first), Record::Error(second), Record::Result(_)] = &all[..] else {
        panic!("{all:?}")
    };
    let text = |kind| format!("on {kind} cores: one processor only");
    assert_eq!((&first.text, &second.text), (&text("performance"), &text("efficient")));
    assert_eq!((first.item, second.item), (Some(0), Some(0)));
    assert_eq!((first.more, second.more), (true, false));
    let ends: Vec<bool> = all.iter().map(Record::ends_item).collect();
    assert_eq!(ends, [false, true, true]);
    assert_eq!((end.failed, end.measured), (2, 1));
}
