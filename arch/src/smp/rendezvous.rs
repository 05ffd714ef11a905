//! Processors that wait for each other, and then for an instant that one of them names.

use super::sync::{AtomicU64, AtomicUsize, Ordering, spin_loop};

/// Not named yet.
const UNKNOWN: u64 = u64::MAX;

/// Where they meet: once.
pub(crate) struct Rendezvous {
    ready: AtomicUsize,
    deadline: AtomicU64,
}

impl Rendezvous {
    /// Nobody is there.
    pub(crate) fn new() -> Self {
        Self { ready: AtomicUsize::new(0), deadline: AtomicU64::new(UNKNOWN) }
    }

    /// This processor is ready. Where it gets a way to `name` the instant, it waits for all, of which there are so many, and
    /// names it; otherwise it waits for the instant to be named. Returns the instant; whatever any of them wrote before can be read
    /// by all then. [`u64::MAX`] is not an instant.
    pub(crate) fn meet(&self, name: Option<(usize, &dyn Fn() -> u64)>) -> u64 {
        self.ready.fetch_add(1, Ordering::AcqRel);
        if let Some((all, name)) = name {
            while self.ready.load(Ordering::Acquire) < all {
                spin_loop();
            }
            self.deadline.store(name(), Ordering::Release);
        }
        loop {
            match self.deadline.load(Ordering::Acquire) {
                UNKNOWN => spin_loop(),
                instant => return instant,
            }
        }
    }

    /// The instant that was named.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }
}
