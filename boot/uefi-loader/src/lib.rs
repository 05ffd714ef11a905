//! What the loader for UEFI machines decides without the machine: [`screen`].
#![no_std]
#![warn(missing_docs)]

pub mod screen;
