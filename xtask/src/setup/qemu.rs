//! QEMU: which program is meant, its version, and what that version is good for.

use super::Status;
use crate::process::{find, stdout_of};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The emulator's name in the search path.
pub const NAME: &str = "qemu-system-x86_64";
/// Environment variable that names another program.
pub const VARIABLE: &str = "BARECOUNT_QEMU";

/// A QEMU version: major, minor, micro.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(pub u32, pub u32, pub u32);

/// The oldest that the emulated PMU is trusted on.
///
/// Up to 8.2 a local APIC whose global enable bit a guest clears loses its CPUID bit for good (`apic_set_base` in
/// `hw/intc/apic.c`; its state machine was rewritten for 9.0), so a guest that sets the bit again gets no PMI. Under
/// 7.2.22 overflows also lose instructions, and the hypervisor's calibration fails at some lengths of its command line.
/// What lies between has not been tried, and a figure from an untried translator is not to be trusted.
pub const LEAST: Version = Version(10, 0, 0);

/// Those that the emulated PMU's tests, and the conformance suite on every model, passed on.
pub const TRIED: &[Version] = &[Version(10, 0, 2), Version(11, 1, 3)];

impl Version {
    /// The first three numbers in a row with points between them: of `QEMU emulator version 10.0.2 (Debian …)`, and of a
    /// package's version such as `1:7.2+dfsg-7`, whose epoch is left out. A missing micro version is 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.split_once(':').map_or(word, |(_epoch, rest)| rest);
            let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
            let mut numbers = word[..end].split('.').map(str::parse);
            let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some(Self(major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
        })
    }

    /// Whether the emulated PMU's figures can be trusted on it.
    #[must_use]
    pub fn is_good(self) -> bool {
        self >= LEAST
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Which versions are good, in words.
#[must_use]
pub fn good() -> String {
    let tried: Vec<String> = TRIED.iter().map(ToString::to_string).collect();
    let Version(major, minor, _) = LEAST;
    format!("{major}.{minor} or newer (tested with {})", tried.join(", "))
}

/// A QEMU that is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// The program.
    pub path: PathBuf,
    /// None if it does not say.
    pub version: Option<Version>,
}

impl Found {
    /// Asks the program at `path` for its version.
    ///
    /// # Errors
    /// It does not answer.
    pub fn at(path: PathBuf) -> Result<Self, String> {
        let said = stdout_of(Command::new(&path).arg("--version"));
        let said = said.ok_or_else(|| format!("{} --version fails", path.display()))?;
        Ok(Self { path, version: Version::parse(&said) })
    }

    /// Whether the emulated PMU's plugin can be loaded into it, or why not. Asked once per process.
    ///
    /// # Errors
    /// It is too old, or was built without plugins.
    pub fn plugins(&self) -> Result<(), String> {
        static ASKED: Mutex<Option<(PathBuf, Result<(), String>)>> = Mutex::new(None);
        if !self.version.is_some_and(Version::is_good) {
            let Version(major, minor, _) = LEAST;
            return Err(format!("its plugin needs QEMU {major}.{minor} or newer, this is {self}"));
        }
        let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*asked {
            Some((path, answer)) if *path == self.path => answer.clone(),
            _ => {
                let answer = self.ask_for_plugins();
                *asked = Some((self.path.clone(), answer.clone()));
                answer
            }
        }
    }

    /// A QEMU that was configured with `--disable-plugins` refuses the option.
    fn ask_for_plugins(&self) -> Result<(), String> {
        let output = Command::new(&self.path).args(["-plugin", "help"]).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = crate::process::said(&output);
                let last = said.lines().last().unwrap_or_default();
                Err(format!("{} was built without plugins ({last})", self.path.display()))
            }
            Err(error) => Err(format!("{} cannot be started: {error}", self.path.display())),
        }
    }
}

static CHOSEN: OnceLock<Option<OsString>> = OnceLock::new();

/// Takes `program` for every machine of this process, before the environment variable and the search path.
///
/// # Panics
/// If a program was chosen or used before.
pub fn choose(program: PathBuf) {
    CHOSEN.set(Some(program.into())).expect("chosen once, at the start");
}

/// The program that was named by an option or by [`VARIABLE`], if one was.
#[must_use]
pub fn named() -> Option<&'static OsString> {
    let from_environment = || std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    CHOSEN.get_or_init(from_environment).as_ref()
}

/// The program to start.
#[must_use]
pub fn program() -> OsString {
    named().cloned().unwrap_or_else(|| NAME.into())
}

/// The last one that was found.
static FOUND: Mutex<Option<Found>> = Mutex::new(None);

/// Looks for it and requests its version, once per process as long as it is there.
///
/// # Errors
/// What was looked for.
pub fn probe() -> Result<Found, String> {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = &*known {
        return Ok(found.clone());
    }
    let program = program();
    let path = find(&program).ok_or_else(|| match named() {
        Some(name) => format!("{} is not a program", name.to_string_lossy()),
        None => format!("no {NAME} in the search path"),
    })?;
    let found = Found::at(path)?;
    *known = Some(found.clone());
    Ok(found)
}

/// Packages were installed: the program may be another.
pub(super) fn forget() {
    *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(super) fn status() -> Status {
    match probe() {
        Ok(found) => Status::Present(found.to_string()),
        Err(why) => Status::Missing { why },
    }
}

/// The same, for the emulated PMU.
pub(super) fn pmu_status() -> Status {
    match probe() {
        Ok(found) if found.version.is_some_and(Version::is_good) => {
            Status::Present(format!("{found}; good: {}", good()))
        }
        Ok(found) => Status::Missing { why: format!("this is {found}; good: {}", good()) },
        Err(why) => Status::Missing { why },
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{version}, {}", self.path.display()),
            None => write!(f, "{} of unknown version", self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_programs_and_of_packages() {
        for (text, expected) in [
            (
                "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)",
                Version(10, 0, 2),
            ),
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", Version(7, 2, 22)),
            ("QEMU emulator version 10.1.50 (v10.1.0-1-g1234)", Version(10, 1, 50)),
            ("1:7.2+dfsg-7+deb12u18+b3", Version(7, 2, 0)),
            ("1:11.1.3+ds-1~bpo13+1", Version(11, 1, 3)),
            ("1:8.2.2+ds-0ubuntu1", Version(8, 2, 2)),
        ] {
            assert_eq!(Version::parse(text), Some(expected), "{text}");
        }
        for text in ["", "QEMU", "version x.y", "10", "."] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn old_versions_are_not_good_and_tried_ones_are() {
        for old in [Version(7, 2, 22), Version(8, 2, 10), Version(9, 2, 4)] {
            assert!(!old.is_good(), "{old}");
        }
        assert!(TRIED.iter().all(|version| version.is_good()));
        assert!(good().starts_with("10.0 or newer (tested with 10.0.2"), "{}", good());
    }
}
