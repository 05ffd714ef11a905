//! Linux as the distribution ships it: its kernel ([`kernel`]), its `perf` in a file system in memory ([`tools`],
//! [`file_system`]), a machine that boots them with the emulated PMU in front ([`machine`]), what is done there ([`steps`]),
//! programs of which every instruction is known ([`known`]), and how to read what perf and the kernel say ([`perf`],
//! [`kernel_log`]).

pub mod file_system;
mod kernel;
pub mod kernel_log;
pub mod known;
pub mod machine;
mod needed;
mod packages;
pub mod perf;
pub mod steps;
mod tools;

pub use kernel::kernel;
pub use tools::{Tools, tools};
