//! What a run ran on, name by name.

use crate::document::Document;
use crate::kinds::processors::text as processors;
use crate::primitives::number;
use protocol::record::{CountedBy, Machine, Pmu, PmuArchitecture, TscSource};

/// Machine, PMU and tools.
pub(super) fn of(document: &Document) -> Vec<(String, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    if let Some(machine) = document.report.machine() {
        machine_facts(&mut all, machine);
    }
    let run = &document.run;
    let mut how: Vec<String> = Vec::new();
    how.extend(run.accelerator.as_ref().map(|with| format!("QEMU, {}", with.to_uppercase())));
    how.extend(run.boot.as_ref().map(|boot| format!("booted {boot}")));
    if how.is_empty() && !run.source.is_empty() {
        how.push(format!("read from {}", run.source));
    }
    all.push(("Run by", how.join(", ")));
    all.push((
        "PMU chosen",
        run.pmu.iter().chain(&run.reason).cloned().collect::<Vec<_>>().join(": "),
    ));
    if let Some(tools) = &run.tools {
        let qemu = tools.qemu.as_ref().map_or(String::new(), |version| format!(", QEMU {version}"));
        all.push((
            "Made with",
            format!("barecount {}, rustc {}{qemu}", tools.barecount, tools.rustc),
        ));
    }
    if let Some(job) = &run.job {
        let digest = job.text.map_or(String::new(), |text| format!(", text {text}"));
        all.push(("Job", format!("{}{digest}", job.file)));
    }
    let said = all.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| (name.to_string(), value)).collect()
}

fn machine_facts(all: &mut Vec<(&str, String)>, machine: &Machine) {
    let Machine { vendor, brand, family, model, stepping, .. } = machine;
    all.push(("Processor", brand.clone()));
    let microcode = machine.microcode.map_or(String::new(), |code| format!(", microcode {code}"));
    let core =
        machine.core_type.map_or(String::new(), |core| format!(", {core:?} core").to_lowercase());
    let id = format!(
        "{vendor} family {family:#x} model {model:#x} stepping {stepping}{microcode}{core}"
    );
    all.push(("Identity", id));
    all.push((
        "Below it",
        machine
            .hypervisor
            .clone()
            .map_or("nothing: bare metal".to_string(), |name| format!("hypervisor {name}")),
    ));
    all.push(("PMU", pmu(machine)));
    if let Some(pmu) = machine.pmu.as_ref().filter(|pmu| !pmu.features.is_empty()) {
        all.push(("PMU offers", pmu.features.join(", ")));
    }
    all.push(("Time stamp counter", tsc(machine)));
    if let Some(tables) = &machine.event_tables {
        let events = match (&tables.table, &tables.absent) {
            (Some(table), _) => format!(
                "{} in table {table} ({})",
                tables.events,
                tables.source.as_deref().unwrap_or("unknown source")
            ),
            (None, Some(reason)) => format!("none: {reason}"),
            (None, None) => String::new(),
        };
        all.push(("Events by name", events));
    }
    all.push(("Processors", processors::heading(machine).unwrap_or_default()));
    all.push(("Kinds of core", processors::kinds(machine).join(". ")));
    all.push(("Memory", format!("{} MiB", machine.memory_bytes >> 20)));
}

fn pmu(machine: &Machine) -> String {
    let Some(Pmu { architecture, version, counters, counter_bits, fixed_counters, .. }) =
        &machine.pmu
    else {
        return format!(
            "none: {}",
            machine.pmu_absent.as_deref().unwrap_or("the report has no reason")
        );
    };
    let whose = match architecture {
        PmuArchitecture::Intel => "Intel",
        PmuArchitecture::Amd => "AMD",
    };
    let fixed =
        if *fixed_counters > 0 { format!(" and {fixed_counters} fixed") } else { String::new() };
    let emulated = machine.emulated_pmu.map_or("", |emulated| match emulated.counted_by {
        CountedBy::Plugin => "emulated (counting by plugin): ",
        CountedBy::Stepping => "emulated (counting by stepping): ",
    });
    format!(
        "{emulated}{whose} version {version}, {counters} counters of {counter_bits} bits{fixed}"
    )
}

fn tsc(machine: &Machine) -> String {
    let source = match machine.tsc.source {
        TscSource::Cpuid => "from CPUID",
        TscSource::Hypervisor => "from the hypervisor",
        TscSource::AcpiPmTimer => "measured against the ACPI timer",
        TscSource::Hpet => "measured against the HPET",
        TscSource::Pit => "measured against the 8254",
        TscSource::BaseFrequency => "CPUID's base frequency, not measured",
    };
    let rate = number(machine.tsc.hz as f64 / 1e6);
    let invariant = if machine.tsc.invariant { ", invariant" } else { "" };
    format!("{rate} MHz, {source}{invariant}")
}
