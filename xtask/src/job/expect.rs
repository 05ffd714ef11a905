//! What an item has to come to: `expect` and `allow-uncounted`.

use crate::events::EventText;
use crate::limits::{LimitTable, has_wildcards};
use events::parse::parse_list;
use iced_x86::Mnemonic;
use protocol::job::criteria::{Bounds, Criteria, Expect, TSC};
use protocol::job::exact;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// `expect = 3`, `{ min = 2.9, max = 3.1 }`, or a table of figures: `{ instructions = 3, loads = { max = 1 } }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RawExpect(Vec<Expect<'static>>);

/// `3`, or `{ min = 1 }`, `{ max = 3 }`, or both.
#[derive(Clone, Copy, Debug)]
struct RawBounds(Bounds);

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Ends {
    min: Option<Number>,
    max: Option<Number>,
}

impl From<Ends> for Bounds {
    fn from(Ends { min, max }: Ends) -> Self {
        Self { min: min.map(|Number(end)| end), max: max.map(|Number(end)| end) }
    }
}

/// A number that is kept as it was written.
#[derive(Clone, Copy)]
struct Number(f64);

/// A whole number, if a figure can be it: figures are floating point numbers.
fn whole<E: Error>(value: i128) -> Result<f64, E> {
    let kept = value as f64;
    if kept as i128 == value {
        return Ok(kept);
    }
    Err(E::custom(format!(
        "{value} has too many digits for a figure, which would be compared with {}; up to {} all whole numbers are exact",
        kept as i128,
        1_u64 << f64::MANTISSA_DIGITS
    )))
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
                whole(value.into()).map(Number)
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
                whole(value.into()).map(Number)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawBounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawBounds;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or { min = ..., max = ... }")
            }

            fn visit_f64<E>(self, value: f64) -> Result<RawBounds, E> {
                Ok(RawBounds(Bounds::exactly(value)))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<RawBounds, E> {
                self.visit_f64(whole(value.into())?)
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<RawBounds, E> {
                self.visit_f64(whole(value.into())?)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawBounds, M::Error> {
                let ends = Ends::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawBounds(ends.into()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for RawExpect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawExpect;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(
                    "a number, { min = ..., max = ... }, or a table with the name of each figure",
                )
            }

            fn visit_f64<E>(self, value: f64) -> Result<RawExpect, E> {
                Ok(RawExpect::ticks(Bounds::exactly(value)))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<RawExpect, E> {
                self.visit_f64(whole(value.into())?)
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<RawExpect, E> {
                self.visit_f64(whole(value.into())?)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawExpect, M::Error> {
                let mut table: BTreeMap<String, RawBounds> =
                    BTreeMap::deserialize(MapAccessDeserializer::new(map))?;
                let ends = ["min", "max"].map(|end| table.remove(end));
                if ends.iter().all(Option::is_none) {
                    let expect =
                        |(figure, RawBounds(bounds))| Expect { figure: Cow::Owned(figure), bounds };
                    return Ok(RawExpect(table.into_iter().map(expect).collect()));
                }
                if let Some(figure) = table.keys().next() {
                    return Err(M::Error::custom(format!(
                        "min and max stand beside `{figure}`: they bound TSC ticks, which a table of figures \
                         names `{TSC}`"
                    )));
                }
                let end = |end: Option<RawBounds>| match end {
                    None => Ok(None),
                    Some(RawBounds(Bounds { min, max })) if min == max => Ok(min),
                    Some(_) => Err(M::Error::custom("min and max are numbers")),
                };
                let [min, max] = ends;
                Ok(RawExpect::ticks(Bounds { min: end(min)?, max: end(max)? }))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl RawExpect {
    fn ticks(bounds: Bounds) -> Self {
        Self(vec![Expect { figure: Cow::Borrowed(TSC), bounds }])
    }
}

/// What an item says of it; the job says the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CriteriaFile {
    /// Bounds of figures.
    pub expect: Vec<Expect<'static>>,
    /// Whether events may be left uncounted; `None`: as the job says.
    pub allow_uncounted: Option<bool>,
    /// How far its figures may get worse from one report to the next.
    pub limits: LimitTable,
}

impl CriteriaFile {
    pub(crate) fn new(
        expect: Option<RawExpect>,
        allow_uncounted: Option<bool>,
        limits: Option<LimitTable>,
    ) -> Self {
        let limits = limits.unwrap_or_default();
        Self { expect: expect.unwrap_or_default().0, allow_uncounted, limits }
    }

    /// With what the job says.
    pub(super) fn criteria(&self, allow_uncounted: bool) -> Criteria<'static> {
        let allow_uncounted = self.allow_uncounted.unwrap_or(allow_uncounted);
        Criteria { expect: self.expect.clone(), allow_uncounted }
    }
}

/// The figures that a kind of item has, for the host to say which names are none. The target knows no more of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Whole names.
    pub whole: Vec<String>,
    /// What may stand behind one of `events`, as it is or followed by a number or a name.
    pub behind: &'static [&'static str],
    /// Events.
    pub events: Vec<String>,
}

impl Names {
    /// Names of events, as results have them.
    pub(super) fn of_events<'a>(texts: impl Iterator<Item = &'a EventText>) -> Vec<String> {
        let mut names = Vec::new();
        for text in texts {
            let items = parse_list(&text.to_string()).unwrap_or_default();
            for request in items.into_iter().flat_map(|item| item.requests) {
                names.push(request.attributes.label.clone().unwrap_or(request.text));
            }
        }
        names
    }

    fn has(&self, figure: &str) -> bool {
        let is_behind = |event: &String| {
            let rest = figure.strip_prefix(&**event);
            rest.is_some_and(|rest| {
                rest.is_empty() || self.behind.iter().any(|behind| rest.starts_with(behind))
            })
        };
        self.whole.iter().any(|name| name == figure) || self.events.iter().any(is_behind)
    }

    /// Whether every expectation and every limit is of a figure that there can be.
    ///
    /// # Errors
    /// The first one that there is not, and what there is.
    pub(crate) fn check(&self, criteria: &CriteriaFile) -> Result<(), String> {
        let expected = criteria.expect.iter().map(|expect| ("expect", &*expect.figure));
        let limits = criteria.limits.names().filter(|name| !has_wildcards(name));
        for (key, figure) in expected.chain(limits.map(|name| ("limits", name))) {
            if !self.has(figure) {
                let mut known: Vec<&str> =
                    self.whole.iter().chain(&self.events).map(|name| &**name).collect();
                known.dedup();
                let behind = match self.behind {
                    [] => String::new(),
                    behind => format!("; behind an event may stand `{}`", behind.join("`, `")),
                };
                return Err(match (figure, known.is_empty()) {
                    (TSC, false) => format!(
                        "{key} bounds TSC ticks, which are no figure here; there are: {}{behind}",
                        known.join(", ")
                    ),
                    (figure, true) => {
                        format!("{key} names `{figure}`, but there are no figures here")
                    }
                    (figure, false) => format!(
                        "{key} names `{figure}`, which is no figure here; there are: {}{behind}",
                        known.join(", ")
                    ),
                });
            }
        }
        Ok(())
    }
}

/// What stepping counts, and every mnemonic.
pub(super) fn of_stepping() -> Names {
    let widths = ["instructions_64", "instructions_32"];
    let whole = exact::EVENTS.iter().chain(&widths).map(ToString::to_string);
    Names { whole: whole.collect(), ..Names::default() }
}

/// Whether `name` is a mnemonic.
pub(super) fn is_mnemonic(name: &str) -> bool {
    Mnemonic::values().any(|mnemonic| format!("{mnemonic:?}").to_ascii_lowercase() == name)
}

#[cfg(test)]
mod tests;
