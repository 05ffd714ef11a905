use super::super::saved::tests::{document, error, noisy, result, saved};
use super::super::{Limits, compare};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A comparison in which everything occurs: worse, better, within a limit, undecided, not compared, failed and added.
fn comparison(name: &str) -> Comparison {
    let wide: Vec<u64> = (0..10).map(|run| 1000 + 10 * run).collect();
    let other: Vec<u64> = wide.iter().map(|value| value + 20).collect();
    let job = |digest: &str| {
        let item = |line: u32| json!({ "line": line, "digest": "0x1" });
        json!({ "name": "j", "file": "./jobs/a,b.toml", "text": digest, "items":
            [item(4), item(8), item(12), item(16), item(20)], "limits": { "stores": 1 } })
    };
    let report = |digest: &str, records: Vec<Value>| {
        let mut value = document(records);
        value["run"]["job"] = job(digest);
        saved(&value)
    };
    let mut gone = result(2, "c", 1.0, 1.0);
    gone["metrics"].as_array_mut().unwrap().pop();
    let old = report(
        "0x1",
        vec![
            result(0, name, 3.0, 9.0),
            noisy(1, "wide", [&[100; 10], &wide], false),
            result(2, "c", 1.0, 1.0),
            result(3, "d", 1.0, 1.0),
        ],
    );
    let new = report(
        "0x2",
        vec![
            result(0, name, 4.5, 8.0),
            noisy(1, "wide", [&[100; 10], &other], false),
            gone,
            error(3, "d", "snippet_fault"),
            result(4, "e", 1.0, 1.0),
        ],
    );
    let limits = Limits { job: new.run.job.as_ref().unwrap().limits.clone(), ..Limits::default() };
    compare(&old, &new, &limits, 0.99).unwrap()
}

fn shown(name: &str, format: CompareFormat) -> String {
    let text = render(&comparison(name), format, false, Width::default());
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn the_table_says_everything_that_is_not_the_same() {
    let table = shown("a", CompareFormat::Table);
    for part in [
        "old: a.json\nnew: a.json\n",
        "differs: job text: digest 0x1, now digest 0x2\n",
        "test: 1 figure varies from run to run: judged by the interval of the shift (Mann-Whitney U test); all these \
         intervals hold together with 99 %\n",
        "FAILED: d: in the new report: it did\n",
        "added: e\n",
        "undecided: tsc: only the minimum and maximum of the runs are known",
        "not compared: loads: the new report does not have this figure; in c\n",
        "WORSE: figures: 1 worse, 1 better, 1 undecided, 2 equal, 1 not compared; items: 1 failed, 1 added\n",
    ] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    let line = |of: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(of))
            .unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("tsc "), "tsc 3 4.5 +1.5 +50.00 % 0 more WORSE");
    assert_eq!(line("loads "), "loads 9 8 -1 -11.11 % 0 more better");
    // What is equal is shown on demand.
    let all = render(&comparison("a"), CompareFormat::Table, true, Width::default());
    assert!(all.contains("equal") && all.lines().count() > table.lines().count(), "{all}");
}

#[test]
fn json_has_every_figure() {
    let value: Value = serde_json::from_str(&shown("a", CompareFormat::Json)).unwrap();
    assert_eq!((&value["worse"], &value["exit_code"]), (&json!(true), &json!(1)));
    let tsc = &value["items"][0]["figures"][0];
    assert_eq!(
        (&tsc["name"], &tsc["old"], &tsc["new"], &tsc["change"]),
        (&json!("tsc"), &json!(3.0), &json!(4.5), &json!(1.5))
    );
    assert_eq!(
        (&tsc["outcome"], &tsc["worse"], &tsc["unit"]),
        (&json!("worse"), &json!("more"), &json!("TSC ticks"))
    );
    let wide = &value["items"][1]["figures"][0];
    assert!(wide["interval"][0].as_f64().unwrap() < 0.0 && wide["reason"].is_string(), "{wide}");
    assert_eq!(value["items"].as_array().unwrap().len(), 5);
    assert_eq!(value["differences"][0]["what"], "job text");
}

#[test]
fn markdown_has_a_table_of_what_changed() {
    let text = shown("a|b", CompareFormat::Markdown);
    for part in [
        "### barecount: worse\n",
        "| job text | `digest 0x1` | `digest 0x2` |\n",
        "| `a\\|b` | `tsc` | 3 | 4.5 | +1.5 | +50.00 % |  | **worse** |\n",
        "- FAILED: `d`: `in the new report: it did`\n",
        "- added: `e`\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn junit_has_a_suite_for_each_item_and_a_failure_for_what_got_worse() {
    let text = shown("a<b>&\"c\"", CompareFormat::Junit);
    let report = quick_junit::Report::deserialize_from_str(&text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let counts = |suite: &quick_junit::TestSuite| {
        let is_skipped = |case: &&quick_junit::TestCase| {
            matches!(case.status, quick_junit::TestCaseStatus::Skipped { .. })
        };
        let skipped = suite.test_cases.iter().filter(is_skipped).count();
        [suite.tests, suite.failures, suite.errors, skipped]
    };
    let of = |name: &str| {
        let suite = report.test_suites.iter().find(|suite| suite.name.as_str() == name);
        counts(suite.unwrap_or_else(|| panic!("{name}: {text}")))
    };
    assert_eq!(of("a<b>&\"c\""), [2, 1, 0, 0]);
    assert_eq!(of("wide"), [2, 0, 0, 1]);
    assert_eq!(of("d"), [1, 0, 1, 0]);
    assert!(text.contains("<skipped message=\"added\"/>"), "nothing is to be said of it: {text}");
    assert!(
        text.contains(
            "tsc: 3 to 4.5 TSC ticks (+1.5, +50.00 %); WORSE, more is worse, by 0 allowed"
        ),
        "{text}"
    );
}

#[test]
fn services_get_the_new_figures_under_names_of_their_own() {
    let list: Value =
        serde_json::from_str(&shown("a", CompareFormat::CustomSmallerIsBetter)).unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(list[0]["name"], "a / tsc");
    assert_eq!((&list[0]["unit"], &list[0]["value"]), (&json!("TSC ticks"), &json!(4.5)));
    let wide = list.iter().find(|one| one["name"] == "wide / tsc").unwrap();
    assert_eq!(wide["range"], "9.2 to 10.1");
    assert!(list.iter().all(|one| one["value"].is_number() && one["unit"].is_string()));
    let bencher: Value = serde_json::from_str(&shown("a", CompareFormat::Bencher)).unwrap();
    assert_eq!(bencher["a"]["tsc"], json!({ "value": 4.5 }));
    assert_eq!(
        bencher["wide"]["tsc"],
        json!({ "value": 9.65, "lower_value": 9.2, "upper_value": 10.1 })
    );
    assert!(bencher.get("d").is_none(), "it has no figures: {bencher}");
}

/// The first figures of an item are where its history begins.
#[test]
fn services_get_the_figures_of_items_that_are_new() {
    let old = saved(&document(vec![result(0, "a", 1.0, 1.0), error(1, "b", "snippet_fault")]));
    let mut value = document(vec![
        result(0, "a", 1.0, 1.0),
        result(1, "b", 2.0, 1.0),
        result(2, "c", 3.0, 4.0),
    ]);
    let limits = json!({ "loads": { "by": 0, "worse": "less" } });
    value["run"]["job"] =
        json!({ "name": "j", "file": "j.toml", "text": "0x1", "items": [], "limits": limits });
    let new = saved(&value);
    let limits = Limits { job: new.run.job.as_ref().unwrap().limits.clone(), ..Limits::default() };
    let comparison = compare(&old, &new, &limits, 0.99).unwrap();
    let states: Vec<ItemState> = comparison.items.iter().map(|item| item.state).collect();
    assert_eq!(states, [ItemState::Both, ItemState::Recovered, ItemState::Added]);
    let shown = |format| {
        let text = render(&comparison, format, false, Width::default());
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let bencher = shown(CompareFormat::Bencher);
    assert_eq!(bencher["b"]["tsc"], json!({ "value": 2.0 }));
    assert_eq!(bencher["c"]["loads"], json!({ "value": 4.0 }));
    let list = shown(CompareFormat::CustomSmallerIsBetter);
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a / tsc", "b / tsc", "c / tsc"], "of loads less is worse");
    // Nothing else tells them: they were compared with nothing.
    let json = shown(CompareFormat::Json);
    assert_eq!(json["items"][2]["figures"], json!([]));
    assert!(json["items"][2].get("first").is_none(), "{json}");
    assert_eq!(summary(&comparison), "figures: 2 equal; items: 1 recovered, 1 added");
}

#[test]
fn a_number_after_a_name_gives_no_other_items_name() {
    let names = ["a", "a", "a (2)", "a", "a (2)"];
    let items = names.iter().zip(0..).map(|(name, item)| result(item, name, 1.0, 1.0));
    let one = saved(&document(items.collect()));
    let comparison = compare(&one, &one, &Limits::default(), 0.99).unwrap();
    let text = render(&comparison, CompareFormat::CustomSmallerIsBetter, false, Width::default());
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .filter_map(|name| name.strip_suffix(" / tsc"))
        .collect();
    assert_eq!(names, ["a", "a (3)", "a (2)", "a (4)", "a (2) (2)"]);
}

#[test]
fn annotations_stand_beside_the_jobs_lines() {
    let text = shown("50%: a,b\nc", CompareFormat::Annotations);
    let first = "::error file=jobs/a%2Cb.toml,line=4,title=50%25%3A a%2Cb%0Ac%3A worse::tsc: 3 to 4.5 TSC ticks (+1.5, \
                 +50.00 %25); WORSE, more is worse, by 0 allowed\n";
    assert!(text.starts_with(first), "{text}");
    for part in [
        "::notice file=jobs/a%2Cb.toml,line=4,title=50%25%3A a%2Cb%0Ac%3A better::loads: 9 to 8",
        "::error file=jobs/a%2Cb.toml,line=16,title=d%3A FAILED::in the new report: it did\n",
        "::notice title=the reports differ::job text: digest 0x1, now digest 0x2%0Athe job's limit of `stores` has no effect",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_holds_for_many_items_is_told_once() {
    let with = |digest: &str| {
        let names = (0..8).map(|item| result(item, &format!("n{item}"), 1.0, 1.0));
        let mut value = document(names.collect());
        let items: Vec<Value> = (0..8).map(|_| json!({ "digest": digest })).collect();
        value["run"]["job"] = json!({ "name": "j", "file": "j.toml", "items": items });
        saved(&value)
    };
    let comparison = compare(&with("0x1"), &with("0x2"), &Limits::default(), 0.99).unwrap();
    let shown = |format| render(&comparison, format, false, Width::default());
    let table = anstream::adapter::strip_str(&shown(CompareFormat::Table)).to_string();
    assert!(
        table.contains("item: n0, n1, n2, n3, n4 and 3 more: its code or its options"),
        "{table}"
    );
    assert!(
        shown(CompareFormat::Markdown)
            .contains("- `n0`, `n1`, `n2`, `n3`, `n4` and 3 more: its code")
    );
}

#[test]
fn long_names_are_cut_for_bencher_and_stay_apart() {
    let (a, b) = ("x".repeat(100), "x".repeat(99) + "y");
    let mut record = result(0, "item", 1.0, 1.0);
    record["metrics"][0]["event"] = json!(a);
    record["metrics"][1]["event"] = json!(b);
    let one = saved(&document(vec![record]));
    let comparison = compare(&one, &one, &Limits::default(), 0.99).unwrap();
    let value: Value =
        serde_json::from_str(&render(&comparison, CompareFormat::Bencher, false, Width::default()))
            .unwrap();
    let names: Vec<&String> = value["item"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.chars().count() == 64), "{names:?}");
}

#[test]
fn figures_have_as_many_digits_as_they_take() {
    let seen = [1.0, 0.25, 1.0 / 3.0, 1e-9, 1.5e-6, 0.0, -0.0, 12345678.5].map(number);
    let expected = ["1", "0.25", "0.333333", "1.00e-9", "1.50e-6", "0", "0", "12345678.5"];
    assert_eq!(seen, expected);
    assert_eq!([signed(2.0), signed(-2.0), signed(0.0)], ["+2", "-2", "0"]);
}

#[test]
fn figures_that_differ_are_never_shown_alike() {
    use super::super::judge::Compared;
    use crate::limits::Worse;
    let compared = Compared {
        outcome: Outcome::Worse,
        change: 1e-7,
        interval: None,
        worse: Worse::More,
        limit: 1.5e-8,
        reason: None,
    };
    let figure = FigureCompared {
        name: "tsc".into(),
        unit: "ticks",
        old: Some(4.0),
        new: Some(4.000_000_1),
        new_range: None,
        compared,
    };
    assert_eq!(both(&figure), ["4", "4.0000001"]);
    let text = sentence(&figure);
    let expected =
        "tsc: 4 to 4.0000001 ticks (+1.00e-7, +0.00 %); WORSE, more is worse, by 1.50e-8 allowed";
    assert_eq!(text, expected);
    let gone = FigureCompared { new: None, ..figure };
    assert_eq!(both(&gone), ["4", ""]);
    assert!(sentence(&gone).starts_with("tsc: 4 to nothing ticks"));
}

proptest! {
    // Each case renders a comparison eight times.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a name has, no form of it gives a terminal orders, and each is what its readers read.
    #[test]
    fn no_name_breaks_a_form(name in "\\PC{0,20}|[\\x00-\\x7f]{1,20}") {
        use crate::text::is_order;
        for format in [CompareFormat::Table, CompareFormat::Markdown, CompareFormat::Annotations] {
            let text = shown(&name, format);
            prop_assert!(!text.contains(|c| is_order(c) && c != '\n'), "{:?}", text);
        }
        let annotations = shown(&name, CompareFormat::Annotations);
        prop_assert!(annotations.lines().all(|line| {
            ["::error ", "::notice ", "::warning "].iter().any(|level| line.starts_with(level))
        }), "{}", annotations);
        for format in [CompareFormat::Json, CompareFormat::Bencher, CompareFormat::CustomSmallerIsBetter] {
            prop_assert!(serde_json::from_str::<Value>(&shown(&name, format)).is_ok());
        }
        let junit = shown(&name, CompareFormat::Junit);
        prop_assert!(quick_junit::Report::deserialize_from_str(&junit).is_ok(), "{}", junit);
    }
}
