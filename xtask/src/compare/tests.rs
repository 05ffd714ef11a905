use super::judge::Outcome;
use super::limits::LimitsFile;
use super::saved::tests::{document, error, noisy, result, saved};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn compared(old: &Value, new: &Value, limits: &str) -> Result<Comparison, String> {
    let file = match limits {
        "" => LimitsFile::default(),
        text => LimitsFile::parse(text, "limits.toml").unwrap_or_else(|error| panic!("{error}")),
    };
    let (old, new) = (saved(old), saved(new));
    let job = new.run.job.as_ref().map(|job| job.limits.clone()).unwrap_or_default();
    compare(&old, &new, &Limits { job, file }, 0.99).map_err(|error| error.to_string())
}

fn of(old: &Value, new: &Value) -> Comparison {
    compared(old, new, "").unwrap_or_else(|error| panic!("{error}"))
}

/// Every figure and item that did not come out the same.
fn told(comparison: &Comparison) -> Vec<String> {
    let mut all = Vec::new();
    for item in &comparison.items {
        if item.state != ItemState::Both {
            all.push(format!("{} {:?}", item.name, item.state));
        }
        let other = item.figures.iter().filter(|one| one.compared.outcome != Outcome::Equal);
        all.extend(
            other.map(|one| format!("{} {} {:?}", item.name, one.name, one.compared.outcome)),
        );
    }
    all
}

#[test]
fn x4_equal_reports_are_equal_and_one_change_is_found_and_nothing_else() {
    let old = document(vec![result(0, "a", 3.0, 1.0), result(1, "b", 4.0, 2.0)]);
    let same = of(&old, &old);
    assert_eq!((told(&same), same.exit_code()), (vec![], 0));
    assert_eq!(same.count(Outcome::Equal), 4);
    let new = document(vec![result(0, "a", 3.0, 1.0), result(1, "b", 4.0, 3.0)]);
    let worse = of(&old, &new);
    assert_eq!((told(&worse), worse.exit_code()), (vec!["b loads Worse".to_string()], 1));
    let better = of(&new, &old);
    assert_eq!((told(&better), better.exit_code()), (vec!["b loads Better".to_string()], 0));
}

#[test]
fn items_that_came_went_or_failed_are_told() {
    let old = document(vec![
        result(0, "a", 3.0, 1.0),
        result(1, "b", 4.0, 2.0),
        error(2, "c", "snippet_fault"),
        result(3, "s", 1.0, 1.0),
    ]);
    let mut records =
        vec![result(0, "a", 3.0, 1.0), result(1, "new", 9.0, 9.0), result(2, "c", 1.0, 1.0)];
    records.push(error(3, "s", "skipped"));
    let comparison = of(&old, &document(records));
    assert_eq!(told(&comparison), ["new Added", "c Recovered", "b Removed", "s NoFigures"]);
    assert_eq!(comparison.exit_code(), 0);
    // Who had figures and ends in an error got worse, whatever the limits.
    let failed = document(vec![
        result(0, "a", 3.0, 1.0),
        error(1, "b", "snippet_fault"),
        error(2, "c", "time_limit"),
        result(3, "s", 1.0, 1.0),
    ]);
    let comparison = of(&old, &failed);
    assert_eq!(told(&comparison), ["b Failed", "c NoFigures"]);
    assert_eq!(comparison.exit_code(), 1);
    let b = comparison.items.iter().find(|item| item.name == "b").unwrap();
    assert_eq!(b.notes, ["in the new report: it did"]);
    // A name of another kind is another item.
    let mut exact = json!({ "type": "exact", "item": 0, "name": "a", "per": 1, "counts": [], "opcodes": [], "listing": [],
                            "listed": 0, "tsc": [0, 1] });
    exact["counts"] = json!([{ "event": "instructions", "value": 1.0, "totals": [1, 2] }]);
    let comparison = of(&old, &document(vec![exact, result(1, "b", 4.0, 2.0)]));
    assert_eq!(told(&comparison), ["a Added", "a Removed", "s Removed", "c Removed"]);
}

#[test]
fn items_of_one_name_belong_together_in_their_order() {
    let old = document(vec![result(0, "a", 1.0, 1.0), result(1, "a", 2.0, 2.0)]);
    let new = document(vec![
        result(0, "a", 1.0, 1.0),
        result(1, "a", 2.0, 2.5),
        result(2, "a", 3.0, 3.0),
    ]);
    assert_eq!(told(&of(&old, &new)), ["a loads Worse", "a Added"]);
}

#[test]
fn nothing_in_common_and_nothing_to_compare_are_refused() {
    let (a, b) =
        (document(vec![result(0, "a", 1.0, 1.0)]), document(vec![result(0, "b", 1.0, 1.0)]));
    let error = compared(&a, &b, "").map(|_| ()).unwrap_err();
    assert!(error.ends_with("have no item in common: `a` there, `b` here"), "{error}");
    let none = compared(&document(vec![]), &a, "").map(|_| ()).unwrap_err();
    assert!(none.ends_with("none there, `a` here"), "{none}");
    let mut other = a.clone();
    other["run"]["ticks_per_instruction"] = json!(64);
    other["records"][0]["emulated"] = json!(false);
    let error = compared(&a, &other, "").map(|_| ()).unwrap_err();
    assert!(
        error
            .contains("nothing of them can be compared: different units: TSC ticks are 1 for each"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_compared_is_named_and_is_not() {
    let old = document(vec![result(0, "a", 3.0, 1.0), result(1, "b", 1.0, 1.0)]);
    let reason = |change: &dyn Fn(&mut Value), figure: &str| {
        let mut new = old.clone();
        change(&mut new);
        let comparison = of(&old, &new);
        let a = comparison.items.into_iter().find(|item| item.name == "a").unwrap();
        let one = a.figures.into_iter().find(|one| one.name == figure).unwrap();
        assert_eq!(one.compared.outcome, Outcome::NotCompared);
        one.compared.reason.unwrap()
    };
    let of_loads =
        |value: &mut Value| value["records"][0]["metrics"][1]["counting"]["name"] = json!("OTHER");
    assert_eq!(
        reason(&of_loads, "loads"),
        "different events: MEM_INST_RETIRED.ALL_LOADS in the old report, OTHER in the new one"
    );
    let emulated = |value: &mut Value| value["records"][0]["emulated"] = json!(false);
    assert_eq!(
        reason(&emulated, "loads"),
        "different events: counted by the emulated PMU in the old report, by a processor in the new one"
    );
    let ticks = |value: &mut Value| value["run"]["ticks_per_instruction"] = json!(64);
    assert!(reason(&ticks, "tsc").starts_with(
        "different units: TSC ticks are 1 for each instruction in the old report, 64"
    ));
    let gone = |value: &mut Value| {
        value["records"][0]["metrics"].as_array_mut().unwrap().pop();
        value["records"][0]["uncounted"] =
            json!([{ "event": "loads", "reason": "no counter is left" }]);
    };
    assert_eq!(
        reason(&gone, "loads"),
        "the new report does not have this figure: no counter is left"
    );
    let renamed = |value: &mut Value| value["records"][0]["metrics"][1]["event"] = json!("stores");
    assert_eq!(reason(&renamed, "stores"), "the old report does not have this figure");
    let per = |value: &mut Value| value["records"][0]["per"] = json!(200);
    let mut new = old.clone();
    per(&mut new);
    assert!(
        of(&old, &new).items[0].notes[0].contains("per 100 executions in the old report, per 200")
    );
}

/// What is added up or counted once is counted by a PMU as well.
#[test]
fn counts_of_several_processors_of_tasks_and_of_samples_have_their_pmu() {
    let loads = result(0, "p", 1.0, 1.0)["metrics"][1].clone();
    let processors = |loads: &Value, emulated: bool| {
        json!({ "type": "processors", "item": 0, "name": "p", "per": 1, "runs": 1, "tsc": [0, 1], "emulated": emulated,
            "processors": [{ "processor": 0, "apic_id": 0, "tsc_offset": 0, "tsc_offset_error": 0, "metrics": [loads],
                             "snapshot_tsc": 0, "snapshot": [] }],
            "sums": [{ "event": "loads", "value": 4.0, "processors": 1 }],
            "start_skew": { "min": 0, "median": 0, "max": 0 }, "snapshot": { "deadline": 0, "skew": 0, "events": [] } })
    };
    let ticks = json!({ "count": 2, "min": 0, "median": 0, "max": 0 });
    let tasks = |emulated: bool| {
        json!({ "type": "tasks", "item": 1, "name": "t", "tasks": [], "switches": 3, "ticks": ticks, "interrupts": [],
            "user_instructions": 77, "emulated": emulated, "tsc": [0, 1] })
    };
    let sample = |emulated: bool| {
        json!({ "type": "sample", "item": 2, "name": "s", "tasks": ["s"], "code": [], "on_full": "drop", "delivery": "fixed",
            "handling": "h", "interrupts": 0, "spurious": 0, "back_to_back": 0, "ticks": 0, "emulated": emulated,
            "capability": { "overflow_interrupt": true, "culprit": "c", "freeze": "f", "skid": "s", "data_address": "d" },
            "events": [{ "event": "loads", "period": 1000, "overflows": 3, "samples": 3, "dropped": 0, "rest": 5 }],
            "tsc": [0, 1] })
    };
    let all = |loads: &Value, emulated| {
        document(vec![processors(loads, emulated), tasks(emulated), sample(emulated)])
    };
    let refused = |new: &Value, name: &str| {
        let comparison = of(&all(&loads, true), new);
        let mut figures = comparison.items.iter().flat_map(|item| &item.figures);
        let one = figures.find(|one| one.name == name).unwrap_or_else(|| panic!("{name}"));
        one.compared.reason.clone().unwrap_or_default()
    };
    let real = all(&loads, false);
    for name in ["loads, sum", "instructions:u", "loads", "loads, overflows"] {
        let reason = refused(&real, name);
        assert!(
            reason.starts_with("different events: counted by the emulated"),
            "{name}: {reason}"
        );
    }
    // Switches are the scheduler's.
    assert_eq!(refused(&real, "switches"), "");
    let mut other = loads.clone();
    other["counting"]["name"] = json!("OTHER");
    let reason = refused(&all(&other, true), "loads, sum");
    assert!(reason.ends_with("in the old report, OTHER in the new one"), "{reason}");
}

/// The job's digests state which item's code is another, and its lines and limits come along.
#[test]
fn the_job_says_which_code_changed_where_it_stands_and_what_its_limits_are() {
    let with = |digest: &str, loads: f64, limits: Value| {
        let mut value = document(vec![result(0, "a", 3.0, loads), result(1, "b", 1.0, loads)]);
        value["run"]["job"] = json!({ "name": "j", "file": "j.toml", "text": digest, "limits": { "loads": 1 },
            "items": [{ "line": 7, "digest": digest, "limits": limits }, { "line": 9, "digest": "0x1" }] });
        value
    };
    let comparison = of(&with("0x1", 1.0, json!({})), &with("0x2", 2.5, json!({ "loads": 2 })));
    let [a, b] = &comparison.items[..] else { panic!() };
    assert_eq!((a.line, b.line, comparison.file.as_deref()), (Some(7), Some(9), Some("j.toml")));
    assert_eq!(a.notes, ["its code or its options are not the same"]);
    assert_eq!(b.notes, [""; 0]);
    assert_eq!(comparison.differences[0].what, "job text");
    // The item's own limit goes before the job's, the file's before both.
    assert_eq!(told(&comparison), ["a loads WithinLimit", "b loads Worse"]);
    let file = "[[item]]\nname = 'b'\nlimits = { loads = '200 %' }";
    let comparison =
        compared(&with("0x1", 1.0, json!({})), &with("0x1", 2.5, json!({})), file).unwrap();
    assert_eq!(told(&comparison), ["a loads Worse", "b loads WithinLimit"]);
}

#[test]
fn a_limits_file_that_is_for_nothing_is_refused() {
    let old = document(vec![result(0, "a", 3.0, 1.0)]);
    let error = compared(&old, &old, "[limits]\ncycels = 1").map(|_| ()).unwrap_err();
    assert!(error.starts_with("limits.toml: `cycels` of [limits] has no effect"), "{error}");
    // What the machine could not count is something; and a job is for other machines too.
    let mut uncounted = old.clone();
    uncounted["records"][0]["uncounted"] = json!([{ "event": "cycles", "reason": "no counter" }]);
    assert!(compared(&uncounted, &uncounted, "[limits]\ncycles = 1").is_ok());
    uncounted["run"]["job"] =
        json!({ "name": "j", "file": "j", "items": [], "limits": { "cycels": 1, "cyc*": 1 } });
    let notes = of(&uncounted, &uncounted).notes;
    assert_eq!(notes, ["the job's limit of `cycels` has no effect in these reports"]);
}

#[test]
fn ticks_that_vary_are_judged_by_their_runs_and_by_summaries_as_far_as_these_tell() {
    let spread = |base: u64| (0..10).map(|run| base + run * 10).collect::<Vec<u64>>();
    let of_runs = |more: u64, keep| {
        document(vec![noisy(0, "a", [&[100; 10], &spread(more)], keep), result(1, "b", 1.0, 1.0)])
    };
    let outcome = |old: &Value, new: &Value| {
        let comparison = of(old, new);
        assert_eq!(comparison.test.figures, 1);
        comparison.items[0].figures[0].compared.clone()
    };
    let (base, near, far) = (of_runs(1000, true), of_runs(1020, true), of_runs(1200, true));
    assert_eq!(outcome(&base, &near).outcome, Outcome::NoChangeShown);
    let worse = outcome(&base, &far);
    let [low, high] = worse.interval.unwrap();
    // By 200 ticks in 100 executions.
    assert!(worse.outcome == Outcome::Worse && low > 1.0 && high < 3.0, "{worse:?}");
    let (base, near, far) = (of_runs(1000, false), of_runs(1020, false), of_runs(1200, false));
    let untold = outcome(&base, &near);
    assert!(untold.outcome == Outcome::Undecided && untold.reason.unwrap().contains("--values"));
    assert_eq!(outcome(&base, &far).outcome, Outcome::Worse);
}

/// Reports with items of unique names in any order, some of which vary or ended in errors.
fn any_report() -> impl Strategy<Value = Vec<Value>> {
    let one = (0u32..8, 0u64..4, 0u64..4, 0u32..4);
    proptest::collection::vec(one, 1..8).prop_map(|all| {
        let mut seen = BTreeSet::new();
        let all = all.into_iter().filter(|(name, ..)| seen.insert(*name));
        let all = all.zip(0..).map(|((name, ticks, loads, kind), index)| {
            let name = format!("item {name}");
            let values: Vec<u64> = (0..10).map(|run| 500 + 300 * ticks + run).collect();
            match kind {
                0 => error(index, &name, "snippet_fault"),
                1 => noisy(index, &name, [&[100; 10], &values], true),
                _ => result(index, &name, ticks as f64, loads as f64),
            }
        });
        all.collect()
    })
}

fn turned(mut records: Vec<Value>) -> Vec<Value> {
    records.reverse();
    for (index, record) in records.iter_mut().enumerate() {
        record["item"] = json!(index);
    }
    records
}

fn swapped(state: ItemState) -> ItemState {
    match state {
        ItemState::Added => ItemState::Removed,
        ItemState::Removed => ItemState::Added,
        ItemState::Failed => ItemState::Recovered,
        ItemState::Recovered => ItemState::Failed,
        other => other,
    }
}

fn sorted(comparison: Comparison) -> Vec<ItemCompared> {
    let mut items = comparison.items;
    items.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    items
}

proptest! {
    /// Whatever becomes of a document, it is refused or compared, and shown.
    #[test]
    fn no_change_of_a_document_makes_anything_panic(
        records in any_report(), at in any::<proptest::sample::Index>(), to in "[0-9a-z\"{}\\[\\],:-]{0,8}", length in 0usize..8
    ) {
        let old = document(records);
        let mut text = old.to_string().into_bytes();
        let start = at.index(text.len());
        let end = (start + length).min(text.len());
        text.splice(start..end, to.into_bytes());
        let Ok(new) = saved::parse(&text, "new") else { return Ok(()) };
        let Ok(comparison) = compare(&saved(&old), &new, &Limits::default(), 0.99) else { return Ok(()) };
        let _ = render::render(&comparison, crate::cli::CompareFormat::Table, true, crate::primitives::table::Width::default());
        let _ = render::render(&comparison, crate::cli::CompareFormat::Json, true, crate::primitives::table::Width::default());
    }

    #[test]
    fn a_report_does_not_differ_from_itself(records in any_report()) {
        prop_assume!(records.iter().any(|one| one["type"] == "result"));
        let report = document(records);
        let comparison = of(&report, &report);
        prop_assert_eq!(comparison.exit_code(), 0);
        let outcomes = [Outcome::Equal, Outcome::NoChangeShown].map(|outcome| comparison.count(outcome));
        let all: usize = comparison.items.iter().map(|item| item.figures.len()).sum();
        prop_assert_eq!(outcomes.iter().sum::<usize>(), all);
    }

    #[test]
    fn the_order_of_items_does_not_matter(old in any_report(), new in any_report()) {
        let there = compared(&document(old.clone()), &document(new.clone()), "");
        let back = compared(&document(turned(old)), &document(turned(new)), "");
        prop_assert_eq!(there.is_ok(), back.is_ok());
        if let (Ok(there), Ok(back)) = (there, back) {
            prop_assert_eq!(there.exit_code(), back.exit_code());
            prop_assert_eq!(sorted(there), sorted(back));
        }
    }

    #[test]
    fn the_other_way_round_everything_is_the_other_way_round(old in any_report(), new in any_report()) {
        let (old, new) = (document(old), document(new));
        let (there, back) = (compared(&old, &new, ""), compared(&new, &old, ""));
        let (Ok(there), Ok(back)) = (there, back) else { return Ok(()) };
        for (one, other) in sorted(there).into_iter().zip(sorted(back)) {
            prop_assert_eq!(&one.name, &other.name);
            prop_assert_eq!(one.state, swapped(other.state));
            for (figure, mirrored) in one.figures.iter().zip(&other.figures) {
                prop_assert_eq!(figure.compared.change, -mirrored.compared.change);
                let expected = match mirrored.compared.outcome {
                    Outcome::Worse => Outcome::Better,
                    Outcome::Better => Outcome::Worse,
                    same => same,
                };
                prop_assert_eq!(figure.compared.outcome, expected);
            }
        }
    }
}
