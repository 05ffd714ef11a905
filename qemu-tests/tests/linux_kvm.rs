//! Linux with KVM on the emulated PMU, and barecount in guests of it, on KVM's own virtual PMU. Skipped where the packages
//! cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::kvm::{Job, load, report, said};
use qemu_tests::stock_linux::machine::{Machine, Ran};
use qemu_tests::stock_linux::steps::Step;
use std::time::Duration;

/// Instructions of which each is known: 1,000 turns of five.
const COUNT: Job = Job {
    name: "count",
    toml: r#"
[[snippet]]
name = "loop"
loop = 1000
unroll = 1
asm = "nop; imul rax, rax; nop"
events = ["instructions", "branches"]
expect = { instructions = 3, branches = 0 }
"#,
};

const SAMPLE: Job = Job {
    name: "sample",
    toml: r#"
[[sample]]
asm = "nop; imul rax, rax; nop"
events = ["r00c0"]
period = 500
turns = 8000
keep = "samples"
"#,
};

const SUITE: Job = Job { name: "suite", toml: "kind = \"conformance\"" };

fn machine(options: &str) -> Machine {
    Machine {
        icount: 2,
        memory: 1536,
        options: format!("quiet {options}"),
        timeout: Duration::from_secs(600),
        ..Machine::new(Model::Zen4)
    }
}

fn run(options: &str, jobs: &[Job], steps: &[Step]) -> Option<Ran> {
    let machine = machine(options);
    if machine.is_stepped() {
        eprintln!("skipped: SVM is offered where the plugin counts");
        return None;
    }
    machine.run_kvm(jobs, steps)
}

#[test]
fn x12_samples_and_the_conformance_suite_in_a_guest_of_kvm() {
    let jobs = [COUNT, SAMPLE, SUITE];
    let two = format!(
        "( {} ) > /tmp/one & ( {} ) > /tmp/other & wait; cat /tmp/one; echo ==; cat /tmp/other",
        COUNT.command(),
        COUNT.command()
    );
    let log = Step::new("log", "dmesg -r");
    let steps = [
        load(),
        COUNT.step(),
        SAMPLE.step(),
        Step::new("two", &two),
        Step::new("before", "dmesg -r"),
        SUITE.step(),
        log,
    ];
    let Some(ran) = run("nmi_watchdog=0", &jobs, &steps) else { return };
    let console = &ran.console;
    eprintln!("{}", console.0);
    let (counted, code) = report(&console.output("count"));
    eprintln!("{:?} {code} {}", counted.problems, counted.exit_code());
    eprintln!("{:?}", said(console, "before"));
    eprintln!("{:?}", said(console, "log"));
    panic!("look");
}
