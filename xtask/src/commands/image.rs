//! `image`: a disk image for a stick, or files for a boot server.

mod network;

use crate::build::{self, Extras, Hypervisor, Save, Tree};
use crate::cli::Emulated;
use crate::cli::{Image, OnOff};
use crate::commands::run::hypervisor;
use crate::job::{self, Purpose};
use crate::machine::devices::{Boot, Pmu};
use crate::primitives::counted;
use crate::setup::{self, Need, Toolchain, firmware};
use crate::{Failure, Result, interrupt, output};
use protocol::ramdisk::{self, SectionKind};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// Why there is no image.
pub fn run(arguments: &Image) -> Result<u8> {
    // The job is assembled by the compiler: without one that would be the job's fault.
    setup::assembler()?;
    let mut packed = job::load(arguments.job.as_deref(), &arguments.overrides, Purpose::Stick)?;
    let mut add = |kind, content: &[u8]| {
        let added = ramdisk::add_section(&mut packed.bytes, kind, content);
        added.map_err(|error| Failure::Usage(error.to_string()))
    };
    if let Some(ports) = &arguments.serial {
        add(SectionKind::SerialPorts, &ports.pack())?;
    }
    if arguments.ktap {
        add(SectionKind::Ktap, &[])?;
    }
    let inputs = arguments.overrides.event_files.iter().map(|file| file.path.as_path());
    let inputs: Vec<&Path> = inputs.chain(arguments.job.as_deref()).collect();
    if let Some(folder) = &arguments.network {
        return network::run(arguments, &packed, folder, &inputs);
    }
    let out = arguments.out.as_deref().expect("one of the two is required");
    if arguments.save == OnOff::Off && arguments.upload.is_some() {
        let text =
            "--upload needs --save on: a report that is not kept over a reset cannot be sent";
        return Err(Failure::Usage(text.to_string()));
    }
    output::distinct(&[out], &inputs)?;
    // A folder that cannot be written to is noticed before minutes of building.
    output::check(out)?;
    let bytes = write(arguments, &packed.bytes, out)?;
    output::say(&format!(
        "{}: {bytes} bytes, {}; boots on BIOS and UEFI machines{}{}{}",
        out.display(),
        counted(packed.job.items.len(), "item"),
        arguments.pmu.map_or(String::new(), in_front),
        if arguments.save == OnOff::On { "; on UEFI, reports are saved on it" } else { "" },
        arguments.upload.as_ref().map_or(String::new(), |target| format!(" and sent to {target}")),
    ));
    Ok(0)
}

/// What an emulated PMU takes, in words.
fn in_front(pmu: Emulated) -> String {
    format!(
        ", on UEFI with an emulated PMU ({}) where QEMU runs with -cpu max,-x2apic -icount \
         shift=N,sleep=off -global hpet.msi=on",
        pmu.what()
    )
}

/// The emulated PMU that an image gets, and where its hypervisor lies.
struct Chosen(Option<(Emulated, PathBuf)>);

impl Chosen {
    fn of(tree: &Tree, pmu: Option<Emulated>, folder: &Path) -> Result<Self> {
        let of = |pmu: Emulated| Ok((pmu, hypervisor(tree, pmu.recorded(), folder)?));
        pmu.map(of).transpose().map(Self)
    }

    fn part(&self) -> Option<Hypervisor<'_>> {
        self.0.as_ref().map(|(pmu, file)| Hypervisor { model: pmu.model(), file })
    }
}

/// Puts an image of `kernel` and `ramdisk` with an emulated PMU into a run's `folder`, to be booted under UEFI
/// firmware. [`Tree::build_uefi_pmu`] and [`Tree::build_images`] build what it takes.
///
/// # Errors
/// A file that cannot be written; no firmware.
pub fn stage(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    pmu: Hypervisor,
    folder: &Path,
) -> Result<(Boot, Pmu)> {
    let (job, image) = (folder.join("ramdisk"), folder.join("disk.img"));
    if let Some(bytes) = ramdisk {
        fs::write(&job, bytes).map_err(Failure::file("write", &job))?;
    }
    let ramdisk = ramdisk.map(|_| job.as_path());
    let (model, extras) = (pmu.model, Extras { pmu: Some(pmu), save: None });
    build::image_with(tree, kernel, ramdisk, extras, &image)?;
    let ovmf = firmware::find().ok_or_else(|| Failure::Usage("no UEFI firmware".to_string()))?;
    let ovmf = ovmf.for_run(folder).map_err(Failure::file("write", folder))?;
    // Its options are in the image.
    Ok((Boot::Uefi { image, ovmf }, Pmu::Emulated { model, options: String::new() }))
}

/// Builds what images are made of.
fn build(arguments: &Image, is_saving: bool) -> Result<Tree> {
    let toolchain = Toolchain::find()?;
    setup::ensure(Need::build(), &toolchain)?;
    let tree = Tree::new(toolchain)?;
    tree.writable()?;
    tree.build_images()?;
    if arguments.pmu.is_some() {
        tree.build_uefi_pmu()?;
    }
    if is_saving {
        tree.build_stick()?;
    }
    Ok(tree)
}

/// Makes and writes it; returns its size in bytes.
fn write(arguments: &Image, ramdisk: &[u8], out: &Path) -> Result<usize> {
    let upload = arguments.upload.as_ref().map(ToString::to_string);
    let save = Save { upload: upload.as_deref() };
    let save = (arguments.save == OnOff::On).then_some(save);
    let tree = build(arguments, save.is_some())?;
    let _deferred = interrupt::defer();
    let folder = tempfile::tempdir();
    let folder = folder.map_err(Failure::file("create", &std::env::temp_dir()))?;
    let (job, image) = (folder.path().join("ramdisk"), folder.path().join("image"));
    fs::write(&job, ramdisk).map_err(Failure::file("write", &job))?;
    let pmu = Chosen::of(&tree, arguments.pmu, folder.path())?;
    let extras = Extras { pmu: pmu.part(), save };
    build::image_with(&tree, &tree.kernel(), Some(&job), extras, &image)?;
    // By content: the target may be a device, which keeps its own permissions.
    let bytes = fs::read(&image).map_err(Failure::file("read", &image))?;
    // A lab would go on without its image.
    interrupt::check()?;
    output::write(out, &bytes)?;
    Ok(bytes.len())
}
