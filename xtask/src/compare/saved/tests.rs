use super::*;
use crate::kinds::figures::Spread;
use serde_json::json;

/// A report's document with these records, of a run under icount.
pub(in crate::compare) fn document(records: Vec<Value>) -> Value {
    json!({
        "report": 1,
        "run": { "source": "qemu", "accelerator": "tcg", "boot": "direct", "ticks_per_instruction": 1 },
        "exit_code": 0,
        "records": records,
        "problems": [], "notes": [], "foreign": [],
    })
}

/// A snippet's result with ticks and one event, each the same in ten runs.
pub(in crate::compare) fn result(item: u32, name: &str, ticks: f64, loads: f64) -> Value {
    let metric = |event: &str, value: f64| {
        json!({
            "event": event, "min": value, "median": value, "mean": value, "max": value,
            "deterministic": true,
            "series": [{ "min": 7, "max": 7, "distinct": 1 }, { "min": 8, "max": 8, "distinct": 1 }],
        })
    };
    let mut loads = metric("loads", loads);
    loads["counting"] =
        json!({ "name": "MEM_INST_RETIRED.ALL_LOADS", "counter": "counter 0", "pass": 0 });
    json!({
        "seq": item, "type": "result", "item": item, "name": name, "verdict": "none", "per": 100, "runs": 10,
        "emulated": true, "metrics": [metric("tsc", ticks), loads], "tsc": [0, 1],
    })
}

/// Ticks of a result that vary: the values of the runs of both codes.
pub(in crate::compare) fn noisy(item: u32, name: &str, values: [&[u64]; 2], keep: bool) -> Value {
    let mut value = result(item, name, 0.0, 1.0);
    value["runs"] = json!(values[0].len());
    let series = values.map(|all| {
        let (min, max) = (all.iter().min(), all.iter().max());
        let distinct = all.iter().collect::<std::collections::BTreeSet<_>>().len();
        let mut one = json!({ "min": min, "max": max, "distinct": distinct });
        if keep {
            one["values"] = json!(all);
        }
        one
    });
    let middle = |all: &[u64]| {
        let mut all = all.to_vec();
        all.sort_unstable();
        (all[(all.len() - 1) / 2] + all[all.len() / 2]) as f64 / 2.0
    };
    let ticks = &mut value["metrics"][0];
    ticks["median"] = json!((middle(values[1]) - middle(values[0])) / 100.0);
    ticks["deterministic"] = json!(false);
    ticks["series"] = json!(series);
    value
}

/// An item that ended in an error.
pub(in crate::compare) fn error(item: u32, name: &str, code: &str) -> Value {
    json!({ "seq": item, "type": "error", "code": code, "item": item, "name": name, "text": "it did" })
}

/// The report of a document.
pub(in crate::compare) fn saved(document: &Value) -> Saved {
    parse(document.to_string().as_bytes(), "a.json").unwrap_or_else(|error| panic!("{error}"))
}

fn refused(bytes: &[u8]) -> String {
    parse(bytes, "a.json").map(|saved| saved.items.len()).unwrap_err().to_string()
}

#[test]
fn a_report_is_read_with_its_items_and_what_ended_in_errors() {
    let mut value = document(vec![result(0, "a", 3.0, 1.0), error(1, "b", "snippet_fault")]);
    value["records"][0]["verdict"] = json!("fail");
    value["exit_code"] = json!(1);
    let saved = saved(&value);
    let [item] = &saved.items[..] else { panic!("{:?}", saved.items) };
    assert_eq!((item.kind, &*item.name, item.emulated, item.per), ("result", "a", true, Some(100)));
    let figures: Vec<_> =
        item.figures.iter().map(|one| (&*one.name, one.value, one.spread.clone())).collect();
    assert_eq!(figures, [("tsc", 3.0, Spread::Exact(10)), ("loads", 1.0, Spread::Exact(10))]);
    let [failed] = &saved.failed[..] else { panic!("{:?}", saved.failed) };
    assert_eq!(
        (failed.index, &*failed.name, &*failed.why, failed.skipped),
        (1, "b", "it did", false)
    );
    assert_eq!(saved.missed, ["a"]);
}

#[test]
fn what_is_no_report_is_refused_with_the_reason() {
    let whole = document(vec![result(0, "a", 3.0, 1.0)]).to_string();
    let log = "text\r\n{\"seq\":0,\"type\":\"start\"}\r\n{\"seq\":1}\r\n";
    for (bytes, part) in [
        (&b""[..], "not a complete JSON document: EOF"),
        (b"TAP version 13", "not a complete JSON document"),
        (&whole.as_bytes()[..whole.len() - 1], "EOF while parsing"),
        (b"\xff\xfe", "not a complete JSON document"),
        (log.as_bytes(), "the log of a serial line; `cargo xtask collect"),
        (b"{\"seq\":0,\"type\":\"start\"}", "the log of a serial line"),
        (b"[]", "it is JSON, but no report"),
        (b"{}", "missing field `run`"),
        (b"{\"run\":{},\"exit_code\":0}", "missing field `records`"),
        (b"{\"run\":{},\"exit_code\":999,\"records\":[]}", "invalid value: integer `999`"),
        (b"{\"run\":{\"job\":3},\"exit_code\":0,\"records\":[]}", "invalid type: integer `3`"),
    ] {
        let error = refused(bytes);
        assert!(error.starts_with("a.json: ") && error.contains(part), "{error}");
    }
}

/// Wherever it is cut, it is refused and nothing panics.
#[test]
fn no_cut_of_a_report_is_one() {
    let whole = document(vec![result(0, "a", 3.0, 1.0), error(1, "b", "not_run")]).to_string();
    for end in 0..whole.len() {
        assert!(refused(&whole.as_bytes()[..end]).contains("JSON"), "{end}");
    }
}

#[test]
fn versions_are_looked_at_before_anything_else() {
    let refused = |value: &Value| refused(value.to_string().as_bytes());
    let mut newer = document(vec![]);
    newer["report"] = json!(2);
    newer["records"] = json!("elsewhere");
    assert!(refused(&newer).ends_with("the report has version 2; this barecount knows up to 1"));
    let start = |protocol: u64| {
        json!({ "seq": 0, "type": "start", "program": "barecount", "version": "9", "protocol": protocol,
                "image_base": "0x0", "tsc": [0, 1] })
    };
    let error = refused(&document(vec![start(2), json!({ "type": "unheard of" })]));
    assert!(
        error.contains("the firmware's protocol has version 2; this barecount knows up to 1"),
        "{error}"
    );
    // Those of the first version did not say one, nor their job and tools.
    let mut older = document(vec![start(1), result(0, "a", 1.0, 1.0)]);
    older.as_object_mut().unwrap().remove("report");
    assert_eq!(saved(&older).firmware.as_deref(), Some("9"));
    // A record that a version had otherwise is named.
    let mut other = document(vec![start(1), result(0, "a", 1.0, 1.0)]);
    other["records"][1].as_object_mut().unwrap().remove("per");
    let error = refused(&other);
    assert!(
        error.contains(
            "record 1 (result) cannot be read by this version of barecount: missing field `per`"
        ),
        "{error}"
    );
    other["records"][1] = json!({ "seq": 1, "type": "verse" });
    assert!(refused(&other).contains("record 1 (verse)"), "{}", refused(&other));
}

#[test]
fn a_run_that_did_not_come_to_its_end_is_refused_with_its_reason() {
    let with = |code: u8, change: &dyn Fn(&mut Value)| {
        let mut value = document(vec![result(0, "a", 3.0, 1.0)]);
        value["exit_code"] = json!(code);
        change(&mut value);
        refused(value.to_string().as_bytes())
    };
    let crash = json!({ "seq": 1, "type": "crash", "kind": "panic", "text": "out of memory" });
    for (error, part) in [
        (
            with(3, &|value| value["run"]["complaint"] = json!("no end record within 60 s")),
            "no end record within 60 s",
        ),
        (
            with(130, &|value| value["run"]["interrupted"] = json!("SIGINT")),
            "interrupted by SIGINT",
        ),
        (with(3, &|value| value["problems"] = json!(["record 4 is lost"])), "record 4 is lost"),
        (with(3, &|value| value["records"] = json!([crash])), "the firmware failed: out of memory"),
        (with(77, &|_| {}), "nothing could run"),
    ] {
        assert!(
            error.contains("its run did not finish (exit code ") && error.contains(part),
            "{error}"
        );
    }
}
