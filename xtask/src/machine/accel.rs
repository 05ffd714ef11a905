//! Which accelerator and which PMU, and why. They are chosen together: the host's PMU comes with KVM, the emulated
//! one with TCG.

use super::{Host, MachineError};
use crate::cli::{Accel, Boot, Counting, Emulated, Icount, Machine, Pmu};
use crate::recording::Recorded;
use pmu_model::Model;

/// The model that `auto` takes.
pub const DEFAULT_MODEL: Model = Model::Skylake;

/// The decision, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Choice {
    /// The host's processor; else QEMU's translator.
    pub kvm: bool,
    /// The guest's PMU.
    pub pmu: Given,
    /// The recorded processor of an emulated one, which behaves as its model.
    pub recorded: Option<&'static Recorded>,
    /// Why.
    pub reason: String,
}

/// The PMU that the guest gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Given {
    /// The guest gets no PMU.
    None,
    /// The host's.
    Host,
    /// An emulated one.
    Emulated(Model),
}

impl Choice {
    /// The PMU in words: `emulated skylake`.
    #[must_use]
    pub fn what(&self) -> String {
        let accelerator = if self.kvm { "KVM" } else { "TCG" };
        match self.pmu {
            Given::Emulated(model) => {
                let emulated = self.recorded.map_or(Emulated::Model(model), Emulated::Recorded);
                format!("emulated {}", emulated.what())
            }
            Given::Host => "the host's".to_string(),
            Given::None => format!("none, under {accelerator}"),
        }
    }

    /// The line that tells it.
    #[must_use]
    pub fn line(&self) -> String {
        format!("pmu: {} ({})", self.what(), self.reason)
    }
}

/// Decides.
///
/// # Errors
/// What was requested contradicts itself, or this host does not have it.
pub fn choose(asked: &Machine, host: &Host) -> Result<Choice, MachineError> {
    if let (Accel::Kvm, Err(reason)) = (asked.accel, &host.kvm) {
        return Err(MachineError::NoAccelerator(reason.clone()));
    }
    match asked.pmu {
        Pmu::Auto => Ok(automatic(asked, host)),
        Pmu::Host => hosts(asked, host),
        Pmu::None => Ok(without(asked, host)),
        Pmu::Emulated(pmu) => emulated(asked, pmu),
    }
}

/// Whether KVM gives guests a PMU, or why not.
fn offered(host: &Host) -> Result<(), String> {
    host.kvm.clone()?;
    let withheld = |reason: &String| format!("the host's KVM offers no PMU to guests: {reason}");
    host.vpmu.as_ref().map_err(withheld).copied()
}

/// Why the emulated PMU is not available on this machine.
fn obstacle(asked: &Machine) -> Option<&'static str> {
    if asked.accel == Accel::Kvm {
        return Some("the emulated PMU needs TCG's -icount, which --accel kvm does not have");
    }
    if asked.boot == Boot::Bios {
        return Some("nothing starts the emulated PMU under a BIOS; --boot direct and uefi can");
    }
    (asked.icount == Icount::Off)
        .then_some("the emulated PMU counts by TCG's -icount, which --icount off leaves out")
}

impl Choice {
    /// The choice of `--pmu auto` where the emulated PMU is not available for `obstacle`.
    #[must_use]
    pub fn without(self, obstacle: &str) -> Self {
        Self { pmu: Given::None, reason: format!("{}; {obstacle}", self.reason), ..self }
    }
}

fn automatic(asked: &Machine, host: &Host) -> Choice {
    let offered = offered(host);
    let why = match (asked.accel, offered) {
        (Accel::Auto | Accel::Kvm, Ok(())) => {
            let reason = "KVM offers one to guests".to_string();
            return Choice { kvm: true, pmu: Given::Host, recorded: None, reason };
        }
        (Accel::Kvm, Err(reason)) => {
            return Choice { kvm: true, pmu: Given::None, recorded: None, reason };
        }
        (Accel::Auto, Err(reason)) => reason,
        (Accel::Tcg, _) => "TCG, as requested, has no PMU".to_string(),
    };
    let obstacle = obstacle(asked).or_else(|| {
        // A model would put another identity in the place of the one that was requested.
        asked.cpu.is_some().then_some("--cpu names a processor; --pmu MODEL would replace it")
    });
    match obstacle {
        None => {
            let pmu = Given::Emulated(DEFAULT_MODEL);
            Choice { kvm: false, pmu, recorded: None, reason: why }
        }
        Some(obstacle) => {
            let reason = format!("{why}; {obstacle}");
            Choice { kvm: false, pmu: Given::None, recorded: None, reason }
        }
    }
}

fn hosts(asked: &Machine, host: &Host) -> Result<Choice, MachineError> {
    if asked.accel == Accel::Tcg {
        let text = "--pmu host contradicts --accel tcg: only KVM passes the host's PMU through";
        return Err(MachineError::Contradiction(text.to_string()));
    }
    let missing = |reason| MachineError::NoAccelerator(format!("--pmu host: {reason}"));
    offered(host).map_err(missing)?;
    Ok(Choice { kvm: true, pmu: Given::Host, recorded: None, reason: "as asked".to_string() })
}

/// Without a PMU KVM is still taken where `auto` would take it.
fn without(asked: &Machine, host: &Host) -> Choice {
    let kvm = match asked.accel {
        Accel::Auto => offered(host).is_ok(),
        accel => accel == Accel::Kvm,
    };
    Choice { kvm, pmu: Given::None, recorded: None, reason: "as asked".to_string() }
}

fn emulated(asked: &Machine, pmu: Emulated) -> Result<Choice, MachineError> {
    if let Some(reason) = obstacle(asked) {
        let text = format!("--pmu {} is not possible here: {reason}", asked.pmu);
        return Err(MachineError::Contradiction(text));
    }
    let alone = match pmu {
        Emulated::Mixed(_) => Some("several models need"),
        Emulated::Shaped(..) => Some("parameters of caches need"),
        Emulated::Model(_) | Emulated::Recorded(_) => None,
    };
    if let (Some(what), Boot::Uefi) = (alone, asked.boot) {
        let text = format!("--pmu {}: {what} --boot direct", asked.pmu);
        return Err(MachineError::Contradiction(text));
    }
    if asked.pmu.parameters().is_some() && asked.by.counting == Counting::Stepping {
        let text = format!(
            "--pmu {}: parameters of caches need the plugin, which --counting stepping does not use",
            asked.pmu
        );
        return Err(MachineError::Contradiction(text));
    }
    let reason = match pmu {
        Emulated::Mixed(mixture) => format!("as requested: the first of {mixture}"),
        Emulated::Shaped(_, parameters) => format!("as asked, with {parameters}"),
        _ => "as asked".to_string(),
    };
    let (pmu, recorded) = (Given::Emulated(pmu.model()), pmu.recorded());
    Ok(Choice { kvm: false, pmu, recorded, reason })
}

#[cfg(test)]
mod tests;
