//! The host tool as a user calls it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let output = Command::new(program())
        .args(["--color", "never"])
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the host tool can be called");
    Called {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
