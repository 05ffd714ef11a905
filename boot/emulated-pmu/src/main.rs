//! The hypervisor.
//!
//! A loader calls the entry point in [`payload::entry`]; the call comes back with the caller running as a guest. From then on
//! the processor is here only between an exit of the guest and its next entry, in `payload::run`.
//!
//! The guest owns the whole machine: memory, devices and interrupts are its own, without nested paging as long
//! as no instructions are counted. What is intercepted is what makes the PMU.
//!
//! `docs/architecture/emulated-pmu.md` tells the way of one counted instruction through its parts.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod payload;
