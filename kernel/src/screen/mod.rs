//! What somebody in front of the machine sees: name, machine, progress, pass or fail at a glance, and the
//! last error. Everything is in the report as well.

mod canvas;
mod failure;
mod layout;

pub use canvas::{Canvas, Format};
pub use failure::{Failure, draw_failure};
pub use layout::{Header, draw_header, draw_running, draw_status};

use alloc::string::String;
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
    /// Why the report is kept nowhere but on this screen, where that is so.
    pub unkept: Option<String>,
    /// The last error, in words.
    pub last_error: Option<String>,
    /// How the run ended, when it has.
    pub outcome: Option<Outcome>,
}
