//! What the conformance suite found.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One check of the PMU.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Index of the item in the job.
    pub item: u32,
    /// Stable name, `family.subject`.
    pub name: String,
    /// What came of it.
    pub verdict: CheckVerdict,
    /// What should be; for a skipped check, what it needs.
    pub expected: String,
    /// What was.
    pub seen: String,
    /// Where the expectation comes from.
    pub source: String,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// The processor lacks what is checked.
    Skip,
    /// Not as expected, and an erratum of the processor explains it.
    KnownErratum,
    /// Not as expected, in just the way that the hypervisor beneath is known for.
    KnownBehaviour,
}

/// The suite as a whole, after its checks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suite {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// Checks that came out as expected.
    pub passed: u32,
    /// Checks that did not.
    pub failed: u32,
    /// Checks that could not be made.
    pub skipped: u32,
    /// Checks that an erratum explains.
    pub known_errata: u32,
    /// Checks that came out as the hypervisor beneath is known for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub known_behaviours: u32,
    /// Whether the PMU is barecount's emulated one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// Why no check could be made at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What this PMU does not offer, of all that barecount can use.
    pub lacks: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
