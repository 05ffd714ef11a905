//! Measuring a piece of machine code.
//!
//! [`emit`] puts the snippet, between code that reads the clock, into executable memory; [`mod@measure`] runs
//! two sizes of it and subtracts; [`events`] finds counters for what else is to be counted; [`fault`] explains an exception that the snippet raised.

pub mod emit;
pub mod events;
pub mod fault;
pub mod measure;

pub use emit::{Emitted, Place};
pub use measure::{Phase, Runner, measure};
