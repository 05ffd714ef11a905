//! What the console of an item says.

use super::CountValue;
use crate::hex::Hex;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The console of an item: an answer to a line, or what happened.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConsoleRecord {
    /// Index of the item in the job.
    pub item: u32,
    /// Number of the record among those of the item's console, from 1.
    pub number: u32,
    /// What it is.
    pub what: ConsoleWhat,
    /// The task that waits, or that goes on: its number among the item's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u16>,
    /// The line that is answered, as it came; absent if it was no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// TSC ticks since counting began.
    pub tsc: u64,
    /// For people: why not, or what can be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    /// The sets that the line is about, as they are when it was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<ConsoleSet>,
}

/// What a record of the console is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConsoleWhat {
    /// Lines are taken from here on.
    #[default]
    Open,
    /// A task waits: nothing runs and nothing counts before somebody says `go`.
    Waits,
    /// A line was done.
    Done,
    /// A line was not done, and changed nothing.
    Refused,
    /// A task waited for as long as it may take. It is ended.
    Late,
}

/// A set at one moment, and of a set of several tasks what each is counted for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConsoleSet {
    /// Its number among the item's, from 1, as lines name it.
    pub set: u32,
    /// Its name.
    pub name: String,
    /// The task for which it counts, by its number among the item's; absent: it counts the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u16>,
    /// What it does.
    pub state: ConsoleState,
    /// How often it was changed.
    pub generation: u64,
    /// The group whose turn it is, from 0, and how many there are.
    pub group: [u32; 2],
    /// Passes through all groups that were completed.
    pub passes: u64,
    /// Its requests.
    pub events: Vec<ConsoleEvent>,
    /// For `status`: the PMU's registers by number, and what was read there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<[Hex; 2]>,
}

/// What a set does.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConsoleState {
    /// It counts whenever what it is bound to runs.
    #[default]
    Counts,
    /// It was stopped.
    Stopped,
    /// It has ended: its passes are over, or it was terminated.
    Ended,
}

/// A request at one moment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConsoleEvent {
    /// The event.
    pub event: String,
    /// The counter.
    pub counter: String,
    /// Its group, from 0.
    pub group: u32,
    /// Events from one overflow to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Overflows that were acted on, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflows: Option<u64>,
    /// Its count; absent where lines do not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<CountValue>,
    /// For `status`: its raw count at the last overflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_overflow: Option<u64>,
    /// For `status`: the number of its control register, and what is written there when it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<[Hex; 2]>,
    /// For `modify`: the request in whose place it is, with the last of its count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<ConsoleBefore>,
}

/// A request that was changed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConsoleBefore {
    /// The event.
    pub event: String,
    /// Events from one overflow to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Its count up to then.
    pub count: CountValue,
}
