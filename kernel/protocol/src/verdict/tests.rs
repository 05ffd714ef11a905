//! The verdict on every kind of record, for every kind of miss.

use super::*;
use alloc::borrow::Cow;
use proptest::prelude::*;

mod kinds;

fn record(json: &str) -> Record {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn expecting(expect: &[(&'static str, Bounds)]) -> Criteria<'static> {
    let expect = expect.iter();
    let expect = expect.map(|&(figure, bounds)| Expect { figure: Cow::Borrowed(figure), bounds });
    Criteria { expect: expect.collect(), allow_uncounted: false }
}

fn exactly(figure: &'static str, value: f64) -> Criteria<'static> {
    expecting(&[(figure, Bounds::exactly(value))])
}

const SERIES: &str = r#"[{"min":1,"max":1,"distinct":1},{"min":1,"max":1,"distinct":1}]"#;

fn metric(event: &str, median: f64) -> String {
    format!(
        r#"{{"event":"{event}","min":{median},"median":{median},"mean":{median},"max":{median},
           "deterministic":true,"series":{SERIES}}}"#
    )
}

/// A result of a snippet that counted three instructions in four ticks.
fn snippet(uncounted: &str) -> Record {
    let (tsc, instructions) = (metric("tsc", 4.0), metric("instructions", 3.0));
    record(&format!(
        r#"{{"type":"result","item":0,"name":"a","verdict":"pass","per":1,"runs":1,
           "metrics":[{tsc},{instructions}],"uncounted":[{uncounted}],"tsc":[0,1]}}"#
    ))
}

const NOSUCH: &str = r#"{"event":"nosuch","reason":"no such event"}"#;
const VALUE: &str = r#"{"raw":7,"scaled":14,"counted":1,"enabled":2}"#;
const TASK: &str = r#"{"name":"t","entry":"0x0","end":"exit","turns":9,"switches":2,"time":5,
    "value":"0x2a","memory_crc32":"0x0","user_instructions":18}"#;

fn event(name: &str) -> String {
    format!(
        r#"{{"event":"{name}","name":"n","counter":"c","group":0,"sum":{VALUE},"cpus":[{VALUE}],
           "kernel":{VALUE},"tasks":[{VALUE}],"overflows":3}}"#
    )
}

/// A record of every kind that asks for an event which was not counted.
fn uncounted_of_every_kind() -> Vec<Record> {
    let head = r#""item":0,"name":"a""#;
    let lost = format!(r#""uncounted":[{NOSUCH}],"tsc":[0,1]"#);
    let sample = r#""events":[],"tasks":[],"code":[],"on_full":"drop","delivery":"fixed","handling":"h","interrupts":0,
        "spurious":0,"back_to_back":0,"ticks":0,
        "capability":{"overflow_interrupt":true,"culprit":"c","freeze":"f","skid":"s","data_address":"d"}"#;
    let all = [
        format!(
            r#"{{"type":"result",{head},"verdict":"none","per":1,"runs":1,"metrics":[],{lost}}}"#
        ),
        format!(
            r#"{{"type":"exact",{head},"per":1,"counts":[],"opcodes":[],"listing":[],"listed":0,{lost}}}"#
        ),
        format!(
            r#"{{"type":"history",{head},"clock":"cycles","step":1,"runs":1,"per":1,"stopped_by":"freeze",
               "passes":[],"series":[],{lost}}}"#
        ),
        format!(
            r#"{{"type":"count",{head},"tasks":[],"events":[],"groups":1,"passes":0,"ticks":0,"switches":0,{lost}}}"#
        ),
        format!(
            r#"{{"type":"count",{head},"tasks":[],"events":[],"groups":1,"passes":0,"ticks":0,"switches":0,
               "tsc":[0,1],"sets":[{{"name":"s","bind":"b","events":[],"groups":1,"passes":0,
               "uncounted":[{NOSUCH}]}}]}}"#
        ),
        format!(
            r#"{{"type":"processors",{head},"per":1,"runs":1,"processors":[],"sums":[],
               "start_skew":{{"min":0,"median":0,"max":0}},"snapshot":{{"deadline":0,"skew":0,"events":[]}},{lost}}}"#
        ),
        format!(r#"{{"type":"sample",{head},{sample},{lost}}}"#),
    ];
    all.iter().map(|json| record(json)).collect()
}

#[test]
fn c7_what_was_asked_for_and_not_counted_fails_every_kind_of_item_unless_that_is_allowed() {
    for mut record in uncounted_of_every_kind() {
        assert_eq!(
            judge_record(&Criteria::default(), &mut record),
            Some(Verdict::Fail),
            "{record:?}"
        );
        let (verdict, misses) = said(&record).unwrap();
        assert_eq!(verdict, Verdict::Fail);
        assert_eq!(sentence(&misses[0]), "nosuch was not counted: no such event");
        let allowed = Criteria { allow_uncounted: true, ..Criteria::default() };
        let judged = judge(&allowed, &record).unwrap();
        assert_eq!(judged, Judgement::default(), "{record:?}");
    }
}

#[test]
fn c7_a_set_that_lost_the_counters_was_not_counted() {
    for (how, text) in [
        (r#""refused":"busy""#, "set s was not counted: refused: busy"),
        (
            r#""evicted":{"by":"m","processor":0,"acquired":0,"generation":1}"#,
            "set s was not counted: evicted by m",
        ),
    ] {
        let record = record(&format!(
            r#"{{"type":"count","item":0,"name":"a","tasks":[],"events":[],"groups":1,"passes":0,"ticks":0,
               "switches":0,"tsc":[0,1],
               "sets":[{{"name":"s","bind":"b","events":[],"groups":1,"passes":0,{how}}}]}}"#
        ));
        let judged = judge(&Criteria::default(), &record).unwrap();
        assert_eq!((judged.verdict, judged.misses.len()), (Verdict::Fail, 1));
        assert_eq!(sentence(&judged.misses[0]), text);
    }
}

#[test]
fn expectations_hold_for_any_event_and_a_miss_has_its_bounds_and_its_value() {
    let judged = |criteria: &Criteria| judge(criteria, &snippet("")).unwrap();
    assert_eq!(judged(&Criteria::default()).verdict, Verdict::None);
    let both = expecting(&[
        ("tsc", Bounds::between(1.0, 4.0)),
        ("instructions", Bounds { min: None, max: Some(3.0) }),
    ]);
    assert_eq!(judged(&both).verdict, Verdict::Pass);
    for (criteria, text) in [
        (exactly("tsc", 3.0), "tsc came to 4; expected 3"),
        (exactly("instructions", 4.0), "instructions came to 3; expected 4"),
        (
            expecting(&[("instructions", Bounds { min: Some(3.5), max: None })]),
            "instructions came to 3; expected at least 3.5",
        ),
        (exactly("loads", 1.0), "loads: there is no such figure; expected 1"),
    ] {
        let Judgement { verdict, misses } = judged(&criteria);
        assert_eq!((verdict, misses.len()), (Verdict::Fail, 1));
        assert_eq!(sentence(&misses[0]), text);
    }
}

/// What the record says of itself counts for nothing.
#[test]
fn x1_a_forged_verdict_is_not_believed() {
    let mut forged = snippet("");
    assert_eq!(said(&forged).unwrap().0, Verdict::Pass);
    assert_eq!(judge_record(&exactly("tsc", 99.0), &mut forged), Some(Verdict::Fail));
    assert_eq!(said(&forged).unwrap().0, Verdict::Fail);
}

#[test]
fn c7_where_events_may_be_missing_what_is_expected_of_them_is_not_judged() {
    let expected = exactly("loads", 1.0);
    let allowed = Criteria { allow_uncounted: true, ..expected.clone() };
    let lacking = snippet(r#"{"event":"loads","reason":"none here"}"#);
    assert_eq!(judge(&expected, &lacking).unwrap().misses.len(), 2);
    assert_eq!(judge(&allowed, &lacking).unwrap().verdict, Verdict::Pass);
    // Everything was counted, so the name is wrong.
    assert_eq!(judge(&allowed, &snippet("")).unwrap().verdict, Verdict::Fail);
    // What was counted is judged.
    let wrong = Criteria { allow_uncounted: true, ..exactly("instructions", 1.0) };
    assert_eq!(judge(&wrong, &lacking).unwrap().verdict, Verdict::Fail);
}

#[test]
fn exact_counts_and_opcodes_are_figures_and_agreement_is_expected() {
    let exact = |compared: &str| {
        record(&format!(
            r#"{{"type":"exact","item":0,"name":"a","per":1,
               "counts":[{{"event":"loads","value":2.0,"totals":[2,4]}}],
               "opcodes":[{{"event":"imul","value":1.0,"totals":[1,2]}}],
               "listing":[],"listed":0,"comparisons":[{compared}],"tsc":[0,1]}}"#
        ))
    };
    let verdict =
        |criteria: &Criteria, compared: &str| judge(criteria, &exact(compared)).unwrap().verdict;
    assert_eq!(verdict(&exactly("loads", 2.0), ""), Verdict::Pass);
    assert_eq!(verdict(&exactly("imul", 2.0), ""), Verdict::Fail);
    let compared = |agrees: bool| {
        format!(r#"{{"event":"x","exact":1.0,"pmu_min":1.0,"pmu_max":1.0,"agrees":{agrees}}}"#)
    };
    assert_eq!(verdict(&Criteria::default(), &compared(true)), Verdict::Pass);
    assert_eq!(verdict(&exactly("loads", 2.0), &compared(false)), Verdict::Fail);
}

#[test]
fn counts_have_a_figure_for_everybody_and_for_each_set() {
    let events = format!("[{}]", event("loads"));
    let count = record(&format!(
        r#"{{"type":"count","item":0,"name":"a","tasks":[{TASK}],"events":{events},"groups":2,"passes":5,"ticks":8,
           "switches":11,"cpus":[{{"processor":1,"ticks":0,"switches":0}}],"tsc":[0,1],
           "gates":[{{"task":0,"starts":4,"stops":6,"taken":10,"deepest":3}}],
           "sets":[{{"name":"s","bind":"b","events":{events},"groups":3,"passes":7}}]}}"#
    ));
    for (figure, value) in [
        ("loads", 14.0),
        ("loads, kernel", 14.0),
        ("loads, overflows", 3.0),
        ("loads, cpu 1", 14.0),
        ("loads, task t", 14.0),
        ("groups", 2.0),
        ("passes", 5.0),
        ("ticks", 8.0),
        ("switches", 11.0),
        ("starts", 4.0),
        ("stops", 6.0),
        ("deepest", 3.0),
        ("s: loads, task t", 14.0),
        ("s: groups", 3.0),
    ] {
        assert_eq!(
            judge(&exactly(figure, value), &count).unwrap().verdict,
            Verdict::Pass,
            "{figure}"
        );
        let wrong = judge(&exactly(figure, value + 1.0), &count).unwrap();
        assert_eq!(wrong.verdict, Verdict::Fail, "{figure}");
    }
}

#[test]
fn a_count_that_never_had_a_counter_is_a_miss() {
    let never = event("loads").replace(r#""scaled":14,"#, "");
    let count = record(&format!(
        r#"{{"type":"count","item":0,"name":"a","tasks":[],"events":[{never}],"groups":2,"passes":0,"ticks":0,
           "switches":0,"tsc":[0,1]}}"#
    ));
    let judged = judge(&exactly("loads", 14.0), &count).unwrap();
    let text = "loads: it never had a counter; expected 14";
    assert_eq!(sentence(&judged.misses[0]), text);
}

/// Two results of a task that 64-bit floating point has one number for.
#[test]
fn c7_a_tasks_value_is_compared_by_all_of_its_bits() {
    let judged = |value: u64| {
        let task = TASK.replace("0x2a", &format!("{value:#x}"));
        let ran = record(&format!(
            r#"{{"type":"tasks","item":0,"name":"a","tasks":[{task}],"switches":3,
               "ticks":{{"count":2,"min":0,"median":0,"max":0}},"interrupts":[],"tsc":[0,1]}}"#
        ));
        let judged = judge(&exactly("value, task t", (1_u64 << 53) as f64), &ran).unwrap();
        judged.misses.iter().map(sentence).collect::<Vec<_>>()
    };
    assert_eq!(judged(1 << 53), [""; 0]);
    for missed in [(1 << 53) + 1, (1 << 53) + 2] {
        let text = format!("value, task t came to {missed}; expected 9007199254740992");
        assert_eq!(judged(missed), [text]);
    }
}

#[test]
fn tasks_have_figures_and_one_that_does_not_exit_fails() {
    let ran = |end: &str| {
        let task = TASK.replace("exit", end);
        record(&format!(
            r#"{{"type":"tasks","item":0,"name":"a","tasks":[{task}],"switches":3,
               "ticks":{{"count":2,"min":0,"median":0,"max":0}},"interrupts":[],"user_instructions":18,
               "tsc":[0,1]}}"#
        ))
    };
    for (figure, value) in [
        ("turns, task t", 9.0),
        ("value, task t", 42.0),
        ("instructions:u, task t", 18.0),
        ("instructions:u", 18.0),
        ("ticks", 2.0),
        ("switches", 3.0),
    ] {
        let judged = |end, value| judge(&exactly(figure, value), &ran(end)).unwrap().verdict;
        assert_eq!(judged("exit", value), Verdict::Pass, "{figure}");
        assert_eq!(judged("exit", value - 1.0), Verdict::Fail, "{figure}");
        assert_eq!(judged("limit", value), Verdict::Fail, "{figure}");
    }
    assert_eq!(judge(&Criteria::default(), &ran("exit")).unwrap().verdict, Verdict::None);
    assert_eq!(judge(&Criteria::default(), &ran("fault")).unwrap().verdict, Verdict::Fail);
}

#[test]
fn each_processor_has_to_meet_the_bounds_and_the_sum_has_its_own() {
    let one = |number: u32, value: f64| {
        let metrics = metric("loads", value);
        format!(
            r#"{{"processor":{number},"apic_id":0,"tsc_offset":0,"tsc_offset_error":0,"metrics":[{metrics}],
               "snapshot_tsc":0,"snapshot":[]}}"#
        )
    };
    let both = record(&format!(
        r#"{{"type":"processors","item":0,"name":"a","per":1,"runs":1,"processors":[{},{}],
           "sums":[{{"event":"loads","value":5.0,"processors":2}}],"start_skew":{{"min":0,"median":0,"max":0}},
           "snapshot":{{"deadline":0,"skew":0,"events":[]}},"tsc":[0,1]}}"#,
        one(0, 2.0),
        one(1, 3.0)
    ));
    let judged = judge(&exactly("loads", 2.0), &both).unwrap();
    let texts: Vec<_> = judged.misses.iter().map(sentence).collect();
    assert_eq!(texts, ["loads on cpu 1 came to 3; expected 2"]);
    let all = expecting(&[
        ("loads", Bounds::between(2.0, 3.0)),
        ("loads on cpu 1", Bounds::exactly(3.0)),
        ("loads, sum", Bounds::exactly(5.0)),
    ]);
    assert_eq!(judge(&all, &both).unwrap().verdict, Verdict::Pass);
}

#[test]
fn histories_have_their_last_row_and_each_row() {
    let history = record(
        r#"{"type":"history","item":0,"name":"a","clock":"cycles","step":2,"runs":1,"per":1,"stopped_by":"freeze",
           "passes":[],"series":[{"event":"loads","counting":{"name":"l","counter":"c","pass":0},"front":0.0,
           "median":[1.0,4.0],"min":[1.0,4.0],"max":[1.0,4.0],"each":[1.0,3.0]}],"tsc":[0,1]}"#,
    );
    for (figure, value) in [("loads", 4.0), ("loads, row 2", 1.0), ("loads, row 4", 4.0)] {
        assert_eq!(judge(&exactly(figure, value), &history).unwrap().verdict, Verdict::Pass);
        assert_eq!(judge(&exactly(figure, 9.0), &history).unwrap().verdict, Verdict::Fail);
    }
}

#[test]
fn samples_have_what_the_counter_saw_and_what_became_of_it() {
    let sampled = record(
        r#"{"type":"sample","item":0,"name":"a","events":[{"event":"loads","period":100,"overflows":5,"samples":4,
           "dropped":1,"throttled":2,"rest":33}],"tasks":[],"code":[],"on_full":"drop","delivery":"fixed",
           "handling":"h","interrupts":0,"spurious":0,"back_to_back":0,"ticks":0,
           "capability":{"overflow_interrupt":true,"culprit":"c","freeze":"f","skid":"s","data_address":"d"},"tsc":[0,1]}"#,
    );
    for (figure, value) in [
        ("loads", 733.0),
        ("loads, overflows", 5.0),
        ("loads, samples", 4.0),
        ("loads, dropped", 1.0),
    ] {
        assert_eq!(
            judge(&exactly(figure, value), &sampled).unwrap().verdict,
            Verdict::Pass,
            "{figure}"
        );
    }
}

#[test]
fn what_is_no_result_is_not_judged() {
    let error = record(r#"{"type":"error","code":"device","item":0,"text":"x"}"#);
    assert_eq!(judge(&exactly("tsc", 1.0), &error), None);
}

proptest! {
    /// Whatever the bounds: the verdict is that of the value, and a miss says both.
    #[test]
    fn the_verdict_is_whether_the_value_lies_within(min in 0.0..8.0f64, max in 0.0..8.0f64) {
        let criteria = expecting(&[("instructions", Bounds::between(min, max))]);
        let judged = judge(&criteria, &snippet("")).unwrap();
        let passes = min <= 3.0 && 3.0 <= max;
        prop_assert_eq!(judged.verdict == Verdict::Pass, passes);
        prop_assert_eq!(judged.misses.len(), usize::from(!passes));
        for miss in judged.misses {
            prop_assert_eq!((miss.min, miss.max, miss.value), (Some(min), Some(max), Some(3.0)));
        }
    }
}
