//! What a machine needs, whether it is there, and how it is got.
//!
//! `run`, `test`, `bench` and `image` call [`ensure`], which installs what is missing where it may and stops
//! with the exact command to type where it may not. `doctor` only looks.

mod apt;
pub mod firmware;
mod packages;
pub use packages::QEMU;
mod rust;
mod sources;
pub mod toolchain;

use thiserror::Error;
pub use toolchain::Toolchain;

/// Something that has to be there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// The pinned compiler.
    Compiler,
    /// The standard library's source: core and alloc are built for the bare machine.
    RustSource,
    /// objcopy and objdump, which the boot loader's build calls.
    LlvmTools,
    /// The machine emulator.
    Qemu,
    /// UEFI firmware for it.
    Ovmf,
    /// Tools that make a GRUB rescue ISO, for one test.
    Grub,
}

/// Whether it is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Status {
    /// It is; version or place.
    Present(String),
    /// It is not.
    Missing {
        /// What was looked for.
        why: String,
    },
}

/// Something is missing and stays missing.
#[derive(Debug, Error)]
#[error("{need} is missing ({why}). {hint}")]
pub struct SetupError {
    /// What it is.
    pub need: &'static str,
    /// What was looked for, or what failed.
    pub why: String,
    /// What to type.
    pub hint: String,
}

impl Need {
    /// All of them, in the order in which they are installed.
    pub const ALL: [Self; 6] =
        [Self::Compiler, Self::RustSource, Self::LlvmTools, Self::Qemu, Self::Ovmf, Self::Grub];
    /// What building the firmware takes.
    pub const BUILD: [Self; 3] = [Self::Compiler, Self::RustSource, Self::LlvmTools];

    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiler => "Rust 1.95.0",
            Self::RustSource => "the Rust library source",
            Self::LlvmTools => "llvm-objcopy and llvm-objdump",
            Self::Qemu => "QEMU",
            Self::Ovmf => "OVMF",
            Self::Grub => "GRUB's rescue tools",
        }
    }

    /// What it is for.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Compiler => "builds everything",
            Self::RustSource => "builds core and alloc for the bare machine",
            Self::LlvmTools => "turn the boot loader's stages into flat files",
            Self::Qemu => "run, test, bench",
            Self::Ovmf => "run --boot uefi, tests of it",
            Self::Grub => "one test: booting from a GRUB ISO",
        }
    }

    /// Looks for it.
    #[must_use]
    pub fn status(self, toolchain: &Toolchain) -> Status {
        match self {
            Self::Compiler => toolchain.compiler_status(),
            Self::RustSource => toolchain.source_status(),
            Self::LlvmTools => toolchain.tools_status(),
            Self::Qemu => packages::qemu_status(),
            Self::Ovmf => firmware::status(),
            Self::Grub => packages::grub_status(),
        }
    }

    /// How it would be got.
    #[must_use]
    pub fn hint(self) -> String {
        match self {
            Self::Compiler => "Type: rustup toolchain install 1.95.0".to_string(),
            Self::RustSource => {
                "Type: rustup component add rust-src --toolchain 1.95.0".to_string()
            }
            Self::LlvmTools => {
                "Type: rustup component add llvm-tools --toolchain 1.95.0".to_string()
            }
            Self::Qemu | Self::Ovmf | Self::Grub => packages::hint(self),
        }
    }

    fn install(self, toolchain: &Toolchain) -> Result<(), String> {
        match self {
            Self::Compiler => Err("only rustup can change the compiler".to_string()),
            Self::RustSource => rust::install_source(toolchain),
            Self::LlvmTools => rust::install_tools(toolchain),
            Self::Qemu | Self::Ovmf | Self::Grub => packages::install(self),
        }
    }
}

/// Makes sure that all of `needs` are there, installing what is not.
///
/// # Errors
/// The first that is missing and cannot be installed from here, with the command to type.
pub fn ensure(needs: &[Need], toolchain: &Toolchain) -> Result<(), SetupError> {
    for &need in needs {
        let Status::Missing { why } = need.status(toolchain) else {
            continue;
        };
        let failed = |why: String| SetupError { need: need.name(), why, hint: need.hint() };
        anstream::eprintln!("installing {}: {why}", need.name());
        need.install(toolchain).map_err(failed)?;
        if let Status::Missing { why } = need.status(toolchain) {
            return Err(failed(format!("installed, and still: {why}")));
        }
    }
    Ok(())
}
