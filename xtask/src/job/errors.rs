//! What can be wrong with a job.

use crate::benchmarks::BenchmarkError;
use crate::events::EventsError;
use crate::program::ProgramError;
use protocol::job::limits::LimitError;
use protocol::ramdisk::RamdiskError;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// What is wrong with a job.
#[derive(Debug, Error)]
pub enum JobError {
    /// The file cannot be read.
    #[error("cannot read the job {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// It is not TOML, or has keys or values that a job does not have. The message shows line and column.
    #[error("{file}: {message}")]
    Toml {
        /// The file.
        file: String,
        /// What and where.
        message: String,
    },
    /// A value of an item is out of its bounds, or the item cannot be made.
    #[error("{place}: {kind} `{name}`: {message}")]
    Item {
        /// File and line.
        place: Place,
        /// What a job file calls items of its kind.
        kind: &'static str,
        /// The item's name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// What is wrong with tasks, all of it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Tasks(Vec<TaskError>),
    /// A value of a workload whose place is not known here is out of its bounds.
    #[error("the workload: {0}")]
    Workload(LimitError),
    /// Compiled code that cannot be used.
    #[error("{place}: item `{item}`: {error}")]
    Program {
        /// File and line.
        place: Place,
        /// The item's name.
        item: String,
        /// What is wrong.
        error: Box<ProgramError>,
    },
    /// Metrics that the job has no item for.
    #[error("{file}: {message}")]
    Metrics {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A value of the job as a whole is out of its bounds.
    #[error("{file}: {error}")]
    Limit {
        /// The file.
        file: String,
        /// What is wrong.
        error: LimitError,
    },
    /// What memory is to be filled with cannot be read.
    #[error("{file}: {error}")]
    Memory {
        /// The file.
        file: String,
        /// Which memory, and why.
        error: String,
    },
    /// Texts that the assembler refuses, all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Assembly(Vec<AssemblyError>),
    /// Instruction forms that cannot be measured, one to a line.
    #[error("{0}")]
    Forms(String),
    /// The assembler itself cannot be run.
    #[error("cannot assemble: {0}")]
    Assembler(String),
    /// The job is for a newer barecount.
    #[error("{file}: the job has version {found}; this barecount knows up to {known}")]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
        /// The newest one known.
        known: u16,
    },
    /// A job file and a snippet on the command line.
    #[error(
        "give one of a job file, --asm, --crate, --object and --function, or --latency and --throughput"
    )]
    FileAndAsm,
    /// Options of a function, incomplete.
    #[error("{0}")]
    Function(String),
    /// A certificate asked of a job that has a suite of its own.
    #[error(
        "{0} is a job of the conformance suite, and --honest has one of its own; run them one after the other"
    )]
    HonestSuite(String),
    /// An option that changes a snippet of the command line, without one.
    #[error("{0} changes the snippet of --asm; give that too")]
    NeedsAsm(&'static str),
    /// A part of all instruction forms, in a job that does not measure them.
    #[error("--shard divides the forms of [[characterise]] with all = true; the job has none")]
    NeedsCatalog,
    /// A filter on the command line, for snippets that are not stepped through.
    #[error("{0} filters what exact mode counts; give --exact too")]
    NeedsExact(&'static str),
    /// An option of histories on the command line, for snippets that have none.
    #[error("{0} changes a history; give --history too")]
    NeedsHistory(&'static str),
    /// The machine was given fewer processors than the job needs.
    #[error(
        "{file}: the job needs {needed} processors (cpus = {needed}), and --cpus {cpus} gives it fewer"
    )]
    Cpus {
        /// The file.
        file: String,
        /// What it needs.
        needed: u32,
        /// What it was given.
        cpus: u32,
    },
    /// Events that no table has. The target has the same tables.
    #[error(
        "{}\nno processor can count these; --allow-uncounted, or allow-uncounted = true in the job, runs it without them",
        .lines.iter().map(|line| format!("{file}: {line}")).collect::<Vec<_>>().join("\n")
    )]
    UnknownEvents {
        /// The file.
        file: String,
        /// Each event, and what is near it.
        lines: Vec<String>,
    },
    /// There are no benchmarks to measure.
    #[error(transparent)]
    Benchmark(#[from] BenchmarkError),
    /// A file of events cannot be used.
    #[error(transparent)]
    Events(#[from] EventsError),
    /// The job passes every check but cannot be packed.
    #[error("{file}: {error}")]
    Pack {
        /// The file.
        file: String,
        /// The reason.
        error: RamdiskError,
    },
}

impl JobError {
    /// What is wrong with an item of a `kind`, as job files call it.
    pub(crate) fn of_item(kind: &'static str, place: &Place, name: &str, message: String) -> Self {
        Self::Item { place: place.clone(), kind, name: name.to_string(), message }
    }

    /// The same error; if it is one of a workload, with the item that `refused` names.
    pub(crate) fn in_item(self, refused: impl FnOnce(String) -> Self) -> Self {
        match self {
            Self::Workload(error) => refused(error.to_string()),
            other => other,
        }
    }
}

/// A place in a job file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The file, or where else the text came from.
    pub file: String,
    /// Line and column, counted from 1, if the text came from a file.
    pub position: Option<(usize, usize)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// What is wrong with one task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaskError {
    /// File, line and column.
    pub place: Place,
    /// The task's name.
    pub task: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: task `{}`: {}", self.place, self.task, self.message)
    }
}

/// One message of the assembler.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssemblyError {
    /// File, line and column.
    pub place: Place,
    /// The snippet's name.
    pub snippet: String,
    /// `body` or `init code`.
    pub part: &'static str,
    /// Line within that part, counted from 1; 0 if the message belongs to none.
    pub line: usize,
    /// That line.
    pub text: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: snippet `{}`: {}", self.place, self.snippet, self.message)?;
        if self.line > 0 {
            write!(f, "\n  in line {} of its {}: {}", self.line, self.part, self.text.trim())?;
        }
        Ok(())
    }
}
