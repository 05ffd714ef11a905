//! Booting a job in QEMU.

use super::staging::write;
use super::{mix, plant, record, shape, stage_with_pmu};
use crate::build::Tree;
use crate::cli::{self, Machine};
use crate::collect::Collector;
use crate::console::Driver;
use crate::forecast::program_mib;
use crate::job::Packed;
use crate::machine::devices::{
    Console, Cpus, Virtual, arguments, default_memory, without_stop_line,
};
use crate::machine::{self, Choice, Counter, Finished, Launch, Limits};
use crate::progress::Work;
use crate::{Result, setup};
use std::ffi::OsString;
use std::path::Path;

/// Boots `packed` in a folder, where the run's files stay, with somebody at the console if there is a driver.
///
/// # Errors
/// A file that cannot be written, or QEMU cannot be started.
pub fn boot(
    tree: &Tree,
    packed: &Packed,
    machine: &Machine,
    (choice, counter): (&Choice, &Counter),
    (folder, driver): (&Path, Option<&mut Driver>),
) -> Result<Finished> {
    let icount = machine.icount.shift(machine.boot);
    let given = (choice.pmu, choice.recorded, icount);
    let (kernel, job) = (tree.kernel(), Some(&packed.bytes[..]));
    let (boot, mut pmu) = stage_with_pmu(tree, &kernel, job, machine.boot, given, folder)?;
    if let Some(mixture) = machine.pmu.mixture() {
        mix(&mixture, &mut pmu);
    }
    if let Some(parameters) = machine.pmu.parameters() {
        shape(parameters, &mut pmu);
    }
    if let Some(fault) = &machine.pmu_fault {
        tree.build_faulty_pmu()?;
        plant(tree, fault, machine.boot, &mut pmu, folder)?;
    }
    if let (Some(recorded), cli::Boot::Direct) = (choice.recorded, machine.boot) {
        record(recorded, folder)?;
    }
    let virtual_machine = Virtual {
        boot,
        kvm: choice.kvm,
        pmu,
        plugin: counter.plugin.clone(),
        icount,
        cpus: Cpus::Many(machine.cpus.unwrap_or(packed.cpus)),
        memory: machine.memory.unwrap_or_else(|| {
            let least = default_memory(machine.cpus.unwrap_or(packed.cpus));
            least.saturating_add(program_mib(packed)).saturating_add(packed.mib)
        }),
        cpu: machine.cpu.clone(),
        serial: Some(Console::Pipe),
        screen: false,
        extra: Vec::new(),
    };
    let line = arguments(&virtual_machine);
    let by_hand = command_line(&without_stop_line(&line));
    write(&folder.join("command.txt"), by_hand.as_bytes())?;
    let mut work = Work::of(packed.job.items.len() as u64, "running");
    let tick = |collector: &Collector| work.tick(collector.items());
    let limits = Limits {
        timeout: machine.timeout.duration(),
        silence: machine.item_timeout.map(cli::Timeout::duration),
    };
    let collector = packed.key.map_or_else(Collector::new, Collector::with_key);
    let launch = Launch { program: None, arguments: &line, folder, limits };
    let finished = match driver {
        Some(driver) => machine::run_driven(collector, &launch, driver, tick)?,
        None => machine::run_into(collector, &launch, tick)?,
    };
    match machine.cpu.as_ref().and_then(|cpu| machine::cpu_model::refused(cpu, &finished)) {
        Some(refused) => Err(refused.into()),
        None => Ok(finished),
    }
}

fn command_line(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let text = argument.to_string_lossy();
        if text.contains(' ') { format!("'{text}'") } else { text.into_owned() }
    });
    format!(
        "{} {}\n",
        setup::qemu::program().to_string_lossy(),
        quoted.collect::<Vec<_>>().join(" ")
    )
}
