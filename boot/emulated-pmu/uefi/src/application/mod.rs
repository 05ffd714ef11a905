//! The application's parts, in the order in which they have their turn.

pub mod files;
pub mod hypervisor;
pub mod next;
mod pages;
mod processors;
