//! A program with all that it starts and leaves: processes and temporary files.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

/// A program that leads a group of processes. The group ends with it.
pub struct Group {
    child: Child,
    /// Says when it has ended, with its group.
    ended: Receiver<()>,
    _temporary: Temporary,
}

impl Group {
    /// Starts it, with a folder of its own for temporary files.
    pub fn start(command: &mut Command) -> Result<Self> {
        let temporary = Temporary::new()?;
        command.env("TMPDIR", &temporary.0).process_group(0);
        let child = command.spawn().context("the tests cannot be started")?;
        let (send, ended) = mpsc::channel();
        let id = child.id();
        std::thread::spawn(move || {
            // What it leaves may hold its output, whose end is waited for.
            wait_for(id);
            kill(id);
            let _ = send.send(());
        });
        Ok(Self { child, ended, _temporary: temporary })
    }

    /// Its output.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Ends it now.
    pub fn kill(&self) {
        kill(self.child.id());
    }

    /// Waits for its end; `None`: it was late, and is ended.
    pub fn wait(mut self, until: Instant) -> Result<Option<ExitStatus>> {
        let left = until.saturating_duration_since(Instant::now());
        let is_late = self.ended.recv_timeout(left).is_err();
        if is_late {
            self.kill();
            // The process' number is given up only after the thread has used it for the last time.
            self.ended.recv().context("no thread panics")?;
        }
        let status = self.child.wait()?;
        Ok((!is_late).then_some(status))
    }
}

/// Waits until a child has ended, which keeps its number.
fn wait_for(id: u32) {
    loop {
        // SAFETY: a plain system call; all-zero bytes are a valid place for what it tells.
        let told = unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, id, &raw mut told, libc::WEXITED | libc::WNOWAIT)
        };
        let error = std::io::Error::last_os_error();
        if told == 0 || error.kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn kill(id: u32) {
    let Ok(id) = libc::pid_t::try_from(id) else { return };
    // SAFETY: a plain system call. `Group::wait` alone gives the number up, when nobody uses it any more.
    unsafe { libc::kill(-id, libc::SIGKILL) };
}

/// A folder that is removed with this.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("schemata-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}
