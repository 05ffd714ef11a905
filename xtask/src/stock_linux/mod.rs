//! Linux as the distribution ships it: its kernel ([`kernel`]), its `perf` and a shell in a file system in memory
//! ([`tools`], [`file_system`]), and what is done there ([`steps`]). The packages are downloaded once and unpacked, never
//! installed.

mod error;
pub mod file_system;
mod kernel;
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
