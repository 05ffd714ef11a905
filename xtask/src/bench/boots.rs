//! How long a boot takes.

use super::Figure;
use crate::build::Tree;
use crate::cli::{Boot, Counting, Icount};
use crate::commands::run::{counter, stage_with_pmu};
use crate::job::{self, Packed, Purpose};
use crate::machine::accel::DEFAULT_MODEL;
use crate::machine::devices::{Console, Cpus, Virtual, arguments};
use crate::machine::{self, Ending, Finished, Given, Launch, MachineError};
use crate::progress::Work;
use crate::{Failure, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than any boot here.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A job of one short snippet: the first of those that run when none is named.
pub(super) fn one_snippet() -> Result<Packed> {
    Ok(job::first_of_tour(Purpose::Qemu)?)
}

pub(super) fn scratch() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(Failure::file("create", &std::env::temp_dir()))
}

/// Boots `kernel` once under TCG. An emulated PMU counts by the plugin, if QEMU takes it.
pub(super) fn boot(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    boot: Boot,
    pmu: Given,
) -> Result<(Finished, Duration)> {
    boot_counting(tree, kernel, ramdisk, boot, (pmu, Counting::Auto))
}

/// The same with an emulated PMU that counts as asked.
pub(super) fn boot_counting(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    boot: Boot,
    (pmu, counting): (Given, Counting),
) -> Result<(Finished, Duration)> {
    let folder = scratch()?;
    let counter = counter(tree, pmu, counting)?;
    let icount = Icount::Auto.shift(boot);
    let (boot, pmu) =
        stage_with_pmu(tree, kernel, ramdisk, boot, (pmu, None, icount), folder.path())?;
    let machine = Virtual {
        boot,
        kvm: false,
        pmu,
        plugin: counter.plugin,
        icount,
        cpus: Cpus::One,
        memory: 256,
        cpu: None,
        serial: Some(Console::Pipe),
        screen: false,
        extra: Vec::new(),
    };
    let start = Instant::now();
    let line = arguments(&machine);
    let launch =
        Launch { program: None, arguments: &line, folder: folder.path(), limits: TIMEOUT.into() };
    let finished = machine::run(&launch, |_| ())?;
    let elapsed = start.elapsed();
    if let Ending::Interrupted(signal) = finished.ending {
        return Err(Failure::Interrupted(signal));
    }
    if matches!(finished.ending, Ending::TimedOut(_)) {
        let text = finished.complaint().unwrap_or_default();
        return Err(MachineError::Unfinished(text).into());
    }
    Ok((finished, elapsed))
}

/// Wall times of several boots in seconds.
#[derive(Default)]
struct Times {
    first: Vec<f64>,
    end: Vec<f64>,
    exit: Vec<f64>,
}

impl Times {
    fn take(&mut self, finished: &Finished, elapsed: Duration) -> Result<()> {
        let missing = || MachineError::Unfinished("a boot gave no report".to_string());
        self.first.push(finished.to_first_record.ok_or_else(missing)?.as_secs_f64());
        self.end.push(finished.to_end_record.ok_or_else(missing)?.as_secs_f64());
        self.exit.push(elapsed.as_secs_f64());
        Ok(())
    }
}

/// Boots our job and the hello kernel in turn, `count` times each; where it can be had, also our job with the emulated
/// PMU.
pub(super) fn measure(tree: &Tree, hello: &Path, way: Boot, count: u32) -> Result<Vec<Figure>> {
    let name = format!("{way:?}").to_lowercase();
    let job = one_snippet()?;
    let mut work = Work::of(u64::from(count), format!("booting {name}"));
    let (mut ours, mut emulated, mut bare) = (Times::default(), Times::default(), vec![]);
    for round in 0..count {
        work.tick(u64::from(round));
        let run = |pmu| boot(tree, &tree.kernel(), Some(&job.bytes), way, pmu);
        let (finished, elapsed) = run(Given::None)?;
        ours.take(&finished, elapsed)?;
        if way != Boot::Bios {
            let (finished, elapsed) = run(Given::Emulated(DEFAULT_MODEL))?;
            emulated.take(&finished, elapsed)?;
            has_pmu(finished)?;
        }
        bare.push(boot(tree, hello, None, way, Given::None)?.1.as_secs_f64());
    }
    let mut figures = Vec::new();
    let [exit, hello] = [&ours.exit, &bare].map(|values| median(&mut values.clone()));
    figures.push(Figure::time(format!("{name}: exec to first record"), ours.first));
    figures.push(Figure::time(format!("{name}: exec to end record"), ours.end));
    figures.push(Figure::time(format!("{name}: exec to exit"), ours.exit));
    if way != Boot::Bios {
        let name = format!("{name}, emulated PMU");
        let ratio = median(&mut emulated.exit.clone()) / exit;
        figures.push(Figure::time(format!("{name}: exec to first record"), emulated.first));
        figures.push(Figure::time(format!("{name}: exec to end record"), emulated.end));
        figures.push(Figure::time(format!("{name}: exec to exit"), emulated.exit));
        figures.push(Figure::count(
            format!("{name}: exec to exit, with to without"),
            ratio,
            "ratio",
        ));
    }
    figures.push(Figure::time(format!("{name}: exec to exit, hello kernel"), bare));
    figures.push(Figure::count(
        format!("{name}: exec to exit, ours to hello"),
        exit / hello,
        "ratio",
    ));
    Ok(figures)
}

/// Makes sure that a boot with the emulated PMU was one.
fn has_pmu(finished: Finished) -> Result<()> {
    let report = finished.collector.finish();
    if report.machine().is_some_and(|machine| machine.pmu.is_some()) {
        return Ok(());
    }
    let text = "a boot with the emulated PMU came up without it; see `cargo xtask run`";
    Err(MachineError::Unfinished(text.to_string()).into())
}

/// Median of times; of an even number the mean of the two in the middle.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    // Of an odd number both are the one in the middle.
    let lower = values.len().saturating_sub(1) / 2;
    f64::midpoint(values[lower], values[upper])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_two_in_the_middle() {
        for (values, expected) in [
            (&[3.0][..], 3.0),
            (&[4.0, 1.0], 2.5),
            (&[9.0, 1.0, 2.0], 2.0),
            (&[8.0, 1.0, 3.0, 2.0], 2.5),
        ] {
            assert_eq!(median(&mut values.to_vec()), expected, "{values:?}");
        }
    }
}
