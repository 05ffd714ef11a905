//! Random programs and the PMU's set-up for each, as they are handed to the guest that runs them, and where everything
//! lies in that guest's memory.
//!
//! A program has a window of linear addresses of its own, in the lowest 2 GiB so that 32-bit code reaches it, and a pool of
//! page frames, which is one naturally aligned piece of physical memory of the size of a large page. Which page shows which
//! frame is the program's choice.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

pub mod layout;
mod program;

pub use program::{Content, Frame, Mapping, Pmu, Preset, Program, Write, decode, encode};
