//! Counting over longer work than a snippet: by several parties, with more events than counters.
//!
//! - [`VirtualCounter`]: 64 bits over a hardware counter of any width, by interrupt and by read.
//! - [`Platform`]: what all of this needs of the machine beside the PMU's registers.
#![warn(missing_docs)]

mod platform;
mod virtual_counter;

pub use platform::Platform;
pub use virtual_counter::{Mode, VirtualCounter};

#[cfg(test)]
mod tests;
