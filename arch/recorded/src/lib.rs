//! CPUID of processors that somebody recorded: the answers of one processor ([`Leaves`]), the texts that hold them
//! ([`text`]), and a report's machine record as such ([`machine`]).
//!
//! With the feature `cores`, `cores` has 444 real ones, for tests.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

#[cfg(feature = "cores")]
pub mod cores;
mod leaves;
pub mod machine;
pub mod text;

pub use leaves::{Leaf, Leaves, Registers, Twice};
