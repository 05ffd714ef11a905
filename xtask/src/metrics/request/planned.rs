//! The events of several metrics, and which of them are counted together.

use super::{Ask, Target, encoded};
use crate::events::EventText;
use crate::metrics::plan::{Events, passes};
use events::assign::assign;
use events::encode::Encoded;
use events::tables::Core;
use std::collections::{BTreeMap, BTreeSet};

/// The events of several metrics, each once.
pub struct Group {
    /// The events' texts.
    pub texts: Vec<String>,
    /// The events of each metric, by their numbers.
    pub sets: Vec<Events>,
    encoded: Vec<Encoded>,
    /// What is counted in every pass.
    beside: Vec<Encoded>,
}

impl Group {
    /// Whether these can be counted at the same time.
    #[must_use]
    pub fn fits(&self, events: &Events) -> bool {
        let all = events.iter().map(|event| &self.encoded[*event]).chain(&self.beside);
        let all: Vec<Encoded> = all.cloned().collect();
        assign(&all).is_ok()
    }
}

/// The events of metrics on a machine.
///
/// # Panics
/// Never: a metric that is ready has events that can be encoded.
#[must_use]
pub fn group(target: &Target, core: &Core<'_>, asks: &[Ask]) -> Group {
    group_beside(target, core, asks, &[]).expect("nothing else is to be encoded")
}

/// The same where every pass has these events anyway.
///
/// # Errors
/// One of them cannot be counted.
fn group_beside(
    target: &Target,
    core: &Core<'_>,
    asks: &[Ask],
    beside: &[&str],
) -> Result<Group, String> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sets = Vec::new();
    for one in asks {
        let set = one.events().filter(|text| !beside.contains(text)).map(|text| {
            let next = numbers.len();
            *numbers.entry(text).or_insert(next)
        });
        sets.push(set.collect());
    }
    let mut order: Vec<(usize, &str)> = numbers.iter().map(|(text, at)| (*at, *text)).collect();
    order.sort_unstable();
    let texts: Vec<String> = order.into_iter().map(|(_, text)| text.to_string()).collect();
    let processor = target.processor(core);
    let encode = |text: &String| encoded(text, &processor, core).expect("it was encoded before");
    let encoded = texts.iter().map(encode).collect();
    let beside = beside.iter().map(|text| super::encoded(text, &processor, core));
    Ok(Group { texts, sets, encoded, beside: beside.collect::<Result<_, _>>()? })
}

/// Events that are counted together, in braces if there are several.
pub(super) fn together(texts: &[&str]) -> String {
    match texts {
        [one] => (*one).to_string(),
        several => format!("{{{}}}", several.join(",")),
    }
}

/// Plans metrics: the texts of their events, those of each pass in braces. Marks metrics whose events do not fit
/// together.
///
/// # Panics
/// Never: events in braces are a list.
#[must_use]
pub fn planned(target: &Target, core: &Core<'_>, asks: &mut [Ask]) -> Vec<EventText> {
    planned_beside(target, core, asks, &[]).expect("nothing else is to be counted")
}

/// The same where every pass has these events anyway, so that those of them that metrics take are in each.
///
/// # Errors
/// One of them cannot be counted.
///
/// # Panics
/// Never: events in braces are a list.
pub fn planned_beside(
    target: &Target,
    core: &Core<'_>,
    asks: &mut [Ask],
    beside: &[&str],
) -> Result<Vec<EventText>, String> {
    let group = group_beside(target, core, asks, beside)?;
    let plan = passes(&group.sets, |events| group.fits(events));
    for number in plan.spread {
        asks[number].spread = true;
    }
    let text = |pass: &Events| {
        let texts: Vec<&str> = pass.iter().map(|event| group.texts[*event].as_str()).collect();
        together(&texts)
    };
    // The machine shares their passes out: no metric has them together with its counts.
    let latencies: BTreeSet<&str> = asks.iter().flat_map(Ask::latencies).collect();
    let energy: BTreeSet<&str> = asks.iter().flat_map(Ask::energy).collect();
    // Those of a metric together, as the firmware puts them into rounds.
    let apart = asks.iter().map(|ask| ask.uncore().collect::<BTreeSet<_>>());
    let apart: BTreeSet<BTreeSet<&str>> = apart.filter(|events| !events.is_empty()).collect();
    let apart = apart.iter().map(|events| together(&Vec::from_iter(events.iter().copied())));
    let alone = latencies.into_iter().chain(energy).map(str::to_string);
    // Metrics of nothing but what is in every pass have no events of their own.
    let passes = plan.passes.iter().filter(|pass| !pass.is_empty()).map(text);
    let texts = passes.chain(alone).chain(apart);
    Ok(texts.map(|text| text.parse().expect("a list of events")).collect())
}
