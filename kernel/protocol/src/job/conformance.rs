//! A run of the conformance suite.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A run of the conformance suite.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Conformance<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Which checks: names, or their beginnings followed by `*`. Empty: all.
    #[serde(borrow)]
    pub checks: Vec<Cow<'a, str>>,
}

impl Conformance<'_> {
    /// Whether the check of that name is asked for.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.checks.is_empty() || self.checks.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether `pattern`, a name or the beginning of names followed by `*`, means the check of that name.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}
