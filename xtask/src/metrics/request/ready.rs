//! A metric that is ready to be measured, and the items that can have it.

use super::planned::together;
use super::{Meaning, Target, encoded, is_same};
use crate::metrics::formula::Formula;
use crate::metrics::names::MetricError;
use crate::metrics::table::{Definition, uncore};
use ::events::tables::Core;
use std::collections::BTreeSet;

/// A metric, ready to be measured.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What it is.
    pub metric: Definition,
    /// Its formula.
    pub formula: Formula,
    /// What the formula's names mean, those that are needed, in their order.
    pub meanings: Vec<Option<Meaning>>,
    /// Metrics below it.
    pub below: Vec<String>,
    /// Its events that the emulated PMU does not know, which count nothing there.
    pub silent: Vec<String>,
    /// Whether its events do not fit into one pass.
    pub spread: bool,
    /// The set of a count whose events it is made of, by its number; `None`: the item has none.
    pub set: Option<usize>,
}

impl Ask {
    /// The energy that it takes, which needs no counter.
    pub fn energy(&self) -> impl Iterator<Item = &str> {
        self.meanings.iter().filter_map(|meaning| match meaning {
            Some(Meaning::Energy(text)) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Its events of the uncore, as the machine is requested them.
    pub fn uncore(&self) -> impl Iterator<Item = &str> {
        self.meanings.iter().filter_map(|meaning| match meaning {
            Some(Meaning::Uncore(text)) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The same in braces, as they are to be counted at the same time.
    pub fn uncore_together(&self) -> Option<String> {
        let events: BTreeSet<&str> = self.uncore().collect();
        let events: Vec<&str> = events.into_iter().collect();
        (!events.is_empty()).then(|| together(&events))
    }

    /// The retire latencies that it takes, which need passes of their own.
    pub fn latencies(&self) -> impl Iterator<Item = &str> {
        self.meanings.iter().filter_map(|meaning| match meaning {
            Some(Meaning::Latency(text)) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The same for an item that is no snippet.
    ///
    /// # Errors
    /// It needs retire latencies, which are sampled in runs of a snippet.
    pub fn without_latencies(self) -> Result<Self, MetricError> {
        let what = self.latencies().next();
        match what.map(|text| format!("{text}, which is sampled in a [[snippet]] only (a precise [[sample]] states that of its events)")) {
            Some(what) => Err(MetricError::Elsewhere { name: self.metric.name.clone(), what }),
            None => Ok(self),
        }
    }

    /// Whether it takes energy or events of the uncore, which are of everything that runs.
    pub fn is_of_whole(&self) -> bool {
        self.energy().next().is_some() || self.uncore().next().is_some()
    }

    /// The same made of events that are counted anyway, all of them in the same rings: as they are, or with `:u` or `:k`. With energy
    /// and the uncore go those of all rings.
    ///
    /// # Errors
    /// The first event that is not among `counted`; time, but for that in which energy is read or the uncore counts.
    pub fn among(mut self, counted: &[String]) -> Result<Self, String> {
        let of_time = |meaning: &Meaning| match meaning {
            Meaning::Tsc => true,
            Meaning::Constant(constant) => constant.is_time(),
            Meaning::Event(_) | Meaning::Uncore(_) | Meaning::Latency(_) | Meaning::Energy(_) => {
                false
            }
        };
        let name = &self.metric.name;
        let whole = self.is_of_whole();
        let counts = !whole || self.events().next().is_some();
        if counts && self.meanings.iter().flatten().any(of_time) {
            return Err(format!(
                "metric {name}: it needs time, and some of it goes to the interrupts of samples, in which no event counts; measure the \
                 code in [[count]] or [[snippet]]"
            ));
        }
        let has = |text: String| counted.contains(&text);
        let rings = ["", ":u", ":k"];
        let all_in = |ring: &&str| self.events().all(|event| has(format!("{event}{ring}")));
        let with_these = if whole { &rings[..1] } else { &rings[..] };
        let Some(ring) = with_these.iter().copied().find(all_in) else {
            let sampled = |event: &&str| rings.iter().any(|ring| has(format!("{event}{ring}")));
            let missing = self.events().find(|event| !sampled(event));
            let why = match (missing, whole) {
                (Some(event), _) => format!("{event} is not sampled"),
                (None, false) => "its events are sampled in different rings".to_string(),
                (None, true) => {
                    "energy and the uncore are of all rings, and its events are sampled in one"
                        .to_string()
                }
            };
            return Err(format!(
                "metric {name}: {why}; a [[sample]] has metrics of the events that it samples: sample each of them, or measure the code \
                 in [[count]]"
            ));
        };
        for meaning in self.meanings.iter_mut().flatten() {
            if let Meaning::Event(text) = meaning {
                text.push_str(ring);
            }
        }
        self.silent.iter_mut().for_each(|text| text.push_str(ring));
        Ok(self)
    }

    /// The same for a history, whose passes all have the events of `beside`: where it takes the same under another name, it takes those.
    ///
    /// # Errors
    /// What it needs besides events: no row of a history has that.
    pub fn in_rows(
        mut self,
        target: &Target,
        core: &Core<'_>,
        beside: &[&str],
    ) -> Result<Self, MetricError> {
        let processor = target.processor(core);
        let encode = |text: &str| encoded(text, &processor, core).ok();
        for meaning in self.meanings.iter_mut().flatten() {
            let what = match meaning {
                Meaning::Event(text) => {
                    let own = encode(text);
                    let same = |other: &&&str| match (&own, encode(other)) {
                        (Some(own), Some(other)) => is_same(own, &other),
                        _ => false,
                    };
                    if let Some(same) = beside.iter().find(same) {
                        *text = (*same).to_string();
                    }
                    continue;
                }
                Meaning::Constant(constant) if !constant.is_time() => continue,
                Meaning::Constant(_) | Meaning::Tsc => "time".to_string(),
                Meaning::Energy(text) => text.clone(),
                Meaning::Uncore(text) => uncore::name(text).to_string(),
                Meaning::Latency(text) => text.clone(),
            };
            let what = format!(
                "{what}, which no row of a history has, as its runs are stopped after some cycles; a [[snippet]] without history has it"
            );
            return Err(MetricError::Elsewhere { name: self.metric.name, what });
        }
        Ok(self)
    }

    /// Its events.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.meanings.iter().filter_map(|meaning| match meaning {
            Some(Meaning::Event(text)) => Some(text.as_str()),
            _ => None,
        })
    }
}
