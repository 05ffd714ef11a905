//! A job on many machines, through labgrid: its coordinator hands out places, its drivers switch power, write sticks and read
//! serial lines, and its strategy (`lab/barecount_lab.py`) puts them together. What is here makes what is booted, calls
//! `lab/lab_run.py` once for each machine, and makes one report of all.
//!
//! - [`files`]: what a lab begins with. [`stage`]: what an environment boots. [`engine`]: calling labgrid.
//! - [`machine`]: what came of one machine. [`render`]: of all.

pub mod engine;
pub mod files;
pub mod machine;
pub mod render;
pub mod stage;

use thiserror::Error;

/// Why a lab cannot be used.
#[derive(Debug, Error)]
pub enum LabError {
    /// The folder for a new lab takes none.
    #[error("{path}: {why}")]
    New {
        /// The folder.
        path: String,
        /// Why.
        why: String,
    },
    /// The Python that was named cannot be used.
    #[error("--python {python}: {why}")]
    Python {
        /// The program.
        python: String,
        /// Why.
        why: String,
    },
    /// labgrid does not answer.
    #[error("{0}")]
    Engine(String),
    /// No place is meant.
    #[error("no place of the coordinator at {coordinator} has the tags {tags}")]
    NoPlace {
        /// Its address.
        coordinator: String,
        /// What was wanted.
        tags: String,
    },
    /// A place's PMU is none that can be emulated.
    #[error("the place {place} has the tag pmu={value}, which is not an emulated PMU")]
    Pmu {
        /// The place.
        place: String,
        /// The tag.
        value: String,
    },
}
