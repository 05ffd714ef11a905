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
}

impl Group {
    /// Whether these can be counted at the same time.
    #[must_use]
    pub fn fits(&self, events: &Events) -> bool {
        let all: Vec<Encoded> = events.iter().map(|event| self.encoded[*event].clone()).collect();
        assign(&all).is_ok()
    }
}

/// The events of metrics on a machine.
///
/// # Panics
/// Never: a metric that is ready has events that can be encoded.
#[must_use]
pub fn group(target: &Target, core: &Core<'_>, asks: &[Ask]) -> Group {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sets = Vec::new();
    for one in asks {
        let set = one.events().map(|text| {
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
    Group { texts, sets, encoded }
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
    let group = group(target, core, asks);
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
    let texts = plan.passes.iter().map(text).chain(alone).chain(apart);
    texts.map(|text| text.parse().expect("a list of events")).collect()
}
