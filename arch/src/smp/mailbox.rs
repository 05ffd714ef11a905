//! How a piece of work gets from the boot processor to another one, and back: the memory that both share.
//!
//! The interrupt that wakes is the caller's: [`super::work`] sends it, the model check has another.

use super::sync::{AtomicBool, AtomicPtr, Mutex, Ordering, constructor, spin_loop};
use core::ptr::null_mut;

/// Where a processor finds its next piece of work.
pub(crate) struct Mailbox(AtomicPtr<Call<'static>>);

/// A piece of work, on the stack of the processor that waits for it.
pub(crate) struct Call<'a> {
    work: Mutex<Option<&'a mut (dyn FnMut() + Send)>>,
    done: AtomicBool,
}

impl<'a> Call<'a> {
    /// Work that is not done yet.
    pub(crate) fn new(work: &'a mut (dyn FnMut() + Send)) -> Self {
        Self { work: Mutex::new(Some(work)), done: AtomicBool::new(false) }
    }

    /// Whether it is done, and everything that it wrote can be read.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits until it is done. `halt_until` halts until the next interrupt unless the call is done by then; it is used while
    /// `halts` is set.
    pub(crate) fn wait(&self, halts: &AtomicBool, mut halt_until: impl FnMut(&Self)) {
        while !self.is_done() {
            if halts.load(Ordering::Relaxed) {
                halt_until(self);
            } else {
                spin_loop();
            }
        }
    }
}

impl Mailbox {
    constructor! {
        /// Nothing in it.
        pub(crate) fn empty() -> Self {
            Self(AtomicPtr::new(null_mut()))
        }
    }

    /// Puts a call in. The mailbox must be empty: the boot processor alone puts calls in, and waits for each.
    ///
    /// # Safety
    /// The call stays where it is until it is done.
    pub(crate) unsafe fn put(&self, call: &Call) {
        let call = core::ptr::from_ref(call).cast_mut().cast::<Call<'static>>();
        let before = self.0.swap(call, Ordering::Release);
        debug_assert!(before.is_null(), "a call that nobody waited for");
    }

    /// Does what is in it, if there is something, and calls `wake` where the one that waits may halt: it must have an interrupt
    /// by then.
    pub(crate) fn serve(&self, halts: &AtomicBool, wake: impl FnOnce()) -> bool {
        let call = self.0.swap(null_mut(), Ordering::Acquire);
        if call.is_null() {
            return false;
        }
        // SAFETY: whoever called `put` keeps the call until it is done.
        let call = unsafe { &*call };
        if let Some(work) = call.work.lock().take() {
            work();
        }
        // The last access to the call: from here on it may be gone.
        call.done.store(true, Ordering::Release);
        if halts.load(Ordering::Relaxed) {
            wake();
        }
        true
    }
}
