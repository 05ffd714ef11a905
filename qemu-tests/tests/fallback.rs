//! What is made of a QEMU that does not take the emulated PMU's plugin: the counts are the same, and somebody says why they
//! take longer.

use pmu_model::Model;
use protocol::record::CountedBy;
use qemu_tests::{Called, Guest, Ran, old_qemu, skip, tree, xtask_in};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::cli::{Boot, Counting};
use xtask::machine::{Given, counting};
use xtask::setup::qemu::{self, Found, Version};

/// Branches and accesses, which QEMU's clock does not count; a repeated string; a loop.
const JOB: &str = r#"
[defaults]
runs = 2
warmup = 1
events = ["instructions", "branches", "branch-misses", "loads", "stores", "L1-dcache-load-misses"]
[[snippet]]
asm = "mov ecx, 50; 2: mov rax, [r14+rcx*8]; mov [rdi+rcx*8], rax; dec ecx; jnz 2b"
[[snippet]]
asm = "mov ecx, 30; lea rdi, [r14]; rep stosq; call 2f; jmp 3f; 2: ret; 3: nop"
"#;

/// QEMU as it is where it was configured with `--disable-plugins`: the option ends it.
fn without_plugins(folder: &Path) -> PathBuf {
    let real = qemu::probe().expect("the tests run on it").path;
    let text = format!(
        "#!/bin/sh\nfor word; do if [ \"$word\" = -plugin ]; then\n\
         echo 'qemu-system-x86_64: plugin interface not enabled in this build' >&2; exit 1\n\
         fi; done\nexec '{}' \"$@\"\n",
        real.display()
    );
    let file = folder.join("without-plugins");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn job(qemu: Option<PathBuf>, counting: Counting) -> Ran {
    let ran = Guest {
        pmu: Given::Emulated(Model::Skylake),
        qemu,
        counting,
        ..Guest::new(Boot::Direct, JOB)
    }
    .run();
    ran.ends_with(0);
    ran
}

fn counted_by(ran: &Ran) -> CountedBy {
    let machine = ran.report.machine().expect("a machine record");
    machine.emulated_pmu.expect("an emulated PMU").counted_by
}

/// Each event of each snippet, with its median.
fn counts(ran: &Ran) -> Vec<(String, f64)> {
    let metrics = ran.results().into_iter().flat_map(|result| &result.metrics[1..]);
    metrics.map(|metric| (metric.event.clone(), metric.value.median)).collect()
}

#[test]
fn plugin_and_stepping_count_the_same_and_the_record_says_which_it_was() {
    let by_plugin = job(None, Counting::Plugin);
    let stepped = job(None, Counting::Stepping);
    assert_eq!(counted_by(&by_plugin), CountedBy::Plugin);
    assert_eq!(counted_by(&stepped), CountedBy::Stepping);
    assert_eq!(counts(&by_plugin), counts(&stepped));
    let seen = counts(&stepped);
    assert_eq!(seen.len(), 12, "{seen:?}");
    assert_eq!(seen[1], ("branches".to_string(), 50.0));
    assert_eq!((seen[3].1, seen[4].1), (50.0, 50.0), "{seen:?}");
}

#[test]
fn a_qemu_without_plugins_counts_the_same_and_the_run_says_why_it_steps() {
    let folder = tempfile::tempdir().unwrap();
    let without = without_plugins(folder.path());
    let found = Found::at(without.clone()).unwrap();
    let why = found.plugins().unwrap_err();
    assert!(why.contains("built without plugins") && why.contains("not enabled"), "{why}");
    let refused = counting::choose(Counting::Plugin, &tree().plugin(), Ok(found)).unwrap_err();
    assert_eq!(refused.exit_code(), 77);
    let stepped = job(Some(without.clone()), Counting::Auto);
    assert_eq!(counted_by(&stepped), CountedBy::Stepping);
    assert_eq!(counts(&stepped), counts(&job(None, Counting::Plugin)));

    let call = |words: &[&str]| -> Called {
        let line =
            [&["run", "--asm", "nop", "--event", "branches", "--pmu", "zen2"], words].concat();
        let qemu = (qemu::VARIABLE, without.as_os_str());
        xtask_in(folder.path(), &line, &[qemu, ("BARECOUNT_COUNTING", "auto".as_ref())])
    };
    let called = call(&[]);
    assert_eq!(called.code, 0, "{called:#?}");
    let note = "the emulated PMU counts by stepping, which is slow: ";
    let told = |text: &str| text.lines().any(|line| line.contains(note));
    assert!(
        told(&called.err) && told(&called.out),
        "on the terminal and in the report: {called:#?}"
    );
    assert!(called.out.contains("counting by stepping"), "{called:#?}");
    call(&["--counting", "plugin"])
        .fails_with(77, &["--counting plugin: ", "built without plugins"]);
    let called = call(&["--counting", "stepping", "--format", "json"]);
    assert!(!told(&called.err), "as asked: {called:#?}");
    let report: Value = serde_json::from_str(&called.out).unwrap();
    assert!(report.to_string().contains("\"counted_by\":\"stepping\""), "{report:#}");
}

/// The guest of `emulated_pmu.rs`, whose code was counted by hand.
#[test]
fn a_qemu_older_than_the_plugin_steps_and_counts_the_same() {
    let folder = tree().target().join("qemu-7.2");
    let old = match old_qemu::unpacked("7.2", &folder) {
        Ok(old) => old,
        Err(why) => skip!("no QEMU 7.2: {why}"),
    };
    let found = Found::at(old.clone()).unwrap();
    assert!(found.version.is_some_and(|version| version < Version(8, 0, 0)), "{found}");
    assert!(found.plugins().unwrap_err().contains("needs QEMU 10.0 or newer, this is 7.2"));
    let kernel = tree().build_guest("pmu-guest").unwrap_or_else(|error| panic!("{error}"));
    for (model, group) in
        [(Model::Skylake, "counts"), (Model::Zen2, "counts"), (Model::Skylake, "stepped")]
    {
        let seen = |qemu: Option<PathBuf>, counting| {
            let ran = Guest {
                pmu: Given::Emulated(model),
                qemu,
                counting,
                kernel: Some(kernel.clone()),
                timeout: Duration::from_secs(300),
                ..Guest::with_ramdisk(Boot::Direct, Some(group.into()))
            }
            .run();
            let text = String::from_utf8_lossy(&ran.raw).into_owned();
            let cases = text.lines().filter_map(|line| line.strip_prefix("case "));
            let cases: Vec<String> = cases.map(str::to_string).collect();
            assert!(cases.len() >= 5, "{:?} {text}", ran.complaint);
            cases
        };
        let (old, new) = (seen(Some(old.clone()), Counting::Auto), seen(None, Counting::Plugin));
        assert_eq!(old, new, "{model:?}: {group}");
    }
}
