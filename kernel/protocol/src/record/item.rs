//! What a record says that ends an item, of whatever kind.

mod count;
mod exact;
mod facts;
mod history;
mod processors;
mod sample;
mod snippet;
mod tasks;
#[cfg(test)]
mod tests;

use super::figure::Figure;
use super::{Miss, TaskResult, Uncounted, Verdict, digest};
use crate::job::Item;
use alloc::string::String;
use alloc::vec::Vec;

/// What the record that ends an item of a kind says of itself.
pub trait ItemRecord {
    /// What every such record has.
    fn head(&self) -> Head<'_>;

    /// The same, to be changed.
    fn head_mut(&mut self) -> HeadMut<'_>;

    /// Whether `item` is of the kind that ends so.
    fn is_of(&self, item: &Item) -> bool;

    /// Whether it can be of the item that a job calls `name`.
    fn is_named(&self, name: &str) -> bool {
        self.head().name == name
    }

    /// Whether the item has another such record after it, so that it has not ended.
    fn has_more(&self) -> bool {
        false
    }

    /// All its figures that an expectation can name.
    fn figures(&self) -> Vec<Figure>;

    /// What a figure comes to that the record leaves out because that follows from the others; `None`: it is no figure of the kind.
    fn absent(&self, _name: &str) -> Option<f64> {
        None
    }

    /// All 64 bits of a figure that code may have set to anything: its `value` lacks some from 2^53 on. `None`: that is as good.
    fn whole(&self, _name: &str) -> Option<u64> {
        None
    }

    /// What was asked for and not counted: events, and sets that lost the counters or never had them.
    fn uncounted(&self) -> Vec<Uncounted>;

    /// The figures of a digest: by default those that are of no task, no processor and no row, whose name has no comma.
    fn digest(&self) -> Vec<digest::Figure> {
        let all = self.figures().into_iter().filter(|one| !one.name.contains(','));
        all.map(|one| digest::single(&one.name, one.value)).collect()
    }

    /// Whether what is expected of every item of the kind holds; `None`: nothing is.
    fn agrees(&self) -> Option<bool> {
        None
    }

    /// The tasks that ran: each has to exit.
    fn tasks(&self) -> &[TaskResult] {
        &[]
    }
}

/// What every record has that ends an item.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The item's index in its job.
    pub item: u32,
    /// Its name.
    pub name: &'a str,
    /// Whether it passed.
    pub verdict: Verdict,
    /// What of it did not.
    pub misses: &'a [Miss],
    /// State that the item had changed and that was put back after it.
    pub restored: &'a [String],
}

/// The same, to be changed.
#[derive(Debug)]
pub struct HeadMut<'a> {
    /// The item's index in its job.
    pub item: &'a mut u32,
    /// Whether it passed.
    pub verdict: &'a mut Verdict,
    /// What of it did not.
    pub misses: &'a mut Vec<Miss>,
    /// State that the item had changed and that was put back after it.
    pub restored: &'a mut Vec<String>,
}

/// [`ItemRecord::head`] and [`ItemRecord::head_mut`] of a record that has the fields by these names.
macro_rules! head {
    () => {
        fn head(&self) -> $crate::record::Head<'_> {
            let Self { item, name, verdict, misses, restored, .. } = self;
            $crate::record::Head { item: *item, name, verdict: *verdict, misses, restored }
        }

        fn head_mut(&mut self) -> $crate::record::HeadMut<'_> {
            let Self { item, verdict, misses, restored, .. } = self;
            $crate::record::HeadMut { item, verdict, misses, restored }
        }
    };
}
pub(crate) use head;
