//! A run of programs in QEMU.

use super::draw::Drawn;
use super::report::{Report, read};
use pmu_model::Model;
use program_format::encode;
use qemu_tests::{Guest, tree};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use xtask::cli::{Boot, Counting, Icount};
use xtask::machine::{Ending, Given};

/// How the emulated PMU counts, and on which machine.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By the plugin in QEMU's translator.
    Plugin,
    /// The same, and code is translated for what each program counts, not for what those before it counted as well.
    Exact,
    /// By the hypervisor, one instruction at a time.
    Stepping,
    /// The same, on a machine with more memory.
    Elsewhere,
}

fn kernel() -> PathBuf {
    static KERNEL: OnceLock<PathBuf> = OnceLock::new();
    let build = || tree().build_guest("programs-guest").unwrap_or_else(|error| panic!("{error}"));
    KERNEL.get_or_init(build).clone()
}

/// Runs `programs`, one after the other.
pub fn run(model: Model, way: Way, programs: &[Drawn]) -> Vec<Report> {
    run_with(model, way, programs, "").0
}

/// The same with more of the emulated PMU's options, and what that says.
pub fn run_with(
    model: Model,
    way: Way,
    programs: &[Drawn],
    more: &str,
) -> (Vec<Report>, Vec<String>) {
    let list: Vec<_> = programs.iter().map(|drawn| drawn.assembled.program.clone()).collect();
    let shift = 0;
    let memory = match way {
        Way::Plugin | Way::Exact | Way::Stepping => 256,
        Way::Elsewhere => 320,
    };
    let counting = match way {
        Way::Plugin | Way::Exact => Counting::Plugin,
        Way::Stepping | Way::Elsewhere => Counting::Stepping,
    };
    // Time is the guest's: a timer must not ring while an instruction is being stepped.
    let modes = if matches!(way, Way::Exact) { " modes=exact" } else { "" };
    let options = format!("pmu={} clock=guest shift={shift}{modes}{more}", model.spec().name);
    let guest = Guest {
        pmu: Given::Emulated(model),
        pmu_options: Some(options),
        counting,
        kernel: Some(kernel()),
        icount: Icount::Shift(shift),
        memory,
        timeout: Duration::from_secs(100),
        ..Guest::with_ramdisk(Boot::Direct, Some(encode(&list)))
    };
    let ran = guest.run();
    let text = String::from_utf8_lossy(&ran.raw);
    // Without it all counts are equal: it counts nothing.
    assert!(!text.contains("no emulated PMU"), "{text}");
    let reports = read(&text);
    let done = ran.ending == Ending::Exited(Some(33));
    let next = programs.get(reports.len());
    assert!(
        done && reports.len() == programs.len(),
        "{model:?} {way:?}: {:?} after {} programs, {:?}\n{}\n{}",
        ran.ending,
        reports.len(),
        ran.pmu_said,
        text.lines().rev().take(3).collect::<Vec<_>>().join("\n"),
        next.map_or(String::new(), super::report::describe)
    );
    (reports, ran.pmu_said)
}
