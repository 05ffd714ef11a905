//! Why a command ended without a result, and the exit code that says so.

use crate::benchmarks::BenchmarkError;
use crate::build::BuildError;
use crate::compare::CompareError;
use crate::document::DocumentError;
use crate::events::EventsError;
use crate::job::JobError;
use crate::lab::LabError;
use crate::machine::MachineError;
use crate::qr::QrError;
use crate::recording::RecordingError;
use crate::setup::SetupError;
use crate::stick::StickError;
use crate::text::printable_lines;
use crate::{interrupt, output};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended without a result.
#[derive(Debug, Error)]
pub enum Failure {
    /// The job file, a snippet or an override is wrong.
    #[error(transparent)]
    Job(#[from] JobError),
    /// There are no benchmarks to measure.
    #[error(transparent)]
    Benchmark(#[from] BenchmarkError),
    /// A processor, event or file of events is not understood.
    #[error(transparent)]
    Events(#[from] EventsError),
    /// Two reports cannot be compared, or limits are wrong.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A report cannot be read.
    #[error(transparent)]
    Page(#[from] DocumentError),
    /// An argument is wrong in a way that the command line's grammar cannot tell.
    #[error("{0}")]
    Usage(String),
    /// A file that the user named cannot be read or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    File {
        /// `read`, `write`, ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// Standard output takes no more.
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    /// A signal came, and there is nothing to show.
    #[error("interrupted by {0}")]
    Interrupted(&'static str),
    /// Something that is needed is missing and cannot be installed from here.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The firmware or a loader does not build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A lab cannot be used.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Pictures or texts hold no digest.
    #[error(transparent)]
    Qr(#[from] QrError),
    /// A recorded processor cannot be emulated, or not be put into the hypervisor.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A stick cannot be read.
    #[error(transparent)]
    Stick(#[from] StickError),
    /// QEMU or a serial device does not work.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A tool that the command only passes on to failed; it has said why.
    #[error("{0}")]
    Tool(String),
}

impl Failure {
    /// A file error with its path.
    pub fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File { doing, path: path.to_path_buf(), error }
    }

    /// Exit code: 2 for bad usage or a bad job, 3 for a machine that did not finish or a report that has nowhere to
    /// go, 77 when nothing could run, 130 after a signal, 1 for a failed test.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Job(_) | Self::Events(_) | Self::Usage(_) => 2,
            Self::Benchmark(_) | Self::Compare(_) | Self::Page(_) => 2,
            Self::File { .. } | Self::Stick(_) | Self::Recording(_) => 2,
            Self::Machine(error) => error.exit_code(),
            Self::Output(_) | Self::Qr(_) => 3,
            Self::Interrupted(_) => interrupt::EXIT_CODE,
            Self::Lab(LabError::Engine(_) | LabError::NoPlace { .. }) => 77,
            Self::Lab(_) => 2,
            Self::Setup(_) | Self::Build(_) => 77,
            Self::Tool(_) => 1,
        }
    }

    /// Prints the failure to standard error.
    pub fn print(&self) {
        let style = crate::primitives::style::ERROR;
        let text = self.to_string();
        output::say_styled(&format!("{style}error{style:#}: {}", printable_lines(&text)));
    }
}
