//! Snippets: machine code that is measured.

use super::{Item, ItemRecord, JobPart, head};
use crate::digest;
use crate::job::Snippet;
use crate::limits::{self, LimitError};
use crate::record::{SnippetResult, Uncounted};
use crate::verdict::{Figure, figure};
use alloc::vec::Vec;

impl<'a> JobPart<'a> for Snippet<'a> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::check_only(self)?;
        limits::check_snippet(self)
    }

    fn snippet(&self) -> Option<&Snippet<'a>> {
        Some(self)
    }

    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        Some(self)
    }

    fn lists_values(&self) -> bool {
        true
    }
}

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
