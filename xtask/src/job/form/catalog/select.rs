//! Which forms of the catalog a job measures.

use super::Entry;
use crate::cli::Shard;

/// Forms of the catalog.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Selection {
    /// Those of these extensions, by iced-x86's names in any case: all, if there is none.
    pub extensions: Vec<String>,
    /// This part of them.
    pub shard: Shard,
}

impl Selection {
    /// What it takes of the catalog.
    ///
    /// # Errors
    /// An extension of which the catalog has no form.
    pub fn of(&self, catalog: Vec<Entry>) -> Result<Vec<Entry>, String> {
        let is = |entry: &Entry, name: &String| {
            entry.features().iter().any(|one| format!("{one:?}").eq_ignore_ascii_case(name))
        };
        let unknown = |name: &&String| !catalog.iter().any(|entry| is(entry, name));
        if let Some(name) = self.extensions.iter().find(unknown) {
            let mut names: Vec<String> = catalog.iter().map(Entry::extension).collect();
            names.sort_unstable();
            names.dedup();
            let near = names
                .iter()
                .map(|known| (strsim::jaro_winkler(&name.to_uppercase(), known), known));
            let near =
                near.max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, known)| known.as_str());
            return Err(format!(
                "no instruction form is of the extension `{name}`; `{near}` is the nearest"
            ));
        }
        let wanted = |entry: &Entry| {
            self.extensions.is_empty() || self.extensions.iter().any(|name| is(entry, name))
        };
        let kept = catalog.into_iter().filter(wanted).enumerate();
        Ok(kept.filter(|(place, _)| self.shard.has(*place)).map(|(_, entry)| entry).collect())
    }
}
