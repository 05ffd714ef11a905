//! Building what is booted: kernel, direct loader, emulated PMU, images. Cargo decides what is stale; files that are
//! derived from its output are made anew only when that is newer.

mod derive;
mod firmware;

pub use derive::image;

use crate::setup::Toolchain;
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
    toolchain: Toolchain,
}

impl Tree {
    /// The tree that this program was built from.
    #[must_use]
    pub fn new(toolchain: Toolchain) -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: manifest.parent().expect("xtask lies in the project").to_path_buf(),
            toolchain,
        }
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
        let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        chosen.map_or_else(|| self.root.join("target"), |target| self.root.join(target))
    }

    /// Where this module puts what it derives.
    fn derived(&self) -> PathBuf {
        self.target().join("barecount")
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

    /// The emulated PMU's hypervisor, for the direct loader.
    #[must_use]
    pub fn emulated_pmu(&self) -> PathBuf {
        self.derived().join("emulated-pmu")
    }

    /// The program that makes images.
    #[must_use]
    pub fn image_maker(&self) -> PathBuf {
        self.image_maker_target().join("debug/boot")
    }

    /// Where that is built.
    fn image_maker_target(&self) -> PathBuf {
        self.target().join("boot")
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
        derive::flatten(self)
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

    /// Builds the kernel and the program that makes images, if they are stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_images(&self) -> Result<(), BuildError> {
        firmware::build_kernel(self)?;
        derive::strip(self)?;
        firmware::build_image_maker(self)
    }
}
