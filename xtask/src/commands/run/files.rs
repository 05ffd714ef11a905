//! The files of a run: those that the command reads, those that it keeps, and its folder.

use super::staging::{self, write};
use crate::cli::Run;
use crate::machine::devices::PMU_LOG;
use crate::{Failure, Result, output};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that the command reads.
pub(super) fn inputs(arguments: &Run) -> Vec<&Path> {
    let events = arguments.overrides.event_files.iter().map(|file| file.path.as_path());
    let commands = arguments.console.commands.as_deref();
    events.chain(arguments.job.as_deref()).chain(commands).collect()
}

/// What `--keep` leaves, in whatever way the machine is booted.
const KEPT: [&str; 9] = [
    "direct.bin",
    "kernel",
    "ramdisk",
    staging::HYPERVISOR,
    "disk.img",
    "variables.fd",
    "command.txt",
    "serial.log",
    PMU_LOG,
];

/// Refuses a folder to keep the run's files in where one of them would overwrite what the command reads or the report.
pub(super) fn check_kept(arguments: &Run) -> Result<()> {
    let Some(folder) = &arguments.keep else { return Ok(()) };
    let kept = KEPT.map(|name| folder.join(name));
    let mut outputs = arguments.output.files();
    outputs.extend(kept.iter().map(PathBuf::as_path));
    output::distinct(&outputs, &inputs(arguments))
}

/// The run's folder: a temporary one, or one that is kept.
pub(in crate::commands) struct Scratch {
    pub(super) path: PathBuf,
    pub(super) _temporary: Option<tempfile::TempDir>,
}

impl Scratch {
    pub(in crate::commands) fn new(keep: Option<&Path>) -> Result<Self> {
        if let Some(path) = keep {
            fs::create_dir_all(path).map_err(Failure::file("create", path))?;
            let path = path.canonicalize().map_err(Failure::file("open", path))?;
            return Ok(Self { path, _temporary: None });
        }
        let folder = tempfile::tempdir();
        let folder = folder.map_err(Failure::file("create", &std::env::temp_dir()))?;
        Ok(Self { path: folder.path().to_path_buf(), _temporary: Some(folder) })
    }

    pub(in crate::commands) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::commands) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.path.join(name), bytes)
    }
}
