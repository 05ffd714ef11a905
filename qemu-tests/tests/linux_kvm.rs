//! Linux with KVM on the emulated PMU, and barecount in guests of it, on KVM's own virtual PMU. Skipped where the packages
//! cannot be had.

use pmu_model::Model;
use protocol::record::CheckVerdict;
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

/// What `kvm_amd` says as it is loaded on the emulated Zen 4, and then nothing more.
const LOADED: [&str; 3] = [
    "kvm: Nested Virtualization enabled",
    "SVM: kvm: Nested Paging enabled",
    "SVM: Virtual GIF supported",
];

/// A whole report of a guest of KVM, on whose PMU each of a loop's instructions was counted.
fn counts_exactly(output: &str) {
    let (counted, code) = report(output);
    // The firmware's way out of QEMU is 2n + 1, and 16 is a pass.
    assert_eq!((counted.problems.len(), code), (0, 33), "{:?}", counted.problems);
    let machine = counted.machine().expect("its machine");
    assert_eq!(machine.virtual_pmu.as_deref(), Some("KVM"));
    assert!(machine.emulated_pmu.is_none(), "the PMU is KVM's");
    let end = counted.end().expect("its end");
    assert_eq!((end.passed, end.failed), (1, 0), "it expects 3 instructions and no branch a turn");
}

#[test]
fn x12_counts_and_samples_in_a_guest_of_kvm() {
    let jobs = [COUNT, SAMPLE];
    let two = format!(
        "( {} ) > /tmp/one & ( {} ) > /tmp/other & wait; cat /tmp/one; echo ==; cat /tmp/other",
        COUNT.command(),
        COUNT.command()
    );
    let steps =
        [load(), COUNT.step(), SAMPLE.step(), Step::new("two", &two), Step::new("log", "dmesg -r")];
    let Some(ran) = run("nmi_watchdog=0", &jobs, &steps) else { return };
    let console = &ran.console;

    counts_exactly(&console.output("count"));
    let output = console.output("two");
    let (one, other) = output.split_once("\n==").expect("two reports");
    counts_exactly(one);
    counts_exactly(other);

    let (sampled, code) = report(&console.output("sample"));
    assert_eq!((sampled.problems.len(), code), (0, 33), "{:?}", sampled.problems);
    let sample = sampled.sampled().next().expect("samples");
    let event = &sample.events[0];
    // 8,000 turns of five instructions, 83 periods of 500; the handler's own are counted too.
    assert_eq!((event.overflows, event.samples, event.dropped, event.lost), (83, 83, 0, 0));

    assert_eq!(said(console, "log"), LOADED, "what KVM says of guests that count and sample");
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn x12_the_conformance_suite_in_a_guest_of_kvm_soak() {
    let steps = [load(), SUITE.step(), Step::new("log", "dmesg -r")];
    let Some(ran) = run("nmi_watchdog=0", &[SUITE], &steps) else { return };
    let console = &ran.console;
    let (suite, code) = report(&console.output("suite"));
    assert_eq!((suite.problems.len(), code), (0, 33), "{:?}", suite.problems);
    let known: Vec<_> =
        suite.checks().filter(|check| check.verdict == CheckVerdict::KnownBehaviour).collect();
    let known: Vec<_> = known.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(known, ["modifiers.counter_mask", "pmi.latency", "rdpmc.fast_mode", "lbr.order"]);
    let sums = suite.suites().next().expect("its sums");
    assert_eq!((sums.failed, sums.known_behaviours), (0, 4));
    assert!(sums.passed >= 50, "{} checks have passed", sums.passed);
    // The suite asks for branch records, which KVM has not; it drops the write of DEBUGCTL, and says so.
    let log = said(console, "log");
    let more = log.iter().filter(|line| !LOADED.contains(&line.as_str()));
    let others: Vec<_> = more.filter(|line| !line.contains("Unhandled WRMSR(0x1d9)")).collect();
    assert!(others.is_empty(), "{others:?}");
}
