//! What a job expects of its items, and limits of those that could go on for ever.

use protocol::record::{ErrorCode, Record, Unit};
use qemu_tests::{direct, xtask};
use serde_json::Value;

/// An item of every kind that expects what it comes to, and three that do not.
const JOB: &str = r#"
[defaults]
unroll = 5
[[snippet]]
name = "event"
asm = "mov rax, [r14]; nop"
events = ["instructions", "loads"]
expect = { instructions = 2, loads = { max = 1 }, tsc = 2 }
[[snippet]]
name = "missed"
asm = "nop"
events = ["instructions"]
expect = { instructions = { min = 2, max = 3 } }
[[snippet]]
name = "another processor's"
asm = "nop"
events = ["ex_ret_instr"]
[[snippet]]
name = "allowed"
asm = "nop"
events = ["ex_ret_instr", "instructions"]
expect = { ex_ret_instr = 7, instructions = 1 }
allow-uncounted = true
[[snippet]]
name = "stepped"
asm = "mov rax, [r14]; imul rax, rax"
exact = true
expect = { loads = 1, imul = 1, instructions = 2 }
[[snippet]]
name = "stepped without a counter"
asm = "nop"
events = ["cycles"]
exact = true
[[snippet]]
name = "by cycle"
asm = "nop; nop; mov rax, [r14]; nop"
events = ["loads"]
history = 6
runs = 2
expect = { loads = 1, "loads, row 2" = 0 }
[[processors]]
name = "processors"
asm = "nop; nop"
events = ["instructions"]
expect = { instructions = 2, "instructions, sum" = 4 }
[[run]]
name = "tasks"
expect = { "turns, task t" = 40, "instructions:u, task t" = { min = 120, max = 123 } }
[[run.task]]
name = "t"
asm = "nop"
turns = 40
ring = 3
[[count]]
name = "counted"
events = ["instructions:u"]
expect = { "instructions:u, task t" = 121, groups = 1 }
[[count.task]]
name = "t"
asm = "nop"
turns = 40
ring = 3
cpu = 1
[[sample]]
name = "sampled"
asm = "nop"
turns = 1000
events = ["instructions"]
period = 1009
expect = { "instructions, overflows" = { min = 2, max = 4 }, "instructions, dropped" = 0 }
"#;

/// Nobody says how many processors there are: the job names two.
#[test]
fn c7_an_item_of_every_kind_is_judged_by_what_the_job_expects_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), JOB).unwrap();
    let called = xtask(
        folder.path(),
        &["run", "job.toml", "--pmu", "skylake", "--format", "json", "--timeout", "100"],
    );
    assert_eq!(called.code, 1, "{called:#?}");
    let json: Value = serde_json::from_str(&called.out).unwrap();
    let records = json["records"].as_array().unwrap();
    let judged: Vec<(&str, &str)> = records
        .iter()
        .filter(|record| record["item"].is_u64() && record["type"] != "samples")
        .map(|record| {
            let verdict = record["verdict"].as_str().unwrap_or("none");
            (record["name"].as_str().unwrap(), verdict)
        })
        .collect();
    let expected = [
        ("event", "pass"),
        ("missed", "fail"),
        ("another processor's", "fail"),
        ("allowed", "pass"),
        ("stepped", "pass"),
        ("stepped without a counter", "fail"),
        ("by cycle", "pass"),
        ("processors", "pass"),
        ("tasks", "pass"),
        ("counted", "pass"),
        ("sampled", "pass"),
    ];
    assert_eq!(judged, expected, "{}", called.out);
    let end = records.last().unwrap();
    assert_eq!([&end["passed"], &end["failed"], &end["measured"]], [8, 3, 0]);
    let misses = |name: &str| {
        let record = records.iter().find(|record| record["name"] == name).unwrap();
        record["misses"].as_array().unwrap().clone()
    };
    let [miss] = &misses("missed")[..] else { panic!("{}", called.out) };
    assert_eq!(
        (&miss["min"], &miss["max"], &miss["value"]),
        (&2.0.into(), &3.0.into(), &1.0.into())
    );
    let [miss] = &misses("another processor's")[..] else { panic!("{}", called.out) };
    assert_eq!(miss["figure"], "ex_ret_instr");
    assert!(miss["reason"].as_str().unwrap().contains("ex_ret_instr"), "{miss}");
}

#[test]
fn a_machine_with_fewer_processors_than_the_job_needs_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let asks = "cpus = 3\n[[snippet]]\nasm = \"nop\"\n";
    for (text, part) in [
        (asks, "job.toml: the job needs 3 processors (cpus = 3), and --cpus 1 gives it fewer"),
        (JOB, "it is to run on processor 1; the machine has one processor"),
        ("cpus = 0", "line 1, column 8: cpus is 0; it must be 1 to 255"),
    ] {
        std::fs::write(folder.path().join("job.toml"), text).unwrap();
        xtask(folder.path(), &["run", "job.toml", "--cpus", "1"]).fails_with(2, &[part]);
    }
}

/// A loop without end ends the item at its limit of steps, with a record that says so, and the next item runs. Meanwhile
/// progress is told, so that nobody takes the machine for hung.
#[test]
fn exact_mode_has_a_limit_and_tells_how_far_it_is() {
    const STEPS: u64 = 900_000;
    let ran = direct(&format!(
        "[[snippet]]\nname = \"endless\"\nexact = {{ steps = {STEPS} }}\nasm = \"2: jmp 2b\"\n\
         [[snippet]]\nname = \"next\"\nexact = true\nasm = \"nop\"\n"
    ));
    ran.ends_with(1);
    let [error] = ran.errors()[..] else { panic!("{:?}", ran.errors()) };
    assert_eq!((error.code, error.item), (ErrorCode::StepLimit, Some(0)));
    assert!(error.text.contains(&format!("not done after {STEPS} instructions")), "{}", error.text);
    assert_eq!(ran.report.exact().next().unwrap().name, "next");
    let told: Vec<_> = ran
        .report
        .records
        .iter()
        .filter_map(|one| match &one.record {
            Record::Progress(progress) => progress.within,
            _ => None,
        })
        .collect();
    assert!(!told.is_empty(), "{:?}", ran.report.records);
    for within in &told {
        assert_eq!((within.unit, within.total), (Unit::Steps, STEPS));
        assert!(within.done > 0 && within.done < STEPS, "{within:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].done < pair[1].done), "{told:?}");
}

/// Ticks tell how far tasks are, and what that takes is no task's.
#[test]
fn c7_tasks_tell_how_far_they_are_and_their_counts_stay_exact() {
    let ran = qemu_tests::Guest {
        pmu: xtask::machine::Given::Emulated(pmu_model::Model::Skylake),
        ..qemu_tests::Guest::new(
            xtask::cli::Boot::Direct,
            "[[count]]\nevents = [\"instructions:u\", \"instructions\"]\ntick-ns = 50_000_000\n\
             limit-us = 60_000_000\nexpect = { \"instructions:u, task t\" = 1_800_000_001 }\n\
             [[count.task]]\nname = \"t\"\nasm = \"nop\"\nturns = 600_000_000\nring = 3\n",
        )
    }
    .run();
    ran.ends_with(0);
    let told = ran.report.records.iter().filter(|one| {
        matches!(&one.record, Record::Progress(progress)
            if progress.within.is_some_and(|within| within.unit == Unit::Milliseconds))
    });
    assert!(told.count() > 0, "{:?}", ran.report.records);
    let count = ran.report.counts().next().unwrap();
    // The firmware's own work is the kernel's, in ring 0 as well.
    let [user, all] = &count.events[..] else { panic!("{count:?}") };
    assert!(all.tasks[0].raw >= user.tasks[0].raw, "{count:?}");
    assert!(all.tasks[0].raw - user.tasks[0].raw < 5_000 * (count.ticks + 4), "{count:?}");
}
