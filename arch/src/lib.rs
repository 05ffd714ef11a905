//! The x86-64 layer: everything that touches the machine, and nothing that knows what it is for.
//!
//! - [`cpu`]: identity, features, extended state. [`msr`]: model-specific registers, also ones that
//!   may not exist.
//! - [`descriptors`] and [`interrupts`]: GDT, TSS, IDT, exceptions as values.
//! - [`memory`]: frames, address space with W^X and guard pages, the layout of both halves.
//! - [`apic`], [`time`], [`uart`], [`pci`], [`acpi`], [`power`]: the devices that barecount uses.
//! - [`pmu`]: the performance monitoring unit. [`smp`]: the other processors.
//! - [`call`]: running foreign machine code so that a fault in it comes back as a value. [`step`]: the same one
//!   instruction at a time. [`ring3`]: running code in ring 3. [`watchdog`]: a limit to its time. [`state`]: what it
//!   may leave behind. [`switches`]: prefetchers, turbo, the clock.
//! - [`task`]: several pieces of code that share the processor.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

extern crate alloc;

pub mod acpi;
pub mod apic;
pub mod backtrace;
pub mod call;
pub mod cpu;
pub mod debug;
pub mod descriptors;
pub mod interrupts;
pub mod machine_check;
pub mod memory;
pub mod msr;
pub mod pci;
pub mod pmu;
pub mod power;
pub mod ring3;
pub mod smp;
pub mod state;
pub mod step;
pub mod switches;
pub mod task;
pub mod time;
pub mod trap;
pub mod uart;
pub mod vectors;
pub mod watchdog;
