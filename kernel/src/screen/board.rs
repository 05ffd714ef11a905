//! What the items came to, kept for the screen.

use super::lines::{Line, lines};
use alloc::vec::Vec;
use protocol::digest::{Item, Standing, excess, item};
use protocol::record::Record;

/// Most items that are kept: some hundred kilobytes, and more than anybody pages through.
pub const MAX_ITEMS: usize = 1000;

/// The items that are done, as many as are kept.
#[derive(Default)]
pub struct Board {
    kept: Vec<(Item, f64)>,
    /// Items that there was no room for.
    left_out: u32,
}

impl Board {
    /// Notes what a record says of its item, if it ends one. Returns the item if there is room for it after the others.
    pub fn note(&mut self, record: &Record) -> Option<&Item> {
        let item = item(record)?;
        if self.kept.len() < MAX_ITEMS {
            self.kept.push((item, excess(record)));
            return self.kept.last().map(|(item, _)| item);
        }
        self.left_out += 1;
        // What went wrong is wanted more than what did not.
        let is_wrong = |item: &Item| matches!(item.standing, Standing::Missed | Standing::Error);
        if is_wrong(&item)
            && let Some(at) = self.kept.iter().rposition(|(kept, _)| !is_wrong(kept))
        {
            self.kept.remove(at);
            self.kept.push((item, excess(record)));
        }
        None
    }

    /// Items that there was no room for.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Puts those first that missed by the most; the others stay in the job's order.
    pub fn sort(&mut self) {
        self.kept.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    }

    /// The items, in the order in which they are shown.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.kept.iter().map(|(item, _)| item)
    }

    /// Their lines, for a table of so many characters' width.
    pub(super) fn lines(&self, width: usize) -> impl Iterator<Item = Line> {
        self.items().flat_map(move |item| lines(item, width))
    }
}
