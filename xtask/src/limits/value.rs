//! A limit: `3`, `"5 %"`, or `{ by = 3, percent = 5, worse = "less" }`.

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Which change of a figure is one for the worse.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Worse {
    /// More is worse: time, instructions, misses.
    #[default]
    More,
    /// Less is worse: turns that a task completed, hits.
    Less,
    /// Any change is: a result that was computed.
    Either,
    /// None is; it is told and not judged.
    Never,
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Either => "either",
            Self::Never => "never",
        })
    }
}

/// How far a figure may get worse. Of an absolute and a relative bound the wider one holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Limit {
    /// By so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// By so many percent of the old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// What is worse, if not what is usual for the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worse: Option<Worse>,
}

impl Limit {
    /// By how much a figure may change that was `old`.
    #[must_use]
    pub fn allowed(&self, old: f64) -> f64 {
        let relative = self.percent.map_or(0.0, |percent| old.abs() * percent / 100.0);
        self.by.unwrap_or(0.0).max(relative)
    }

    /// Whether it says how far, and not only what is worse.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.by.is_some() || self.percent.is_some()
    }
}

/// How far a figure may get worse: of an absolute and a relative bound the wider one holds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "LimitTable")]
pub(crate) struct Parts {
    /// By so much.
    by: Option<f64>,
    /// By so many percent of the old value.
    percent: Option<f64>,
    /// What is worse.
    worse: Option<Worse>,
}

/// Nobody allows more than a thousandfold; a slip of the pen does.
const MAX_PERCENT: f64 = 100_000.0;

fn checked<E: Error>(limit: Limit) -> Result<Limit, E> {
    if let Some(by) = limit.by.filter(|by| !by.is_finite() || *by < 0.0) {
        return Err(E::custom(format!("by is {by}; it must be 0 or more")));
    }
    if let Some(percent) = limit.percent.filter(|percent| !(0.0..=MAX_PERCENT).contains(percent)) {
        return Err(E::custom(format!("percent is {percent}; it must be 0 to {MAX_PERCENT}")));
    }
    if limit == Limit::default() {
        return Err(E::custom("it is empty: give by, percent or worse"));
    }
    Ok(limit)
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, a text like \"5 %\", or a table with by, percent or worse")
            }

            fn visit_f64<E: Error>(self, by: f64) -> Result<Limit, E> {
                if !by.is_finite() || by < 0.0 {
                    return Err(E::custom(format!("the limit is {by}; it must be 0 or more")));
                }
                checked(Limit { by: Some(by), ..Limit::default() })
            }

            fn visit_i64<E: Error>(self, by: i64) -> Result<Limit, E> {
                self.visit_f64(by as f64)
            }

            fn visit_u64<E: Error>(self, by: u64) -> Result<Limit, E> {
                self.visit_f64(by as f64)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                let number = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
                let percent = number.ok_or_else(|| {
                    E::custom(format!(
                        "`{text}` is not a limit: it must be a number, or a number with %"
                    ))
                })?;
                checked(Limit { percent: Some(percent), ..Limit::default() })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Limit, M::Error> {
                let Parts { by, percent, worse } =
                    Parts::deserialize(MapAccessDeserializer::new(map))?;
                checked(Limit { by, percent, worse })
            }
        }
        deserializer.deserialize_any(Either)
    }
}
