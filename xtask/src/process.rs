//! Starting other programs.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// A command whose process dies with this one, so that a killed run leaves no machine after.
pub fn tied(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; prctl is a plain system call.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command
}

/// Ends a process that was started as the leader of a group, with its whole group, and waits for it. A script that has not handed
/// over by `exec` is ended with the program that it started.
pub fn end_group(child: &mut Child) {
    if let Ok(id) = libc::pid_t::try_from(child.id()) {
        // SAFETY: a plain system call. Nobody has waited for the process, so the number is still its own and its group's.
        unsafe { libc::kill(-id, libc::SIGKILL) };
    }
    // It may have ended in this moment; then there is nothing to do.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until a child has ended, and leaves it to be waited for: until then its number is no other process'.
pub fn wait_for_end(id: u32) {
    // SAFETY: a plain system call; all-zero bytes are a valid place for what it tells.
    let failed = || unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, id, &raw mut told, libc::WEXITED | libc::WNOWAIT) != 0
    };
    while failed() && std::io::Error::last_os_error().kind() == ErrorKind::Interrupted {}
}

/// This program's terminal while a process has it that leads a group of its own: only the foreground process group may read from a
/// terminal and set its modes. With the end of this, it is taken back, as it was before.
pub struct LentTerminal {
    group: libc::pid_t,
    modes: libc::termios,
}

impl LentTerminal {
    /// Lends it to the process that `command` starts; `None` where standard input is no terminal, or this program is in its background.
    #[must_use]
    pub fn lend(command: &mut Command) -> Option<Self> {
        // SAFETY: plain system calls; zeroed memory is a valid place for the modes. Between fork and exec only async-signal-safe
        // calls are allowed, which `set_foreground` makes.
        unsafe {
            let group = libc::getpgrp();
            let mut modes: libc::termios = std::mem::zeroed();
            if libc::tcgetpgrp(libc::STDIN_FILENO) != group
                || libc::tcgetattr(libc::STDIN_FILENO, &raw mut modes) != 0
            {
                return None;
            }
            command.pre_exec(|| {
                set_foreground(libc::getpid());
                Ok(())
            });
            Some(Self { group, modes })
        }
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        set_foreground(self.group);
        // A program that was killed has left its own modes. SAFETY: a plain system call with modes that were read.
        unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const self.modes) };
    }
}

/// Makes `group` the terminal's foreground process group. Who is in its background may do so with SIGTTOU ignored (POSIX, `tcsetpgrp`).
fn set_foreground(group: libc::pid_t) {
    // SAFETY: plain system calls, all of them async-signal-safe.
    unsafe {
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::signal(libc::SIGTTOU, before);
    }
}

/// The program's path, if the search path has it; of a name with a folder, that file.
#[must_use]
pub fn find(program: impl AsRef<Path>) -> Option<PathBuf> {
    let program = program.as_ref();
    if program.components().count() > 1 {
        // Absolute: it is started in another folder.
        return std::path::absolute(program).ok().filter(|file| is_program(file));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Standard output of a command that succeeded, trimmed.
#[must_use]
pub fn stdout_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Everything that a failed command said, for an error message.
#[must_use]
pub fn said(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stderr).trim().to_string();
    if text.is_empty() {
        text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    }
    if text.is_empty() {
        text = format!("it ended with {} and no message", output.status);
    }
    text
}
