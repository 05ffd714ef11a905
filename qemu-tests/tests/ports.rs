//! Ports of instruction forms: what is found is what the emulated PMU was given.

use qemu_tests::xtask;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// No class that blocks lacks, but for stores.
const MAP: &str = "ports=alu:0156/shift:06/mul:1/lea:15/bit:1/vec:015/shuffle:5/fp:01/load:23/sta:237/std:4/div:0+2*0156/fdiv:0,issue=6";

const JOB: &str = r#"version = 1
allow-uncounted = true
[defaults]
runs = 1
warmup = 0
unroll = 10
events = ["cycles"]
[[characterise]]
forms = ["add r64, r64", "imul r64, m64", "div r64", "mov m64, r64", "paddd xmm, m128"]
ports = true
"#;

/// What the report says of each form's ports.
fn ports(folder: &Path, pmu: &str) -> HashMap<String, Value> {
    std::fs::write(folder.join("job.toml"), JOB).unwrap();
    let run = [
        "run",
        "job.toml",
        "--timeout",
        "500",
        "--format",
        "json",
        "--out",
        "ports.json",
        "--pmu",
        pmu,
    ];
    let called = xtask(folder, &run);
    assert_eq!(called.code, 0, "{}", called.err);
    let text = std::fs::read_to_string(folder.join("ports.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let rows = json["forms"].as_array().unwrap();
    let of = |row: &Value| (row["form"].as_str().unwrap().to_string(), row["ports"].clone());
    rows.iter().map(of).collect()
}

/// Stores are on ports that nothing else has, so theirs are not told.
fn store_is_not_told(found: &HashMap<String, Value>) {
    let store = &found["mov m64, r64"];
    assert_eq!(store["usage"], Value::Null, "{store:#}");
    let reason = store["reason"].as_str().unwrap();
    assert!(reason.contains("only 0 of its 2 micro-operations"), "{reason}");
}

#[test]
fn d2_ports_of_forms_are_those_that_the_model_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let found = ports(folder.path(), &format!("skylake,{MAP}"));
    for (form, usage) in [
        ("add r64, r64", "1*p0156"),
        ("imul r64, m64", "1*p1+1*p23"),
        ("div r64", "1*p0+2*p0156"),
        ("paddd xmm, m128", "1*p015+1*p23"),
        ("nop", ""),
        ("shl r64, imm8", "1*p06"),
        ("pshufd xmm, xmm, imm8", "1*p5"),
        ("mov r64, m64", "1*p23"),
    ] {
        assert_eq!(found[form]["usage"], usage, "{form}: {:#}", found[form]);
        assert_eq!(found[form]["by"], "events");
    }
    store_is_not_told(&found);
    let called = xtask(folder.path(), &["instructions", "ports.json", "--format", "xml"]);
    assert_eq!(called.code, 0, "{}", called.err);
    for part in ["ports=\"1*p1+1*p23\"", "ports=\"1*p0+2*p0156\"", "ports=\"1*p0156\""] {
        assert!(called.out.contains(part), "{part}: {}", called.out);
    }
    let called = xtask(folder.path(), &["instructions", "ports.json", "--format", "csv"]);
    assert!(called.out.contains(",1*p1+1*p23,"), "{}", called.out);
}

/// No AMD processor has events of ports: the sets have sizes and instructions, and no numbers.
#[test]
fn d2_without_events_of_ports_sets_are_told_by_size_and_instruction() {
    let folder = tempfile::tempdir().unwrap();
    let found = ports(folder.path(), &format!("zen4,{MAP}"));
    let sets = |form: &str| -> Vec<(u64, &str)> {
        let sets = found[form]["sets"].as_array().unwrap().iter();
        sets.map(|set| (set["ports"].as_u64().unwrap(), set["form"].as_str().unwrap())).collect()
    };
    for (form, usage, expected) in [
        ("add r64, r64", "1*I", vec![(4, "mov r32, imm32")]),
        ("imul r64, m64", "1*A+1*F", vec![(1, "imul r64, r64"), (2, "mov r64, m64")]),
        ("div r64", "1*C+2*I", vec![(1, "divps xmm, xmm"), (4, "mov r32, imm32")]),
        ("addps xmm, xmm", "1*G", vec![(2, "addps xmm, xmm")]),
    ] {
        assert_eq!(found[form]["usage"], usage, "{form}: {:#}", found[form]);
        assert_eq!(sets(form), expected, "{form}");
        assert_eq!(found[form]["by"], "throughput");
    }
    // Ports 0 and 1 have 0 (DIVPS) and 1 (IMUL) within; 0, 1, 5 and 6 have all but the loads.
    assert_eq!(found["addps xmm, xmm"]["sets"][0]["contains"], Value::from(vec!["A", "C"]));
    let all = &found["add r64, r64"]["sets"][0]["contains"];
    assert_eq!(*all, Value::from(vec!["A", "B", "C", "D", "E", "G", "H"]));
    // Three ports and two: whether they share one is not measured.
    let reason = found["paddd xmm, m128"]["reason"].as_str().unwrap();
    assert!(reason.contains("two sets of ports"), "{reason}");
    store_is_not_told(&found);
    let called = xtask(folder.path(), &["instructions", "ports.json", "--format", "xml"]);
    assert!(called.code == 0 && !called.out.contains("ports="), "{called:#?}");
}
