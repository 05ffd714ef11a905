//! Starting the other processors, and what of them stands in the machine record.

use super::boot::Handed;
use super::stacks;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::acpi::Platform;
use arch::acpi::processors::{Listed, State};
use arch::apic;
use arch::cpu::Identity;
use arch::memory::Space;
use arch::pmu::Emulated;
use arch::smp::{self, Silent};
use arch::time::Clock;
use protocol::record::{ListedProcessor, ProcessorState};

/// Memory that other processors do not get: the boot processor's snippets take 22 MiB of it, a second code area 16.
const KEPT_BYTES: u64 = 48 << 20;

/// Starts what the MADT lists as enabled, and reports every processor, the boot processor first.
pub fn start(
    platform: &Platform,
    identity: &Identity,
    clock: &Clock,
    handed: &mut Handed,
    space: &mut Space,
) -> Vec<ListedProcessor> {
    let own = match apic::id() {
        0 => identity.topology.apic_id,
        id => id,
    };
    smp::boot().note_apic_id(own);
    let mut list = Vec::from([record(own, ProcessorState::Boot, None)]);
    let others = platform.processors.iter().filter(|one| one.apic_id != own);
    let (enabled, rest): (Vec<&Listed>, Vec<&Listed>) =
        others.partition(|one| one.state == State::Enabled);
    let ids: Vec<u32> = enabled.iter().map(|one| one.apic_id).collect();
    if !ids.is_empty() {
        let low = handed.low;
        let frames = &mut handed.frames;
        let mut stacks = || {
            let enough = frames.largest_bytes() >= KEPT_BYTES;
            if enough { stacks::map_set(space, frames).ok() } else { None }
        };
        // SAFETY: the boot processor, at its start, all of its tables and its APIC in use; the memory below 1 MiB is
        // what the boot loader calls usable, and the frames do not give it out.
        let outcomes = unsafe { smp::start(&ids, low, clock, &mut stacks) };
        list.extend(ids.iter().zip(outcomes).map(|(&id, outcome)| match outcome {
            Ok(_) => record(id, ProcessorState::Started, None),
            Err(reason) => record(id, ProcessorState::Failed, Some(reason.to_string())),
        }));
    }
    let reason = Silent::NotEnabled.to_string();
    let off = |id| record(id, ProcessorState::Off, Some(reason.clone()));
    list.extend(rest.iter().map(|one| off(one.apic_id)));
    list
}

/// Notes which processors are outside of the emulated PMU, and how many have it: it takes in as many as it has a place for
/// when they are started.
pub fn under(emulated: &mut Emulated, list: &mut [ListedProcessor]) {
    // Its clock counts the instructions of all processors together.
    smp::halt_while_waiting();
    let reached = emulated.processors;
    for processor in smp::in_use().skip(reached as usize) {
        if let Some(one) = list.iter_mut().find(|one| one.apic_id == processor.apic_id()) {
            one.reason = Some(format!("the emulated PMU reaches {reached} of the processors"));
        }
    }
    emulated.processors = reached.min(smp::count() as u32);
}

fn record(apic_id: u32, state: ProcessorState, reason: Option<String>) -> ListedProcessor {
    ListedProcessor { apic_id, state, reason }
}
