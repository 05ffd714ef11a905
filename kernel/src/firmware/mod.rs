//! The parts of the bootable program.

pub mod bench;
pub mod boot;
pub mod crash;
pub mod display;
pub mod finish;
pub mod heap;
pub mod output;
pub mod probe;
mod sampling;
pub mod stacks;
pub mod target;
