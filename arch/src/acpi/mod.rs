//! The ACPI tables, through the `acpi` crate: the power management timer, the reset register, the processors, serial
//! ports, and the way to switch the machine off.
//!
//! That crate needs a library feature which stable Rust keeps back; the firmware is built with it, host tests
//! are not, so only what is pure is there for both.

#[cfg(target_os = "none")]
mod access;
mod bytes;
pub mod domains;
pub mod facts;
#[cfg(target_os = "none")]
mod platform;
#[cfg(target_os = "none")]
mod power_off;
pub mod processors;
pub mod remapping;
pub mod reset;
pub mod root;
pub mod serial;
pub mod sleep;
pub mod sleep_type;
pub mod smi;

#[cfg(target_os = "none")]
pub use platform::{Platform, near};
#[cfg(target_os = "none")]
pub use power_off::Error as PowerOffError;
