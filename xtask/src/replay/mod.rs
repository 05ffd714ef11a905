//! What a machine's report says there, in addition to what the emulated machine that was made of it says here.

mod names;
mod render;

pub use names::name;
pub use render::{json, table};

use crate::collect::Numbered;
use crate::recording::report::{last_machine, registers};
use protocol::job::conformance::matches;
use protocol::record::{
    Check, CheckVerdict, CpuidLeaves, EnergyMeter, Machine, Measure, Msrs, Record,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// What is there and what is here; `None`: it is not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair<T> {
    /// In the report.
    pub there: Option<T>,
    /// On the emulated machine.
    pub here: Option<T>,
}

impl<T: PartialEq> Pair<T> {
    fn differs(&self) -> bool {
        self.there != self.here
    }
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Its verdict.
    pub verdict: CheckVerdict,
    /// What it expected.
    pub expected: String,
    /// What it saw.
    pub seen: String,
}

/// A check that came to something else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckDifference {
    /// Its name.
    pub name: String,
    /// What it came to.
    #[serde(flatten)]
    pub found: Pair<Found>,
}

impl CheckDifference {
    /// Whether the verdicts differ, and not the figures alone.
    #[must_use]
    pub fn of_verdict(&self) -> bool {
        let verdict = |found: &Option<Found>| found.as_ref().map(|found| found.verdict);
        verdict(&self.found.there) != verdict(&self.found.here)
    }
}

/// A register that holds something else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisterDifference {
    /// Number of the processor.
    pub cpu: u32,
    /// Its number.
    pub msr: u32,
    /// Its name in the manuals.
    pub name: String,
    /// As the machine's firmware left it; else as it was when the bring-up ran.
    pub found: bool,
    /// What it holds; `None`: reading it raises an exception.
    #[serde(flatten)]
    pub values: Pair<u64>,
}

/// An answer of CPUID that is another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuidDifference {
    /// Number of the processor.
    pub cpu: u32,
    /// EAX that was asked with.
    pub leaf: u32,
    /// ECX that was asked with.
    pub subleaf: u32,
    /// EAX, EBX, ECX, EDX; `None`: nothing but zeros.
    #[serde(flatten)]
    pub answers: Pair<[u32; 4]>,
}

/// A fact about the PMU that is another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactDifference {
    /// Name of what differs.
    pub what: &'static str,
    /// What it is.
    #[serde(flatten)]
    pub values: Pair<String>,
}

/// A property that was measured on both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasurePair {
    /// Its name.
    pub name: String,
    /// What the values are.
    pub unit: String,
    /// Least, middle and greatest value.
    #[serde(flatten)]
    pub values: Pair<[i64; 3]>,
}

/// Everything that differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Checks.
    pub checks: Vec<CheckDifference>,
    /// How many checks were compared.
    pub compared: usize,
    /// Facts of the machine record.
    pub pmu: Vec<FactDifference>,
    /// Registers.
    pub registers: Vec<RegisterDifference>,
    /// Answers of CPUID.
    pub cpuid: Vec<CpuidDifference>,
    /// What was measured; no two machines are alike in it, so it is not a difference.
    pub measures: Vec<MeasurePair>,
}

impl Comparison {
    /// How many differences there are.
    #[must_use]
    pub fn differences(&self) -> usize {
        self.checks.len() + self.pmu.len() + self.registers.len() + self.cpuid.len()
    }
}

/// Compares two reports: of the machine, and of the emulated one.
#[must_use]
pub fn compare(there: &[Numbered], here: &[Numbered]) -> Comparison {
    let (checks_there, checks_here) = (checks(there), checks(here));
    let mut comparison = Comparison::default();
    // Those that were made on both: the replay can be requested some of the report's.
    for (name, found) in pairs(checks_there, checks_here) {
        if found.there.is_none() || found.here.is_none() {
            continue;
        }
        comparison.compared += 1;
        if found.differs() {
            comparison.checks.push(CheckDifference { name, found });
        }
    }
    comparison.pmu = facts(last_machine(there), last_machine(here));
    for (cpu, answers) in cpus(here) {
        // Reports other than those of bring-ups have no answers, of which nothing is known then.
        let Some(there) = of_cpu(there, cpu) else { continue };
        for ((leaf, subleaf), answers) in pairs(there, answers) {
            if answers.differs() {
                comparison.cpuid.push(CpuidDifference { cpu, leaf, subleaf, answers });
            }
        }
    }
    for (cpu, found) in [(0, true), (0, false)] {
        if let (Some(there), Some(here)) =
            (registers(there, cpu, found), registers(here, cpu, found))
        {
            comparison.registers.extend(differing(there, here));
        }
    }
    comparison.measures = measures(there, here);
    comparison
}

/// Both sides by their keys.
fn pairs<K: Ord, T>(there: BTreeMap<K, T>, here: BTreeMap<K, T>) -> BTreeMap<K, Pair<T>> {
    let mut all: BTreeMap<K, Pair<T>> =
        there.into_iter().map(|(key, one)| (key, Pair { there: Some(one), here: None })).collect();
    for (key, one) in here {
        all.entry(key).or_insert(Pair { there: None, here: None }).here = Some(one);
    }
    all
}

fn checks(records: &[Numbered]) -> BTreeMap<String, Found> {
    let checks = records.iter().filter_map(|one| match &one.record {
        Record::Check(Check { name, verdict, expected, seen, .. }) => {
            let (expected, seen) = (expected.clone(), seen.clone());
            Some((name.clone(), Found { verdict: *verdict, expected, seen }))
        }
        _ => None,
    });
    checks.collect()
}

/// The names of the checks of a report, in their order.
pub fn check_names(records: &[Numbered]) -> Vec<&str> {
    let names = records.iter().filter_map(|one| match &one.record {
        Record::Check(check) => Some(check.name.as_str()),
        _ => None,
    });
    names.collect()
}

/// The first of these patterns that no check of a report matches.
#[must_use]
pub fn unmatched<'a>(wanted: &'a [String], made: &[&str]) -> Option<&'a str> {
    let has = |pattern: &&String| made.iter().any(|name| matches(pattern, name));
    wanted.iter().find(|pattern| !has(pattern)).map(String::as_str)
}

fn facts(there: Option<&Machine>, here: Option<&Machine>) -> Vec<FactDifference> {
    type Fact = (&'static str, fn(&Machine) -> Option<String>);
    fn list(all: &[String]) -> Option<String> {
        (!all.is_empty()).then(|| all.join("; "))
    }
    let facts: [Fact; 11] = [
        ("PMU", |one| {
            one.pmu.as_ref().map(|pmu| format!("{:?}, version {}", pmu.architecture, pmu.version))
        }),
        ("no PMU", |one| one.pmu_absent.clone()),
        ("counters", |one| {
            one.pmu.as_ref().map(|pmu| format!("{} of {} bits", pmu.counters, pmu.counter_bits))
        }),
        ("fixed counters", |one| {
            one.pmu
                .as_ref()
                .map(|pmu| format!("{} of {} bits", pmu.fixed_counters, pmu.fixed_counter_bits))
        }),
        ("features", |one| list(&one.pmu.as_ref()?.features)),
        ("errata", |one| list(&one.pmu.as_ref()?.errata)),
        ("signs of another user", |one| list(&one.pmu.as_ref()?.conflicts)),
        ("faults", |one| list(&one.pmu.as_ref()?.faults)),
        ("energy", |one| {
            let told = |one: &EnergyMeter| format!("{} in 2^-{} J", one.event, one.unit);
            list(&one.energy.iter().map(told).collect::<Vec<_>>())
        }),
        ("no energy", |one| one.energy_absent.clone()),
        ("event table", |one| one.event_tables.as_ref()?.table.clone()),
    ];
    let pair = |(what, fact): Fact| {
        let values = Pair { there: there.and_then(fact), here: here.and_then(fact) };
        values.differs().then_some(FactDifference { what, values })
    };
    facts.into_iter().filter_map(pair).collect()
}

type Answers = BTreeMap<(u32, u32), [u32; 4]>;

/// Leaves of hypervisors: this one's tell of itself.
fn is_compared(leaf: u32) -> bool {
    !(0x4000_0000..0x8000_0000).contains(&leaf)
}

fn answers(cpuid: &CpuidLeaves) -> Answers {
    let all = cpuid.answers.iter().filter(|answer| is_compared(answer[0]) && answer[2..] != [0; 4]);
    all.map(|&[leaf, subleaf, a, b, c, d]| ((leaf, subleaf), [a, b, c, d])).collect()
}

fn cpus(records: &[Numbered]) -> Vec<(u32, Answers)> {
    let all = records.iter().filter_map(|one| match &one.record {
        Record::Cpuid(cpuid) => Some((cpuid.cpu, answers(cpuid))),
        _ => None,
    });
    all.collect()
}

fn of_cpu(records: &[Numbered], cpu: u32) -> Option<Answers> {
    cpus(records).into_iter().find(|(one, _)| *one == cpu).map(|(_, all)| all)
}

/// First and last numbers of registers that nobody holds still: TSC, MPERF, APERF, the last branches, the clock's state, energy used,
/// instructions retired.
const RESTLESS: [[u64; 2]; 12] = [
    [0x10, 0x10],
    [0xe7, 0xe8],
    [0x198, 0x198],
    [0x1db, 0x1de],
    [0x611, 0x611],
    [0x619, 0x619],
    [0x639, 0x639],
    [0x641, 0x641],
    [0x64d, 0x64d],
    [0xc000_00e7, 0xc000_00e9],
    [0xc001_0063, 0xc001_0063],
    [0xc001_029a, 0xc001_029b],
];
/// Counters, whose values during the bring-up are those of whatever counted last.
const COUNTERS: [[u64; 2]; 4] =
    [[0xc1, 0xc8], [0x309, 0x30f], [0x4c1, 0x4c8], [0xc001_0004, 0xc001_0007]];

/// Whether a register is a counter: AMD's extended ones have every other number.
fn is_counter(msr: u64) -> bool {
    let within = COUNTERS.iter().any(|[first, last]| (first..=last).contains(&&msr));
    within
        || (0xc001_0200..=0xc001_020b).contains(&msr) && msr & 1 == 1
        || [0x1920, 0x1924, 0x1928].contains(&msr)
}

fn differing(there: &Msrs, here: &Msrs) -> Vec<RegisterDifference> {
    let values = |msrs: &Msrs| -> BTreeMap<u64, Option<u64>> {
        let held = msrs.values.iter().map(|[msr, value]| (msr.0, Some(value.0)));
        held.chain(msrs.absent.iter().map(|msr| (msr.0, None))).collect()
    };
    // Counters that ran when they were found have gone on.
    let runs = |msrs: &Msrs| {
        let enabled = |first: u64, last: u64| {
            let selects = msrs.values.iter().filter(|[msr, _]| (first..=last).contains(&msr.0));
            selects.into_iter().any(|[_, value]| value.0 & 1 << 22 != 0)
        };
        let fixed = msrs.values.iter().any(|[msr, value]| msr.0 == 0x38d && value.0 != 0);
        enabled(0x186, 0x18d)
            || enabled(0xc001_0000, 0xc001_0003)
            || enabled(0xc001_0200, 0xc001_020a)
            || fixed
    };
    let skips_counters = !there.found || runs(there);
    let restless = |msr: u64| RESTLESS.iter().any(|[first, last]| (first..=last).contains(&&msr));
    let mut list = Vec::new();
    for (msr, pair) in pairs(values(there), values(here)) {
        // Of a register that one of the two did not look at nothing is known.
        let (Some(one), Some(other)) = (pair.there, pair.here) else { continue };
        let skipped =
            restless(msr) || is_counter(msr) && skips_counters && one.is_some() == other.is_some();
        if one != other && !skipped {
            let (msr, values) = (msr as u32, Pair { there: one, here: other });
            list.push(RegisterDifference {
                cpu: there.cpu,
                msr,
                name: name(msr),
                found: there.found,
                values,
            });
        }
    }
    list
}

fn measures(there: &[Numbered], here: &[Numbered]) -> Vec<MeasurePair> {
    type Measures = BTreeMap<String, (String, [i64; 3])>;
    fn of(records: &[Numbered]) -> Measures {
        let all = records.iter().filter_map(|one| match &one.record {
            Record::Measure(Measure { name, unit, min, median, max, cpu: None, .. }) => {
                Some((name.clone(), (unit.clone(), [*min, *median, *max])))
            }
            _ => None,
        });
        all.collect()
    }
    let pair = |(name, pair): (String, Pair<(String, [i64; 3])>)| {
        let unit = [&pair.there, &pair.here].into_iter().flatten().next()?.0.clone();
        let values = Pair { there: pair.there.map(|one| one.1), here: pair.here.map(|one| one.1) };
        Some(MeasurePair { name, unit, values })
    };
    pairs(of(there), of(here)).into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests;
