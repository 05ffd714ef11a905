//! Linux as the distribution ships it: its kernel ([`kernel`]), its `perf` and a shell in a file system in memory
//! ([`tools`], [`file_system`]), and what is done there ([`steps`]); also with virtual machines in it, by the kernel's KVM
//! ([`modules`]) and QEMU ([`emulator`]). The packages are downloaded once and unpacked, never
//! installed.

pub mod emulator;
mod error;
pub mod file_system;
mod kernel;
pub mod modules;
mod needed;
mod packages;
mod parsers;
pub mod partition;
pub mod steps;
mod tools;

pub use error::StockError;
pub use kernel::kernel;
pub use parsers::{kunit, lava};
pub use tools::{Tools, tools};
