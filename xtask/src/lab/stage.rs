//! What an environment boots: it says so by the variables that it uses.

use crate::build::Tree;
use crate::cli::{self, Emulated, Image, LabRun, OnOff};
use crate::commands::image;
use crate::commands::run::{record, stage_with_pmu};
use crate::forecast::program_mib;
use crate::job::Packed;
use crate::machine::Given;
use crate::machine::devices::{Cpus, Virtual, arguments, default_memory, without_stop_line};
use crate::setup::qemu;
use crate::{Failure, Result};
use std::path::{Path, PathBuf};

/// An image for a stick.
pub const IMAGE: &str = "LG_BARECOUNT_IMAGE";
/// The folder with what a boot server gives out.
pub const NETWORK: &str = "LG_BARECOUNT_NETWORK";
/// The folder with what QEMU boots without firmware.
pub const DIR: &str = "LG_BARECOUNT_DIR";

/// A variable and its value.
pub type Variable = (&'static str, String);

/// Makes what the environment's text requests, in `folder`, for all machines together.
///
/// # Errors
/// It cannot be built or written.
pub fn images(text: &str, run: &LabRun, folder: &Path) -> Result<Vec<Variable>> {
    let mut made = Vec::new();
    for (variable, name) in [(IMAGE, "stick.img"), (NETWORK, "network")] {
        if uses(text, variable) {
            let path = folder.join(name);
            let (out, network) = match variable {
                IMAGE => (Some(path.clone()), None),
                _ => (None, Some(path.clone())),
            };
            image::run(&image_of(run, out, network))?;
            made.push((variable, path.display().to_string()));
        }
    }
    Ok(made)
}

/// Whether an environment's text uses a variable.
#[must_use]
pub fn uses(text: &str, variable: &str) -> bool {
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.any(|line| {
        line.contains(&format!("${variable}")) || line.contains(&format!("${{{variable}}}"))
    })
}

/// The report comes over the serial line, and a reset to save it would only take time.
fn image_of(run: &LabRun, out: Option<PathBuf>, network: Option<PathBuf>) -> Image {
    Image {
        job: run.job.clone(),
        overrides: run.overrides.clone(),
        pmu: None,
        serial: None,
        ktap: run.ktap,
        save: OnOff::Off,
        upload: None,
        out,
        network,
    }
}

/// Makes what one machine of QEMU boots, in its `folder`.
///
/// # Errors
/// It cannot be built or written.
pub fn direct(
    tree: &Tree,
    packed: &Packed,
    pmu: Option<Emulated>,
    folder: &Path,
) -> Result<Vec<Variable>> {
    let icount = cli::Icount::default().shift(cli::Boot::Direct);
    let (given, recorded) = (
        pmu.map_or(Given::None, |pmu| Given::Emulated(pmu.model())),
        pmu.and_then(Emulated::recorded),
    );
    let (kernel, job) = (tree.kernel(), Some(&packed.bytes[..]));
    let (boot, devices) =
        stage_with_pmu(tree, &kernel, job, cli::Boot::Direct, (given, recorded, icount), folder)?;
    if let Some(recorded) = recorded {
        record(recorded, folder)?;
    }
    let plugin = match pmu {
        Some(_) => crate::commands::run::counter(tree, given, cli::Counting::default())?.plugin,
        None => None,
    };
    let memory = default_memory(packed.cpus);
    let machine = Virtual {
        boot,
        kvm: false,
        pmu: devices,
        plugin,
        icount,
        cpus: Cpus::Many(packed.cpus),
        memory: memory.saturating_add(program_mib(packed)).saturating_add(packed.mib),
        cpu: None,
        serial: None,
        screen: false,
        extra: Vec::new(),
    };
    let found = qemu::probe().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut list = without_stop_line(&arguments(&machine))
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    // labgrid writes these itself.
    let [cpu, memory, append, _] =
        ["-cpu", "-m", "-append", "-kernel"].map(|option| take(&mut list, option));
    Ok(vec![
        (DIR, folder.display().to_string()),
        ("LG_BARECOUNT_QEMU", found.path.display().to_string()),
        ("LG_BARECOUNT_CPU", cpu.unwrap_or_default()),
        ("LG_BARECOUNT_MEMORY", memory.unwrap_or_default()),
        ("LG_BARECOUNT_BOOT_ARGS", append.unwrap_or_default()),
        ("LG_BARECOUNT_ARGS", quoted(&list)),
    ])
}

/// Takes an option and its value out of a command line.
fn take(list: &mut Vec<String>, option: &str) -> Option<String> {
    let at = list.iter().position(|argument| argument == option)?;
    list.drain(at..at + 2).nth(1)
}

/// A command line as a shell, and Python's `shlex`, would read it.
fn quoted(list: &[String]) -> String {
    let one = |argument: &String| format!("'{}'", argument.replace('\'', r"'\''"));
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x6_what_an_environment_boots_is_known_by_its_variables() {
        let text = "images:\n  stick: !template \"$LG_BARECOUNT_IMAGE\" # not $LG_BARECOUNT_DIR\n";
        assert!(uses(text, IMAGE) && !uses(text, NETWORK) && !uses(text, DIR));
        assert!(uses("a: ${LG_BARECOUNT_DIR}/kernel", DIR));
    }

    #[test]
    fn x6_options_that_labgrid_writes_are_taken_out_and_the_rest_is_quoted() {
        let mut list = ["-cpu", "max", "-append", "pmu=zen4 shift=0", "-name", "it's"]
            .map(str::to_string)
            .to_vec();
        assert_eq!(take(&mut list, "-append").as_deref(), Some("pmu=zen4 shift=0"));
        assert_eq!(take(&mut list, "-m"), None);
        assert_eq!(quoted(&list), r"'-cpu' 'max' '-name' 'it'\''s'");
    }
}
