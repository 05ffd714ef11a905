//! What a metric takes of a processor: its events as they are requested of the machine, and its constants.

mod meaning;
mod planned;
mod ready;
mod target;

pub use meaning::{Constant, Meaning};
pub use planned::{Group, group, planned, planned_beside};
pub use ready::Ask;
pub use target::Target;

use super::formula::Formula;
use super::names::MetricError;
use super::table::{Definition, Table, uncore};
use super::tree;
use ::events::encode::{Choice, Counters, Encoded, encode};
use ::events::energy;
use ::events::parse::parse_event;
use ::events::processor::Processor;
use ::events::tables::Core;
use pmu_model::events as model_events;
use pmu_model::{Model, Selection, Selector};
use std::collections::BTreeSet;

/// Perfmon's way to write an event in the machine's: `A.B:c1:e1` is `A.B:c=1:e`.
///
/// # Errors
/// A modifier that means nothing here.
pub fn event_text(event: &str) -> Result<String, String> {
    let (name, modifiers) = event.split_once(':').unwrap_or((event, ""));
    let mut text = name.to_string();
    for modifier in modifiers.split(':').filter(|modifier| !modifier.is_empty()) {
        let value = |prefix: &str| {
            let rest = modifier.strip_prefix(prefix)?;
            rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
        };
        let ours = match modifier.to_ascii_lowercase().as_str() {
            "sup" | "k" => "k".to_string(),
            "user" | "u" => "u".to_string(),
            "e1" => "e".to_string(),
            "i1" => "i".to_string(),
            "eq1" => "eq".to_string(),
            "retire_latency" => "retire_latency".to_string(),
            // Slots as PERF_METRICS divides them: of the fixed counter, which the machine takes where it can.
            "perf_metrics" => continue,
            _ => match (value("c"), value("u"), modifier.strip_prefix("ocr_msr_val=")) {
                (Some(mask), ..) => format!("c={mask}"),
                (_, Some(mask), _) => format!("umask={mask}"),
                (.., Some(responses)) => format!("offcore_rsp={responses}"),
                _ => return Err(format!("the modifier {modifier:?} means nothing here")),
            },
        };
        text += &format!(":{ours}");
    }
    Ok(text)
}

/// Makes a metric ready for a machine.
///
/// # Errors
/// An event that its processor cannot count.
pub fn ask(
    target: &Target,
    core: &Core<'_>,
    table: &Table,
    metric: &Definition,
) -> Result<Ask, MetricError> {
    let wrong = |event: &str, why: String| MetricError::Event {
        name: metric.name.clone(),
        table: table.name.clone(),
        event: event.to_string(),
        why,
    };
    let formula = Formula::parse(&metric.formula);
    let formula = formula.map_err(|error| wrong(&metric.formula, error.to_string()))?;
    let constant = |name: &str| constant(metric, name);
    let needed = needed_in(metric, &formula);
    let processor = target.processor(core);
    let (mut meanings, mut silent) = (Vec::new(), Vec::new());
    for name in formula.names() {
        if !needed.contains(&name.as_str()) {
            // What decides a choice is a constant, and nothing that must be counted.
            let is_event = metric.events.contains_key(name);
            let known = constant(name).filter(|known| !is_event && !known.is_time());
            meanings.push(known.map(Meaning::Constant));
            continue;
        }
        meanings.push(Some(match metric.events.get(name).map(String::as_str) {
            Some("TSC") => Meaning::Tsc,
            Some(event) if energy::by_name(event).is_some() => Meaning::Energy(event.to_string()),
            Some(event) if uncore::is(event) => {
                if target.model.is_some() && never_happens(event) {
                    silent.push(uncore::name(event).to_string());
                }
                Meaning::Uncore(event.to_string())
            }
            Some(event) => {
                let text = event_text(event).map_err(|why| wrong(event, why))?;
                let encoded = encoded(&text, &processor, core).map_err(|why| wrong(event, why))?;
                if target.model.is_some_and(|model| is_silent(&encoded, model, core)) {
                    silent.push(text.clone());
                }
                match encoded.retire_latency {
                    Some(_) => Meaning::Latency(text),
                    None => Meaning::Event(text),
                }
            }
            None => Meaning::Constant(
                constant(name).ok_or_else(|| wrong(name, "it is not known".to_string()))?,
            ),
        }));
    }
    silent.sort();
    silent.dedup();
    let below = tree::below(table, metric);
    Ok(Ask { metric: metric.clone(), formula, meanings, below, silent, spread: false, set: None })
}

/// What a name of a metric is in addition to an event.
fn constant(metric: &Definition, name: &str) -> Option<Constant> {
    Constant::of(metric.constants.get(name).map_or(name, String::as_str), metric)
}

/// The names of a formula whose values it takes: a choice between threads is decided, as a core has one.
fn needed_in<'a>(metric: &Definition, formula: &'a Formula) -> Vec<&'a str> {
    formula.needed(|name| match constant(metric, name) {
        Some(Constant::Number(number)) if !metric.events.contains_key(name) => Some(number),
        _ => None,
    })
}

/// The same of a metric; all of its events if its formula is not understood.
#[must_use]
pub fn needed(metric: &Definition) -> BTreeSet<String> {
    match Formula::parse(&metric.formula) {
        Ok(formula) => needed_in(metric, &formula).into_iter().map(String::from).collect(),
        Err(_) => metric.events.keys().cloned().collect(),
    }
}

/// Whether two requests count the same: in a register that they both can take, by the same bits.
fn is_same(one: &Encoded, other: &Encoded) -> bool {
    let same = |a: &Choice, b: &Choice| {
        a.msr == b.msr
            && match (&a.counters, &b.counters) {
                (Counters::General { select: a, .. }, Counters::General { select: b, .. }) => {
                    a == b
                }
                (a, b) => a == b,
            }
    };
    one.choices.iter().any(|one| other.choices.iter().any(|other| same(one, other)))
}

fn encoded(text: &str, processor: &Processor, core: &Core<'_>) -> Result<Encoded, String> {
    let request = parse_event(text).map_err(|error| error.to_string())?;
    encode(&request, processor, Some(core)).map_err(|error| error.reason.to_string())
}

/// Whether an event of the uncore never happens on an emulated PMU: nothing snoops there.
fn never_happens(event: &str) -> bool {
    const SNOOPS: u64 = 0x84;
    let request = parse_event(event).ok();
    let event = request.as_ref().and_then(events_of_uncore);
    event.is_some_and(|event| event.select & 0xff == SNOOPS)
}

fn events_of_uncore(request: &::events::request::Request) -> Option<::events::uncore::Event> {
    ::events::uncore::of(request)?.ok()
}

/// Whether the emulated PMU counts nothing for an event on any counter.
fn is_silent(encoded: &Encoded, model: Model, core: &Core<'_>) -> bool {
    encoded.choices.iter().all(|choice| match &choice.counters {
        Counters::Fixed { .. } | Counters::Metric { .. } => false,
        Counters::General { counters, select, .. } => {
            let selector = Selector(select.to_bits(core.vendor()));
            let inverted = selector.threshold().is_some_and(|threshold| threshold.invert);
            let counter = counters.trailing_zeros() as usize;
            let meaning = model_events::decode(model, selector, counter as _);
            meaning.selection() == Selection::NOTHING && !inverted
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table;

    #[test]
    fn s3_modifiers_of_perfmon_are_ours() {
        for (theirs, ours) in [
            ("UOPS_RETIRED.MS:c1:e1", "UOPS_RETIRED.MS:c=1:e"),
            ("IDQ.MITE_UOPS:c8:i1:eq1", "IDQ.MITE_UOPS:c=8:i:eq"),
            ("CPU_CLK_UNHALTED.THREAD_P:SUP", "CPU_CLK_UNHALTED.THREAD_P:k"),
            ("BR_INST_RETIRED.FAR_BRANCH:USER", "BR_INST_RETIRED.FAR_BRANCH:u"),
            ("A.B:u0xfc", "A.B:umask=0xfc"),
            ("A.B:ocr_msr_val=0x103b800002", "A.B:offcore_rsp=0x103b800002"),
            ("instructions", "instructions"),
            ("A.B:retire_latency", "A.B:retire_latency"),
        ] {
            assert_eq!(event_text(theirs).as_deref(), Ok(ours));
        }
        assert!(event_text("A.B:one_unit").unwrap_err().contains("one_unit"));
    }

    #[test]
    fn s3_the_frequency_of_the_tsc_means_two_things() {
        let table = table::table("skylakex");
        let named = |name: &str| table.metrics.iter().find(|one| one.name == name).unwrap();
        let of = |name| Constant::of("SYSTEM_TSC_FREQ", named(name)).unwrap();
        assert_eq!(of("cpu_operating_frequency"), Constant::TscHz);
        assert_eq!(of("Info_System_Core_Frequency"), Constant::TscTicks);
        assert_eq!(of("Info_System_CPUs_Utilized"), Constant::TscTicks);
    }
}
