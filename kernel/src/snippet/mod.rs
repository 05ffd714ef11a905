//! Measuring a piece of machine code.
//!
//! [`emit`] puts the snippet, between code that reads the clock, into executable memory; [`mod@measure`] runs two sizes of it
//! and subtracts; [`events`] finds counters for what else is to be counted; [`qualified`] which instructions their events are of; [`fault`] explains an exception of the snippet;
//! [`mod@repeat_on_smi`] repeats a run that an interrupt came into which cannot be masked.

pub mod emit;
pub mod events;
pub mod fault;
pub mod measure;
pub mod qualified;
pub mod repeat_on_smi;
pub mod retired;
pub mod standing;

pub use emit::{Emitted, Place};
pub use measure::{Phase, Runner, measure};
