//! How far a figure may get worse: of a job, of its items, and of a limits file.

mod file;
mod value;

pub use file::{LimitsFile, read};
pub(crate) use value::Parts as LimitParts;
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
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    pattern == name || has_wildcards(pattern) && WildMatch::new(pattern).matches(name)
}

/// The entry whose pattern is `name` itself, else the one with the most characters that fits.
fn most_particular<'a, T>(
    entries: impl Iterator<Item = (&'a str, T)>,
    name: &str,
) -> Option<(&'a str, T)> {
    let fitting = entries.filter(|(pattern, _)| fits(pattern, name));
    fitting.max_by_key(|(pattern, _)| (*pattern == name, pattern.chars().count()))
}

/// Everything that says how far figures may get worse, from the weakest on: the job, its items, and a limits file.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// For every item of the job.
    pub job: LimitTable,
    /// What the file says.
    pub file: LimitsFile,
}

impl Limits {
    /// What is said of one figure of one item. `own`: what the job says of the item.
    #[must_use]
    pub fn find(&self, item: &str, own: &LimitTable, figure: &str) -> Option<Limit> {
        let file = self.file.find(item, figure);
        let limit = file.or_else(|| own.find(figure)).or_else(|| self.job.find(figure));
        limit.map(|(_, limit)| *limit)
    }
}

#[cfg(test)]
mod tests;
