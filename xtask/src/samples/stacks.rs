//! The calls that led to samples, resolved.

use super::{Place, Resolver};
use protocol::record::SampleResult;

/// A stack that was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct StackRow {
    /// Index of the event among those of the item.
    pub event: usize,
    /// The task's name.
    pub task: String,
    /// Its ring.
    pub ring: u8,
    /// Its processor.
    pub cpu: u16,
    /// The sampled instruction, and before it the calls that led to it, the newest first.
    pub frames: Vec<(u64, Place)>,
    /// How many samples.
    pub count: u64,
}

impl StackRow {
    /// The functions, from the outermost to that of the sampled instruction.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.frames.iter().rev().map(|(_, place)| &*place.symbol)
    }
}

/// The stacks of an item, most often first.
#[must_use]
pub fn rows(result: &SampleResult, resolver: &Resolver) -> Vec<StackRow> {
    let stacks = result.stacks.as_ref().map_or(&[][..], |stacks| &stacks.stacks);
    let row = |seen: &protocol::record::StackCount| {
        let name = result.tasks.get(seen.task as usize);
        let place = |address: u64| (address, resolver.place(result, seen.task, address, "", 64));
        StackRow {
            event: seen.event as usize,
            task: name.cloned().unwrap_or_else(|| format!("task {}", seen.task)),
            ring: seen.ring,
            cpu: super::processors::of_task(result, seen.task),
            frames: seen.frames.iter().map(|frame| place(frame.0)).collect(),
            count: seen.count,
        }
    };
    stacks.iter().map(row).collect()
}
