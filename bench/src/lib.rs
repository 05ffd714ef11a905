//! Benchmarks that `cargo xtask run --crate` measures on the bare machine.
//!
//! A bench target with `harness = false` registers functions, and says that it needs no operating system:
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! extern crate alloc;
//! use alloc::vec::Vec;
//! use barecount::{Arena, bench, black_box};
//!
//! barecount::main!();
//!
//! #[global_allocator]
//! static HEAP: Arena<{ 1 << 20 }> = Arena::new();
//!
//! bench! {
//!     fn add() { black_box(1_u64) + black_box(2) }
//!     fn sum(n: u64 in [10, 1000]) { (0..n).map(black_box).sum::<u64>() }
//!     fn sort(n: u64 in [16, 256], numbers: Vec<u64> = (0..n).rev().collect()) { numbers.sort() }
//! }
//! ```
//!
//! The same file is a program on the host, where `cargo bench` and `cargo test --benches` run each benchmark once, as a check.
//! There the crate brings the standard library along; the bare machine has `core` and `alloc`.
#![cfg_attr(barecount_bare, no_std)]

#[cfg(feature = "arena")]
mod arena;
#[cfg(barecount_bare)]
mod bare;
mod entry;
#[cfg(not(barecount_bare))]
mod host;
#[cfg(any(barecount_bare, test))]
mod message;
mod register;
mod slot;

#[cfg(feature = "arena")]
pub use arena::Arena;
pub use core::hint::black_box;

/// What [`bench!`] expands to; no part of the crate's interface.
#[doc(hidden)]
pub mod expansion {
    #[cfg(barecount_bare)]
    pub use crate::bare::start::start;
    pub use crate::entry::{Entry, entries};
    #[cfg(not(barecount_bare))]
    pub use crate::host::run;
    pub use crate::slot::Slot;
}
