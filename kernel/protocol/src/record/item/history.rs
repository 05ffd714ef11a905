//! Histories: a snippet looked at cycle by cycle.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{HistoryResult, ItemRecord, Uncounted, digest};
use alloc::format;
use alloc::vec::Vec;

impl ItemRecord for HistoryResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::History(_))
    }

    /// Each event up to the last row, and up to each row.
    fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for one in &self.series {
            all.push(figure(&*one.event, one.median.last().copied()));
            for (row, value) in (1..).zip(&one.median) {
                let at = row * u64::from(self.step);
                all.push(figure(format!("{}, row {at}", one.event), *value));
            }
        }
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }

    fn digest(&self) -> Vec<digest::Figure> {
        let last = |median: &[f64]| median.last().copied();
        self.series.iter().map(|one| digest::single(&one.event, last(&one.median))).collect()
    }
}
