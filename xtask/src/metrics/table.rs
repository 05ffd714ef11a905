//! The tables of metrics: perfmon's, one for each kind of core, and our own.

mod joules;
#[cfg(test)]
mod lacks;
#[cfg(test)]
mod tests;
pub mod uncore;

use ::events::tables::fold;
use flate2::read::GzDecoder;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

/// Perfmon's: for each table a line about it, then a line for each metric.
static PACKED: &[u8] = include_bytes!("../../data/metrics.jsonl.gz");
/// Our own.
const OWN: &str = include_str!("../../data/metrics.toml");

/// What a line about a table begins with.
const HEAD: &str = "{\"table\":";

/// A metric.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its name in thresholds, with dots for its depth.
    #[serde(default)]
    pub legacy: String,
    /// Its depth in the tree, from 1.
    #[serde(default = "one")]
    pub level: u8,
    /// The metric above it.
    pub parent: Option<String>,
    /// What its value is in.
    pub unit: Option<String>,
    /// What kind it is: `TMA` for those of the top-down tree and what belongs to it.
    #[serde(default)]
    pub category: String,
    /// Events by the formula's names.
    #[serde(default)]
    pub events: BTreeMap<String, String>,
    /// Other values by the formula's names.
    #[serde(default)]
    pub constants: BTreeMap<String, String>,
    /// How its value is made.
    pub formula: String,
    /// When it is worth a look.
    pub threshold: Option<Threshold>,
    /// What it is, in a sentence.
    #[serde(default)]
    pub brief: String,
}

fn one() -> u8 {
    1
}

/// A condition on metrics.
#[derive(Clone, Debug, Deserialize)]
pub struct Threshold {
    /// Metrics by the formula's names, as [`Definition::legacy`] has them.
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    /// The condition.
    pub formula: String,
}

/// All metrics of a kind of core.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The table of events that its events are of.
    pub events: String,
    /// Where it comes from.
    pub source: String,
    /// The metrics, ours in front.
    pub metrics: Vec<Definition>,
}

/// A line about a table.
#[derive(Deserialize)]
struct Head {
    table: String,
    events: String,
    source: String,
    version: String,
}

/// One of our own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnMetric {
    /// The table that it is for, without it all.
    table: Option<String>,
    name: String,
    level: Option<u8>,
    parent: Option<String>,
    unit: Option<String>,
    brief: String,
    events: BTreeMap<String, String>,
    #[serde(default)]
    constants: BTreeMap<String, String>,
    formula: String,
    threshold: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    metric: Vec<OwnMetric>,
}

fn unpacked() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::new();
        let read = GzDecoder::new(PACKED).read_to_string(&mut text);
        read.expect("what is packed here unpacks");
        text
    })
}

/// Perfmon's tables, each with its lines.
fn sections() -> impl Iterator<Item = (Head, &'static str)> {
    let mut rest = unpacked();
    core::iter::from_fn(move || {
        let (head, behind) = rest.split_once('\n')?;
        let end = match behind.starts_with(HEAD) {
            true => 0,
            false => behind.find(&format!("\n{HEAD}")).map_or(behind.len(), |at| at + 1),
        };
        let lines;
        (lines, rest) = behind.split_at(end);
        Some((serde_json::from_str(head).expect("a line about a table"), lines))
    })
}

fn of_perfmon(table: &str, lines: &str) -> Vec<Definition> {
    let metric = |line| serde_json::from_str(line).expect("a metric");
    let ours = |metric| uncore::of(joules::of(metric), table);
    lines.lines().map(metric).map(ours).collect()
}

/// Our own for the processors whose events are those of `events`.
fn own(events: &str) -> Vec<Definition> {
    let file: OwnFile = toml::from_str(OWN).expect("our own metrics");
    let meant = |one: &OwnMetric| one.table.as_ref().is_none_or(|table| table == events);
    file.metric.into_iter().filter(meant).map(Definition::from).collect()
}

impl From<OwnMetric> for Definition {
    fn from(own: OwnMetric) -> Self {
        let threshold =
            own.threshold.map(|formula| Threshold { metrics: BTreeMap::new(), formula });
        Self {
            legacy: own.name.clone(),
            category: if own.table.is_some() { "TMA".to_string() } else { String::new() },
            name: own.name,
            level: own.level.unwrap_or(1),
            parent: own.parent,
            unit: own.unit,
            events: own.events,
            constants: own.constants,
            formula: own.formula,
            threshold,
            brief: own.brief,
        }
    }
}

/// The metrics of a kind of core: `name` is that of its table of events, or of a table of metrics. A core of which
/// perfmon has none has our own; where perfmon has one of the name of ours, that is taken.
#[must_use]
pub fn table(name: &str) -> Table {
    let found = sections().find(|(head, _)| head.table == name);
    let (events, source, of_perfmon) = match found {
        Some((head, lines)) => {
            let source = format!("{}, version {}", head.source, head.version);
            (head.events, source, of_perfmon(name, lines))
        }
        None => (name.to_string(), "our own".to_string(), Vec::new()),
    };
    let mut metrics = own(&events);
    metrics.retain(|own| !of_perfmon.iter().any(|theirs| fold::same(&theirs.name, &own.name)));
    metrics.extend(of_perfmon);
    Table { name: name.to_string(), events, source, metrics }
}

/// The names of all tables that have more than what is there for every processor.
#[must_use]
pub fn names() -> Vec<String> {
    let file: OwnFile = toml::from_str(OWN).expect("our own metrics");
    let own = file.metric.into_iter().filter_map(|metric| metric.table);
    let mut all: Vec<String> = sections().map(|(head, _)| head.table).chain(own).collect();
    all.sort();
    all.dedup();
    all
}
