//! Building what is booted: kernel, direct loader, emulated PMU, images. Cargo decides what is stale, and is not asked
//! where nothing has changed (`stamp`); files that are derived from its output are made anew only when that is newer.

mod derive;
mod firmware;
mod place;
mod stamp;

pub use derive::{image, image_with_pmu};
pub use place::root;

use crate::setup::{SetupError, Toolchain};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A part that does not build.
#[derive(Debug, Error)]
pub enum BuildError {
    /// cargo failed; its messages follow.
    #[error("{what} does not build:\n{said}")]
    Cargo {
        /// What was built.
        what: &'static str,
        /// cargo's messages.
        said: String,
    },
    /// A tool that turns cargo's output into a bootable file failed.
    #[error("cannot make {}: {reason}", path.display())]
    Derive {
        /// The file.
        path: PathBuf,
        /// The tool's message or the system's.
        reason: String,
    },
}

/// The project's folder and what was built in it.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    target: PathBuf,
    toolchain: Toolchain,
}

impl Tree {
    /// The tree that this program was started in.
    ///
    /// # Errors
    /// As for [`root`].
    pub fn new(toolchain: Toolchain) -> Result<Self, SetupError> {
        let root = root()?.to_path_buf();
        Ok(Self { target: place::target(&root), root, toolchain })
    }

    /// Makes sure that it can be built.
    ///
    /// # Errors
    /// The build folder cannot be written to.
    pub fn writable(&self) -> Result<(), SetupError> {
        place::writable(&self.target)
    }

    /// The project's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The toolchain.
    #[must_use]
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// Where cargo builds.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        self.target.clone()
    }

    /// Where this module puts what it derives.
    fn derived(&self) -> PathBuf {
        self.target().join("barecount")
    }

    /// The note of what went into the build of `name`.
    fn stamp(&self, name: &str) -> PathBuf {
        self.derived().join(format!("{name}.stamp"))
    }

    /// A program for the bare machine as cargo left it, with its symbols.
    fn built(&self, name: &str) -> PathBuf {
        self.target().join(firmware::FOLDER).join(name)
    }

    /// The kernel with its symbols.
    #[must_use]
    pub fn kernel_with_symbols(&self) -> PathBuf {
        self.built("kernel")
    }

    /// The kernel as it is booted.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.derived().join("kernel")
    }

    /// The direct loader.
    #[must_use]
    pub fn direct(&self) -> PathBuf {
        self.derived().join("direct.bin")
    }

    /// The BIOS loader.
    #[must_use]
    pub fn bios(&self) -> PathBuf {
        self.derived().join("bios.bin")
    }

    /// The emulated PMU's hypervisor, for the direct loader.
    #[must_use]
    pub fn emulated_pmu(&self) -> PathBuf {
        self.derived().join("emulated-pmu")
    }

    /// The same with faults.
    #[must_use]
    pub fn faulty_pmu(&self) -> PathBuf {
        self.derived().join("emulated-pmu-faulty")
    }

    /// Builds the hypervisor whose PMU can be told to err.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_faulty_pmu(&self) -> Result<(), BuildError> {
        firmware::build_faulty_pmu(self)?;
        derive::strip_to(self, &self.built("emulated-pmu-faulty"), &self.faulty_pmu())
    }

    /// The UEFI application that starts it.
    #[must_use]
    pub fn pmu_application(&self) -> PathBuf {
        self.target().join(firmware::UEFI_FOLDER).join("emulated-pmu-uefi.efi")
    }

    /// The program that makes images.
    #[must_use]
    pub fn image_maker(&self) -> PathBuf {
        self.image_maker_target().join("debug/boot")
    }

    /// Where that is built.
    pub(crate) fn image_maker_target(&self) -> PathBuf {
        self.target().join("boot")
    }

    /// Builds the emulated PMU and the UEFI application that starts it, if they are stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_uefi_pmu(&self) -> Result<(), BuildError> {
        firmware::build_emulated_pmu(self)?;
        firmware::build_uefi_application(self)?;
        derive::strip_to(self, &self.built("emulated-pmu"), &self.emulated_pmu())
    }

    /// The emulated PMU's plugin for QEMU.
    #[must_use]
    pub fn plugin(&self) -> PathBuf {
        self.target().join(firmware::PLUGIN_FOLDER).join(format!("{}.so", firmware::PLUGIN))
    }

    /// Builds it, if it is stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_plugin(&self) -> Result<(), BuildError> {
        firmware::build_plugin(self)
    }

    /// Builds kernel, direct loader and emulated PMU, if they are stale.
    ///
    /// # Errors
    /// Says what does not build, with the compiler's messages.
    pub fn build_direct(&self) -> Result<(), BuildError> {
        firmware::build_kernel(self)?;
        firmware::build_direct(self)?;
        firmware::build_emulated_pmu(self)?;
        derive::strip(self)?;
        derive::strip_to(self, &self.built("emulated-pmu"), &self.emulated_pmu())?;
        derive::flatten(self, "direct", &self.direct())
    }

    /// Builds the guest `name` of `qemu-tests/guests`; returns the file to boot in the kernel's place.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_guest(&self, name: &str) -> Result<PathBuf, BuildError> {
        firmware::build_guest(self, name)?;
        let to = self.derived().join(name);
        derive::strip_to(self, &self.built(name), &to)?;
        Ok(to)
    }

    /// Builds the kernel, the loaders and the program that makes images, if they are stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_images(&self) -> Result<(), BuildError> {
        firmware::build_kernel(self)?;
        derive::strip(self)?;
        firmware::build_direct(self)?;
        derive::flatten(self, "direct", &self.direct())?;
        firmware::build_bios(self)?;
        derive::flatten(self, "bios", &self.bios())?;
        firmware::build_image_maker(self)
    }
}
