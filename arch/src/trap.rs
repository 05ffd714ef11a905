//! Interrupted code: its registers, and the exception that interrupted it. Who handles it is in [`crate::interrupts`].

pub mod exception;
mod frame;

pub use exception::Exception;
pub use frame::TrapFrame;
