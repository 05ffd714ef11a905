//! What a report says of the job that it is of, so that two reports can be compared: [`crate::compare`].

mod code;
pub use code::AboutCode;

use super::Packed;
use super::errors::Place;
use super::file::JobFile;
use crate::limits::LimitTable;
use protocol::hex::Hex;
use protocol::job::limits::MAX_LISTED_RUNS;
use protocol::job::memory::Fill;
use protocol::job::{Item, Memory, Snippet};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;
use std::borrow::Cow;
use std::hash::Hasher;

/// A job, as far as figures depend on it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its file as it was named, or what else it came from.
    pub file: String,
    /// Digest of the file's text; absent if it came from the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Hex>,
    /// The items, in the order of their indices.
    pub items: Vec<AboutItem>,
    /// How far a figure of any item may get worse.
    #[serde(default, skip_serializing_if = "LimitTable::is_empty")]
    pub limits: LimitTable,
}

/// An item.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AboutItem {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The line of the file that it begins in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Digest of its code and options, as they go to the machine.
    pub digest: Hex,
    /// How far its figures may get worse.
    #[serde(default, skip_serializing_if = "LimitTable::is_empty")]
    pub limits: LimitTable,
    /// Its machine code, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<AboutCode>,
}

/// What is known of a job beyond what goes to the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    file: String,
    text: Option<Hex>,
    items: Vec<(Option<usize>, LimitTable)>,
    limits: LimitTable,
}

impl Known {
    /// Of `file`, whose items are those of the suite and of `snippets`, then of the file's other parts.
    pub(super) fn of(file: &JobFile) -> Self {
        let line = |place: Place| place.position.map(|(line, _)| line);
        let suite = file.checks.iter().map(|_| (None, LimitTable::default()));
        let items = file.items().into_iter();
        let items = items.map(|one| (line(one.place(&file.source)), one.criteria().limits.clone()));
        let items = suite.chain(items).collect();
        let (text, limits) = (file.text, file.limits.clone());
        Self { file: file.source.clone(), text, items, limits }
    }
}

impl Packed {
    /// What the report is to say of the job.
    #[must_use]
    pub fn about(&self) -> About {
        let Known { file, text, items, limits } = self.known.clone();
        let items = (0..).zip(&self.job.items).zip(items).map(|((index, item), (line, limits))| {
            let mut all = serde_json::to_vec(&plain(item)).expect("items serialise");
            for memory in self.job.memory_of(index) {
                all.extend(serde_json::to_vec(&alone(memory)).expect("memory serialises"));
            }
            let digest = digest(&all);
            let (name, code) = (item.name().to_string(), self.code_of(item));
            AboutItem { name, line, digest, limits, code }
        });
        let (name, items) = (self.job.name.to_string(), items.collect());
        About { name, file, text, items, limits }
    }

    /// Asks for the value of every run, where the job does not and there are few enough. Returns the items of which that is
    /// more than the job asks for.
    pub fn list_values(&mut self) -> Vec<u32> {
        let mut unasked = Vec::new();
        for (index, item) in (0..).zip(&mut self.job.items) {
            let Some(snippet) = snippet(item) else { continue };
            if !snippet.values && snippet.runs <= MAX_LISTED_RUNS {
                snippet.values = true;
                unasked.push(index);
            }
        }
        unasked
    }
}

/// The snippet whose runs an item lists, if it lists them.
fn snippet<'a, 'b>(item: &'a mut Item<'b>) -> Option<&'a mut Snippet<'b>> {
    let part = item.part_mut();
    if part.lists_values() { part.snippet_mut() } else { None }
}

/// The item without what changes no figure: whether its runs are listed, and where a linker has put the functions that it
/// calls, which moves with every change of others.
fn plain<'a>(item: &Item<'a>) -> Item<'a> {
    let mut item = item.clone();
    if let Some(snippet) = snippet(&mut item) {
        snippet.values = false;
        if let Some(call) = &mut snippet.setup.call {
            call.function = 0;
            call.teardown = Cow::default();
            snippet.init = Cow::default();
            snippet.setup.one_time_init = Cow::default();
        }
    }
    item
}

/// A piece of memory whichever items have it. The bytes of a file, which are many, are in it by their digest.
fn alone<'a>(memory: &Memory<'a>) -> Memory<'a> {
    let fill = match &memory.fill {
        Fill::Bytes(bytes) => Fill::Bytes(digest(bytes).0.to_le_bytes().to_vec().into()),
        other => other.clone(),
    };
    let (name, items) = (memory.name.clone(), Vec::new());
    let Memory { at, bytes, page_size, memory_type, .. } = *memory;
    Memory { name, at, bytes, page_size, memory_type, fill, items }
}

/// A digest that tells texts apart that nobody made alike on purpose: SipHash-2-4 with a key of zeros.
pub(crate) fn digest(bytes: &[u8]) -> Hex {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    Hex(hasher.finish())
}

#[cfg(test)]
mod tests;
