//! What somebody in front of the machine sees: pass or fail from across the room, how far the run is, the figures themselves,
//! what the machine is, and how the results leave it. Everything is in the report as well.

mod board;
mod canvas;
mod code;
mod failure;
mod grid;
mod layout;
mod lines;
mod pages;
#[cfg(test)]
mod tests;

pub use board::{Board, MAX_ITEMS};
pub use canvas::{Canvas, Format};
pub use code::CHARACTERS;
pub use failure::{Failure, draw_failure, draw_step, said};
pub use grid::scale;
pub use pages::Screen;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use protocol::record::Outcome;

/// How far the run is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// Items done.
    pub done: u32,
    /// Items in the job.
    pub total: u32,
    /// Items that met their expectation.
    pub passed: u32,
    /// Items that missed it or ended in an error.
    pub failed: u32,
    /// Items without expectation.
    pub measured: u32,
    /// Name of the item that runs.
    pub running: Option<String>,
    /// The last error, in words.
    pub last_error: Option<String>,
    /// How the run ended, when it has.
    pub outcome: Option<Outcome>,
}

/// What does not change during a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Header {
    /// Program and version.
    pub title: String,
    /// Name of the job.
    pub job: String,
    /// Lines about the machine, the most important ones first.
    pub machine: Vec<String>,
    /// How the report leaves the machine.
    pub ways: Ways,
}

/// How the report leaves the machine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ways {
    /// Ways that work, in words.
    pub working: Vec<String>,
    /// Why the report is kept nowhere, or not all of it, if that is so.
    pub trouble: Option<Trouble>,
}

/// Why the report is kept nowhere, or not all of it, each with its reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// No port is open.
    NoLine(String),
    /// A port that is open has stopped.
    NotAll(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::NoLine(why) => write!(f, "NO SERIAL LINE: {why}"),
            Self::NotAll(why) => write!(f, "NOT ALL WAS SENT: {why}"),
        }
    }
}
