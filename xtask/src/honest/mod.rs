//! Is this PMU honest? A certificate, judged from the report of a job of known experiments.
//!
//! The firmware runs items of the usual kinds (`experiments.toml`) and knows nothing of a certificate. Everything here
//! is a function of the report, so a report that was collected from a real machine is judged like one of `run`.
//!
//! - [`experiments`]: what the code of each experiment truly does; [`counts`]: what was counted of it;
//! - [`interrupts`]: overflows and timers; [`trial`]: what the start found; [`checks`]: what the conformance suite says;
//! - [`words`]: verdicts in sentences; [`render`]: table, TAP and CSV.

pub mod checks;
pub mod counts;
pub mod experiments;
pub mod interrupts;
pub mod render;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod words;

use crate::collect::Report;
use crate::verdict::item_of;
use protocol::record::{ErrorCode, Verdict};
use protocol::verdict;
use serde::Serialize;

/// The job file with the experiments.
pub const JOB: &str = include_str!("experiments.toml");

/// How the names of the experiments begin.
pub const PREFIX: &str = "honest: ";

/// How something lies.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// It holds one value, or counts nothing.
    Stuck,
    /// It counts the same multiple or fraction of everything, or another clock.
    Scaled,
    /// It goes down.
    Backwards,
    /// Somebody else has it from time to time.
    Shared,
    /// It never counts some of what it names.
    Incomplete,
    /// Interrupts at overflows are lost.
    DroppedInterrupts,
    /// Interrupts come otherwise than requested: at another vector, or without an end.
    StrayInterrupts,
    /// A PMI stops the counters late, never, or for ever.
    FrozenLate,
    /// Its width is not the announced one.
    WrongWidth,
    /// Something else is different from its manual.
    Deviates,
}

impl Lie {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stuck => "stuck",
            Self::Scaled => "scaled",
            Self::Backwards => "runs backwards",
            Self::Shared => "shared",
            Self::Incomplete => "incomplete",
            Self::DroppedInterrupts => "dropped interrupts",
            Self::StrayInterrupts => "stray interrupts",
            Self::FrozenLate => "frozen late",
            Self::WrongWidth => "wrong width",
            Self::Deviates => "different from its manual",
        }
    }
}

/// What happens to a program and adds to a count.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A hardware interrupt.
    Interrupt,
    /// A page fault.
    Fault,
    /// A system management interrupt.
    Smi,
    /// An exit to a hypervisor.
    VmExit,
}

impl Cause {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Fault => "page fault",
            Self::Smi => "SMI",
            Self::VmExit => "VM exit",
        }
    }
}

/// What bounds are shares of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// What the code does.
    Truth,
    /// The median of the runs.
    Median,
}

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Class {
    /// Right in every run.
    Exact,
    /// Right but for so much each time.
    ExactUpTo {
        /// Added events, or lost ones if below 0.
        added: f64,
        /// Each time that this happens.
        per: Cause,
    },
    /// Between these bounds, as shares of the truth; or of the median where no truth is known, as of cycles.
    Noisy {
        /// Least share.
        least: f64,
        /// Greatest share.
        most: f64,
        /// What they are shares of.
        of: Base,
    },
    /// A lie.
    Lying {
        /// The kind of lie.
        how: Lie,
    },
}

impl Class {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        use crate::primitives::number;
        match *self {
            Self::Exact => "exact".to_string(),
            Self::ExactUpTo { added, per } => {
                let sign = if added > 0.0 { "+" } else { "" };
                format!("exact up to {sign}{} per {}", number(added), per.words())
            }
            Self::Noisy { least, most, of } => {
                let of = if of == Base::Truth { "the truth" } else { "its median" };
                format!("noisy within {} to {} of {of}", number(least), number(most))
            }
            Self::Lying { how } => format!("LYING: {}", how.words()),
        }
    }

    /// Whether it is a lie.
    #[must_use]
    pub const fn lies(&self) -> bool {
        matches!(self, Self::Lying { .. })
    }
}

/// The experiment that shows something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Index of the item in the job; absent: the trial at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// What was run.
    pub ran: String,
    /// What should have come.
    pub expected: String,
    /// What came.
    pub came: String,
}

/// What one event, counter or mechanism is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The event, counter or mechanism.
    pub what: String,
    /// What it is.
    pub class: Class,
    /// By which experiment.
    pub shown: Shown,
}

/// Whether a PMU can be believed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// Whether nothing lies; absent without a PMU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honest: Option<bool>,
    /// Everything that could be checked.
    pub findings: Vec<Finding>,
    /// For rr and others that replay: whether retired branches are deterministic.
    pub branches: String,
    /// Whether counts can be believed.
    pub counting: String,
    /// Whether samples can be believed.
    pub sampling: String,
}

/// Whether the report has experiments of this job.
#[must_use]
pub fn is_in(report: &Report) -> bool {
    report
        .records
        .iter()
        .any(|one| item_of(&one.record).is_some_and(|(_, name)| name.starts_with(PREFIX)))
        || report.errors().any(|e| e.name.as_deref().is_some_and(|name| name.starts_with(PREFIX)))
}

/// An event that is counted in ring 3 alone lies as it does in both rings, where more experiments told how.
fn agree(findings: &mut [Finding]) {
    let told: Vec<(String, Class)> =
        findings.iter().map(|one| (format!("{}:u", one.what), one.class)).collect();
    let incomplete = Class::Lying { how: Lie::Incomplete };
    for one in findings.iter_mut().filter(|one| one.class == incomplete) {
        if let Some((_, class)) =
            told.iter().find(|(what, class)| *what == one.what && class.lies())
        {
            one.class = *class;
        }
    }
}

/// Whether something other than the experiments failed. Without a PMU, experiments that need one end in errors.
#[must_use]
pub fn others_failed(report: &Report) -> bool {
    let own = |name: &str| !name.starts_with(PREFIX);
    let missed = report.records.iter().any(|one| {
        let fails = verdict::said(&one.record).is_some_and(|(said, _)| said == Verdict::Fail);
        fails && item_of(&one.record).is_none_or(|(_, name)| own(&name))
    });
    let ended = report.errors().any(|error| {
        error.code != ErrorCode::Skipped && own(error.name.as_deref().unwrap_or_default())
    });
    missed || ended || report.suites().any(|suite| suite.failed > 0)
}

impl Certificate {
    /// The exit code where there is no PMU: nothing could run.
    pub const WITHOUT_PMU: u8 = 77;

    /// Judges a report; `None`: it has no experiments, or the machine did not come so far as to say what it is.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        if !is_in(report) {
            return None;
        }
        let machine = report.machine()?;
        let mut findings = trial::findings(machine);
        let has_pmu = machine.pmu.is_some();
        if has_pmu {
            findings.extend(counts::findings(report));
            findings.extend(interrupts::findings(report));
            checks::add(report, &mut findings);
        }
        agree(&mut findings);
        let lies = findings.iter().any(|one| one.class.lies());
        // What is not known is not certified.
        let honest = (has_pmu || lies).then_some(!lies);
        let [branches, counting, sampling] = words::verdicts(honest, &findings);
        Some(Self { honest, findings, branches, counting, sampling })
    }

    /// The exit code of a command that shows it, where nothing else went wrong.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self.honest {
            Some(true) => 0,
            Some(false) => 1,
            None => Self::WITHOUT_PMU,
        }
    }
}
