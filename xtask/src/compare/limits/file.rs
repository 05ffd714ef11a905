//! A limits file: what holds for every item, and for items by name.
//!
//! ```toml
//! [limits]
//! tsc = "5 %"
//!
//! [[item]]
//! name = "memcpy *"
//! limits = { instructions = 0, "L1-dcache-*" = { by = 10 } }
//! ```

use crate::compare::CompareError;
use crate::compare::near::near;
use crate::limits::{Limit, LimitTable, fits};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What a limits file says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
    /// Its name, for messages.
    #[serde(skip)]
    source: String,
    /// For every item.
    #[serde(default)]
    limits: LimitTable,
    /// For items by name or wild cards.
    #[serde(default)]
    item: Vec<ItemLimits>,
}

/// The limits of the items that a name fits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemLimits {
    name: String,
    limits: LimitTable,
}

/// Reads a limits file.
///
/// # Errors
/// The file, or its content, with line and column.
pub fn read(path: &Path) -> Result<LimitsFile, CompareError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CompareError::Read { path: path.to_path_buf(), error })?;
    LimitsFile::parse(&text, &path.display().to_string())
}

impl LimitsFile {
    /// Reads its text; `source` is its name in messages.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, source: &str) -> Result<Self, CompareError> {
        let wrong = |message: String| CompareError::Limits { file: source.to_string(), message };
        let file: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if file.limits.is_empty() && file.item.is_empty() {
            return Err(wrong("it has no limits: neither [limits] nor [[item]]".to_string()));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = file.item.iter().find(|one| !seen.insert(&one.name)) {
            return Err(wrong(format!("two [[item]] are for `{}`", twice.name)));
        }
        Ok(Self { source: source.to_string(), ..file })
    }

    /// What it says of one figure of one item: the item's own name goes before wild cards, of these the longest, and all of
    /// them before what holds for every item.
    pub(super) fn find(&self, item: &str, figure: &str) -> Option<(&str, &Limit)> {
        let of_items = self.item.iter().filter(|one| fits(&one.name, item));
        let with = of_items.filter_map(|one| Some((&one.name, one.limits.find(figure)?)));
        let best = with.max_by_key(|(name, _)| (*name == item, name.chars().count()));
        best.map(|(_, found)| found).or_else(|| self.limits.find(figure))
    }

    /// Refuses entries that are for nothing in `items`, which have names and figures: whoever wrote them meant something.
    ///
    /// # Errors
    /// The first such entry, and what is near it.
    pub fn check(&self, items: &[(&str, BTreeSet<&str>)]) -> Result<(), CompareError> {
        let nothing = |what: String, fits: &str, known: &BTreeSet<&str>, name: &str| {
            let near = near(name, known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("; the most similar is `{near}`"));
            let message =
                format!("{what} has no effect: no {fits} of the reports matches it{near}");
            Err(CompareError::Limits { file: self.source.clone(), message })
        };
        let names: BTreeSet<&str> = items.iter().map(|(name, _)| *name).collect();
        let all: BTreeSet<&str> = items.iter().flat_map(|(_, figures)| figures).copied().collect();
        for figure in self.limits.names() {
            if !all.iter().any(|known| fits(figure, known)) {
                return nothing(format!("`{figure}` of [limits]"), "figure", &all, figure);
            }
        }
        for one in &self.item {
            let fitting = || items.iter().filter(|(name, _)| fits(&one.name, name));
            if fitting().next().is_none() {
                return nothing(format!("[[item]] `{}`", one.name), "item", &names, &one.name);
            }
            let own: BTreeSet<&str> = fitting().flat_map(|(_, figures)| figures).copied().collect();
            for figure in one.limits.names() {
                if !own.iter().any(|known| fits(figure, known)) {
                    let what = format!("`{figure}` of [[item]] `{}`", one.name);
                    return nothing(what, "figure of such an item", &own, figure);
                }
            }
        }
        Ok(())
    }
}
