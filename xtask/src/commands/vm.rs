//! `vm`: start another system in QEMU, with an emulated PMU below it.

mod system;

use crate::build::Tree;
use crate::cli::{Counting, Vm};
use crate::commands::run::{counter, hypervisor};
use crate::machine::devices::{Boot, Console, Cpus, PMU_LOG, Pmu, Virtual, arguments};
use crate::machine::{Ending, Given, MachineError, console, pmu_log, seconds};
use crate::setup::{self, Need, Toolchain, firmware};
use crate::{Failure, Result, interrupt, output};
use std::path::Path;
pub use system::System;

/// Runs the command. The exit code is 0 if the system switched the machine off.
///
/// # Errors
/// What is missing or wrong; a machine that did not come up with the PMU.
pub fn run(wanted: &Vm) -> Result<u8> {
    let system = System::of(wanted)?;
    let tree = prepare()?;
    let pmu = Given::Emulated(wanted.pmu.model());
    let counter = counter(&tree, pmu, wanted.by.counting)?;
    // From here on there is a machine and a folder to be cleaned up.
    let _deferred = interrupt::defer();
    let folder = tempfile::tempdir();
    let folder = folder.map_err(Failure::file("create", &std::env::temp_dir()))?;
    let pmu = orders(wanted, counter.plugin.is_some());
    let hypervisor = hypervisor(&tree, wanted.pmu.recorded(), folder.path())?;
    if let Some(recorded) = wanted.pmu.recorded() {
        for line in &recorded.inferred {
            output::say(&format!("pmu: {line}"));
        }
    }
    let boot = stage((&tree, &hypervisor), &pmu, &system, folder.path())?;
    let machine = Virtual {
        boot,
        kvm: false,
        pmu: Pmu::Emulated { model: wanted.pmu.model(), options: String::new() },
        plugin: counter.plugin.clone(),
        icount: Some(wanted.shift),
        cpus: Cpus::Many(wanted.cpus),
        memory: wanted.memory,
        cpu: None,
        serial: Some(Console::Terminal),
        screen: false,
        extra: [system.devices(), wanted.qemu_arguments.clone()].concat(),
    };
    output::say(&format!("pmu: emulated {}, {}", wanted.pmu.what(), counter.what()));
    if let Some(note) = &counter.note {
        output::say(&format!("pmu: {note}"));
    }
    let limit = wanted.timeout.map(crate::cli::Timeout::duration);
    let ending = console::run(&arguments(&machine), folder.path(), limit)?;
    if let Ending::Interrupted(_) = ending {
        // It is told by the exit code.
        let _ = interrupt::take();
        return Ok(interrupt::EXIT_CODE);
    }
    has_pmu(wanted, folder.path(), counter.plugin.is_some())?;
    match ending {
        Ending::Exited(Some(0)) => Ok(0),
        Ending::TimedOut(after) => {
            let text = format!("the machine was ended after {}", seconds(after));
            Err(MachineError::Unfinished(text).into())
        }
        other => Err(MachineError::Unfinished(format!("QEMU failed: {other:?}")).into()),
    }
}

/// Gets and builds everything that it takes.
fn prepare() -> Result<Tree> {
    let toolchain = Toolchain::find()?;
    setup::ensure(Need::build(), &toolchain)?;
    setup::ensure(&[Need::Qemu, Need::QemuForPmu, Need::Ovmf], &toolchain)?;
    let tree = Tree::new(toolchain)?;
    tree.writable()?;
    tree.build_uefi_pmu()?;
    Ok(tree)
}

/// The hypervisor's options. What steps looks for repeated string instructions in decoded code alone: a system has many.
fn orders(wanted: &Vm, plugin: bool) -> String {
    let mut text = wanted.pmu.model().spec().name.to_string();
    if wanted.cpus > 1 {
        text += &format!(" cpus={}", wanted.cpus);
    }
    if !plugin {
        text += " strings=decoded";
    }
    text
}

/// Puts the partition from which the firmware starts the PMU, and the firmware's variables, into the run's `folder`.
fn stage(with: (&Tree, &Path), pmu: &str, system: &System, folder: &Path) -> Result<Boot> {
    let partition = folder.join("partition");
    system.fill(with, pmu, &partition)?;
    let ovmf = firmware::find().ok_or_else(|| Failure::Usage("no UEFI firmware".to_string()))?;
    let ovmf = ovmf.for_run(folder).map_err(Failure::file("write", folder))?;
    // QEMU makes a FAT disk of a folder.
    Ok(Boot::Uefi { image: format!("fat:{}", partition.display()).into(), ovmf })
}

/// Makes sure that the hypervisor has said that it runs, and states what else it said.
fn has_pmu(wanted: &Vm, folder: &Path, plugin: bool) -> Result<()> {
    let model = wanted.pmu.model();
    for line in pmu_log::read(folder, model) {
        output::say(&format!("emulated PMU: {line}"));
    }
    let greeting = pmu_log::greeting(folder, model);
    let name = model.spec().name;
    match greeting {
        None => {
            let why = "the firmware's or the console's output has the reason".to_string();
            let file = folder.join(PMU_LOG);
            let why = if file.exists() { why } else { "QEMU did not start".to_string() };
            Err(MachineError::NoPmu { model: name, why }.into())
        }
        Some(said) if plugin && !said.contains("plugin") => {
            let text = "the hypervisor found no plugin of its version, and stepped";
            if wanted.by.counting == Counting::Plugin {
                return Err(
                    MachineError::NoAccelerator(format!("--counting plugin: {text}")).into()
                );
            }
            output::say(&format!("pmu: {text}"));
            Ok(())
        }
        Some(_) => Ok(()),
    }
}
