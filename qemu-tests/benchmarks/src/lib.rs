//! Thirty functions to measure, of the kinds that people do measure. None of them knows of measuring.
#![no_std]

extern crate alloc;

pub mod hashing;
pub mod numbers;
pub mod sorting;
pub mod text;
