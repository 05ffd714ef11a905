//! The machine's own watchdog: resets the machine if an item hangs it past everything else. Only where the report is kept over a
//! reset, else the machine would run the same job for ever.

use super::saved;
use alloc::vec::Vec;
use arch::acpi::Platform;
use arch::watchdog::machine::{Hardware, Watchdog};
use core::sync::atomic::{AtomicU64, Ordering};
use kernel::console::Terminal;
use kernel::heartbeat::Beat;
use protocol::record::Within;
use spin::Mutex;

static MACHINES: Mutex<Option<Watchdog<Hardware>>> = Mutex::new(None);
/// TSC when its time began anew.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Time that an item may take without a sign of life, besides what it is allowed to: firmware that handles SMIs, counters that
/// are slow to read, a reset that comes in counts of seconds.
const MARGIN_MS: u64 = 20_000;
/// What any item may take.
const UNKNOWN_MS: u64 = 40_000;

/// Looks for one. Returns what it is called.
pub fn open(platform: &Platform) -> Option<&'static str> {
    if !saved::is_on() {
        return None;
    }
    let mut table: Option<Vec<u8>> = None;
    let note = |_: usize, bytes: &[u8]| {
        if bytes.starts_with(b"WDAT") {
            table = Some(bytes.to_vec());
        }
    };
    // SAFETY: the tables were read before; physical memory is mapped; nobody else uses configuration space.
    let found = unsafe {
        platform.each_table(note);
        Watchdog::find(table.as_deref())
    };
    let name = found.as_ref().map(Watchdog::name);
    *MACHINES.lock() = found;
    name
}

/// An item begins that may give no sign of life for so many milliseconds, or as long as it likes, by [`kernel::run::silence::of`].
pub fn begin(silence: Option<u64>) {
    match silence {
        None => stop(),
        Some(ms) => arm(UNKNOWN_MS.max(ms + MARGIN_MS)),
    }
}

/// What runs may take so many milliseconds from one sign of life to the next; 0: as long as it likes.
pub fn limit(ms: u32) {
    match ms {
        0 => stop(),
        ms => arm(u64::from(ms) + MARGIN_MS),
    }
}

fn arm(ms: u64) {
    if let Some(watchdog) = &mut *MACHINES.lock() {
        watchdog.arm(ms);
    }
}

/// A sign of life at TSC `now`, at most one in `every` ticks.
pub fn reload(now: u64, every: u64) {
    if now.wrapping_sub(BEGUN.load(Ordering::Relaxed)) < every {
        return;
    }
    BEGUN.store(now, Ordering::Relaxed);
    if let Some(watchdog) = &mut *MACHINES.lock() {
        watchdog.reload();
    }
}

/// Nothing is watched any more.
pub fn stop() {
    if let Some(watchdog) = &mut *MACHINES.lock() {
        watchdog.stop();
    }
}

/// Tells that an item runs, and that it lives.
pub struct Reloading<'a> {
    /// Whom it is told.
    pub heart: &'a dyn Beat,
    /// Ticks of a second.
    pub every: u64,
}

impl Beat for Reloading<'_> {
    fn beat(&self, now: u64, within: Within) {
        reload(now, self.every);
        self.heart.beat(now, within);
    }

    fn early_for(&self, now: u64) -> u64 {
        self.heart.early_for(now)
    }

    fn terminal(&self) -> Option<&dyn Terminal> {
        self.heart.terminal()
    }
}
