//! Whether one selection of events means the same on all processors.
//!
//! On a hybrid processor the cores differ in counters and events. A sum over them would be one of different things, so
//! it is refused, with what differs.

use super::Member;
use arch::pmu::Capabilities;
use thiserror::Error;

/// Two processors differ.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error(
    "the PMUs of processor {one} and processor {other} differ in {what}; name one processor with cpu = {one} or cpu = {other}, or a kind of core"
)]
pub struct Disagreement {
    /// The first processor with a PMU.
    pub one: u32,
    /// Another one.
    pub other: u32,
    /// In what.
    pub what: &'static str,
}

/// Compares the PMUs of those members that have one. A processor without is no contradiction: its counts are missing,
/// with the reason.
///
/// # Errors
/// The first difference.
pub fn check(members: &[Member]) -> Result<(), Disagreement> {
    let mut with =
        members.iter().filter_map(|member| Some((member.number, member.pmu.as_ref().ok()?)));
    let Some((one, first)) = with.next() else { return Ok(()) };
    for (other, pmu) in with {
        if let Some(what) = difference(first, pmu) {
            return Err(Disagreement { one, other, what });
        }
    }
    Ok(())
}

/// The first thing in which two PMUs differ.
fn difference(a: &Capabilities, b: &Capabilities) -> Option<&'static str> {
    let differences = [
        (a.core_type != b.core_type, "the kind of their cores"),
        (a.architecture != b.architecture, "their architecture"),
        (a.version != b.version, "their version"),
        (a.general != b.general, "their general-purpose counters"),
        (a.general_bits != b.general_bits, "the width of their general-purpose counters"),
        (a.fixed != b.fixed, "their fixed counters"),
        (a.fixed_bits != b.fixed_bits, "the width of their fixed counters"),
        (a.events != b.events, "their architectural events"),
        (a.extra != b.extra, "the registers that events need besides"),
        (a != b, "what they offer besides counters"),
    ];
    differences.iter().find(|(differs, _)| *differs).map(|&(_, what)| what)
}
