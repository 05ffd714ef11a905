//! What the processors share memory by. `tests/interleavings.rs` compiles the modules that use this with loom's types in its
//! place, and tries every order in which two or three processors can come through them.

pub(super) use core::hint::spin_loop;
pub(super) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(super) use spin::Mutex;

/// A constructor that is `const` here. Loom's types cannot be made in a constant.
macro_rules! constructor {
    ($(#[$doc:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> Self $body:block) => {
        $(#[$doc])* $visibility const fn $name($($argument: $type),*) -> Self $body
    };
}
pub(super) use constructor;
