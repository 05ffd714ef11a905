//! The job as the chosen machine is to run it.

use crate::cli::{Machine, Run};
use crate::events::{CpuName, cpu};
use crate::job::{self, Packed, Purpose};
use crate::machine::{Choice, Given};
use crate::metrics::Target;
use crate::{Failure, Result};
use protocol::ramdisk::{self, SectionKind};
use std::borrow::Cow;

/// The job with what its report is to look like.
pub(super) fn in_form(packed: &Packed, ktap: bool) -> Result<Cow<'_, Packed>> {
    if !ktap {
        return Ok(Cow::Borrowed(packed));
    }
    let mut packed = packed.clone();
    ramdisk::add_section(&mut packed.bytes, SectionKind::Ktap, &[])
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Cow::Owned(packed))
}

/// The job as the chosen machine is to run it.
pub(super) fn load(arguments: &Run, choice: &Choice) -> Result<Packed> {
    let (path, overrides) = (arguments.job.as_deref(), &arguments.overrides);
    let asks = !overrides.event_files.is_empty();
    let cpu = asks.then(|| cpu_of(choice, &arguments.machine)).flatten();
    let known = (cpu.as_ref(), arguments.machine.cpus);
    let target = target(choice, &arguments.machine);
    Ok(job::load_for(path, overrides, Purpose::Qemu, known, target.as_ref())?)
}

/// The machine whose metrics can be requested.
fn target(choice: &Choice, machine: &Machine) -> Option<Target> {
    match choice.pmu {
        Given::Emulated(model) => match choice.recorded {
            Some(recorded) => Target::of_recorded(recorded),
            None => Target::of_model(model),
        },
        Given::Host if choice.kvm && machine.cpu.is_none() => {
            cpu::key_of_host().ok().map(|key| Target::of_host(CpuName::of(&key)))
        }
        Given::Host | Given::None => None,
    }
}

/// The processor that the guest sees, if the tables may know it.
fn cpu_of(choice: &Choice, machine: &Machine) -> Option<CpuName> {
    let key = match choice.pmu {
        Given::Emulated(model) => match choice.recorded {
            Some(recorded) => cpu::key_of_leaves(&recorded.leaves),
            None => cpu::key_of(model),
        },
        _ if choice.kvm && machine.cpu.is_none() => cpu::key_of_host().ok(),
        _ => None,
    };
    key.as_ref().map(CpuName::of)
}
