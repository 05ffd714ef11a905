//! The conformance suite: does this PMU do what the manuals promise?
//!
//! Each family of checks is a file. A check has a stable name, and says what it expects, from where it knows, and what
//! it saw. The checks are written against a [`TestMachine`]: registers, pieces of code with known counts, and the
//! performance monitoring interrupt. The firmware's bench is the processor; host tests bring the register-level model.

mod bounds;
mod check;
mod context;
mod machine;
mod memory;

mod adaptive;
mod architectural;
mod branches;
mod costs;
mod counting;
mod energy;
mod enumeration;
mod events;
mod freeze;
mod ibs;
mod interference;
mod interrupts;
mod known;
mod metrics;
mod modifiers;
mod overflow;
mod precise;
mod privilege;
mod rdpmc;
mod registers;
mod reset;
mod status;

pub use bounds::{Bounds, Measured};
pub use check::{Check, Finding};
pub use context::Context;
pub use machine::{TestMachine, Work};

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::cpu::Hypervisor;
use arch::pmu::{Capabilities, Driver, Emulated, Missing, Ownership};
use protocol::job::Conformance;
use protocol::job::conformance::matches;
use protocol::record::{self, CheckVerdict, Suite};

/// All families, in the order in which they run: what later ones rely on comes first.
const FAMILIES: [&[Check]; 23] = [
    enumeration::CHECKS,
    reset::CHECKS,
    registers::CHECKS,
    status::CHECKS,
    counting::CHECKS,
    counting::FIXED_CHECKS,
    metrics::CHECKS,
    events::CHECKS,
    modifiers::CHECKS,
    privilege::CHECKS,
    overflow::CHECKS,
    interrupts::CHECKS,
    freeze::CHECKS,
    rdpmc::CHECKS,
    branches::CHECKS,
    precise::CHECKS,
    adaptive::CHECKS,
    architectural::CHECKS,
    memory::CHECKS,
    ibs::CHECKS,
    energy::CHECKS,
    interference::CHECKS,
    costs::CHECKS,
];

/// Every check.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    FAMILIES.iter().copied().flatten()
}

/// The PMU as the suite is given it.
pub struct Subject<'a> {
    /// What it can do, or why there is none.
    pub pmu: Result<&'a Capabilities, Missing>,
    /// What of it works, as a trial found it.
    pub tried: Option<&'a Capabilities>,
    /// How it was found.
    pub found: &'a Ownership,
    /// The hypervisor beneath, if there is one.
    pub hypervisor: Option<Hypervisor>,
}

/// Runs the checks that `job` requests as item `item`, and hands each record to `report`. Leaves the PMU stopped.
pub fn run(
    job: &Conformance,
    item: u32,
    subject: &Subject,
    machine: &mut dyn TestMachine,
    report: impl FnMut(&record::Check),
) -> Suite {
    run_measured(job, item, subject, machine, None, report)
}

/// The same; with `measured`, the bounds of the checks are measured first, and handed to it.
pub fn run_measured(
    job: &Conformance,
    item: u32,
    subject: &Subject,
    machine: &mut dyn TestMachine,
    measured: Option<&mut dyn FnMut(Measured)>,
    mut report: impl FnMut(&record::Check),
) -> Suite {
    let mut suite = Suite {
        item,
        name: job.name.to_string(),
        passed: 0,
        failed: 0,
        skipped: 0,
        known_errata: 0,
        known_behaviours: 0,
        emulated: false,
        reason: None,
        lacks: Vec::new(),
    };
    for pattern in unknown(job) {
        suite.failed += 1;
        report(&record::Check {
            item,
            name: pattern.to_string(),
            verdict: CheckVerdict::Fail,
            expected: "a check of that name".to_string(),
            seen: "none".to_string(),
            source: "the job".to_string(),
        });
    }
    let has = match subject.pmu {
        Ok(has) => has,
        Err(missing) => {
            suite.reason = Some(missing.to_string());
            suite.skipped = checks().filter(|check| job.wants(check.name)).count() as u32;
            return suite;
        }
    };
    let emulated = Emulated::detect(machine);
    let mut context = Context {
        driver: Driver::new(has.clone()),
        bounds: if emulated.is_some() { Bounds::EXACT } else { Bounds::ASSUMED },
        emulated,
        hypervisor: subject.hypervisor.is_some(),
        found: subject.found,
        stuck: subject.tried.is_some_and(Capabilities::has_stuck_status),
        machine,
    };
    suite.emulated = context.emulated.is_some();
    // The emulated PMU is exact, whatever is beneath.
    let beneath = subject.hypervisor.filter(|_| !suite.emulated);
    if let Some(report) = measured {
        context.bounds = bounds::measure(&mut context, report);
    }
    suite.lacks = lacks(has);
    for check in checks().filter(|check| job.wants(check.name)) {
        let finding = check.make(&mut context);
        let finding = known::explain(finding, check.name, beneath, !has.is_intel());
        let count = match finding.verdict {
            CheckVerdict::Pass => &mut suite.passed,
            CheckVerdict::Fail => &mut suite.failed,
            CheckVerdict::Skip => &mut suite.skipped,
            CheckVerdict::KnownErratum => &mut suite.known_errata,
            CheckVerdict::KnownBehaviour => &mut suite.known_behaviours,
        };
        *count += 1;
        report(&record::Check {
            item,
            name: check.name.to_string(),
            verdict: finding.verdict,
            expected: finding.expected,
            seen: finding.seen,
            source: check.source.to_string(),
        });
    }
    suite
}

/// What the job requests and nothing answers to.
fn unknown<'a>(job: &'a Conformance) -> impl Iterator<Item = &'a str> {
    let patterns = job.checks.iter().map(AsRef::as_ref);
    patterns.filter(|pattern: &&str| !checks().any(|check| matches(pattern, check.name)))
}

/// What the PMU does not offer, in words.
fn lacks(has: &Capabilities) -> Vec<String> {
    use arch::pmu::{FreezeKind, LbrKind};
    let list = [
        (has.has_global(), "global control and status"),
        (has.fixed != 0, "fixed counters"),
        (has.full_width() || !has.is_intel(), "full-width writes"),
        (has.freeze != FreezeKind::None, "freeze on PMI"),
        (!matches!(has.lbr, LbrKind::None | LbrKind::Single), "a stack of branch records"),
        (has.metrics, "PERF_METRICS"),
        (has.umask2, "UMASK2"),
        (has.pebs_format().is_some() || !has.is_intel(), "PEBS"),
        (has.ibs.is_some() || has.is_intel(), "instruction-based sampling"),
    ];
    list.iter().filter(|(offered, _)| !offered).map(|(_, name)| name.to_string()).collect()
}

#[cfg(test)]
mod tests;
