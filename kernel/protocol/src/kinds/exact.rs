//! Exact mode: a snippet stepped instruction by instruction.

use super::{Item, ItemRecord, JobPart, head};
use crate::digest;
use crate::job::{Exact, Snippet};
use crate::limits::{self, LimitError};
use crate::record::{ExactResult, Uncounted};
use crate::verdict::{Figure, figure};
use alloc::vec::Vec;

impl<'a> JobPart<'a> for Exact<'a> {
    fn name(&self) -> &str {
        &self.snippet.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_exact(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(&self.snippet)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(&mut self.snippet)
    }
}

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
