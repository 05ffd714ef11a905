//! Building what is booted: kernel, direct loader, emulated PMU, images. Cargo decides what is stale, and is not asked
//! where nothing has changed (`stamp`); files that are derived from its output are made again only when that is another.

mod derive;
mod firmware;
mod place;
mod stamp;

pub use derive::{Extras, Hypervisor, Save, image, image_with, network};
pub use place::root;
pub(crate) use place::target;

use crate::parts::{self, Part, Parts, PartsError};
use crate::setup::{SetupError, Toolchain};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A part that does not build, or that the installed program cannot give.
#[derive(Debug, Error)]
pub enum BuildError {
    /// It cannot be taken from the program, or is not in it.
    #[error(transparent)]
    Parts(#[from] PartsError),
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

/// Where this project is built, whether or not there is a compiler; for the installed program, the folder of its files.
///
/// # Errors
/// As for [`root`]; for the installed program, there is no folder for its files.
pub fn target_folder() -> Result<PathBuf, SetupError> {
    match parts::installed() {
        Some(parts) => parts.folder().map_err(|error| SetupError {
            need: "a folder for this program's files",
            why: error.to_string(),
            hint: String::new(),
        }),
        None => root().map(place::target),
    }
}

/// The kernel with its symbols, if this program has it.
#[must_use]
pub fn symbols() -> Option<PathBuf> {
    match parts::installed() {
        Some(parts) => {
            let extracted = parts.extract(&[Part::Symbols]).and_then(|()| parts.folder());
            let told = |error: &PartsError| {
                crate::output::say(&format!("addresses are not resolved: {error}"));
            };
            extracted.inspect_err(told).ok().map(|folder| folder.join(Part::Symbols.file()))
        }
        None => {
            let tree = Toolchain::find().and_then(Tree::new);
            tree.ok().map(|tree| tree.kernel_with_symbols())
        }
    }
}

/// The project's folder and what was built in it. In the installed program, its cache with what it carries.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    target: PathBuf,
    toolchain: Toolchain,
    parts: Option<&'static Parts>,
}

impl Tree {
    /// The tree that this program was started in.
    ///
    /// # Errors
    /// As for [`root`]; for the installed program, there is no folder for its files.
    pub fn new(toolchain: Toolchain) -> Result<Self, SetupError> {
        if let Some(parts) = parts::installed() {
            let folder = target_folder()?;
            return Ok(Self {
                root: folder.clone(),
                target: folder,
                toolchain,
                parts: Some(parts),
            });
        }
        let root = root()?.to_path_buf();
        Ok(Self { target: place::target(&root), root, toolchain, parts: None })
    }

    /// Makes sure that it can be built. The installed program builds nothing.
    ///
    /// # Errors
    /// The build folder cannot be written to.
    pub fn writable(&self) -> Result<(), SetupError> {
        if self.parts.is_some() { Ok(()) } else { place::writable(&self.target) }
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
        if self.parts.is_some() { self.target() } else { self.target().join("barecount") }
    }

    /// A file of [`Tree::derived`] that is a part of the installed program.
    fn place(&self, part: Part) -> PathBuf {
        self.derived().join(part.file())
    }

    /// Takes `parts` from the installed program; else `build` makes them.
    fn get(
        &self,
        parts: &[Part],
        build: impl FnOnce() -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        match self.parts {
            Some(archive) => Ok(archive.extract(parts)?),
            None => build(),
        }
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
        match self.parts {
            Some(_) => self.place(Part::Symbols),
            None => self.built("kernel"),
        }
    }

    /// The kernel as it is booted.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.place(Part::Kernel)
    }

    /// The direct loader.
    #[must_use]
    pub fn direct(&self) -> PathBuf {
        self.place(Part::Direct)
    }

    /// The BIOS loader.
    #[must_use]
    pub fn bios(&self) -> PathBuf {
        self.place(Part::Bios)
    }

    /// The emulated PMU's hypervisor, for the direct loader.
    #[must_use]
    pub fn emulated_pmu(&self) -> PathBuf {
        self.place(Part::EmulatedPmu)
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
        if self.parts.is_some() {
            let what = "an emulated PMU with faults";
            return Err(PartsError::OnlyInCheckout { what }.into());
        }
        firmware::build_faulty_pmu(self)?;
        derive::strip_to(self, &self.built("emulated-pmu-faulty"), &self.faulty_pmu())
    }

    /// The UEFI application that starts it.
    #[must_use]
    pub fn pmu_application(&self) -> PathBuf {
        match self.parts {
            Some(_) => self.place(Part::UefiApplication),
            None => self.target().join(firmware::UEFI_FOLDER).join("emulated-pmu-uefi.efi"),
        }
    }

    /// The UEFI application that saves reports on the stick.
    #[must_use]
    pub fn stick_application(&self) -> PathBuf {
        match self.parts {
            Some(_) => self.place(Part::StickApplication),
            None => self.target().join(firmware::UEFI_FOLDER).join("stick-uefi.efi"),
        }
    }

    /// The loader for UEFI machines.
    #[must_use]
    pub fn uefi_loader(&self) -> PathBuf {
        match self.parts {
            Some(_) => self.place(Part::UefiLoader),
            None => self.target().join(firmware::UEFI_FOLDER).join("uefi-loader.efi"),
        }
    }

    /// Builds the UEFI application that saves reports, if it is stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_stick(&self) -> Result<(), BuildError> {
        self.get(&[Part::StickApplication], || firmware::build_stick(self))
    }

    /// The program that makes images.
    #[must_use]
    pub fn image_maker(&self) -> PathBuf {
        match self.parts {
            Some(_) => self.place(Part::ImageMaker),
            None => self.image_maker_target().join("debug/boot"),
        }
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
        self.get(&[Part::EmulatedPmu, Part::UefiApplication], || {
            firmware::build_emulated_pmu(self)?;
            firmware::build_uefi_application(self)?;
            derive::strip_to(self, &self.built("emulated-pmu"), &self.emulated_pmu())
        })
    }

    /// The emulated PMU's plugin for QEMU.
    #[must_use]
    pub fn plugin(&self) -> PathBuf {
        match self.parts {
            Some(_) => self.place(Part::Plugin),
            None => self.target().join(firmware::PLUGIN_FOLDER).join(Part::Plugin.file()),
        }
    }

    /// Builds it, if it is stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_plugin(&self) -> Result<(), BuildError> {
        self.get(&[Part::Plugin], || firmware::build_plugin(self))
    }

    /// Builds kernel, direct loader and emulated PMU, if they are stale.
    ///
    /// # Errors
    /// Says what does not build, with the compiler's messages.
    pub fn build_direct(&self) -> Result<(), BuildError> {
        self.get(&[Part::Kernel, Part::Direct, Part::EmulatedPmu], || {
            firmware::build_kernel(self)?;
            firmware::build_direct(self)?;
            firmware::build_emulated_pmu(self)?;
            derive::strip(self)?;
            derive::strip_to(self, &self.built("emulated-pmu"), &self.emulated_pmu())?;
            derive::flatten(self, "direct", &self.direct())
        })
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

    /// Builds such a guest that UEFI firmware starts; returns its file.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_uefi_guest(&self, name: &str) -> Result<PathBuf, BuildError> {
        firmware::build_uefi_guest(self, name)?;
        Ok(self.target().join(firmware::UEFI_FOLDER).join(name).with_extension("efi"))
    }

    /// Builds the kernel, the loaders and the program that makes images, if they are stale.
    ///
    /// # Errors
    /// As for [`Tree::build_direct`].
    pub fn build_images(&self) -> Result<(), BuildError> {
        let parts = [Part::Kernel, Part::Direct, Part::Bios, Part::UefiLoader, Part::ImageMaker];
        self.get(&parts, || {
            firmware::build_kernel(self)?;
            derive::strip(self)?;
            firmware::build_direct(self)?;
            derive::flatten(self, "direct", &self.direct())?;
            firmware::build_bios(self)?;
            derive::flatten(self, "bios", &self.bios())?;
            firmware::build_uefi_loader(self)?;
            firmware::build_image_maker(self)
        })
    }

    /// The installed program's file, which cargo `built`, without symbols.
    ///
    /// # Errors
    /// objcopy's message.
    pub(crate) fn installed_program(&self, built: &Path) -> Result<PathBuf, BuildError> {
        let smaller = self.derived().join("parts/cargo-barecount");
        derive::strip_to(self, built, &smaller)?;
        Ok(smaller)
    }

    /// The file, built, that goes into the installed program as `part`; none for what is not a file here.
    ///
    /// # Errors
    /// It cannot be made smaller.
    pub(crate) fn part(&self, part: Part) -> Result<Option<PathBuf>, BuildError> {
        let smaller = self.derived().join("parts").join(part.file());
        let file = match part {
            Part::Kernel => self.kernel(),
            Part::Direct => self.direct(),
            Part::Bios => self.bios(),
            Part::EmulatedPmu => self.emulated_pmu(),
            Part::UefiApplication => self.pmu_application(),
            Part::StickApplication => self.stick_application(),
            Part::UefiLoader => self.uefi_loader(),
            Part::Symbols => {
                derive::symbols_to(self, &self.kernel_with_symbols(), &smaller)?;
                smaller
            }
            Part::Plugin => {
                derive::strip_to(self, &self.plugin(), &smaller)?;
                smaller
            }
            Part::ImageMaker => {
                derive::strip_to(self, &self.image_maker(), &smaller)?;
                smaller
            }
            Part::Licences => return Ok(None),
        };
        Ok(Some(file))
    }
}
