//! A machine whose serial line is the terminal that this program was started in.

use super::{Ending, MachineError, stop_line};
use crate::interrupt;
use crate::process::tied;
use crate::setup::qemu;
use std::ffi::OsString;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// How often the machine is looked at.
const TICK: Duration = Duration::from_millis(20);

/// How long QEMU may take to put the terminal back as it was.
const GRACE: Duration = Duration::from_secs(3);

/// Runs QEMU with `arguments` in `folder` until it ends by itself, `limit` is over, or a signal comes. Its standard input,
/// output and errors are this program's.
///
/// # Errors
/// QEMU cannot be started.
pub fn run(
    arguments: &[OsString],
    folder: &Path,
    limit: Option<Duration>,
) -> Result<Ending, MachineError> {
    let program = qemu::probe().map_or_else(|_| qemu::program().into(), |found| found.path);
    let mut command = tied(program);
    command.args(arguments).current_dir(folder);
    stop_line::give(&mut command).map_err(MachineError::NoStart)?;
    let mut child = command.spawn().map_err(MachineError::NoStart)?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(MachineError::NoStart)? {
            return Ok(Ending::Exited(status.code()));
        }
        if let Some(signal) = interrupt::pending() {
            end(&mut child);
            return Ok(Ending::Interrupted(signal));
        }
        if let Some(limit) = limit.filter(|limit| start.elapsed() > *limit) {
            end(&mut child);
            return Ok(Ending::TimedOut(limit));
        }
        std::thread::sleep(TICK);
    }
}

/// Asks it to end, and ends it if it does not.
fn end(child: &mut Child) {
    // SAFETY: the process was started here and has not been waited for, so its number is still its own.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    let start = Instant::now();
    while start.elapsed() < GRACE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(TICK);
    }
    // It may have ended in this moment; then there is nothing to do.
    let _ = child.kill();
    let _ = child.wait();
}
