//! The Rust toolchain that cargo runs with.

use super::{SetupError, Status};
use crate::process::stdout_of;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version that `rust-toolchain.toml` pins.
pub const VERSION: &str = "1.95.0";

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
        let absent = || SetupError {
            need: "Rust",
            why: "rustc cannot be run".to_string(),
            hint: "Type: rustup toolchain install 1.95.0".to_string(),
        };
        let verbose = stdout_of(Command::new(rustc()).arg("-vV")).ok_or_else(absent)?;
        let field = |name: &str| {
            let line = verbose.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_string())
        };
        let sysroot = stdout_of(Command::new(rustc()).args(["--print", "sysroot"]));
        Ok(Self {
            version: field("release:").ok_or_else(absent)?,
            host: field("host:").ok_or_else(absent)?,
            sysroot: sysroot.map(PathBuf::from).ok_or_else(absent)?,
        })
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
