//! Ctrl-C and its like.
//!
//! A signal ends this program at once, as it would any other, until something would be left behind: a machine, a
//! temporary folder, a report that was begun. Whoever makes such a thing holds a [`Deferred`] meanwhile, asks
//! [`pending`] now and then, and cleans up; with the last of them the signal does what it always does, unless somebody
//! has [`take`]n it. A second signal does not wait.

use crate::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Exit code of a command that was interrupted and has shown what there was: 128 + 2, what a shell says of SIGINT.
pub const EXIT_CODE: u8 = 130;

struct State {
    /// Whether a signal ends the program at once.
    immediate: Arc<AtomicBool>,
    /// Whether one has come.
    again: Arc<AtomicBool>,
    /// Its number; 0: none.
    signal: Arc<AtomicUsize>,
    /// How many [`Deferred`] there are.
    deferred: AtomicUsize,
}

static STATE: LazyLock<State> = LazyLock::new(|| State {
    immediate: Arc::new(AtomicBool::new(true)),
    again: Arc::default(),
    signal: Arc::default(),
    deferred: AtomicUsize::new(0),
});

/// Watches the signals from now on. One that is ignored, as `nohup` and a shell's background jobs have it, is left so.
///
/// # Errors
/// The system refuses.
pub fn watch() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if is_ignored(signal) {
            continue;
        }
        // They run in this order.
        flag::register_conditional_default(signal, Arc::clone(&STATE.immediate))?;
        flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&STATE.again))?;
        flag::register(signal, Arc::clone(&STATE.again))?;
        flag::register_usize(signal, Arc::clone(&STATE.signal), signal as usize)?;
    }
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action the call only fills in the old one, for which zeroed memory is a valid place.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// While this is held, signals wait.
#[derive(Debug)]
pub struct Deferred(());

/// Makes signals wait. What must be cleaned up is made after this, so that it is gone before.
#[must_use]
pub fn defer() -> Deferred {
    STATE.deferred.fetch_add(1, Ordering::SeqCst);
    STATE.immediate.store(false, Ordering::SeqCst);
    Deferred(())
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if STATE.deferred.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        STATE.immediate.store(true, Ordering::SeqCst);
        let signal = STATE.signal.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // It does not come back from any of the three; if it did, the command would only continue to its end.
            let _ = low_level::emulate_default_handler(signal as i32);
        }
    }
}

/// The name of the signal that waits, as `SIGINT`.
#[must_use]
pub fn pending() -> Option<&'static str> {
    name(STATE.signal.load(Ordering::SeqCst))
}

/// Goes on only if no signal waits: for whoever is about to write, or to say that something was made.
///
/// # Errors
/// [`Failure::Interrupted`].
pub fn check() -> Result<()> {
    pending().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// The same as [`pending`], which does not wait any longer: the caller ends the command with [`EXIT_CODE`].
#[must_use]
pub fn take() -> Option<&'static str> {
    name(STATE.signal.swap(0, Ordering::SeqCst))
}

fn name(signal: usize) -> Option<&'static str> {
    (signal != 0).then(|| low_level::signal_name(signal as i32).unwrap_or("a signal"))
}
