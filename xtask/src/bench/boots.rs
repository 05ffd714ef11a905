//! How long a boot takes.

use super::Figure;
use crate::build::Tree;
use crate::cli::{Boot, Icount};
use crate::commands::run::stage_files;
use crate::job::{self, Overrides, Packed, Purpose};
use crate::machine::devices::{Virtual, arguments};
use crate::machine::{self, Ending, Finished, MachineError};
use crate::progress::Work;
use crate::{Failure, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than any boot here.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A job of one short snippet.
pub(super) fn one_snippet() -> Result<Packed> {
    let overrides = Overrides { asm: Some("add rax, rbx".to_string()), ..Overrides::default() };
    Ok(job::load(None, &overrides, Purpose::Qemu)?)
}

pub(super) fn scratch() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(Failure::file("create", &std::env::temp_dir()))
}

/// Boots `kernel` once under TCG.
pub(super) fn boot(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    boot: Boot,
) -> Result<(Finished, Duration)> {
    let folder = scratch()?;
    let machine = Virtual {
        boot: stage_files(tree, kernel, ramdisk, boot, folder.path())?,
        kvm: false,
        icount: Icount::Auto.shift(boot),
        memory: 256,
        cpu: None,
        serial: true,
        screen: false,
        extra: Vec::new(),
    };
    let start = Instant::now();
    let finished = machine::run(&arguments(&machine), folder.path(), TIMEOUT, |_| ())?;
    let elapsed = start.elapsed();
    if matches!(finished.ending, Ending::TimedOut(_)) {
        let text = finished.complaint().unwrap_or_default();
        return Err(MachineError::Unfinished(text).into());
    }
    Ok((finished, elapsed))
}

/// Boots our job and the hello kernel in turn, `count` times each.
pub(super) fn measure(tree: &Tree, hello: &Path, way: Boot, count: u32) -> Result<Vec<Figure>> {
    let name = format!("{way:?}").to_lowercase();
    let job = one_snippet()?;
    let mut work = Work::of(u64::from(count), format!("booting {name}"));
    let (mut first, mut end, mut whole, mut bare) = (vec![], vec![], vec![], vec![]);
    for round in 0..count {
        work.tick(u64::from(round));
        let (finished, elapsed) = boot(tree, &tree.kernel(), Some(&job.bytes), way)?;
        let missing = || MachineError::Unfinished(format!("the {name} boot gave no report"));
        first.push(finished.to_first_record.ok_or_else(missing)?.as_secs_f64());
        end.push(finished.to_end_record.ok_or_else(missing)?.as_secs_f64());
        whole.push(elapsed.as_secs_f64());
        bare.push(boot(tree, hello, None, way)?.1.as_secs_f64());
    }
    let ratio = median(&mut whole.clone()) / median(&mut bare.clone());
    Ok(vec![
        Figure::time(format!("{name}: exec to first record"), first),
        Figure::time(format!("{name}: exec to end record"), end),
        Figure::time(format!("{name}: exec to exit"), whole),
        Figure::time(format!("{name}: exec to exit, hello kernel"), bare),
        Figure::count(format!("{name}: exec to exit, ours to hello"), ratio, "ratio"),
    ])
}

/// Median of times.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
