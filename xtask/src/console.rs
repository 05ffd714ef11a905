//! The console of a job's items, from this end of the serial line: what is sent, and what is said about the answers.
//!
//! Each line that is sent has one answer. A [`Script`] is sent line by line, each behind the answer to the one before, so that
//! a run repeats exactly wherever tasks wait for it. What somebody types is sent as it is typed.

mod driver;
mod say;
mod script;

pub use driver::{Driver, typed};
pub(crate) use say::{said, state};
pub use say::{say, value};
pub use script::{Script, ScriptError, Step};
