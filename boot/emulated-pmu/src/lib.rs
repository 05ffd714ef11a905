//! The parts of the emulated PMU that need no machine: what the loader's command line requests
//! ([`options`]), how the guest's page tables are read ([`walk`]), its debug registers ([`debug_registers`]), what an
//! instruction does ([`step`]), what it changes in memory ([`modify`]), what it sends to other processors ([`ipi`]), registers and a mode that QEMU's local APIC has not ([`extended_apic`], [`x2apic`]) and what these keep ([`mtrrs`]), whose turn it is ([`turns`]), what is
//! changed in the machine's tables ([`acpi`]), where the repeated string instructions are that QEMU's clock counts wrongly ([`rep`],
//! [`region`]), which frames lead back to them ([`returns`]), what it asks of the plugin in QEMU's translator ([`translator`]), what waits to be delivered ([`vectors`]), and what has cost how much ([`statistics`]). The hypervisor around them is
//! `main.rs`; the PMU itself is the crate `pmu-model`.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

extern crate alloc;

pub mod acpi;
pub mod control;
pub mod debug_registers;
pub mod delivery;
pub mod extended_apic;
pub mod ipi;
pub mod modify;
pub mod mtrrs;
pub mod nested;
pub mod options;
pub mod region;
pub mod rep;
pub mod returns;
pub mod statistics;
pub mod translator;
pub mod turns;
pub mod vectors;
pub mod vmcb;
pub mod walk;
pub mod x2apic;

pub use ::step;
