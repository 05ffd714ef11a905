//! The emulated PMU that was requested: its QEMU, its plugin, and whether it came up.

use crate::Result;
use crate::build::Tree;
use crate::cli;
use crate::collect::Report;
use crate::machine::{self, Choice, Counter, Given, MachineError};
use crate::setup::{self, Need, SetupError};
use pmu_model::Model;
use protocol::record::CountedBy;

/// Gets the QEMU that an emulated PMU takes.
pub(super) fn trusted(choice: &Choice, tree: &Tree) -> std::result::Result<(), SetupError> {
    match choice.pmu {
        Given::Emulated(_) => setup::ensure(&[Need::QemuForPmu], tree.toolchain()),
        Given::Host | Given::None => Ok(()),
    }
}

/// Builds the plugin and decides whether it counts for the chosen PMU.
///
/// # Errors
/// It does not build; it was requested and QEMU does not take it.
pub fn counter(tree: &Tree, pmu: Given, asked: cli::Counting) -> Result<Counter> {
    if !matches!(pmu, Given::Emulated(_)) || asked == cli::Counting::Stepping {
        return Ok(Counter::default());
    }
    let counter = machine::counting::choose(asked, &tree.plugin(), setup::qemu::probe())?;
    if counter.plugin.is_some() {
        tree.build_plugin()?;
    }
    Ok(counter)
}

/// Makes sure that the emulated PMU of a machine that came up counts by the plugin, which was requested by name.
pub(super) fn has_plugin(report: &Report, said: &[String]) -> Result<()> {
    let emulated = report.machine().and_then(|machine| machine.emulated_pmu);
    match emulated.map(|pmu| pmu.counted_by) {
        Some(CountedBy::Stepping) => {
            let why = "the hypervisor found no plugin of its version";
            let said = said.join("; ");
            let text = format!(
                "--counting plugin: {why}{}{said}",
                if said.is_empty() { "" } else { ": " }
            );
            Err(MachineError::NoAccelerator(text).into())
        }
        Some(CountedBy::Plugin) | None => Ok(()),
    }
}

/// Makes sure that the machine came up with the PMU of `model`, which was named; a machine that did not come up is
/// complained of elsewhere. Nothing is rendered without it: every count would be missing or another's.
pub(super) fn has_pmu(report: &Report, model: Model, said: &[String]) -> Result<()> {
    let Some(machine) = report.machine() else { return Ok(()) };
    let is_it = machine.emulated_pmu.is_some_and(|pmu| pmu.model == model as u32);
    if is_it && machine.pmu.is_some() {
        return Ok(());
    }
    // The loader's words, in front of the firmware's first line; the hypervisor's; the firmware's.
    let loader = report.foreign.iter().map(|line| line.text.as_str());
    let firmware = machine.pmu_absent.as_deref();
    let why: Vec<&str> = loader.chain(said.iter().map(String::as_str)).chain(firmware).collect();
    let model = model.spec().name;
    Err(MachineError::NoPmu { model, why: why.join("; ") }.into())
}
