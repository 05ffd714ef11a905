//! A bring-up: everything that can be found out about a machine, in the order in which less and less is certain to end.

pub mod costs;
mod timers;

use super::per_cpu::BOOT;
use super::probe::Machine;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::acpi::facts::facts;
use arch::msr::{self, Msr};
use arch::pmu::inventory;
use arch::{cpu, smp};
use kernel::bring_up::{Answer, answers, differing, measure};
use protocol::hex::Hex;
use protocol::record::{AcpiTable, AcpiTables, CpuidLeaves, Measure, Msrs, Record};
use raw_cpuid::CpuIdReader as _;

/// Registers and what they held; `None`: reading raised an exception.
pub type Read = Vec<(Msr, Option<u64>)>;

/// Reads every register that has to do with the PMU of this processor.
pub fn registers(amd: bool) -> Read {
    // SAFETY: the interrupt table is loaded; reading none of them changes anything.
    inventory::registers(amd).map(|msr| (msr, unsafe { msr::try_read(msr) }.ok())).collect()
}

/// Reports what is there besides the PMU's behaviour. `fresh`: nobody has taken the other processors' PMUs over.
pub fn report(machine: &Machine, item: u32, fresh: bool, report: &mut dyn FnMut(Record)) {
    let amd = machine.vendor == cpu::Vendor::Amd;
    let own = leaves();
    report(Record::Cpuid(CpuidLeaves { item, cpu: 0, answers: own.clone() }));
    if let Some(found) = &machine.found {
        report(Record::Msrs(msrs(item, 0, true, found)));
    }
    report(Record::Msrs(msrs(item, 0, false, &registers(amd))));
    for processor in smp::in_use().skip(1) {
        let number = processor.index();
        let (answers, read) = smp::run_on(number, || (leaves(), registers(amd))).expect(BOOT);
        let cpu = number as u32;
        let answers = differing(answers, &own);
        report(Record::Cpuid(CpuidLeaves { item, cpu, answers }));
        report(Record::Msrs(msrs(item, cpu, fresh, &read)));
    }
    report(Record::Acpi(AcpiTables { item, tables: tables(machine) }));
    timers::measure_all(machine, item, &mut |one| report(Record::Measure(one)));
    skews(item, &mut |one| report(Record::Measure(one)));
}

/// Reports what single instructions cost.
pub fn report_costs(machine: &Machine, item: u32, report: &mut dyn FnMut(Record)) {
    costs::measure_all(machine, item, &mut |one| report(Record::Measure(one)));
}

fn leaves() -> Vec<Answer> {
    answers(|leaf, subleaf| {
        let answer = cpu::native().cpuid2(leaf, subleaf);
        [answer.eax, answer.ebx, answer.ecx, answer.edx]
    })
}

fn msrs(item: u32, cpu: u32, found: bool, read: &[(Msr, Option<u64>)]) -> Msrs {
    let hex = |msr: &Msr| Hex(u64::from(msr.0));
    let values = read.iter().filter_map(|(msr, value)| Some([hex(msr), Hex((*value)?)])).collect();
    let absent =
        read.iter().filter(|(_, value)| value.is_none()).map(|(msr, _)| hex(msr)).collect();
    Msrs { item, cpu, found, values, absent }
}

fn tables(machine: &Machine) -> Vec<AcpiTable> {
    let mut list = Vec::new();
    let add = |address: usize, table: &[u8]| {
        // Signature, length, revision, checksum, OEM id, OEM table id: ACPI specification 6.5, 5.2.6.
        let Some(header) = table.get(..24) else { return };
        let text = |bytes: &[u8]| -> String {
            let shown = |byte: &u8| if byte.is_ascii_graphic() { *byte as char } else { ' ' };
            bytes.iter().map(shown).collect()
        };
        let signature = text(&header[..4]);
        list.push(AcpiTable {
            address: Hex(address as u64),
            bytes: table.len() as u32,
            revision: header[8],
            oem: format!("{} {}", text(&header[10..16]).trim(), text(&header[16..24]).trim()),
            facts: facts(&signature, table),
            signature,
        });
    };
    // SAFETY: the tables were read before; physical memory is mapped.
    unsafe { machine.platform.each_table(add) };
    list
}

/// So often is a skew measured.
const ROUNDS: usize = 8;
/// From the naming of an instant to that instant.
const LEAD_TICKS: u64 = 20_000;

/// How far the processors' time stamp counters are apart, and how far from each other they do something at one instant.
fn skews(item: u32, report: &mut dyn FnMut(Measure)) {
    if smp::count() < 2 {
        return;
    }
    let rounds: Vec<Vec<smp::Offset>> = (0..ROUNDS).map(|_| smp::offsets().expect(BOOT)).collect();
    for (place, processor) in smp::in_use().enumerate().skip(1) {
        let values = rounds.iter().filter_map(|round| Some(round.get(place)?.ticks)).collect();
        let cpu = Some(processor.index() as u32);
        report(Measure { cpu, ..measure(item, "skew.tsc", "TSC ticks", values) });
    }
    let offsets = &rounds[ROUNDS - 1];
    let instant = |_| smp::at_instant(offsets, LEAD_TICKS, |_| ()).expect(BOOT).skew as i64;
    let values = (0..ROUNDS).map(instant).collect();
    report(measure(item, "skew.instant", "TSC ticks", values));
}
