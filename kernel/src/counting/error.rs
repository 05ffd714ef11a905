//! What the counting library refuses, by name of the request and the reason.

use super::counts::Mismatch;
use super::request::AtOverflow;
use alloc::string::String;
use arch::pmu::PmuError;
use events::assign::Conflict;
use events::encode::Refusal;
use thiserror::Error;

/// Why a set cannot be built or counted.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum SetError {
    /// A request that this processor cannot count.
    #[error("request {index} ({text}): {}{reason}", named(*.attribute))]
    Request { index: usize, text: String, attribute: Option<&'static str>, reason: String },
    /// Requests that cannot be counted at the same time.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Requests that are meant for different cores.
    #[error("{0}")]
    MixedCores(String),
    /// A set of nothing.
    #[error("the set has no requests")]
    Empty,
    /// A number that no request has.
    #[error("there is no request {index}: the set has {count}")]
    NoRequest { index: usize, count: usize },
    /// A request that is to follow one that never overflows.
    #[error(
        "request {index} ({text}) starts others at its overflow, but has no number of events after which it does"
    )]
    NeverOverflows { index: usize, text: String },
    /// A request that starts itself.
    #[error("request {index} ({text}) is to start itself")]
    StartsItself { index: usize, text: String },
    /// An option that needs an overflow.
    #[error("{0:?} at each overflow is asked for, but no request of the set overflows")]
    NoOverflow(AtOverflow),
    /// The set has ended.
    #[error("the set has ended: bind it again")]
    Ended,
    /// The PMU refuses.
    #[error("request {index} ({text}): {error}")]
    Counter { index: usize, text: String, error: PmuError },
    /// The PMU refuses something that is no single request's.
    #[error(transparent)]
    Pmu(#[from] PmuError),
}

fn named(attribute: Option<&'static str>) -> String {
    attribute.map_or_else(String::new, |attribute| alloc::format!("attribute {attribute}: "))
}

/// The attribute that a refusal is about.
pub(super) fn attribute(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::Absent { what, .. } | Refusal::FixedHasNo { what, .. } => Some(what),
        Refusal::Range { field, .. } => Some(field),
        Refusal::NoMsrValue { term, .. } | Refusal::MsrUnused { term } => Some(term),
        Refusal::NoMode => Some("mode"),
        Refusal::LoadLatency { .. } => Some("ldlat"),
        Refusal::NotPrecise(_) => Some("precise"),
        Refusal::NoCounter(_) => Some("counter"),
        _ => None,
    }
}

/// Why counts cannot be had.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CountingError {
    /// A buffer of another set.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The set.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The PMU.
    #[error(transparent)]
    Pmu(#[from] PmuError),
}
