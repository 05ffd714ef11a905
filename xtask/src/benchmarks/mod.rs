//! Benchmarks that a program registers: in Rust with the crate `barecount` (`bench/`), in C with its header.
//!
//! - [`package`]: which programs of a cargo package hold benchmarks; [`build`]: building them for the bare machine.
//! - [`entries`]: what a linked program registers; [`template`]: a package to begin with.

pub mod build;
pub mod entries;
mod error;
pub mod package;
pub mod template;

pub use entries::Benchmark;
pub use error::BenchmarkError;
