//! An event of a count, and what follows from its overflows.

use crate::events::EventText;
use crate::job::whole::is_whole;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// An event, and what follows from its overflows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "CountedEvent")]
pub(in crate::job) struct EventTable {
    /// The event.
    pub(super) event: EventText,
    /// The value that it counts from. Default: 0.
    #[serde(default)]
    pub(super) preset: u64,
    /// Events from one overflow to the next.
    pub(super) every: Option<u64>,
    /// Events that start to count at its first overflow.
    #[serde(default)]
    pub(super) starts: Vec<String>,
    /// Whether it is counted in every time slice. Default: false.
    #[serde(default)]
    pub(super) correlate: bool,
}

impl EventTable {
    /// An event from which nothing follows.
    pub(super) fn plain(event: EventText) -> Self {
        Self { event, preset: 0, every: None, starts: Vec::new(), correlate: false }
    }

    /// Whether it counts the same from the same value on.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.event == other.event && self.preset == other.preset
    }

    /// Whether it is of the whole item and nothing else: with what follows from overflows it is an event, and refused as one.
    pub(super) fn is_whole(&self) -> bool {
        let plain = self.preset == 0 && self.every.is_none() && self.starts.is_empty();
        plain && !self.correlate && is_whole(&self.event)
    }
}

#[derive(Clone, Debug)]
pub(super) struct RawEvent(pub(super) EventTable);

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawEvent;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an event, or a table with event, preset, every, starts or correlate")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawEvent, E> {
                let event = EventText::deserialize(StrDeserializer::new(text))?;
                Ok(RawEvent(EventTable::plain(event)))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawEvent, M::Error> {
                EventTable::deserialize(MapAccessDeserializer::new(map)).map(RawEvent)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
