//! Memory: which frames are free ([`frames`]), where things lie ([`layout`]), and the address space that
//! the firmware builds for itself ([`space`]).

pub mod areas;
pub mod arena;
pub mod cache;
pub mod copy;
pub mod frames;
pub mod handover;
pub mod image;
pub mod layout;
pub mod program;
pub mod requested;
pub mod space;
pub mod user;

pub use frames::{Frames, OutOfMemory, Region};
pub use handover::Handover;
pub use space::Space;
