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
use arch::pmu::{self, Emulated, WayIn};
use arch::smp::{self, Silent};
use arch::time::Clock;
use protocol::record::{ListedProcessor, ProcessorState};
use x86_64::VirtAddr;
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::PhysFrame;

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

/// Brings the other processors under the emulated PMU as far as it has a place for them, and notes how many there are.
/// What it refuses stands with its processor.
pub fn bring_under(
    emulated: &mut Emulated,
    registers: &pmu::Machine,
    handed: &mut Handed,
    space: &mut Space,
    list: &mut [ListedProcessor],
) {
    // Its clock counts the instructions of all processors together.
    smp::halt_while_waiting();
    let reached = emulated.processors;
    for processor in smp::in_use().skip(reached as usize) {
        if let Some(one) = list.iter_mut().find(|one| one.apic_id == processor.apic_id()) {
            one.reason = Some(format!("the emulated PMU reaches {reached} of the processors"));
        }
    }
    let mut covered = 1;
    if smp::count() > 1 && emulated.processors > 1 {
        // The hypervisor's own code lies where it lies, and looks at what its caller has at its addresses.
        let identity = space.fork(&mut handed.frames, VirtAddr::new(0)).and_then(|mut identity| {
            identity.map_first_gib(&mut handed.frames, 4)?;
            Ok(identity)
        });
        let Ok(identity) = identity else { return };
        for processor in smp::in_use().skip(1) {
            let index = processor.index();
            let way = emulated.way_in(registers, index as u32);
            let answer = way.map(|way| {
                // SAFETY: the first processor's hypervisor named the way; memory is mapped there as it wants it.
                smp::run_on(index, || unsafe { enter(&way, &identity) })
            });
            match answer {
                Some(Ok(0)) => covered += 1,
                Some(Ok(code)) => {
                    let named = list.iter_mut().find(|one| one.apic_id == processor.apic_id());
                    if let Some(one) = named {
                        one.reason = Some(format!("the emulated PMU refused it (code {code})"));
                    }
                }
                Some(Err(_)) | None => {}
            }
        }
    }
    emulated.processors = covered;
}

/// Calls the hypervisor; on success this processor goes on as its guest.
///
/// # Safety
/// The way must be the hypervisor's, and `identity` map it one to one besides everything that is mapped now.
unsafe fn enter(way: &WayIn, identity: &Space) -> u64 {
    let (own, flags) = Cr3::read();
    // SAFETY: the caller's promise. The function keeps what the ABI wants kept.
    unsafe {
        Cr3::write(PhysFrame::containing_address(identity.root()), flags);
        let entry: extern "sysv64" fn(u64) -> u64 = core::mem::transmute(way.entry);
        let answer = entry(way.argument);
        Cr3::write(own, flags);
        answer
    }
}

fn record(apic_id: u32, state: ProcessorState, reason: Option<String>) -> ListedProcessor {
    ListedProcessor { apic_id, state, reason }
}
