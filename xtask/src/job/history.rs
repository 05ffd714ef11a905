//! History mode in a job: `history = 200`, or a table.

use super::errors::JobError;
use super::file::SnippetFile;
use crate::events::{EventText, NoEvent};
use events::parse::parse_list;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A clock that is none.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NoClock {
    /// It cannot be read.
    #[error(transparent)]
    Text(#[from] NoEvent),
    /// It is not one event.
    #[error("the clock `{0}` names {1} events; all counters stop when one event has come so often")]
    NotOne(String, usize),
}

/// The event that stops all counters.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub struct Clock(EventText);

impl FromStr for Clock {
    type Err = NoClock;

    fn from_str(text: &str) -> Result<Self, NoClock> {
        let event = text.parse()?;
        let items = parse_list(text).unwrap_or_default();
        match items.iter().map(|item| item.requests.len()).sum() {
            1 => Ok(Self(event)),
            several => Err(NoClock::NotOne(text.to_string(), several)),
        }
    }
}

impl TryFrom<String> for Clock {
    type Error = NoClock;

    fn try_from(text: String) -> Result<Self, NoClock> {
        text.parse()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self("cycles".parse().expect("a generic event"))
    }
}

/// How a snippet's history is taken, all decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryOptions {
    /// Events of the clock up to the last row.
    pub cycles: u32,
    /// Events of the clock from row to row.
    pub step: u32,
    /// The clock.
    pub clock: EventText,
    /// Whether the rows begin where the counters are switched on.
    pub end_to_end: bool,
}

impl HistoryOptions {
    fn of(cycles: u32) -> Self {
        RawTable { cycles, step: 1, event: Clock::default(), end_to_end: false }.decide()
    }
}

/// `history = 200`, a table, or `false`, where the defaults have one.
#[derive(Clone)]
pub(super) enum RawHistory {
    Off,
    Cycles(u32),
    Table(RawTable),
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawHistory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawHistory;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(
                    "a number of cycles, false, or a table with cycles, step, event or end-to-end",
                )
            }

            fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<RawHistory, E> {
                match on {
                    false => Ok(RawHistory::Off),
                    true => Err(E::invalid_type(serde::de::Unexpected::Bool(true), &self)),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, cycles: i64) -> Result<RawHistory, E> {
                let cycles = u32::try_from(cycles);
                cycles
                    .map(RawHistory::Cycles)
                    .map_err(|_| E::custom("a history has 1 to 1000000 cycles"))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawHistory, M::Error> {
                RawTable::deserialize(MapAccessDeserializer::new(map)).map(RawHistory::Table)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// How a history is taken.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "HistoryTable")]
pub(super) struct RawTable {
    /// The last row.
    cycles: u32,
    /// Cycles from row to row. Default: 1.
    #[serde(default = "one")]
    step: u32,
    /// The event that is counted in place of cycles.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    event: Clock,
    /// Begin where the counters are switched on. Default: false.
    #[serde(default)]
    end_to_end: bool,
}

fn one() -> u32 {
    1
}

impl RawTable {
    fn decide(self) -> HistoryOptions {
        let Self { cycles, step, event, end_to_end } = self;
        HistoryOptions { cycles, step, clock: event.0, end_to_end }
    }
}

impl RawHistory {
    /// The options; `None`: no history.
    pub(super) fn decide(&self) -> Option<HistoryOptions> {
        match self {
            Self::Off => None,
            Self::Cycles(cycles) => Some(HistoryOptions::of(*cycles)),
            Self::Table(table) => Some(table.clone().decide()),
        }
    }
}

/// What the command line says about it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "History mode")]
pub struct HistoryOverrides {
    /// Show in which of its first so many cycles each snippet's events happen: it runs again and again, and all counters
    /// stop one cycle later each time. One copy of the body, unless --unroll says otherwise.
    #[arg(long, value_name = "CYCLES")]
    pub history: Option<u32>,
    /// With --history: cycles from row to row.
    #[arg(long, value_name = "N")]
    pub history_step: Option<u32>,
    /// With --history: count these in place of cycles.
    #[arg(long, value_name = "EVENT")]
    pub history_event: Option<Clock>,
    /// With --history: begin where the counters are switched on, not where the snippet begins.
    #[arg(long)]
    pub end_to_end: bool,
}

impl HistoryOverrides {
    /// Changes what a snippet says of itself.
    ///
    /// # Errors
    /// An option of histories without one.
    pub(super) fn apply(&self, snippet: &mut SnippetFile) -> Result<(), JobError> {
        if let Some(cycles) = self.history {
            let options = snippet.history.get_or_insert_with(|| HistoryOptions::of(cycles));
            options.cycles = cycles;
            if !snippet.options.unroll_given {
                snippet.options.unroll = 1;
            }
        }
        let given = [
            (self.history_step.is_some(), "--history-step"),
            (self.history_event.is_some(), "--history-event"),
            (self.end_to_end, "--end-to-end"),
        ];
        let Some(options) = &mut snippet.history else {
            return match given.iter().find(|(given, _)| *given) {
                Some(&(_, name)) => Err(JobError::NeedsHistory(name)),
                None => Ok(()),
            };
        };
        options.step = self.history_step.unwrap_or(options.step);
        if let Some(clock) = &self.history_event {
            options.clock = clock.0.clone();
        }
        options.end_to_end |= self.end_to_end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
