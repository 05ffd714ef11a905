//! Putting what is booted into the run's folder.

use crate::build::{self, Hypervisor, Tree};
use crate::cli::{self, Machine};
use crate::commands::image;
use crate::job::Packed;
use crate::machine::{Boot, Given, devices};
use crate::recording::Recorded;
use crate::setup::firmware;
use crate::{Failure, Result};
use pmu_model::Mixture;
use pmu_model::uarch::Parameters;
use std::fs;
use std::path::{Path, PathBuf};

/// The emulated PMU's hypervisor in the run's folder.
pub(super) const HYPERVISOR: &str = "emulated-pmu";

/// Puts what is booted into `folder`: the kernel and a job.
///
/// # Errors
/// A file that cannot be written.
pub fn stage(tree: &Tree, ramdisk: &[u8], boot: cli::Boot, folder: &Path) -> Result<Boot> {
    stage_files(tree, &tree.kernel(), Some(ramdisk), boot, folder)
}

/// Puts any kernel into `folder`, with or without a ramdisk.
///
/// # Errors
/// A file that cannot be written.
pub fn stage_files(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    boot: cli::Boot,
    folder: &Path,
) -> Result<Boot> {
    let job = folder.join("ramdisk");
    if let Some(bytes) = ramdisk {
        write(&job, bytes)?;
    }
    if boot == cli::Boot::Direct {
        let loader = folder.join("direct.bin");
        copy(&tree.direct(), &loader)?;
        copy(kernel, &folder.join("kernel"))?;
        let mut modules = vec!["kernel".to_string()];
        modules.extend(ramdisk.map(|_| "ramdisk".to_string()));
        return Ok(Boot::Direct { loader, modules });
    }
    let image = folder.join("disk.img");
    build::image(tree, kernel, ramdisk.map(|_| job.as_path()), &image)?;
    if boot == cli::Boot::Bios {
        return Ok(Boot::Bios { image });
    }
    let mut ovmf = firmware::find().ok_or_else(|| {
        Failure::Usage("the UEFI firmware vanished while it was being used".to_string())
    })?;
    let variables = folder.join("variables.fd");
    copy(&ovmf.variables, &variables)?;
    ovmf.variables = variables;
    Ok(Boot::Uefi { image, ovmf })
}

/// Puts any kernel into `folder` together with the chosen PMU: under UEFI firmware in the image, else next to the loader.
///
/// # Errors
/// A file that cannot be written; no firmware.
pub fn stage_with_pmu(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&[u8]>,
    boot: cli::Boot,
    (pmu, recorded, shift): (Given, Option<&Recorded>, Option<u8>),
    folder: &Path,
) -> Result<(Boot, devices::Pmu)> {
    if let (cli::Boot::Uefi, Given::Emulated(model)) = (boot, pmu) {
        let file = hypervisor(tree, recorded, folder)?;
        let hypervisor = Hypervisor { model, file: &file };
        return image::stage(tree, kernel, ramdisk, hypervisor, folder);
    }
    let mut staged = stage_files(tree, kernel, ramdisk, boot, folder)?;
    let pmu = stage_pmu(tree, pmu, shift, &mut staged, folder)?;
    Ok((staged, pmu))
}

/// Adds what the chosen PMU takes to a staged `boot`. Under UEFI firmware that is in its image already. `shift` is QEMU's icount shift, which the hypervisor then checks.
///
/// # Errors
/// A file that cannot be written; an emulated PMU without the loader that starts it.
pub fn stage_pmu(
    tree: &Tree,
    pmu: Given,
    shift: Option<u8>,
    boot: &mut Boot,
    folder: &Path,
) -> Result<devices::Pmu> {
    let model = match pmu {
        Given::None => return Ok(devices::Pmu::None),
        Given::Host => return Ok(devices::Pmu::Host),
        Given::Emulated(model) => model,
    };
    let modules = match boot {
        Boot::Direct { modules, .. } => modules,
        // Whatever starts the hypervisor there has the options.
        Boot::Uefi { .. } => return Ok(devices::Pmu::Emulated { model, options: String::new() }),
        Boot::Bios { .. } | Boot::Iso { .. } => {
            let text = "an emulated PMU needs the direct loader or UEFI firmware".to_string();
            return Err(Failure::Usage(text));
        }
    };
    copy(&tree.emulated_pmu(), &folder.join(HYPERVISOR))?;
    if modules.len() == 1 {
        // It is the third module; an empty file keeps the ramdisk's place.
        write(&folder.join("ramdisk"), &[])?;
        modules.push("ramdisk".to_string());
    }
    modules.push(HYPERVISOR.to_string());
    // The limits of a run are the machine's: what is stepped runs into them all the same.
    let mut options = format!("pmu={} clock=machine", model.spec().name);
    if let Some(shift) = shift {
        options += &format!(" shift={shift}");
    }
    Ok(devices::Pmu::Emulated { model, options })
}

/// How many processors the machine gets: as many as were requested, or as the job and the models need.
///
/// # Errors
/// It is not the number that the models are for.
pub(super) fn cpus(machine: &Machine, packed: &Packed) -> Result<u32> {
    let Some(mixture) = machine.pmu.mixture() else {
        return Ok(machine.cpus.unwrap_or(packed.cpus));
    };
    let (least, most) = (mixture.least(), mixture.most());
    let cpus = machine.cpus.unwrap_or(packed.cpus.max(least));
    if cpus < least || most.is_some_and(|most| cpus > most) {
        let whose = if machine.cpus.is_some() { "--cpus is" } else { "the job needs" };
        let text = format!("--pmu {mixture} needs {least} processors, but {whose} {cpus}");
        return Err(Failure::Usage(text));
    }
    Ok(cpus)
}

/// Names several models in the place of the one that was staged: each is on some of the processors.
pub fn mix(mixture: &Mixture, pmu: &mut devices::Pmu) {
    if let devices::Pmu::Emulated { model, options } = pmu {
        let (one, all) = (format!("pmu={}", model.spec().name), format!("pmu={mixture}"));
        *options = options.replacen(&one, &all, 1);
    }
}

/// Gives the PMU that was staged other caches, TLBs and predictor.
pub fn shape(parameters: &Parameters, pmu: &mut devices::Pmu) {
    if let devices::Pmu::Emulated { options, .. } = pmu {
        *options += &format!(" uarch={parameters}");
    }
}

/// The hypervisor's file; with a recorded processor, a copy in `folder` that has it.
///
/// # Errors
/// A file that cannot be written, or is not a hypervisor.
pub fn hypervisor(tree: &Tree, recorded: Option<&Recorded>, folder: &Path) -> Result<PathBuf> {
    let Some(recorded) = recorded else { return Ok(tree.emulated_pmu()) };
    let file = folder.join(HYPERVISOR);
    copy(&tree.emulated_pmu(), &file)?;
    recorded.fill(&file)?;
    Ok(file)
}

/// Puts the recorded processor into the hypervisor that was staged for the direct loader.
///
/// # Errors
/// As for [`hypervisor`].
pub fn record(recorded: &Recorded, folder: &Path) -> Result<()> {
    Ok(recorded.fill(&folder.join(HYPERVISOR))?)
}

/// Puts the hypervisor with faults, which is built, in the place of the sound one, and names the fault.
///
/// # Errors
/// There is no emulated PMU that the direct loader starts; a file that cannot be written.
pub fn plant(
    tree: &Tree,
    fault: &str,
    boot: cli::Boot,
    pmu: &mut devices::Pmu,
    folder: &Path,
) -> Result<()> {
    // What else boots has the sound one within it.
    let (devices::Pmu::Emulated { options, .. }, cli::Boot::Direct) = (pmu, boot) else {
        let text = "--pmu-fault needs an emulated PMU and --boot direct".to_string();
        return Err(Failure::Usage(text));
    };
    copy(&tree.faulty_pmu(), &folder.join(HYPERVISOR))?;
    *options += &format!(" fault={fault}");
    Ok(())
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Failure::file("write", path))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(|_| ()).map_err(Failure::file("write", to))
}
