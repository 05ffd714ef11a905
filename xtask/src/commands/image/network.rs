//! Files for a boot server.

use super::{Chosen, build, in_front};
use crate::build::BuildError;
use crate::cli::Image;
use crate::job::Packed;
use crate::primitives::counted;
use crate::{Failure, Result, interrupt, output};
use std::fs;
use std::path::Path;

/// For UEFI firmware: the one file with everything.
const APPLICATION: &str = "barecount.efi";
/// For iPXE.
const SCRIPT: &str = "boot.ipxe";
/// What that loads on a BIOS machine: the direct loader,
const DIRECT: &str = "direct.bin";
/// the kernel,
const KERNEL: &str = "kernel";
/// and the job.
const RAMDISK: &str = "ramdisk";

/// What iPXE is told. Names without a server are relative to where it got the script from. On a BIOS machine it starts the direct
/// loader, as any multiboot loader does: no BIOS call reads the disk, and none is there.
fn script() -> String {
    format!(
        "#!ipxe
iseq ${{platform}} efi && goto efi ||
kernel {DIRECT}
module {KERNEL}
module {RAMDISK}
boot
:efi
chain {APPLICATION}
"
    )
}

/// Writes them into `folder`.
pub(super) fn run(
    arguments: &Image,
    packed: &Packed,
    folder: &Path,
    inputs: &[&Path],
) -> Result<u8> {
    fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    let names = [APPLICATION, SCRIPT, DIRECT, KERNEL, RAMDISK];
    let paths = names.map(|name| folder.join(name));
    let outputs: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    output::distinct(&outputs, inputs)?;
    for path in &outputs {
        output::check(path)?;
    }
    let tree = build(arguments, true)?;
    let _deferred = interrupt::defer();
    let made = tempfile::tempdir().map_err(Failure::file("create", &std::env::temp_dir()))?;
    let (job, application) = (made.path().join(RAMDISK), made.path().join(APPLICATION));
    fs::write(&job, &packed.bytes).map_err(Failure::file("write", &job))?;
    let upload = arguments.upload.as_ref().map(ToString::to_string);
    let (kernel, direct) = (tree.kernel(), tree.direct());
    let upload = upload.as_deref();
    let pmu = Chosen::of(&tree, arguments.pmu, made.path())?;
    crate::build::network(&tree, &kernel, &job, pmu.part(), upload, &application)?;
    let read = |path: &Path| fs::read(path).map_err(Failure::file("read", path));
    let unpacked = read(&kernel)?;
    let compressed = compressed_kernel::compress(&unpacked)
        .map_err(|error| BuildError::Derive { path: kernel.clone(), reason: error.to_string() })?;
    let contents = [
        read(&application)?,
        script().into_bytes(),
        read(&direct)?,
        compressed,
        packed.bytes.clone(),
    ];
    interrupt::check()?;
    for (path, content) in outputs.iter().zip(&contents) {
        output::write(path, content)?;
    }
    output::say(&format!(
        "{}: {}; {APPLICATION} ({} bytes) boots UEFI machines by PXE and HTTP{}, {SCRIPT} those with iPXE, with UEFI or a \
         BIOS; {}",
        folder.display(),
        counted(packed.job.items.len(), "item"),
        contents[0].len(),
        arguments.pmu.map_or(String::new(), in_front),
        match upload {
            Some(url) => format!("on UEFI, reports are sent to {url}"),
            None => "reports go to the screen and the serial line".to_string(),
        }
    ));
    Ok(0)
}
