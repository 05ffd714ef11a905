//! What two reports differ in in addition to their figures: machine, PMU, job, tools.

use super::saved::Saved;
use crate::kinds::figures::TICKS;
use protocol::record::{Machine, PmuArchitecture};
use serde::Serialize;

/// Something that figures depend on, and that is not the same in both reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What it is.
    pub what: &'static str,
    /// How it was.
    pub old: String,
    /// How it is.
    pub new: String,
}

/// Of what a report does not say.
const UNSAID: &str = "not said";
/// Two measurements of one clock do not differ by more.
const SAME_RATE: f64 = 0.01;

/// Everything that differs.
#[must_use]
pub fn differences(old: &Saved, new: &Saved) -> Vec<Difference> {
    let mut all = Vec::new();
    for (what, tell) in TOLD {
        let [old, new] = [old, new].map(tell);
        if old != new {
            let said = |told: Option<String>| told.unwrap_or_else(|| UNSAID.to_string());
            all.push(Difference { what, old: said(old), new: said(new) });
        }
    }
    if let (Some(old), Some(new)) = (old.machine.as_ref(), new.machine.as_ref())
        && rates_differ(old, new)
    {
        let rate = |machine: &Machine| format!("{:.2} MHz", machine.tsc.hz as f64 / 1e6);
        all.push(Difference { what: "rate of the TSC", old: rate(old), new: rate(new) });
    }
    all
}

type Told = (&'static str, fn(&Saved) -> Option<String>);

/// What is told of each report, in this order.
const TOLD: [Told; 15] = [
    ("processor", |one| one.machine.as_ref().map(processor)),
    ("kind of core", |one| {
        let core = one.machine.as_ref()?.core_type?;
        Some(format!("{core:?}").to_lowercase())
    }),
    ("microcode", |one| one.machine.as_ref()?.microcode.map(|revision| revision.to_string())),
    ("PMU", |one| one.machine.as_ref().map(pmu)),
    ("event table", |one| {
        let tables = one.machine.as_ref()?.event_tables.as_ref()?;
        Some(format!("{} ({})", tables.table.as_ref()?, tables.source.as_deref().unwrap_or("")))
    }),
    ("hypervisor", |one| one.machine.as_ref()?.hypervisor.clone()),
    ("accelerator", |one| one.run.accelerator.clone()),
    ("boot", |one| one.run.boot.clone()),
    ("TSC ticks an instruction", |one| {
        one.run.ticks_per_instruction.map(|ticks| ticks.to_string())
    }),
    ("job", |one| one.run.job.as_ref().map(|job| job.name.clone())),
    ("job text", |one| one.run.job.as_ref()?.text.map(|digest| format!("digest {digest}"))),
    ("barecount", |one| one.run.tools.as_ref().map(|tools| tools.barecount.clone())),
    ("firmware", |one| one.firmware.clone()),
    ("compiler", |one| one.run.tools.as_ref().map(|tools| format!("rustc {}", tools.rustc))),
    ("QEMU", |one| one.run.tools.as_ref()?.qemu.clone()),
];

fn processor(machine: &Machine) -> String {
    let Machine { vendor, brand, family, model, stepping, .. } = machine;
    format!("{brand} ({vendor} family {family:#x} model {model:#x} stepping {stepping})")
}

fn pmu(machine: &Machine) -> String {
    let Some(pmu) = &machine.pmu else {
        return "none".to_string();
    };
    let architecture = match pmu.architecture {
        PmuArchitecture::Intel => "Intel",
        PmuArchitecture::Amd => "AMD",
    };
    let emulated = machine.emulated_pmu.map_or("", |_| "emulated, ");
    format!(
        "{emulated}{architecture} version {}, {} counters of {} bits and {} fixed of {}",
        pmu.version, pmu.counters, pmu.counter_bits, pmu.fixed_counters, pmu.fixed_counter_bits
    )
}

fn rates_differ(old: &Machine, new: &Machine) -> bool {
    let [old, new] = [old.tsc.hz, new.tsc.hz].map(|hz| hz as f64);
    (old - new).abs() > SAME_RATE * old.max(new)
}

/// Why ticks of the TSC in the one report are not those of the other.
#[must_use]
pub fn ticks_differ(old: &Saved, new: &Saved) -> Option<String> {
    let [was, is] = [old, new].map(|one| one.run.ticks_per_instruction);
    let by = |ticks: Option<u64>| match ticks {
        Some(ticks) => format!("{ticks} for each instruction"),
        None => "those of a clock".to_string(),
    };
    if was != is {
        return Some(format!(
            "different units: {TICKS} are {} in the old report, {} in the new one",
            by(was),
            by(is)
        ));
    }
    if was.is_some() {
        return None;
    }
    let machines = old.machine.as_ref().zip(new.machine.as_ref());
    let Some((was, is)) = machines else {
        return Some(format!(
            "different units: one report does not state which clock {TICKS} are from"
        ));
    };
    if processor(was) != processor(is) || old.run.accelerator != new.run.accelerator {
        return Some(format!("other unit: {TICKS} of another machine"));
    }
    rates_differ(was, is).then(|| format!("other unit: {TICKS} of another rate"))
}

#[cfg(test)]
mod tests;
