//! What a PMU does otherwise than it announces, and what is not used for that.

use super::Counter;
use crate::msr::Msr;
use crate::pmu::driver::PmuError;
use thiserror::Error;

/// Why an overflow cannot be used whose bit of the status stays.
pub const STUCK: &str = "its bit of the status cannot be cleared";

/// A difference between what the PMU announces and what it does. Whatever it names is not used.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Fault {
    /// A register that a feature needs raises an exception.
    #[error("MSR {:#x} does not exist: {lost}", msr.0)]
    Register { msr: Msr, lost: &'static str },
    /// A counter that cannot be relied on.
    #[error("{counter} is not used: {why}")]
    Counter { counter: Counter, why: Wrong },
    /// An event that no counter counts.
    #[error("{name} (event {event:#04x}, unit mask {umask:#04x}) are not counted: {why}")]
    Event { name: &'static str, event: u16, umask: u16, why: Wrong },
    /// A counter that counts, and cannot interrupt at its overflow.
    #[error("{counter} is not used for interrupts at its overflow: {why}")]
    Overflow { counter: Counter, why: &'static str },
    /// Counters that a PMI does not freeze as announced.
    #[error("freezing of the counters on a PMI is not used: {0}")]
    Freeze(Unfrozen),
    /// RDPMC reads something else than RDMSR. Counts are read by RDMSR, so only code that reads them itself has to know.
    #[error("RDPMC cannot be relied on: it reads {by_rdpmc:#x} of {counter}, RDMSR {by_rdmsr:#x}")]
    Rdpmc { counter: Counter, by_rdpmc: u64, by_rdmsr: u64 },
}

/// What is wrong with a counter or with what it counts.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Wrong {
    /// One of its registers raises an exception.
    #[error("{0}")]
    Refused(PmuError),
    /// It does not hold a value.
    #[error("it reads {found:#x} after {written:#x} was written")]
    DoesNotHold { written: u64, found: u64 },
    /// It stands still.
    #[error("it stood still while {instructions} instructions ran")]
    Still { instructions: u64 },
    /// It is far from what the code is known to do.
    #[error("it counted {seen} where the code has {stated}")]
    Miscounts { seen: u64, stated: u64 },
    /// It is far beyond what can have happened.
    #[error("it went to {seen:#x} while {instructions} instructions ran")]
    Wild { seen: u64, instructions: u64 },
}

/// How a freeze that is announced failed when it was tried.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Unfrozen {
    /// A register refuses what it takes. KVM refuses FREEZE_PERFMON_ON_PMI so.
    #[error("{0}")]
    Refused(PmuError),
    /// The bit does not stay.
    #[error("FREEZE_PERFMON_ON_PMI cannot be set in IA32_DEBUGCTL")]
    DoesNotHold,
    /// There is no second counter to see it by.
    #[error("there is no second counter to see it by")]
    Untried,
    /// Nothing stopped.
    #[error(
        "the counters went on to the end, {seen} instructions, although one overflowed after {period}"
    )]
    Ignored { seen: u64, period: u64 },
    /// They stopped long after the overflow.
    #[error(
        "the counters stopped after {seen} instructions, although one overflowed after {period}"
    )]
    Late { seen: u64, period: u64 },
    /// They stopped before the overflow.
    #[error("the counters stopped after {seen} instructions, before one overflowed after {period}")]
    Early { seen: u64, period: u64 },
    /// The status does not show it, so it could not be ended by the status.
    #[error("the counters stopped, but the status has no frozen bit")]
    NoStatus,
    /// They do not continue.
    #[error(
        "the counters, once frozen, counted {seen} of {stated} instructions after they were started again"
    )]
    Stuck { seen: u64, stated: u64 },
}
