//! Exact mode: a snippet stepped instruction by instruction.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{ExactResult, ItemRecord, Uncounted, digest};
use alloc::vec::Vec;

impl ItemRecord for ExactResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Exact(_))
    }

    // Counts and mnemonics have no name in common: the former are plurals.
    fn figures(&self) -> Vec<Figure> {
        let all = self.counts.iter().chain(&self.opcodes);
        all.map(|count| figure(&*count.event, count.value)).collect()
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }

    fn digest(&self) -> Vec<digest::Figure> {
        self.counts.iter().map(|count| digest::single(&count.event, Some(count.value))).collect()
    }

    // With `verify`: what was stepped agrees with what the PMU counted.
    fn agrees(&self) -> Option<bool> {
        let all = &self.comparisons;
        (!all.is_empty()).then(|| all.iter().all(|comparison| comparison.agrees))
    }
}
