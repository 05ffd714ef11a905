//! A machine whose serial line is the terminal that this program was started in.

use super::{Ending, MachineError, stop_line};
use crate::interrupt;
use crate::process::{LentTerminal, tied};
use crate::setup::qemu;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus};
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
    run_program(&program, arguments, folder, limit)
}

fn run_program(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    limit: Option<Duration>,
) -> Result<Ending, MachineError> {
    let mut command = tied(program);
    command.args(arguments).current_dir(folder);
    // The program may be a script that waits for QEMU. Both are in a group of their own, which is ended as a whole.
    command.process_group(0);
    let _terminal = LentTerminal::lend(&mut command);
    stop_line::give(&mut command).map_err(MachineError::NoStart)?;
    let mut child = command.spawn().map_err(MachineError::NoStart)?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(MachineError::NoStart)? {
            return Ok(ended(status));
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

/// The terminal's Ctrl-C reaches the group alone, until QEMU takes it for the guest.
fn ended(status: ExitStatus) -> Ending {
    match status.signal() {
        Some(libc::SIGINT) => Ending::Interrupted("SIGINT"),
        _ => Ending::Exited(status.code()),
    }
}

/// Asks the process and its group to end, and ends those that do not.
fn end(child: &mut Child) {
    let group = -child.id().cast_signed();
    // SAFETY: a plain system call. The group was made here, and its number stays its own while one of it is left; the system gives
    // numbers out in a cycle, so that nobody else has it a moment later.
    let signal = |signal| unsafe { libc::kill(group, signal) } == 0;
    for number in [libc::SIGTERM, libc::SIGKILL] {
        signal(number);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            // The process itself is one of the group until it is waited for.
            let _ = child.try_wait();
            if !signal(0) {
                return;
            }
            std::thread::sleep(TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// As a script without `exec` starts QEMU: one that ends when it is asked, and one that does not.
    #[test]
    fn a_time_limit_ends_what_a_script_started_as_well() {
        for trap in ["", "trap '' TERM; "] {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("({trap}sleep 600; true) & echo $! > started; wait");
            let arguments = ["-c".to_string(), text].map(OsString::from);
            let limit = Duration::from_millis(500);
            let program = Path::new("/bin/sh");
            let ending = run_program(program, &arguments, folder.path(), Some(limit)).unwrap();
            assert_eq!(ending, Ending::TimedOut(limit));
            let started = fs::read_to_string(folder.path().join("started")).unwrap();
            let state = fs::read_to_string(format!("/proc/{}/stat", started.trim()));
            // One that nobody has waited for yet has ended all the same.
            assert!(state.is_err() || state.unwrap().contains(") Z "), "{started} still runs");
        }
    }

    #[test]
    fn ctrl_c_in_the_terminal_is_an_interruption() {
        let arguments = ["-c", "kill -INT $$"].map(OsString::from);
        let run = || run_program(Path::new("/bin/sh"), &arguments, Path::new("/"), None);
        assert_eq!(run().unwrap(), Ending::Interrupted("SIGINT"));
    }
}
