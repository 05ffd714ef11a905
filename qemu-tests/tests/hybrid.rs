//! A hybrid package: the boot processor is a performance core, the other one an efficient one, each as it was recorded of a Core
//! i9-12900K.

use protocol::record::{CountResult, ProcessorsResult};
use qemu_tests::{Guest, Ran};
use recorded::cores;
use std::path::Path;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;
use xtask::recording::Recorded;

fn run(job: &str) -> Ran {
    let core = |kind: &str| {
        let name = format!("intel-x86-64-golden-cove-12th-gen-intel-core-i9-12900k-{kind}-core");
        cores::named(&name).unwrap_or_else(|| panic!("{name}")).leaves.clone()
    };
    let both = Recorded::of(Path::new("12900k"), vec![core("p"), core("e")], vec![]).unwrap();
    let recorded: &'static Recorded = Box::leak(Box::new(both));
    let (pmu, timeout) = (Given::Emulated(recorded.nearest), Duration::from_secs(180));
    let cpu = Some("max,vendor=GenuineIntel".to_string());
    let cpus = Cpus::Many(2);
    Guest { pmu, recorded: Some(recorded), cpu, cpus, timeout, ..Guest::new(Boot::Direct, job) }
        .run()
}

/// Instructions, slots, which performance cores alone have, and cycles by the name that efficient cores alone have for them.
const EVENTS: &str = r#"["inst_retired.any", "topdown.slots_p", "cpu_clk_unhalted.core_p"]"#;

fn item(name: &str, cpu: &str) -> String {
    let asm = "imul rax, rax; imul rax, rax; imul rax, rax";
    format!("[[processors]]\nname = \"{name}\"\nasm = \"{asm}\"\nevents = {EVENTS}\n{cpu}\n")
}

/// Names of what was counted, with how often.
fn counted(result: &ProcessorsResult) -> Vec<(&str, f64)> {
    let metrics = result.processors[0].metrics.iter().filter(|one| one.event != "tsc");
    metrics.map(|one| (one.event.as_str(), one.value.median)).collect()
}

#[test]
fn x13_each_kind_of_core_counts_by_its_own_table() {
    let job = item("p", "cpu = 0")
        + &item("e", "cpu = 1")
        + &item("both", "")
        + &item("p again", "cpu = 0");
    let ran = run(&job);
    ran.ends_with(1);
    let results: Vec<&ProcessorsResult> = ran.report.processors().collect();
    let [p, e, again] = &results[..] else { panic!("{results:#?}") };
    for (result, number, own, others, table) in [
        (p, 0, "topdown.slots_p", "cpu_clk_unhalted.core_p", "goldencove"),
        (e, 1, "cpu_clk_unhalted.core_p", "topdown.slots_p", "gracemont"),
        (again, 0, "topdown.slots_p", "cpu_clk_unhalted.core_p", "goldencove"),
    ] {
        assert_eq!(result.processors[0].processor, number);
        let seen = counted(result);
        assert_eq!(seen[0], ("inst_retired.any", 3.0), "{result:#?}");
        assert_eq!(seen[1].0, own);
        assert!(seen[1].1 > 0.0 && seen.len() == 2, "{result:#?}");
        let [refused] = &result.uncounted[..] else { panic!("{result:#?}") };
        assert_eq!(refused.event, others);
        assert!(refused.reason.contains(table), "{refused:?}");
    }
    // Both together would be a sum of different things.
    let [error] = &ran.errors()[..] else { panic!("{:?}", ran.errors()) };
    let text = "the PMUs of processor 0 and processor 1 differ in the kind of their cores";
    assert!(error.text.contains(text), "{error:?}");
}

#[test]
fn x13_a_task_on_an_efficient_core_counts_by_that_cores_table() {
    // Each turn: a NOP, DEC and JNZ; the INT at the end.
    let count = |cpu: u16, cycles: &str| {
        format!(
            "[[count]]\nevents = [\"inst_retired.any:u\", \"{cycles}\"]\nbind = {{ cpu = {cpu} }}\n\
             [[count.task]]\nname = \"t\"\nasm = \"nop\"\nturns = 1000\nring = 3\ncpu = {cpu}\n"
        )
    };
    let (p, e) = ("topdown.slots_p", "cpu_clk_unhalted.core_p");
    let ran = run(&[count(1, e), count(0, p), count(1, p)].concat());
    let results: Vec<&CountResult> = ran.report.counts().collect();
    let [on_e, on_p, wrong] = &results[..] else { panic!("{:?}", ran.errors()) };
    for (result, cycles) in [(on_e, e), (on_p, p)] {
        assert_eq!(result.uncounted, [], "{result:#?}");
        let [instructions, other] = &result.events[..] else { panic!("{result:#?}") };
        assert_eq!(instructions.sum.raw, 3001, "{result:#?}");
        assert!(other.event == cycles && other.sum.raw > 0, "{result:#?}");
    }
    let [refused] = &wrong.uncounted[..] else { panic!("{wrong:#?}") };
    assert!(refused.event == p && refused.reason.contains("gracemont"), "{refused:?}");
}
