//! Five-level paging, which some machines' firmware switches on (CR4 bit 12), and the way out of it.
//!
//! The number of levels changes only while paging is off, and so outside 64-bit mode (SDM vol. 3, 4.1.2): by code and tables below 4 GiB. Boot
//! loaders take the table in CR3 for one of the fourth level.

#[cfg(target_os = "uefi")]
mod switch;
#[cfg(any(test, target_os = "uefi"))]
mod tables;

#[cfg(target_os = "uefi")]
pub use switch::{Switch, is_on};
use thiserror::Error;

/// Why five-level paging stays on.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum LevelsError {
    /// The firmware gives none.
    #[error(
        "five-level paging is on (CR4.LA57), and no memory below 4 GiB is free for switching it off"
    )]
    NoMemory,
    /// The first entry of the table in CR3.
    #[error(
        "five-level paging is on (CR4.LA57), and the first entry of its table, {0:#x}, has no table of the fourth level"
    )]
    NoTable(u64),
    /// The end of the memory map.
    #[error(
        "five-level paging is on (CR4.LA57), and the machine has memory up to {0:#x}, which four levels do not reach"
    )]
    OutOfReach(u64),
}
