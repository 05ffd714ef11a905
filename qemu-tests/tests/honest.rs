//! Certificates: ten honest models, PMUs with a planted lie, machines without a PMU.

use protocol::ramdisk;
use qemu_tests::{Guest, xtask};
use serde_json::Value;
use std::time::Duration;
use xtask::cli::{Boot, models};
use xtask::honest::{Cause, Certificate, Class, Lie, PREFIX};
use xtask::job::{self, Overrides, Purpose};
use xtask::machine::Given;

use pmu_model::Model;

fn certificate(model: Model, fault: Option<&'static str>) -> Certificate {
    let overrides = Overrides { honest: true, ..Overrides::default() };
    let packed = job::load(None, &overrides, Purpose::Qemu).unwrap();
    let guest = Guest {
        pmu: Given::Emulated(model),
        pmu_fault: fault,
        timeout: Duration::from_secs(180),
        ..Guest::with_ramdisk(Boot::Direct, Some(packed.bytes))
    };
    let ran = guest.run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert_eq!(ran.report.problems, [], "{model:?} {fault:?}: {text}");
    Certificate::of(&ran.report).unwrap_or_else(|| panic!("{model:?} {fault:?}: {text}"))
}

fn is_certified(models: &[Model]) {
    for &model in models {
        let certificate = certificate(model, None);
        assert_eq!(certificate.honest, Some(true), "{model:?}: {certificate:#?}");
        for event in ["instructions", "r00c0", "branches", "instructions:u", "branches:u"] {
            let found = certificate.findings.iter().find(|one| one.what == event);
            let found = found.unwrap_or_else(|| panic!("{model:?}: {event}: {certificate:#?}"));
            assert_eq!(found.class, Class::Exact, "{model:?}: {found:?}");
        }
        assert!(certificate.branches.contains("are deterministic"), "{certificate:?}");
        assert!(certificate.sampling.contains("every overflow interrupted"), "{certificate:?}");
    }
}

#[test]
fn x11_five_older_honest_models_are_certified_without_a_false_word() {
    is_certified(&[Model::Core2, Model::Nehalem, Model::Haswell, Model::Skylake, Model::K10]);
}

#[test]
fn x11_eight_newer_honest_models_are_certified_without_a_false_word() {
    is_certified(&[
        Model::IceLake,
        Model::SapphireRapids,
        Model::ArrowLake,
        Model::Zen2,
        Model::Zen4,
        Model::GoldenCove,
        Model::Gracemont,
        Model::CougarCove,
    ]);
    assert_eq!(models().count(), 13, "both tests together have every model");
}

/// What lies, how, and whether the trial at the start showed it.
fn is_named(cases: &[(Model, &'static str, Lie, &str)]) {
    for &(model, fault, how, what) in cases {
        let certificate = certificate(model, Some(fault));
        assert_eq!(certificate.honest, Some(false), "{fault}: {certificate:#?}");
        let lies = certificate.findings.iter().filter(|one| one.class.lies());
        let lies: Vec<_> = lies.collect();
        // No other word than the right one.
        assert!(!lies.is_empty(), "{fault}");
        for lie in &lies {
            assert_eq!(lie.class, Class::Lying { how }, "{model:?} {fault}: {lie:?}");
            assert!(!lie.shown.ran.is_empty() && !lie.shown.came.is_empty(), "{fault}: {lie:?}");
        }
        assert!(lies.iter().any(|lie| lie.what.contains(what)), "{model:?} {fault}: {lies:#?}");
    }
}

#[test]
fn x11_counters_that_are_stuck_or_run_backwards_are_named() {
    is_named(&[
        (Model::Skylake, "counter-stands-still", Lie::Stuck, "counter 0"),
        (Model::Skylake, "stuck-at-maximum", Lie::Stuck, "counter 1"),
        (Model::Skylake, "clocks-stand-still", Lie::Stuck, "cycles"),
        (Model::Zen4, "all-stand-still", Lie::Stuck, "every counter"),
        (Model::Skylake, "runs-backwards", Lie::Backwards, "counter 0"),
    ]);
}

#[test]
fn x11_counts_that_are_scaled_or_shared_are_named() {
    is_named(&[
        (Model::Skylake, "counts-twice", Lie::Scaled, "counter 0"),
        (Model::Skylake, "loses-a-tenth", Lie::Scaled, "branches"),
        (Model::Zen4, "loses-a-tenth", Lie::Scaled, "ex_ret_cond"),
        (Model::Skylake, "shared", Lie::Shared, "branches"),
        (Model::Haswell, "shared", Lie::Shared, "br_inst_retired.conditional"),
    ]);
    let certificate = certificate(Model::Zen2, Some("shared"));
    assert!(certificate.branches.contains("rr cannot use them"), "{certificate:?}");
}

#[test]
fn x11_widths_that_are_wrong_are_named() {
    is_named(&[
        (Model::Skylake, "counter-too-narrow", Lie::WrongWidth, "counters"),
        (Model::Skylake, "full-width-truncates", Lie::WrongWidth, "counters"),
        (Model::Skylake, "rdpmc-truncates", Lie::WrongWidth, "RDPMC"),
    ]);
}

#[test]
fn x11_interrupts_that_are_dropped_and_freezes_that_come_late_are_named() {
    is_named(&[
        (Model::Skylake, "pmi-dropped", Lie::DroppedInterrupts, "interrupts"),
        (Model::Zen4, "pmi-dropped", Lie::DroppedInterrupts, "interrupts"),
        (Model::Skylake, "lost-pmi", Lie::DroppedInterrupts, "interrupts"),
        (Model::Skylake, "freeze-late", Lie::FrozenLate, "freezing"),
        (Model::Zen4, "freeze-ignored", Lie::FrozenLate, "freezing"),
    ]);
}

/// The command as the guide has it, in the other forms.
#[test]
fn x11_every_form_of_a_report_has_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let line = ["run", "--honest", "--pmu", "skylake", "--format", "json", "--out", "report.json"];
    let called = xtask(folder.path(), &line);
    assert_eq!(called.code, 0, "{called:#?}");
    let text = std::fs::read(folder.path().join("report.json")).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let certificate = &document["certificate"];
    assert_eq!(certificate["honest"], true, "{certificate}");
    assert_eq!(certificate["findings"][0]["class"]["is"], "exact", "{certificate}");
    // A lie is a failure, in every form.
    let lying = ["run", "--honest", "--pmu", "skylake", "--pmu-fault", "shared", "--format"];
    for (form, parts) in [
        ("tap", ["not ok", "certificate: branches", "LYING: shared"]),
        ("csv", [",certificate,branches,", "LYING: shared", ",certificate,for rr,"]),
        ("table", ["Is this PMU honest?", "for rr: retired branches", "this PMU LIES"]),
    ] {
        let called = xtask(folder.path(), &[&lying[..], &[form]].concat());
        assert_eq!(called.code, 1, "{called:#?}");
        for part in parts {
            assert!(called.out.contains(part), "{form}: `{part}`: {called:#?}");
        }
    }
}

#[test]
fn x11_without_a_pmu_nothing_is_certified_and_the_exit_code_is_77() {
    let folder = tempfile::tempdir().unwrap();
    let called = xtask(folder.path(), &["run", "--honest", "--pmu", "none"]);
    assert_eq!(called.code, 77, "{called:#?}");
    assert!(called.out.contains("there is no PMU"), "{called:#?}");
    // What the job itself expects and does not get is a failure all the same.
    let toml = "kind = \"honest\"\n[[snippet]]\nname = \"own\"\nasm = \"nop\"\nexpect = 99\n";
    std::fs::write(folder.path().join("job.toml"), toml).unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "none"]);
    assert_eq!(called.code, 1, "{called:#?}");
}

/// A job of its own kind has the experiments in front of its own items.
#[test]
fn x11_a_job_can_ask_for_a_certificate_and_have_items_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let toml = "name = \"mine\"\nkind = \"honest\"\n[[snippet]]\nname = \"own\"\nasm = \"nop\"\nexpect = 1\n";
    std::fs::write(folder.path().join("job.toml"), toml).unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "zen4"]);
    assert_eq!(called.code, 0, "{called:#?}");
    for part in ["own", "this PMU is honest in everything that was checked"] {
        assert!(called.out.contains(part), "{part}: {called:#?}");
    }
    let checks = "kind = \"honest\"\nchecks = [\"pmi.*\"]\n";
    std::fs::write(folder.path().join("job.toml"), checks).unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "zen4"]);
    called.fails_with(2, &["line 2", "checks needs kind = \"conformance\""]);
    std::fs::write(folder.path().join("job.toml"), "kind = \"conformance\"\n").unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--honest", "--pmu", "zen4"]);
    called.fails_with(2, &["job.toml", "--honest has one of its own"]);
}

#[test]
fn x11_an_image_carries_the_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let called = xtask(folder.path(), &["image", "--honest", "--out", "honest.img"]);
    assert_eq!(called.code, 0, "{called:#?}");
    let overrides = Overrides { honest: true, ..Overrides::default() };
    let packed = job::load(None, &overrides, Purpose::Stick).unwrap();
    let image = std::fs::read(folder.path().join("honest.img")).unwrap();
    let items = ramdisk::unpack(&packed.bytes).unwrap().items;
    assert!(called.err.contains(&format!("{} items", items.len())), "{called:#?}");
    // The names of the experiments stand in the image as they are.
    for item in items.iter().filter(|item| item.name().starts_with(PREFIX)) {
        let name = item.name().as_bytes();
        assert!(image.windows(name.len()).any(|window| window == name), "{}", item.name());
    }
}

/// What a hypervisor adds is a constant, and no lie; the words for it are those of the readers.
#[test]
fn a_constant_is_told_by_its_cause() {
    let class = Class::ExactUpTo { added: 1.0, per: Cause::VmExit };
    assert_eq!(class.words(), "exact up to +1 per VM exit");
}
