//! The hypervisor with a fault in its PMU, chosen by `fault=NAME`; see `main.rs`, which is the same without.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod payload;
