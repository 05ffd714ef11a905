//! `--pmu`: what is chosen, what the guest then sees, and what is said when it cannot be.

use handover::Refusal;
use pmu_model::Model;
use protocol::record::Machine;
use qemu_tests::{Called, Guest, Ran, is_model, xtask};
use serde_json::Value;
use xtask::cli::{Boot, Icount, models};
use xtask::machine::Given;

const JOB: &str = "[[snippet]]\nname = \"nop\"\nasm = \"nop\"\n";

fn run(arguments: &[&str]) -> Called {
    let folder = tempfile::tempdir().unwrap();
    xtask(folder.path(), &[&["run", "--asm", "nop", "--timeout", "60"], arguments].concat())
}

fn guest(model: Model) -> Guest {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, JOB) }
}

/// The line of choice; there has to be exactly one.
fn line(called: &Called) -> &str {
    let lines: Vec<&str> = called.err.lines().filter(|line| line.starts_with("pmu: ")).collect();
    let [line] = lines[..] else { panic!("{called:#?}") };
    line
}

#[test]
fn each_model_is_what_it_claims_to_be() {
    for model in models() {
        let spec = model.spec();
        let called = run(&["--pmu", spec.name, "--format", "json"]);
        assert_eq!(called.code, 0, "{called:#?}");
        assert_eq!(line(&called), format!("pmu: emulated {} (as asked)", spec.name));
        let json: Value = serde_json::from_str(&called.out).unwrap();
        assert_eq!(json["run"]["pmu"], format!("emulated {}", spec.name));
        assert_eq!(json["notes"], serde_json::json!([]), "{model:?}");
        assert_eq!(json["foreign"], serde_json::json!([]), "{model:?}");
        let machine: Machine = serde_json::from_value(json["records"][1].clone()).unwrap();
        is_model(&machine, model);
    }
}

#[test]
fn the_default_is_a_pmu_and_the_line_says_which_and_why() {
    let called = run(&["--accel", "tcg"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert_eq!(line(&called), "pmu: emulated skylake (TCG, as requested, has no PMU)");
    assert!(called.out.contains("PMU version 4"), "{called:#?}");
    let called = run(&["--accel", "tcg", "--boot", "bios"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(line(&called).starts_with("pmu: none, under TCG ("), "{called:#?}");
    assert!(line(&called).contains("--boot direct"), "{called:#?}");
    assert!(called.out.contains("no PMU: CPUID announces"), "{called:#?}");
    let called = run(&["--accel", "tcg", "--pmu", "none"]);
    assert_eq!(line(&called), "pmu: none, under TCG (as asked)");
    assert!(called.out.contains("no PMU: CPUID announces"), "{called:#?}");
}

#[test]
fn the_emulated_pmu_comes_under_uefi_as_well() {
    let called = run(&["--pmu", "zen4", "--boot", "uefi"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert_eq!(line(&called), "pmu: emulated zen4 (as asked)");
    assert!(called.out.contains("emulated PMU"), "{called:#?}");
}

#[test]
fn a_contradiction_ends_before_anything_starts() {
    for (arguments, part) in [
        (&["--pmu", "skylake", "--boot", "bios"][..], "--boot direct"),
        (&["--pmu", "zen4", "--icount", "off"], "--icount off"),
        (&["--pmu", "host", "--accel", "tcg"], "only KVM passes the host's PMU through"),
    ] {
        run(arguments).fails_with(2, &["--pmu", part]);
    }
    let host = xtask::machine::Host::read();
    // Without KVM that is what is said, and both are right.
    let code = if host.kvm.is_ok() { 2 } else { 77 };
    run(&["--pmu", "skylake", "--accel", "kvm"]).fails_with(code, &["kvm"]);
    if host.kvm.is_err() || host.vpmu.is_err() {
        run(&["--pmu", "host"]).fails_with(77, &["--pmu host: "]);
    }
}

/// The loader says why there is no PMU, and the guest measures without one.
fn refused(guest: Guest, refusal: Refusal) {
    let ran = guest.run();
    ran.ends_with(0);
    assert_eq!(ran.results().len(), 1);
    let machine = ran.report.machine().unwrap();
    assert!(machine.pmu.is_none() && machine.pmu_absent.is_some(), "{machine:?}");
    let foreign: Vec<&str> = ran.report.foreign.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(foreign, [format!("barecount: no emulated PMU: {refusal}")]);
    assert_eq!(ran.pmu_said, [""; 0]);
}

#[test]
fn a_processor_without_svm_is_refused() {
    refused(Guest { cpu: Some("qemu64,-svm".into()), ..guest(Model::Skylake) }, Refusal::NoSvm);
}

#[test]
fn a_clock_that_counts_no_instructions_is_refused() {
    refused(Guest { icount: Icount::Off, ..guest(Model::Skylake) }, Refusal::NoIcount);
}

#[test]
fn another_shift_than_the_options_say_is_refused() {
    let pmu_options = Some("pmu=skylake shift=3".to_string());
    refused(Guest { pmu_options, ..guest(Model::Skylake) }, Refusal::WrongShift);
    // The same options on a machine that is as they say.
    let pmu_options = Some("pmu=skylake shift=3".to_string());
    let icount = Icount::Shift(3);
    let ran = Guest { pmu_options, icount, ..guest(Model::Skylake) }.run();
    assert!(ran.ends_with(0).report.machine().unwrap().pmu.is_some());
}

#[test]
fn an_unknown_model_is_refused() {
    let pmu_options = Some("pmu=z80".to_string());
    refused(Guest { pmu_options, ..guest(Model::Skylake) }, Refusal::Options);
}

#[test]
fn an_hpet_without_messages_is_refused() {
    let extra = ["-global", "hpet.msi=off"].map(String::from).to_vec();
    refused(Guest { extra, ..guest(Model::Skylake) }, Refusal::NoHpetMsi);
}

#[test]
fn a_machine_without_hpet_is_refused() {
    let extra = ["-machine", "hpet=off"].map(String::from).to_vec();
    refused(Guest { extra, ..guest(Model::Skylake) }, Refusal::NoHpet);
}

/// Figures of a machine without the PMU that was named are not shown: every count would be missing.
#[test]
fn a_model_that_was_named_and_cannot_be_had_ends_the_run() {
    let called = run(&["--pmu", "skylake", "--cpu", "qemu64,-svm"]);
    let refused = format!("no emulated PMU: {}", Refusal::NoSvm);
    called.fails_with(77, &["--pmu skylake: the machine has no such PMU", &refused]);
    assert!(!called.out.contains("TSC ticks"), "{called:#?}");
}

/// Writing an unknown event into a select register, twice: event 0xFF does not exist on Skylake.
#[test]
fn what_the_emulated_pmu_says_is_shown_once() {
    let select = "mov ecx, 0x186; mov eax, 0x4300ff; xor edx, edx; wrmsr";
    let off = "xor eax, eax; wrmsr";
    let asm = format!("{select}; {off}; {select}; {off}");
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--asm", &asm, "--pmu", "skylake", "--unroll", "1", "--runs", "1"];
    let called = xtask(folder.path(), &arguments);
    assert_eq!(called.code, 0, "{called:#?}");
    let notes: Vec<&str> = called.out.lines().filter(|line| line.starts_with("note: ")).collect();
    let [note] = notes[..] else { panic!("{called:#?}") };
    assert!(
        note.starts_with("note: the emulated PMU says: ") && note.contains("0x4300ff"),
        "{note}"
    );
}

#[test]
fn without_a_job_the_hypervisor_still_starts() {
    let guest = Guest::with_ramdisk(Boot::Direct, None);
    let ran = Guest { pmu: Given::Emulated(Model::Zen4), ..guest }.run();
    // A machine without a job is brought up, which needs a PMU here.
    assert!(ran.ends_with(0).report.machine().unwrap().pmu.is_some());
    assert!(ran.report.suites().all(|suite| suite.failed == 0));
}

#[test]
fn two_runs_send_the_same_bytes() {
    let tour = || {
        let job = include_str!("../../xtask/jobs/tour.toml");
        let pmu = Given::Emulated(Model::Skylake);
        let ran: Ran = Guest { pmu, ..Guest::new(Boot::Direct, job) }.run();
        assert!(ran.ends_with(0).report.machine().unwrap().pmu.is_some());
        ran.raw
    };
    let (first, second) = (tour(), tour());
    assert!(first.len() > 3000);
    assert_eq!(first, second);
}
