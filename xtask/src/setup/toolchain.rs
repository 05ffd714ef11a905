//! The Rust toolchain that cargo runs with.

use super::{SetupError, Status};
use crate::process::{find, stdout_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Version that `rust-toolchain.toml` pins.
pub const VERSION: &str = "1.95.0";

/// The oldest version that assembles jobs: the first with the edition that the assembled file is written in. Minor version of
/// Rust 1.
const OLDEST_ASSEMBLER: u32 = 85;
/// The processors' family that it has to assemble for.
const FAMILY: &str = "x86_64-";

/// Why there is no toolchain.
pub(super) const ABSENT: &str = "rustc cannot be run";

fn ask(arguments: &[&str]) -> Option<String> {
    stdout_of(Command::new(rustc()).args(arguments))
}

/// How to get a compiler that assembles jobs.
pub(super) fn assembler_hint() -> String {
    let other = "or name another compiler with the variable RUSTC";
    if find("rustup").is_some() {
        return format!("Type: rustup toolchain install stable, {other}");
    }
    format!("Install rustup, and type: rustup toolchain install stable, {other}")
}

/// How to get the compiler.
pub(super) fn install_hint() -> String {
    if crate::parts::installed().is_some() {
        return assembler_hint();
    }
    if find("rustup").is_some() {
        return format!("Type: rustup toolchain install {VERSION}");
    }
    format!("Install rustup, and type: rustup toolchain install {VERSION}")
}

/// How to get a part of the toolchain.
pub(super) fn component_hint(component: &str) -> String {
    let own = "`run` and `test` install it if they may write to the toolchain.";
    if find("rustup").is_some() {
        return format!("{own} Else type: rustup component add {component} --toolchain {VERSION}");
    }
    format!("{own} Else install the toolchain with rustup, which adds it ({component})")
}

/// A toolchain and its places.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The compiler's version, as `1.95.0`.
    pub version: String,
    /// The host's target triple.
    pub host: String,
    /// Root of the toolchain.
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// Asks the compiler.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Result<Self, SetupError> {
        static FOUND: OnceLock<Toolchain> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        // It answers one of the two in a call: together they take the time of one.
        let sysroot = std::thread::spawn(|| ask(&["--print", "sysroot"]));
        let verbose = ask(&["-vV"]);
        let sysroot = sysroot.join().expect("the asking thread does not panic");
        let found =
            verbose.zip(sysroot).and_then(|(verbose, sysroot)| Self::read(&verbose, sysroot));
        let found = found.ok_or_else(|| SetupError {
            need: "Rust",
            why: ABSENT.to_string(),
            hint: install_hint(),
        })?;
        Ok(FOUND.get_or_init(|| found).clone())
    }

    /// Reads the answers to `-vV` and `--print sysroot`.
    fn read(verbose: &str, sysroot: String) -> Option<Self> {
        let field = |name: &str| {
            let line = verbose.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_string())
        };
        Some(Self { version: field("release:")?, host: field("host:")?, sysroot: sysroot.into() })
    }

    /// Where the library source belongs.
    #[must_use]
    pub fn library_source(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library")
    }

    /// Where the toolchain's own tools are.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("bin")
    }

    /// A call of the toolchain's objcopy. Its LLVM library lies where the tool itself does not look.
    #[must_use]
    pub fn objcopy(&self) -> Command {
        let mut command = Command::new(self.tools().join("llvm-objcopy"));
        command.env("LD_LIBRARY_PATH", self.sysroot.join("lib"));
        command
    }

    pub(super) fn assembler_status(&self) -> Status {
        let found = format!("{} for {}", self.version, self.host);
        if !assembles(&self.version) {
            return Status::Missing { why: format!("rustc is {found}, which is too old") };
        }
        if !self.host.starts_with(FAMILY) {
            return Status::Missing { why: format!("rustc is {found}, not for x86-64") };
        }
        Status::Present(found)
    }

    pub(super) fn compiler_status(&self) -> Status {
        if self.version == VERSION {
            return Status::Present(format!("{} for {}", self.version, self.host));
        }
        Status::Missing { why: format!("rustc is {}", self.version) }
    }

    pub(super) fn source_status(&self) -> Status {
        let library = self.library_source();
        present_if(&library.join("core/Cargo.toml"), &library)
    }

    pub(super) fn tools_status(&self) -> Status {
        let tools = self.tools();
        match present_if(&tools.join("llvm-objdump"), &tools) {
            Status::Present(_) => present_if(&tools.join("llvm-objcopy"), &tools),
            missing => missing,
        }
    }
}

/// Whether a compiler of this version assembles jobs.
fn assembles(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(1), Some(minor)) => minor >= OLDEST_ASSEMBLER,
        (Some(major), Some(_)) => major > 1,
        _ => false,
    }
}

fn present_if(file: &Path, place: &Path) -> Status {
    if file.exists() {
        return Status::Present(place.display().to_string());
    }
    Status::Missing { why: format!("no {}", file.display()) }
}

/// The compiler to call: cargo names it to the programs that it runs when it was told to use another.
#[must_use]
pub fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The cargo that started this program.
#[must_use]
pub fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::assembles;

    #[test]
    fn a_compiler_assembles_jobs_from_its_edition_on() {
        for good in ["1.85.0", "1.95.0", "1.100.0-nightly", "2.0.0"] {
            assert!(assembles(good), "{good}");
        }
        for bad in ["1.84.1", "0.99.0", "1", "x.85.0", ""] {
            assert!(!assembles(bad), "{bad}");
        }
    }
}
