//! Items that run tasks: what becomes of them is told by how the tasks ended.

use super::*;

#[test]
fn t9_a_workload_fails_with_a_task_that_does_not_exit() {
    for (failed, counts, error) in [
        (0, [1, 0], None),
        (1, [0, 1], Some("work: task b raised an exception")),
        (2, [0, 1], Some("work: task c took too long")),
        (3, [0, 1], Some("work: work cannot be run")),
    ] {
        let mut machine = Clocked { failed, ..Clocked::new(1) };
        let item = Tasks {
            name: Cow::Borrowed("work"),
            workload: protocol::job::workload::Workload::default(),
            limit_us: 1,
            energy: Vec::new(),
            uncore: Vec::new(),
        };
        let job = Job { items: vec![Item::Tasks(item)], ..job(vec![]) };
        let mut report = Report::new(Buffer::default());
        let end = run(&job, &mut machine, &mut report);
        assert_eq!([end.measured, end.failed], counts);
        assert_eq!(machine.shown.last().unwrap().last_error.as_deref(), error);
        let mut reader = Reader::new();
        let events = reader.feed(report.sink_mut().0.as_bytes());
        let stream::Event::Record { record, .. } = &events[0] else { panic!("{events:?}") };
        match (&**record, failed) {
            (Record::Error(error), 3) => assert_eq!(error.code, ErrorCode::Unsupported),
            (Record::Tasks(result), _) => assert!(result.emulated && result.tsc[1] > result.tsc[0]),
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_count_item_is_measured_or_has_its_reason() {
    let task = protocol::job::workload::Task {
        name: "t".into(),
        init: [][..].into(),
        body: [0x90][..].into(),
        turns: 1,
        loop_counter: protocol::job::LoopCounter::R15,
        extended_state: false,
        ring: protocol::job::workload::Ring::Kernel,
        parent: None,
        cpu: None,
        core: None,
        cpus: None,
        outlives: false,
        program: None,
        bits: protocol::bits::Bits::SixtyFour,
    };
    let item = |tasks: usize| Count {
        nested: false,
        name: "c".into(),
        requests: vec![protocol::job::count::CountRequest::default()],
        together: false,
        at_overflow: protocol::job::count::AtOverflow::Same,
        passes: 0,
        interval_ns: 0,
        limit_us: 1,
        workload: protocol::job::workload::Workload {
            tasks: vec![task.clone(); tasks],
            tick_ns: 0,
            jitter: None,
        },
        bind: protocol::job::count::Bind::System,
        alone: false,
        sets: vec![],
        gate: vec![],
        energy: vec![],
        uncore: vec![],
        console: false,
    };
    for (tasks, ended) in [(1, [1, 0]), (2, [0, 1])] {
        let mut machine = Clocked::new(1);
        let job = Job { items: vec![Item::Count(item(tasks))], ..job(vec![]) };
        let (records, end) = run_job(&mut machine, &job);
        assert_eq!([end.measured, end.failed], ended);
        match &records[0] {
            Record::Count(result) => {
                assert_eq!((result.item, result.name.as_str(), result.ticks), (0, "c", 7));
            }
            Record::Error(error) => {
                assert_eq!((error.item, error.text.as_str()), (Some(0), "one task at a time"));
            }
            other => panic!("{other:?}"),
        }
    }
}
