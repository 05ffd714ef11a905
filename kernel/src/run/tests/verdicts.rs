//! What items and the run come to.

use super::*;

#[test]
fn expectations_decide_the_verdict_and_the_outcome() {
    let expect = |min, max| {
        let expect = Expect { figure: "tsc".into(), bounds: Bounds::between(min, max) };
        Criteria { expect: vec![expect], allow_uncounted: false }
    };
    // The last item has no criteria of its own.
    let criteria = vec![expect(2.0, 2.0), Criteria::default(), expect(0.0, 1.9)];
    let mut machine = Clocked::new(1);
    let items = ["right", "free", "wrong", "last"].map(nop);
    let (records, end) = judged(&mut machine, items.to_vec(), criteria);
    let verdicts: Vec<Verdict> = records
        .iter()
        .map(|record| match record {
            Record::Result(result) => result.verdict,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::None, Verdict::Fail, Verdict::None]);
    let Record::Result(missed) = &records[2] else { panic!("{records:?}") };
    let seen: Vec<_> = missed.misses.iter().map(|miss| (miss.max, miss.value)).collect();
    assert_eq!(seen, [(Option::Some(1.9), Option::Some(2.0))]);
    assert_eq!((end.passed, end.measured, end.failed), (1, 2, 1));
    assert_eq!((end.outcome, end.on_end), (Outcome::Fail, OnEnd::Reboot));
    assert_eq!(machine.items, [0, 1, 2, 3]);
    let last = machine.shown.last().unwrap();
    assert_eq!(last.outcome, Some(Outcome::Fail));
    assert_eq!(last.last_error.as_deref(), Some("wrong: tsc came to 2; expected 0 to 1.9"));
}

#[test]
fn k2_a_suite_decides_the_outcome() {
    for (passed, failed, expected) in
        [(5, 0, Outcome::Pass), (5, 1, Outcome::Fail), (0, 0, Outcome::Skip)]
    {
        let mut machine = Clocked::new(1);
        (machine.passed, machine.failed) = (passed, failed);
        let suite = Conformance { name: Cow::Borrowed("suite"), checks: vec![] };
        let job = Job { items: vec![Item::Conformance(suite)], ..job(vec![]) };
        let mut report = Report::new(Buffer::default());
        assert_eq!(run(&job, &mut machine, &mut report).outcome, expected);
        let text = &report.sink_mut().0;
        assert!(
            text.contains("\"type\":\"check\"") && text.contains("\"type\":\"suite\""),
            "{text}"
        );
    }
}

/// The made-up PMU counts each event once a copy.
#[test]
fn x2_a_pmu_that_disagrees_with_the_exact_counts_fails_the_run() {
    let exact = |verify| {
        let snippet = Snippet { difference: Difference::Empty, ..nop("stepped") };
        vec![Item::Exact(Exact { snippet, filter: Filter::default(), verify, steps: 1000 })]
    };
    let run = |verify| {
        let mut report = Report::new(Buffer::default());
        let mut machine = Clocked::new(1);
        let end = run(&Job { items: exact(verify), ..job(vec![]) }, &mut machine, &mut report);
        let events = Reader::new().feed(report.sink_mut().0.as_bytes());
        let stream::Event::Record { record, .. } = &events[0] else { panic!("{events:?}") };
        let Record::Exact(result) = &**record else { panic!("{record:?}") };
        (end, result.clone())
    };
    let (end, result) = run(false);
    assert_eq!((end.outcome, end.measured), (Outcome::Pass, 1));
    assert_eq!((result.counts[0].value, result.counts[0].totals), (2.0, [0, 100]));
    assert_eq!((result.comparisons.len(), result.emulated), (0, false));
    assert_eq!(result.restored, ["CR8"], "what it changed is named, as that of a snippet");
    let (end, result) = run(true);
    assert_eq!((end.outcome, end.failed), (Outcome::Fail, 1));
    let seen: Vec<_> = result.comparisons.iter().map(|c| (c.exact, c.pmu_min, c.agrees)).collect();
    assert_eq!(seen, [(2.0, 1.0, false), (1.0, 1.0, true)]);
    assert!(result.emulated);
}

#[test]
fn exact_mode_that_reaches_its_limit_of_steps_is_an_error_of_its_own() {
    let snippet = Snippet { difference: Difference::Empty, ..nop("long") };
    let exact = Exact { snippet, filter: Filter::default(), verify: false, steps: 99 };
    let job = Job { items: vec![Item::Exact(exact)], ..job(vec![nop("next")]) };
    let mut report = Report::new(Buffer::default());
    let end = run(&job, &mut Clocked::new(1), &mut report);
    assert_eq!((end.outcome, end.failed), (Outcome::Fail, 1));
    let text = &report.sink_mut().0;
    assert!(text.contains("\"code\":\"step_limit\"") && text.contains("99 instructions"), "{text}");
}

#[test]
fn x2_counts_of_an_emulated_pmu_say_so_and_ticks_do_not() {
    let counted = Snippet { events: vec!["loads".into()], ..nop("counted") };
    let (records, _) = records(&mut Clocked::new(1), vec![counted, nop("timed")]);
    let emulated: Vec<bool> = records
        .iter()
        .map(|record| match record {
            Record::Result(result) => result.emulated,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(emulated, [true, false]);
}

#[test]
fn c7_an_event_that_cannot_be_counted_has_its_reason_in_the_result() {
    let two = Snippet { events: vec!["unknown".into(), "loads".into()], ..nop("two") };
    let (records, end) = records(&mut Clocked::new(1), vec![two, nop("good")]);
    let Record::Result(result) = &records[0] else { panic!("{records:?}") };
    assert_eq!(result.uncounted[0].event, "unknown");
    assert_eq!((result.metrics[1].event.as_str(), result.planning), ("loads", 7));
    // It was requested, so the item failed.
    assert_eq!((result.verdict, result.misses[0].figure.as_str()), (Verdict::Fail, "unknown"));
    assert_eq!((end.failed, end.measured), (1, 1));
    let two = Snippet { events: vec!["unknown".into(), "loads".into()], ..nop("two") };
    let allowed = Criteria { allow_uncounted: true, ..Criteria::default() };
    let (_, end) = judged(&mut Clocked::new(1), vec![two], vec![allowed]);
    assert_eq!((end.failed, end.measured, end.outcome), (0, 1, Outcome::Pass));
}
