//! The parts of the bootable program.

pub mod boot;
pub mod bring_up;
pub mod control;
pub mod counters;
pub mod counting;
pub mod crash;
pub mod display;
mod facts;
pub mod finish;
pub mod heap;
mod history;
mod memory;
pub mod output;
pub mod passes;
pub mod per_cpu;
mod ports;
pub mod probe;
pub mod processor_set;
pub mod processors;
pub mod programs;
pub mod reset;
mod sampling;
pub mod saved;
pub mod stacks;
pub mod target;
pub mod tasks;
pub mod test_machine;
