//! The host tool as a user calls it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a call came to.
#[derive(Debug)]
pub struct Called {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Called {
    /// Asserts the exit code and that standard error holds each of `parts`.
    ///
    /// # Panics
    /// If that is not so.
    pub fn fails_with(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:#?}");
        for part in parts {
            assert!(self.err.contains(part), "standard error lacks `{part}`: {self:#?}");
        }
        assert!(!self.err.contains("panicked"), "{self:#?}");
    }
}

fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("BARECOUNT_XTASK") {
        return program.into();
    }
    let program = crate::tree().target().join("debug/xtask");
    assert!(program.exists(), "build the host tool first: cargo build -p xtask");
    program
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["--color", "never"]).args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Calls the host tool with `arguments` in `folder`.
///
/// # Panics
/// If it cannot be called, or ends by a signal.
pub fn xtask(folder: &Path, arguments: &[&str]) -> Called {
    xtask_in(folder, arguments, &[])
}

/// The same with variables set in its environment.
///
/// # Panics
/// If it cannot be called, or ends by a signal.
pub fn xtask_in(folder: &Path, arguments: &[&str], environment: &[(&str, &OsStr)]) -> Called {
    let mut command = command(folder, arguments);
    let output = command.envs(environment.iter().copied()).output();
    let output = output.expect("the host tool can be called");
    Called {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The same, and the processor time that it took, with that of the processes that it waited for. Wall time says nothing
/// on a busy machine.
///
/// # Panics
/// As for [`xtask()`].
pub fn timed_xtask(folder: &Path, arguments: &[&str]) -> (Called, Duration) {
    let started = Started::new(folder, arguments, Stdio::piped());
    let (mut status, id) = (0, started.child.id() as i32);
    let text = |stream: Option<JoinHandle<String>>| {
        stream.map_or(String::new(), |thread| thread.join().expect("the reader does not panic"))
    };
    let (out, err) = (text(started.out), text(started.err));
    // SAFETY: the process was started here and nobody else waits for it; both places are valid for what is written, and
    // all-zero bytes are a valid rusage.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(id, &raw mut status, 0, &raw mut usage), usage)
    };
    assert_eq!(waited, id, "it can be waited for");
    assert!(libc::WIFEXITED(status), "it ends by itself: {status:#x} {err}");
    let time = |value: libc::timeval| {
        let [seconds, micros] = [value.tv_sec, value.tv_usec].map(i64::unsigned_abs);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    let code = libc::WEXITSTATUS(status);
    (Called { code, out, err }, time(usage.ru_utime) + time(usage.ru_stime))
}

/// A call that goes on.
#[derive(Debug)]
pub struct Started {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

/// Longer than any of these calls takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Started {
    /// A call with another standard output.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn new(folder: &Path, arguments: &[&str], out: Stdio) -> Self {
        Self::of(command(folder, arguments).stdout(out).stderr(Stdio::piped()))
    }

    /// A call with another standard output and standard error.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn with_errors(folder: &Path, arguments: &[&str], (out, err): (Stdio, Stdio)) -> Self {
        Self::of(command(folder, arguments).stdout(out).stderr(err))
    }

    /// A call with another standard input.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn reading(folder: &Path, arguments: &[&str], input: Stdio) -> Self {
        let mut command = command(folder, arguments);
        Self::of(command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// A call by somebody at a terminal: standard input and standard error are `terminal`.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn at_terminal(folder: &Path, arguments: &[&str], terminal: &File) -> Self {
        let own = || terminal.try_clone().expect("a descriptor");
        let mut command = command(folder, arguments);
        Self::of(command.stdin(own()).stderr(own()).stdout(Stdio::piped()))
    }

    /// A call whose temporary files lie in a folder of their own.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn in_temporary(folder: &Path, arguments: &[&str], temporary: &Path) -> Self {
        let mut command = command(folder, arguments);
        Self::of(command.env("TMPDIR", temporary).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// A call with variables set in its environment.
    ///
    /// # Panics
    /// If it cannot be called.
    #[must_use]
    pub fn with_environment(
        folder: &Path,
        arguments: &[&str],
        environment: &[(&str, &OsStr)],
    ) -> Self {
        let mut command = command(folder, arguments);
        command.envs(environment.iter().copied());
        Self::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    fn of(command: &mut Command) -> Self {
        // SAFETY: between fork and exec only async-signal-safe calls are allowed; signal is one. A test runner in a
        // shell's background has SIGINT ignored, which its children would inherit.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = command.spawn().expect("the host tool can be called");
        let out = child.stdout.take().map(text_of);
        let err = child.stderr.take().map(text_of);
        Self { child, out, err }
    }

    /// Waits for something that the call does.
    ///
    /// # Panics
    /// If it does not come, or the call ends before.
    pub fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_there(self) {
            assert!(start.elapsed() < PATIENCE, "{what} does not come");
            let ended = self.child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "it ended before {what} came: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processes that the call started and that still run.
    ///
    /// # Panics
    /// If the system does not tell.
    #[must_use]
    pub fn children(&self) -> Vec<u32> {
        let id = self.child.id();
        let mut text = String::new();
        let list = File::open(format!("/proc/{id}/task/{id}/children"));
        list.and_then(|mut file| file.read_to_string(&mut text)).expect("its list of children");
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }

    /// Processor time that one of its children has taken.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn seconds_of(&self, child: u32) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).expect("it runs");
        // Behind the name, which ends with the last parenthesis, user time is the twelfth field (proc(5)).
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let user: u64 =
            fields.split_whitespace().nth(11).and_then(|t| t.parse().ok()).expect("time");
        // Linux tells it in hundredths of a second, whatever its own ticks are.
        user / 100
    }

    /// Sends it a signal, and no other process.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&mut self, signal: i32) {
        let ended = self.child.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "it ended by itself: {ended:?}");
        // SAFETY: the process was started here and has not been waited for, so its number is still its own.
        let sent = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(sent, 0, "the signal can be sent");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it ends by a signal.
    pub fn wait(mut self) -> Called {
        let status = self.child.wait().expect("it can be waited for");
        let text = |stream: Option<JoinHandle<String>>| {
            stream.map_or(String::new(), |thread| thread.join().expect("the reader does not panic"))
        };
        let (out, err) = (text(self.out), text(self.err));
        let code = status.code().unwrap_or_else(|| panic!("{status}: {out} {err}"));
        Called { code, out, err }
    }

    /// Waits for its end by a signal; returns that and standard error.
    ///
    /// # Panics
    /// If it ends by itself.
    pub fn wait_signalled(mut self) -> (i32, String) {
        let status = self.child.wait().expect("it can be waited for");
        let thread = self.err.take().expect("standard error is read");
        let err = thread.join().expect("the reader does not panic");
        (status.signal().unwrap_or_else(|| panic!("{status}: {err}")), err)
    }
}

fn text_of(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came is what there is.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
