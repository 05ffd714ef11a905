//! QEMU's plugin interface: own declarations of its C functions, and thin calls.

mod api;
mod emit;
mod registers;
mod types;

pub use api::{Api, Missing, api, find};
pub use emit::{bytes, instructions};
pub use registers::{Names, Reader};
pub use types::*;
