//! The kinds of items: a module for each, which runs one and makes its record. A new kind is one module more, and a line of
//! [`run`].

mod exact;
mod facts;
mod history;
mod processors;
mod sampling;
mod snippet;
mod suite;
mod tasks;
mod whole;

use super::core_kinds::Part;
use super::failure::Failure;
use super::machine::Machine;
use protocol::job::{CoreKind, Item};
use protocol::record::Record;

/// An item that runs: where it is in the job, on what, and where the records go that it writes before its last one.
struct Run<'a, M> {
    index: u32,
    /// The kind of core that it is for, of an item that several kinds run, and whether another one's turn comes after it.
    core: Option<CoreKind>,
    more: bool,
    machine: &'a mut M,
    report: &'a mut dyn FnMut(&Record),
}

impl<M: Machine> Run<'_, M> {
    /// Has `measure` do its work, and returns what it gave with the TSC before and after it.
    fn timed<T>(&mut self, measure: impl FnOnce(&mut Self) -> T) -> (T, [u64; 2]) {
        let start = self.machine.now();
        let result = measure(self);
        (result, [start, self.machine.now()])
    }
}

/// Runs an item, or the part of it that is for one kind of core, and hands the records that it writes meanwhile to `report`.
pub(super) fn run(
    part: &Part,
    machine: &mut impl Machine,
    report: &mut dyn FnMut(&Record),
) -> Result<Record, Failure> {
    let &Part { index, core, more, .. } = part;
    let run = &mut Run { index, core, more, machine, report };
    match part.item {
        Item::Snippet(item) => snippet::run(item, run),
        Item::Exact(item) => exact::run(item, run),
        Item::Facts(item) => facts::run(item, run),
        Item::History(item) => history::run(item, run),
        Item::Tasks(item) => tasks::run(item, run),
        Item::Count(item) => tasks::count(item, run),
        Item::Processors(item) => processors::run(item, run),
        Item::Sample(item) => sampling::run(item, run),
        Item::BringUp(suite) => suite::bring_up(suite, run),
        Item::Conformance(suite) => suite::run(suite, run),
    }
}

/// Whether an item's code runs as tasks, under the scheduler.
pub(super) fn is_scheduled(item: &Item) -> bool {
    matches!(item, Item::Tasks(_) | Item::Count(_) | Item::Sample(_))
}
