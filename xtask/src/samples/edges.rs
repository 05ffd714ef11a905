//! Branches that the processor had recorded before the samples, resolved.

use super::{Place, Resolver};
use protocol::record::{EdgeCount, SampleResult};

/// One branch of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRow {
    /// The task's name.
    pub task: String,
    /// What is at the branch, and where it went.
    pub from: Place,
    /// As above.
    pub to: Place,
    /// How often it was in the records.
    pub seen: EdgeCount,
}

impl EdgeRow {
    /// The part of them that was mispredicted, in percent; `None` where the records do not tell.
    #[must_use]
    pub fn mispredicted(&self) -> Option<f64> {
        let part = self.seen.mispredicted? as f64 / self.seen.count.max(1) as f64;
        Some(100.0 * part)
    }

    /// Core cycles from the taken branch before, on average; `None` where the records do not tell.
    #[must_use]
    pub fn cycles(&self) -> Option<f64> {
        Some(self.seen.cycles? as f64 / self.seen.count.max(1) as f64)
    }
}

/// A place as text: symbol and offset, or the address alone.
#[must_use]
pub fn text(place: &Place, address: u64) -> String {
    match (place.symbol.is_empty(), place.offset) {
        (true, _) => format!("{address:#x}"),
        (false, Some(offset)) => format!("{}+{offset:#x}", place.symbol),
        (false, None) => place.symbol.clone(),
    }
}

/// The branches of an item, most often first.
#[must_use]
pub fn rows(result: &SampleResult, resolver: &Resolver) -> Vec<EdgeRow> {
    let edges = result.branches.as_ref().map_or(&[][..], |branches| &branches.edges);
    let row = |seen: &EdgeCount| {
        let name = result.tasks.get(seen.task as usize);
        let place = |address| resolver.place(result, seen.task, address, "", 64);
        EdgeRow {
            task: name.cloned().unwrap_or_else(|| format!("task {}", seen.task)),
            from: place(seen.from.0),
            to: place(seen.to.0),
            seen: seen.clone(),
        }
    };
    edges.iter().map(row).collect()
}
