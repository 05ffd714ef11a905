//! A report as a recording: what its bring-up found of CPUID and registers, else what its machine record states.

use crate::collect::Numbered;
use protocol::record::{Machine, Msrs, Record};
use recorded::machine::MachineError;
use recorded::{Leaves, machine};

/// Leaves of hypervisors, which are not part of a processor.
const HYPERVISORS: std::ops::Range<u32> = 0x4000_0000..0x8000_0000;

/// Processors, and what of their leaves had to be inferred.
pub type Inferred = (Vec<Leaves>, Vec<String>);

/// The processors of a report, and what of their leaves had to be inferred. `None`: it says nothing of its machine.
///
/// # Errors
/// The machine record is none that a processor could have.
pub fn processors(records: &[Numbered]) -> Result<Option<Inferred>, MachineError> {
    let found = of_cpuid(records);
    if !found.is_empty() {
        return Ok(Some((found, Vec::new())));
    }
    let Some(record) = last_machine(records) else { return Ok(None) };
    let (leaves, inferred) = machine::leaves(record)?;
    Ok(Some((vec![leaves], inferred)))
}

/// The last machine record.
pub fn last_machine(records: &[Numbered]) -> Option<&Machine> {
    records.iter().rev().find_map(|one| match &one.record {
        Record::Machine(machine) => Some(machine),
        _ => None,
    })
}

/// Every answer that a bring-up recorded, by processor; the others' records have what differs from the boot processor's.
fn of_cpuid(records: &[Numbered]) -> Vec<Leaves> {
    let mut processors: Vec<Leaves> = Vec::new();
    for one in records {
        let Record::Cpuid(cpuid) = &one.record else { continue };
        // A report of several bring-ups: the first one.
        if cpuid.cpu == 0 && !processors.is_empty() {
            break;
        }
        let mut leaves = processors.first().cloned().unwrap_or_default();
        for &[leaf, subleaf, eax, ebx, ecx, edx] in &cpuid.answers {
            if !HYPERVISORS.contains(&leaf) {
                leaves.set(leaf, subleaf, [eax, ebx, ecx, edx]);
            }
        }
        processors.push(leaves);
    }
    let complete = processors
        .first()
        .is_some_and(|boot| boot.recorded(0, 0).is_some() && boot.recorded(1, 0).is_some());
    if complete { processors } else { Vec::new() }
}

/// The registers of a processor as its firmware left them, or as they were when the bring-up ran.
pub fn registers(records: &[Numbered], cpu: u32, found: bool) -> Option<&Msrs> {
    records.iter().find_map(|one| match &one.record {
        Record::Msrs(msrs) if msrs.cpu == cpu && msrs.found == found => Some(msrs),
        _ => None,
    })
}
