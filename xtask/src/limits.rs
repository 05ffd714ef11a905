//! How far figures may get worse: a table of limits, as jobs and limits files have it.

pub(crate) mod value;

pub use value::{Limit, Worse};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wildmatch::WildMatch;

/// Limits of figures, by name or wild cards.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LimitTable(BTreeMap<String, Limit>);

impl LimitTable {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and wild cards.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The one for `figure`: its own name goes before wild cards, of these the longest.
    #[must_use]
    pub fn find(&self, figure: &str) -> Option<(&str, &Limit)> {
        most_particular(self.0.iter().map(|(name, limit)| (&**name, limit)), figure)
    }
}

/// Whether `pattern` stands for more than itself.
#[must_use]
pub fn has_wildcards(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// Whether `pattern` is `name`, or has wild cards that fit it.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    pattern == name || has_wildcards(pattern) && WildMatch::new(pattern).matches(name)
}

/// The entry whose pattern is `name` itself, else the one with the most characters that fits.
pub(crate) fn most_particular<'a, T>(
    entries: impl Iterator<Item = (&'a str, T)>,
    name: &str,
) -> Option<(&'a str, T)> {
    let fitting = entries.filter(|(pattern, _)| fits(pattern, name));
    fitting.max_by_key(|(pattern, _)| (*pattern == name, pattern.chars().count()))
}
