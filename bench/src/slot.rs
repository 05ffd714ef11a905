//! Where the set-up leaves a run's input.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Room for one value between set-up and teardown of a run. Without a flag that states whether it is full, so that taking the
/// value costs the measured function nothing but its address.
#[derive(Debug)]
pub struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: benchmarks run one after the other, on one processor and in one thread, so nothing is shared.
unsafe impl<T> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// An empty slot.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it stands in statics alone")]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Puts a value in, over whatever was there.
    pub fn put(&self, value: T) {
        // SAFETY: see `Sync`; no reference to the value outlives the run that it was made for.
        unsafe { (*self.0.get()).write(value) };
    }

    /// The value.
    ///
    /// # Safety
    /// There is one, and no other reference to it.
    #[expect(clippy::mut_from_ref, reason = "the caller answers for the only reference")]
    #[inline(always)]
    pub unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller answers for it.
        unsafe { (*self.0.get()).assume_init_mut() }
    }

    /// Drops the value.
    ///
    /// # Safety
    /// There is one, and it is not used again.
    pub unsafe fn empty(&self) {
        // SAFETY: the caller answers for it.
        unsafe { (*self.0.get()).assume_init_drop() };
    }
}
