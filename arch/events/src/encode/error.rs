//! Why a request is not available on this processor.

use crate::cpu::Vendor;
use crate::msr;
use crate::parse::ParseErrorKind;
use crate::register::ReservedBits;
use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// A request that is not available: which, where it is in its list, and why. Other requests of the
/// list are not affected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{request}: {reason}")]
pub struct EncodeError {
    /// The request as written.
    pub request: String,
    /// Where the trouble starts, in bytes from the beginning of the list.
    pub at: usize,
    /// The reason.
    pub reason: Refusal,
}

/// Why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Refusal {
    /// No event has this name.
    #[error("there is no event {name:?} on {place}{}", offer(.nearest))]
    UnknownEvent { name: String, place: String, nearest: Vec<String> },
    /// Energy, where counters are wanted.
    #[error(
        "{0} is not counted by a counter: energy is read before and after a whole [[snippet]] or [[count]], without modifiers"
    )]
    Energy(&'static str),
    /// The event is known, but not this unit mask or modifier.
    #[error("{event} has no unit mask {mask:?}, and there is no such modifier{}", offer(.nearest))]
    UnknownUnitMask { event: String, mask: String, nearest: Vec<String> },
    /// A name cannot be looked up without a table.
    #[error(
        "there is no event table for this processor, so the name {0:?} is unknown; raw, fixed \
         and architectural events can be counted"
    )]
    NoTable(String),
    /// Unit masks of different events.
    #[error(
        "{first} and {second} cannot be joined: they differ in more than the unit mask ({differs})"
    )]
    NotJoinable { first: String, second: String, differs: &'static str },
    /// A generic event that the processor does not have.
    #[error("the generic event {0} has no counterpart on this processor")]
    NoCounterpart(String),
    /// A request for other cores.
    #[error("it is meant for {wanted}, but this core has the events of {here}")]
    OtherCore { wanted: String, here: String },
    /// A modifier that is wrong in itself.
    #[error("{0}")]
    Modifier(ParseErrorKind),
    /// Neither user nor kernel.
    #[error("it must count in user mode, in kernel mode, or in both")]
    NoMode,
    /// A number too large for its field.
    #[error("{field} is {value:#x}; the maximum on {vendor} processors is {most:#x}")]
    Range { field: &'static str, value: u64, most: u64, vendor: Vendor },
    /// A raw value with reserved bits.
    #[error(transparent)]
    Reserved(#[from] ReservedBits),
    /// A qualifier that the processor does not have.
    #[error("{what} is not available: {why}")]
    Absent { what: &'static str, why: &'static str },
    /// A qualifier that a fixed counter does not have.
    #[error("fixed counter {index} always counts the same event: it has no {what}")]
    FixedHasNo { index: u8, what: &'static str },
    /// A fixed counter that is not there.
    #[error("there is no fixed counter {0}")]
    NoFixed(u8),
    /// A general-purpose counter that is not there, or not usable.
    #[error("there is no usable general-purpose counter {0}")]
    NoCounter(u64),
    /// An architectural event that CPUID denies.
    #[error("CPUID.0AH:EBX[{bit}] marks {event} as not available")]
    NotAvailable { bit: u8, event: &'static str },
    /// An event that cannot be precise.
    #[error("this event cannot be counted precisely{0}")]
    NotPrecise(&'static str),
    /// No counter is left after all restrictions.
    #[error(
        "no counter of this processor can count it: the event needs {wanted}, the processor has {there}"
    )]
    NoCounterLeft { wanted: String, there: String },
    /// An event that looks at an extra MSR, whose value is not told.
    #[error("it needs a value for {} ({msr:#x}); give one with {term}=", msr::name(*.msr))]
    NoMsrValue { msr: u32, term: &'static str },
    /// A value for an MSR that the event does not look at.
    #[error("{term} is given, but the event does not use that MSR")]
    MsrUnused { term: &'static str },
    /// Several values for one event.
    #[error("more than one value is given for extra MSRs; an event uses one")]
    TwoMsrValues,
    /// An MSR that the processor does not have.
    #[error("this processor has no {} ({msr:#x})", msr::name(*.msr))]
    NoMsr { msr: u32 },
    /// Bits that raise #GP.
    #[error(
        "{} ({msr:#x}) would be {value:#x}; bits {bad:#x} of it must not be set",
        msr::name(*.msr)
    )]
    MsrBits { msr: u32, value: u64, bad: u64 },
    /// A threshold below the facility's own.
    #[error("ldlat is {cycles} cycles; the smallest threshold is {}", msr::MIN_LOAD_LATENCY)]
    LoadLatency { cycles: u64 },
}

fn offer(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => alloc::format!("; near it are {}", names.join(", ")),
    }
}
