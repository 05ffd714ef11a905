//! PERF_METRICS beside samples on emulated Ice Lake and Sapphire Rapids: shares of the same code are those that a count has of it.

use crate::sampled_whole::{job, json};
use qemu_tests::xtask;
use serde_json::Value;
use std::fs;

/// A retiring slot, front-end slots of a taken branch, and back-end slots.
const CODE: &str = "imul rax, rax; jmp 2f; 2: nop";
const FIELDS: [&str; 5] = [
    "topdown.slots:u",
    "topdown-retiring:u",
    "topdown-bad-spec:u",
    "topdown-fe-bound:u",
    "topdown-be-bound:u",
];

fn record<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let all = document["records"].as_array().unwrap();
    all.iter().find(|record| record["type"] == kind).unwrap_or_else(|| panic!("{document:#}"))
}

fn task(kind: &str) -> String {
    format!("[[{kind}.task]]\nname = \"t\"\nasm = \"{CODE}\"\nturns = 20000\nring = 3\n")
}

fn events(more: &[&str]) -> String {
    let all: Vec<String> = more.iter().chain(&FIELDS).map(|event| format!("\"{event}\"")).collect();
    format!("events = [{}]\ntick-ns = 0\n", all.join(", "))
}

#[test]
fn s3_shares_beside_samples_are_those_of_a_count_of_the_same_code() {
    let count = format!("[[count]]\n{}together = true\n{}", events(&[]), task("count"));
    for (pmu, precise) in [("icelake", false), ("icelake", true), ("sapphirerapids", false)] {
        let keys = format!("period = 997\nprecise = {precise}\n");
        let sample = format!("[[sample]]\n{}{keys}{}", events(&["r00c0:u"]), task("sample"));
        let document = json(&job(&format!("{count}{sample}"), pmu, "json"));
        let counted = record(&document, "count");
        let of_count = |event: &str| {
            let all = counted["events"].as_array().expect("events").iter();
            let found = all.clone().find(|one| one["event"] == event);
            found.unwrap_or_else(|| panic!("{event}: {counted:#}"))["sum"]["raw"].clone()
        };
        let sampled = record(&document, "sample");
        let [instructions, shares @ ..] = &sampled["events"].as_array().unwrap()[..] else {
            panic!("{sampled:#}")
        };
        assert!(instructions["samples"].as_u64().unwrap() >= 80, "{sampled:#}");
        let names: Vec<&str> = shares.iter().map(|one| one["event"].as_str().unwrap()).collect();
        assert_eq!(names, FIELDS, "{sampled:#}");
        for one in shares {
            let event = one["event"].as_str().unwrap();
            let (ours, theirs) = (one["witness"].as_u64().unwrap(), of_count(event));
            let theirs = theirs.as_u64().unwrap_or_else(|| panic!("{counted:#}"));
            // Each entry and exit of ring 3 has a slot or two of its own, and a share is known to 1/255.
            let slots = shares[0]["witness"].as_u64().unwrap();
            assert!(ours.abs_diff(theirs) <= slots / 100, "{pmu}: {event}: {ours}, {theirs}");
            assert_eq!(one["period"], 0, "{one:#}");
        }
        assert_eq!(sampled["uncounted"], Value::Null, "{sampled:#}");
    }
}

/// Without being named, the fields are counted that a metric takes, in the rings of what is sampled; each form of a report has them.
#[test]
fn s3_samples_have_the_first_level_of_the_tree() {
    let toml = format!(
        "[[sample]]\nname = \"s\"\nevents = [\"r00c0:u\", \"INT_MISC.UOP_DROPPING:u\"]\nperiod = 997\nmetrics = [\"topdown\"]\ntick-ns = 0\n{}",
        task("sample")
    );
    let document = json(&job(&toml, "sapphirerapids", "json"));
    let rows = document["metrics"][0]["rows"].as_array().expect("rows");
    let value = |name: &str| {
        let found = rows
            .iter()
            .find(|row| row["name"].as_str().is_some_and(|text| text.eq_ignore_ascii_case(name)));
        found.unwrap_or_else(|| panic!("{name}: {rows:#?}"))["value"].as_f64().expect("a value")
    };
    let all = ["Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound"].map(value);
    assert!((all.iter().sum::<f64>() - 100.0).abs() < 1.0, "{rows:#?}");
    // One slot of six retires. Of a turn's five instructions two are taken branches, and none is mispredicted.
    let by_rule = [100.0 / 6.0, 0.0, 5.0 / 6.0 * 40.0, 5.0 / 6.0 * 60.0];
    for (value, expected) in all.into_iter().zip(by_rule) {
        assert!((value - expected).abs() < 1.0, "{value}, {expected}: {rows:#?}");
    }
    let table = job(&toml, "sapphirerapids", "table").out;
    let row = table.lines().find(|line| line.contains("RETIRING")).unwrap_or_default();
    assert!(row.contains("none"), "no period: {table}");
    let csv = job(&toml, "sapphirerapids", "csv").out;
    assert!(csv.contains("counted PERF_METRICS.RETIRING:u,"), "{csv}");
    let tap = job(&toml, "sapphirerapids", "tap").out;
    assert!(tap.contains("counted:") && tap.contains("PERF_METRICS.RETIRING:u"), "{tap}");
}

#[test]
fn c7_s3_a_share_is_refused_where_a_sample_would_be_taken_by_it() {
    let sample = |events: &str| {
        format!("[[sample]]\nasm = \"nop\"\nturns = 20000\nperiod = 997\nevents = [{events}]\n")
    };
    let own = "\"instructions\", { event = \"PERF_METRICS.RETIRING\", period = 5 }";
    let called = job(&sample(own), "icelake", "table");
    called.fails_with(2, &["no sample is taken by it: write the event alone"]);
    let called = job(&sample("\"PERF_METRICS.RETIRING\""), "icelake", "table");
    assert!(called.code == 1 && called.out.contains("no event to sample by"), "{called:#?}");
    // A fault that makes the register overflow at 256 slots.
    let toml = sample("\"instructions\", \"PERF_METRICS.RETIRING\"");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    let fault = ["--pmu", "icelake", "--pmu-fault", "metrics-overflow-early"];
    let called = xtask(folder.path(), &[&["run", "job.toml"], &fault[..]].concat());
    assert!(called.code == 1 && called.out.contains("PERF_METRICS overflowed"), "{called:#?}");
}
