//! Ports of instruction forms: what is found is what the emulated PMU was given.

use qemu_tests::xtask;
use serde_json::Value;
use std::collections::HashMap;

/// A port map in which each class of the blocking instructions that its forms need is there.
const MAP: &str = "ports=alu:0156/shift:06/mul:1/lea:15/bit:1/vec:015/shuffle:5/fp:01/load:23/sta:237/std:4/div:0+2*0156/fdiv:0";

const JOB: &str = r#"version = 1
allow-uncounted = true
[defaults]
runs = 3
warmup = 1
unroll = 10
events = ["cycles"]
[[characterise]]
forms = ["add r64, r64", "add r64, m64", "imul r64, m64", "adc r64, r64", "div r64", "mov m64, r64", "paddd xmm, m128", "nop"]
ports = true
"#;

/// What the report says of each form's ports.
fn ports(pmu: &str) -> HashMap<String, Value> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), JOB).unwrap();
    let run = ["run", "job.toml", "--timeout", "400", "--format", "json", "--pmu", pmu];
    let called = xtask(folder.path(), &run);
    assert_eq!(called.code, 0, "{}", called.err);
    let json: Value = serde_json::from_str(&called.out).unwrap();
    let rows = json["forms"].as_array().unwrap();
    rows.iter()
        .map(|row| (row["form"].as_str().unwrap().to_string(), row["ports"].clone()))
        .collect()
}

#[test]
fn d2_ports_of_forms_are_those_that_the_model_was_given() {
    let found = ports(&format!("skylake,{MAP}"));
    for (form, usage) in [
        ("add r64, r64", "1*p0156"),
        ("add r64, m64", "1*p0156+1*p23"),
        ("imul r64, m64", "1*p1+1*p23"),
        ("adc r64, r64", "1*p0156"),
        ("div r64", "1*p0+2*p0156"),
        ("paddd xmm, m128", "1*p015+1*p23"),
        ("nop", ""),
        ("shl r64, imm8", "1*p06"),
        ("pshufd xmm, xmm, imm8", "1*p5"),
    ] {
        assert_eq!(found[form]["usage"], usage, "{form}: {:#}", found[form]);
        assert_eq!(found[form]["by"], "events");
    }
    let store = &found["mov m64, r64"];
    assert_eq!(store["usage"], Value::Null, "{store:#}");
    let reason = store["reason"].as_str().unwrap();
    assert!(reason.contains("only 0 of its 2 micro-operations"), "{reason}");
}
