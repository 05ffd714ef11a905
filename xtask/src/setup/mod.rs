//! What a machine needs, whether it is there, and how it is got.
//!
//! `run`, `test`, `bench` and `image` call [`ensure`], which installs what is missing where it may and stops
//! with the exact command to type where it may not. `doctor` only looks.

mod apt;
pub mod axe;
pub mod chromium;
pub mod firmware;
pub mod grub;
pub mod labgrid;
pub mod mutants;
mod packages;
pub mod parsers;
pub mod plan;
pub mod qemu;
pub use packages::Manager;
pub mod record;
mod rust;
mod sources;
pub mod toolchain;

use crate::parts;
use thiserror::Error;
pub use toolchain::Toolchain;

/// Something that must be there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// Any compiler that assembles the measured code: all that the installed program takes of Rust.
    Assembler,
    /// The pinned compiler.
    Compiler,
    /// The standard library's source: core and alloc are built for the bare machine.
    RustSource,
    /// objcopy and objdump, which turn the loaders into flat files.
    LlvmTools,
    /// The machine emulator, in any version.
    Qemu,
    /// The machine emulator in a version that the emulated PMU can be trusted on.
    QemuForPmu,
    /// UEFI firmware for it.
    Ovmf,
    /// Tools that make a GRUB rescue ISO, for one test.
    Grub,
    /// A checker of FAT file systems, for one test.
    Fsck,
    /// An independent counter of instructions, for tests that compare with it.
    Valgrind,
    /// Compilers of C and C++ and an assembler, for tests that measure what they make.
    Compilers,
    /// A browser, for tests of HTML reports.
    Chromium,
    /// A checker of accessibility, for these tests.
    Axe,
    /// The program that plants mistakes in the source.
    Mutants,
    /// Python, with what makes environments.
    Python,
    /// The engine of labs.
    Labgrid,
    /// Parsers of TAP, for tests.
    Parsers,
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
    /// What the installed program takes, in the order in which it is installed.
    const INSTALLED: [Self; 6] =
        [Self::Assembler, Self::Qemu, Self::QemuForPmu, Self::Ovmf, Self::Python, Self::Labgrid];
    /// What a checkout takes.
    const CHECKOUT: [Self; 16] = [
        Self::Compiler,
        Self::RustSource,
        Self::LlvmTools,
        Self::Qemu,
        Self::QemuForPmu,
        Self::Ovmf,
        Self::Grub,
        Self::Fsck,
        Self::Valgrind,
        Self::Compilers,
        Self::Chromium,
        Self::Axe,
        Self::Mutants,
        Self::Python,
        Self::Labgrid,
        Self::Parsers,
    ];
    /// What building the firmware takes.
    const BUILD: [Self; 3] = [Self::Compiler, Self::RustSource, Self::LlvmTools];

    /// All that this program takes, in the order in which it is installed.
    #[must_use]
    pub fn all() -> &'static [Self] {
        if parts::installed().is_some() { &Self::INSTALLED } else { &Self::CHECKOUT }
    }

    /// What this program takes to have the firmware and to assemble for it.
    #[must_use]
    pub fn build() -> &'static [Self] {
        if parts::installed().is_some() { &[Self::Assembler] } else { &Self::BUILD }
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Assembler => "Rust 1.85.0 or newer",
            Self::Compiler => "Rust 1.95.0",
            Self::RustSource => "the Rust library source",
            Self::LlvmTools => "llvm-objcopy and llvm-objdump",
            Self::Qemu => "QEMU",
            Self::QemuForPmu => "QEMU for the emulated PMU",
            Self::Ovmf => "OVMF",
            Self::Grub => "GRUB's rescue tools",
            Self::Fsck => "fsck.fat",
            Self::Valgrind => "Valgrind",
            Self::Compilers => "clang, g++ and nasm",
            Self::Chromium => "Chromium",
            Self::Axe => "axe-core",
            Self::Mutants => "cargo-mutants",
            Self::Python => "Python",
            Self::Labgrid => "labgrid",
            Self::Parsers => "parsers of TAP",
        }
    }

    /// What it is for.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Assembler => "assembles the measured code",
            Self::Compiler => "builds everything",
            Self::RustSource => "builds core and alloc for the bare machine",
            Self::LlvmTools => "turn the loaders into flat files",
            Self::Qemu => "run, test, bench",
            Self::QemuForPmu => "run --pmu MODEL, test, bench",
            Self::Ovmf => "run --boot uefi, tests of it",
            Self::Grub => "one test: booting from a GRUB ISO",
            Self::Fsck => "one test: checks an image's file system",
            Self::Valgrind => "two tests: compare counts with Callgrind's",
            Self::Compilers => "tests of code from other compilers",
            Self::Chromium => "tests of HTML reports",
            Self::Axe => "tests of HTML reports: accessibility",
            Self::Mutants => "mutants",
            Self::Python => "lab run, tests of it: runs labgrid",
            Self::Labgrid => "lab run, tests of it",
            Self::Parsers => "one test: other parsers read barecount's KTAP",
        }
    }

    /// Looks for it. Without a compiler, its parts are missing as well.
    #[must_use]
    pub fn status(self, toolchain: Option<&Toolchain>) -> Status {
        let part = |status: fn(&Toolchain) -> Status| match toolchain {
            Some(toolchain) => status(toolchain),
            None => Status::Missing { why: toolchain::ABSENT.to_string() },
        };
        match self {
            Self::Assembler => part(Toolchain::assembler_status),
            Self::Compiler => part(Toolchain::compiler_status),
            Self::RustSource => part(Toolchain::source_status),
            Self::LlvmTools => part(Toolchain::tools_status),
            Self::Qemu => qemu::status(),
            Self::QemuForPmu => qemu::pmu_status(),
            Self::Ovmf => firmware::status(),
            Self::Grub => grub::status(),
            Self::Fsck => packages::fsck_status(),
            Self::Valgrind => packages::programs_status(&["valgrind"]),
            Self::Compilers => packages::programs_status(&packages::COMPILERS),
            Self::Chromium => chromium::status(),
            Self::Axe => axe::status(),
            Self::Mutants => mutants::status(),
            Self::Python => labgrid::python_status(),
            Self::Labgrid => labgrid::status(),
            Self::Parsers => parsers::status(),
        }
    }

    /// How it would be got on this machine. For a package apt is asked, which may take some seconds.
    #[must_use]
    pub fn hint(self) -> String {
        match self {
            Self::Assembler => toolchain::assembler_hint(),
            Self::Compiler => toolchain::install_hint(),
            Self::RustSource => toolchain::component_hint("rust-src"),
            Self::LlvmTools => toolchain::component_hint("llvm-tools"),
            Self::Axe => axe::hint(),
            Self::Mutants => mutants::hint(),
            Self::Labgrid => labgrid::hint(),
            Self::Parsers => parsers::hint(),
            _ => packages::advice(self),
        }
    }

    /// Installs it, which is missing for `reason`; else why it cannot be, and what to type.
    fn install(self, toolchain: &Toolchain, reason: &str) -> Result<(), (String, String)> {
        let hinted = |why: String| (why, self.hint());
        let by_ourselves = [
            Self::RustSource,
            Self::LlvmTools,
            Self::Axe,
            Self::Mutants,
            Self::Labgrid,
            Self::Parsers,
        ];
        if by_ourselves.contains(&self) {
            crate::output::say(&format!("installing {}: {reason}", self.name()));
        }
        match self {
            // Which compiler this is, the user's project says: it is theirs to change.
            Self::Assembler => Err((String::new(), self.hint())),
            Self::Compiler => {
                let why =
                    format!("the compiler is {}, and only rustup can change it", toolchain.version);
                Err(hinted(why))
            }
            Self::RustSource => rust::install_source(toolchain).map_err(hinted),
            Self::LlvmTools => rust::install_tools(toolchain).map_err(hinted),
            Self::Axe => axe::install().map_err(hinted),
            Self::Mutants => mutants::install().map_err(hinted),
            Self::Labgrid => labgrid::install().map_err(hinted),
            Self::Parsers => parsers::install().map_err(hinted),
            _ => packages::install(self, reason),
        }
    }
}

/// Makes sure that all of `needs` are there, installing what is not.
///
/// # Errors
/// The first that is missing and cannot be installed from here, with the command to type.
pub fn ensure(needs: &[Need], toolchain: &Toolchain) -> Result<(), SetupError> {
    for &need in needs {
        let Status::Missing { why } = need.status(Some(toolchain)) else {
            continue;
        };
        let failed = |(reason, hint): (String, String)| {
            let why = if reason.is_empty() { why.clone() } else { format!("{why}; {reason}") };
            SetupError { need: need.name(), why, hint }
        };
        need.install(toolchain, &why).map_err(failed)?;
        if let Status::Missing { why } = need.status(Some(toolchain)) {
            let why = format!("installed, but still: {why}");
            return Err(SetupError { need: need.name(), why, hint: String::new() });
        }
    }
    Ok(())
}

/// Looks for the compiler that assembles jobs.
///
/// # Errors
/// There is none, or it is too old. Without this a job would be blamed for it.
pub fn assembler() -> Result<Toolchain, SetupError> {
    let toolchain = Toolchain::find()?;
    if parts::installed().is_some() {
        ensure(&[Need::Assembler], &toolchain)?;
    }
    Ok(toolchain)
}

#[cfg(test)]
mod tests;
