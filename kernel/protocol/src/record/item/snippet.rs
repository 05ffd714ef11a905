//! Snippets: machine code that is measured.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{ItemRecord, SnippetResult, Uncounted, digest};
use alloc::vec::Vec;

impl ItemRecord for SnippetResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Snippet(snippet) if snippet.runs == self.runs)
    }

    fn figures(&self) -> Vec<Figure> {
        self.metrics.iter().map(|metric| figure(&*metric.event, metric.value.median)).collect()
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }

    fn digest(&self) -> Vec<digest::Figure> {
        self.metrics.iter().map(digest::metric).collect()
    }
}
