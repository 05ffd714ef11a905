//! Finding the metrics that are requested, or saying why one is not available and what is near it.

use super::table::{self, Definition, Table};
use super::tree;
use crate::events::EventsError;
use ::events::tables::fold;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How many names are offered in place of one that is not available.
const OFFERED: usize = 3;
/// How deep the deepest tree is.
pub const DEEPEST: u8 = 6;
/// The tree's name among metrics.
const TREE: &str = "topdown";

/// What is requested.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub enum Asked {
    /// A metric.
    Named(String),
    /// The top-down tree down to this level.
    Tree(u8),
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text.strip_prefix(TREE) {
            Some("") => "1",
            Some(rest) if rest.starts_with('-') => &rest[1..],
            _ if text.trim().is_empty() => return Err("a metric has a name".to_string()),
            _ => return Ok(Self::Named(text.to_string())),
        };
        match level.parse() {
            Ok(level) if (1..=DEEPEST).contains(&level) => Ok(Self::Tree(level)),
            _ => Err(format!("{TREE} is to level {level:?}; levels are 1 to {DEEPEST}")),
        }
    }
}

impl TryFrom<String> for Asked {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Tree(level) => write!(f, "{TREE}-{level}"),
        }
    }
}

/// Why a metric is not available.
#[derive(Debug, Error)]
pub enum MetricError {
    /// No processor has it.
    #[error("there is no metric {name:?}{}", near(.nearest))]
    Unknown {
        /// As requested.
        name: String,
        /// Metrics of the processor with names like it.
        nearest: Vec<String>,
    },
    /// Other processors have it.
    #[error("{table} has no metric {name:?}, which is one of {}{}", .others.join(", "), near(.nearest))]
    OfOthers {
        /// As requested.
        name: String,
        /// The processor's table.
        table: String,
        /// Those that have it.
        others: Vec<String>,
        /// Metrics of the processor with names like it.
        nearest: Vec<String>,
    },
    /// It needs what is not read yet.
    #[error("metric {name} of {table} needs {what}{}", near(.nearest))]
    NotYet {
        /// The metric.
        name: String,
        /// The processor's table.
        table: String,
        /// What is not read.
        what: String,
        /// Metrics of the processor that can be had, with names like it.
        nearest: Vec<String>,
    },
    /// There is no tree.
    #[error("{table} has no top-down tree here: {why}; metrics that it has: {}", .others.join(", "))]
    NoTree {
        /// The processor's table.
        table: String,
        /// Why not.
        why: String,
        /// Some that can be had.
        others: Vec<String>,
    },
    /// An event cannot be counted there.
    #[error("metric {name} of {table} needs the event {event}: {why}")]
    Event {
        /// The metric.
        name: String,
        /// The processor's table.
        table: String,
        /// The event.
        event: String,
        /// Why it cannot be counted.
        why: String,
    },
    /// What it needs is measured in items of other kinds.
    #[error("metric {name} needs {what}; measure the code there")]
    Elsewhere {
        /// The metric.
        name: String,
        /// The event, how it is measured and in which items.
        what: String,
    },
    /// The clock of a history cannot be counted.
    #[error("metrics of a history are planned beside its clock: {0}")]
    Clock(String),
    /// The processor is not known.
    #[error("metrics are of a processor, and {0}")]
    NoProcessor(String),
    /// The processor has no table.
    #[error("{0}")]
    Events(#[from] EventsError),
}

fn near(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        nearest => format!("; near it are {}", nearest.join(", ")),
    }
}

/// The metrics that are requested, in the tree's order where it is the tree.
///
/// # Errors
/// The first that is not available.
pub fn find(table: &Table, asked: &[Asked]) -> Result<Vec<Definition>, MetricError> {
    let mut all: Vec<Definition> = Vec::new();
    for one in asked {
        let found = match one {
            Asked::Named(name) => vec![named(table, name)?],
            Asked::Tree(level) => tree::definitions(table, *level)?,
        };
        for metric in found {
            if !all.iter().any(|known| known.name == metric.name) {
                all.push(metric);
            }
        }
    }
    Ok(all)
}

fn named(table: &Table, name: &str) -> Result<Definition, MetricError> {
    let is = |metric: &&Definition| fold::same(&metric.name, name) || metric.legacy == name;
    if let Some(metric) = table.metrics.iter().find(is) {
        return match not_yet(metric) {
            None => Ok(metric.clone()),
            Some(what) => Err(MetricError::NotYet {
                name: metric.name.clone(),
                table: table.name.clone(),
                what,
                nearest: nearest(table, name),
            }),
        };
    }
    let has = |other: &String| table::table(other).metrics.iter().any(|metric| is(&metric));
    let others: Vec<String> = table::names().into_iter().filter(has).collect();
    let (name, nearest) = (name.to_string(), nearest(table, name));
    Err(match others.is_empty() {
        true => MetricError::Unknown { name, nearest },
        false => MetricError::OfOthers { name, table: table.name.clone(), others, nearest },
    })
}

/// Names like it of metrics that can be had.
fn nearest(table: &Table, name: &str) -> Vec<String> {
    let typed = name.to_lowercase();
    let mut found: Vec<(f64, &str)> = Vec::new();
    for metric in table.metrics.iter().filter(|metric| not_yet(metric).is_none()) {
        let known = metric.name.to_lowercase();
        let part = known.contains(&typed) || known.len() > 2 && typed.contains(&known);
        let likeness = strsim::jaro_winkler(&typed, &known) + f64::from(u8::from(part));
        if likeness >= 0.7 {
            found.push((likeness, &metric.name));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    found.into_iter().take(OFFERED).map(|(_, name)| name.to_string()).collect()
}

/// What a metric needs that is not read yet.
#[must_use]
pub fn not_yet(metric: &Definition) -> Option<String> {
    let needed = super::request::needed(metric);
    let of_needed = metric.events.iter().filter(|(name, _)| needed.contains(*name));
    let of_event = of_needed.map(|(_, event)| event).find_map(|event| {
        let (name, modifiers) = event.split_once(':').unwrap_or((event, ""));
        let has = |word: &str| modifiers.split(':').any(|modifier| modifier == word);
        let what = if name.starts_with("UNC_") {
            "an uncore counter whose registers are not known"
        } else if has("percore") {
            "the other thread's counts, which are not read"
        } else {
            return None;
        };
        Some(format!("{event}: {what}"))
    });
    let of_constant = metric.constants.values().find_map(|constant| {
        let known = super::request::Constant::of(constant, metric).is_some();
        (!known).then(|| format!("{constant}, which is of the uncore and not known"))
    });
    of_event.or(of_constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(table: &str, name: &str) -> String {
        let asked = [name.parse().unwrap()];
        find(&table::table(table), &asked).unwrap_err().to_string()
    }

    #[test]
    fn s3_what_cannot_be_had_is_named_with_what_is_near() {
        let unknown = said("skylake", "Backend_Bond");
        assert!(
            unknown.contains("no metric \"Backend_Bond\"; near it are Backend_Bound"),
            "{unknown}"
        );
        let others = said("haswell", "SMT_Contention");
        assert!(others.contains("one of zen4, zen5"), "{others}");
        let none = said("zen2", "topdown-2");
        assert!(none.contains("zen2 has no top-down tree here") && none.contains("ipc"), "{none}");
        let uncore = said("lioncove_lnl", "Info_System_Socket_CLKS");
        let why = "UNC_CLOCK.SOCKET: an uncore counter whose registers are not known";
        assert!(uncore.contains(why), "{uncore}");
    }

    #[test]
    fn s3_names_are_found_however_they_are_spelt_and_once() {
        let table = table::table("skylake");
        let asked = ["IPC", "info_thread_ipc", "metric_TMA_Info_Thread_IPC", "ipc"];
        let asked: Vec<Asked> = asked.iter().map(|name| name.parse().unwrap()).collect();
        let found = find(&table, &asked).unwrap();
        let names: Vec<&str> = found.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["ipc", "Info_Thread_IPC"]);
        assert_eq!("topdown-3".parse(), Ok(Asked::Tree(3)));
        for bad in ["topdown-0", "topdown-7", "topdown-x", "topdown-", " "] {
            assert!(bad.parse::<Asked>().is_err(), "{bad}");
        }
    }
}
