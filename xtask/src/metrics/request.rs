//! What a metric takes of a processor: its events as they are requested of the machine, and its constants.

use super::formula::Formula;
use super::names::MetricError;
use super::plan::{Events, passes};
use super::table::{Definition, Table, uncore};
use super::{table, tree};
use crate::events::{CpuName, EventText, cpu};
use crate::recording::Recorded;
use ::events::assign::assign;
use ::events::encode::{Counters, Encoded, encode};
use ::events::energy;
use ::events::parse::parse_event;
use ::events::processor::Processor;
use ::events::tables::{Core, Tables};
use pmu_model::events as model_events;
use pmu_model::{Model, Selection, Selector};
use raw_cpuid::CpuId;
use std::collections::{BTreeMap, BTreeSet};

/// The machine that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its processor.
    pub cpu: CpuName,
    /// Its general-purpose counters, if that is known.
    pub counters: Option<u32>,
    /// The emulated PMU.
    pub model: Option<Model>,
}

impl Target {
    /// A machine with this emulated PMU; none has no processor that is known.
    #[must_use]
    pub fn of_model(model: Model) -> Option<Self> {
        let cpu = CpuName::of(&cpu::key_of(model)?);
        Some(Self { cpu, counters: Some(model.spec().counters()), model: Some(model) })
    }

    /// A machine with the emulated PMU of a recorded processor.
    #[must_use]
    pub fn of_recorded(recorded: &Recorded) -> Option<Self> {
        let cpu = CpuName::of(&cpu::key_of_leaves(&recorded.leaves)?);
        let model = recorded.own.then_some(recorded.nearest);
        Some(Self { cpu, counters: Some(recorded.counters), model })
    }

    /// A machine with this host's PMU. A guest may have fewer counters than a core without hyper-threading.
    #[must_use]
    pub fn of_host(cpu: CpuName) -> Self {
        let leaf = CpuId::new().get_performance_monitoring_info();
        let counters = leaf.map(|leaf| u32::from(leaf.number_of_counters())).filter(|&n| n > 0);
        Self { cpu, counters, model: None }
    }

    /// The processor's events and metrics.
    ///
    /// # Errors
    /// It has no table of events.
    pub fn tables<'a>(&self, tables: &Tables<'a>) -> Result<(Core<'a>, Table), MetricError> {
        let core = self.cpu.core(tables)?;
        let table = table::table(core.name());
        Ok((core, table))
    }

    fn processor(&self, core: &Core<'_>) -> Processor {
        let mut processor = Processor::described_by(core);
        if let Some(count) = self.counters {
            processor.gp_counters &= 1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1);
        }
        processor
    }
}

/// What a name of a formula means in addition to an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// This.
    Number(f64),
    /// For how long was counted, in milliseconds.
    Milliseconds,
    /// The same in seconds.
    Seconds,
    /// How many ticks the TSC has in a second.
    TscHz,
    /// How many ticks the TSC had while it was counted.
    TscTicks,
    /// How many units of the uncore the events were counted in.
    Units,
}

impl Constant {
    /// What perfmon's word means in a metric. One thread is measured while all others are halted, so a core has one
    /// thread, and the machine one processor.
    ///
    /// `SYSTEM_TSC_FREQ` means two things: in the top-down method's metrics, which divide by it or by it and by the
    /// time, the ticks of the TSC meanwhile; in the others, which take it for a frequency, its ticks in a second.
    #[must_use]
    pub fn of(word: &str, metric: &Definition) -> Option<Self> {
        Some(match word {
            "HYPERTHREADING_ON" => Self::Number(0.0),
            "THREADS_PER_CORE"
            | "SOCKET_COUNT"
            | "system.sockets[0].cpus.count * system.socket_count" => Self::Number(1.0),
            "DURATIONTIMEINMILLISECONDS" => Self::Milliseconds,
            "DURATIONTIMEINSECONDS" => Self::Seconds,
            "SYSTEM_TSC_FREQ" if metric.category == "TMA" => Self::TscTicks,
            "SYSTEM_TSC_FREQ" => Self::TscHz,
            // Perfmon divides what all caching agents have counted by their number, or by that of the cores that have one each.
            "CHAS_PER_SOCKET" | "CORES_PER_SOCKET"
                if metric.events.values().any(|event| uncore::is(event)) =>
            {
                Self::Units
            }
            number => Self::Number(number.parse().ok()?),
        })
    }

    /// Whether it is of the time.
    #[must_use]
    pub fn is_time(self) -> bool {
        !matches!(self, Self::Number(_) | Self::Units)
    }
}

/// What a name of a formula stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The count of this event, as the machine is requested it.
    Event(String),
    /// The count of this event of the uncore, as the machine is requested it.
    Uncore(String),
    /// The mean retire latency of this event's records, as the machine is requested it.
    Latency(String),
    /// Joules of this part of the machine.
    Energy(String),
    /// The ticks of the TSC.
    Tsc,
    /// Something else.
    Constant(Constant),
}

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
    /// It has events of the uncore, which are read around the runs of a snippet.
    pub fn without_uncore(self) -> Result<Self, MetricError> {
        let Some(event) = self.uncore().next() else { return Ok(self) };
        let event = uncore::name(event).to_string();
        Err(MetricError::OfSnippets { name: self.metric.name.clone(), event })
    }

    /// The same for something else than a snippet.
    ///
    /// # Errors
    /// It needs a retire latency.
    pub fn without_latencies(self) -> Result<Self, String> {
        let Some(text) = self.latencies().next() else { return Ok(self) };
        Err(format!(
            "metric {}: it needs {text}, and retire latencies are sampled in a [[snippet]] only: measure the code there",
            self.metric.name
        ))
    }

    /// The same made of events that are counted anyway, all of them in the same rings: as they are, or with `:u` or `:k`.
    ///
    /// # Errors
    /// The first event that is not among `counted`; energy and time, which are not counted beside samples.
    pub fn among(mut self, counted: &[String]) -> Result<Self, String> {
        let of_time = |meaning: &Meaning| match meaning {
            Meaning::Tsc => true,
            Meaning::Constant(constant) => constant.is_time(),
            Meaning::Event(_) | Meaning::Uncore(_) | Meaning::Latency(_) | Meaning::Energy(_) => {
                false
            }
        };
        let name = &self.metric.name;
        if self.energy().next().is_some() || self.meanings.iter().flatten().any(of_time) {
            return Err(format!(
                "metric {name}: it needs energy or time, and some of both goes to the interrupts of samples; measure the code in \
                 [[count]] or [[snippet]]"
            ));
        }
        let has = |text: String| counted.contains(&text);
        let rings = ["", ":u", ":k"];
        let all_in = |ring: &&str| self.events().all(|event| has(format!("{event}{ring}")));
        let Some(ring) = rings.into_iter().find(all_in) else {
            let sampled = |event: &&str| rings.iter().any(|ring| has(format!("{event}{ring}")));
            let missing = self.events().find(|event| !sampled(event));
            let why = missing
                .map_or("its events are sampled in different rings".to_string(), |event| {
                    format!("{event} is not sampled")
                });
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

    /// Its events.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.meanings.iter().filter_map(|meaning| match meaning {
            Some(Meaning::Event(text)) => Some(text.as_str()),
            _ => None,
        })
    }
}

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
        match &texts[..] {
            [one] => (*one).to_string(),
            several => format!("{{{}}}", several.join(",")),
        }
    };
    // The machine shares their passes out: no metric has them together with its counts.
    let latencies: BTreeSet<&str> = asks.iter().flat_map(Ask::latencies).collect();
    let energy: BTreeSet<&str> = asks.iter().flat_map(Ask::energy).collect();
    // Those of a metric together, as the firmware puts them into rounds.
    let apart = asks.iter().map(|ask| ask.uncore().collect::<BTreeSet<_>>());
    let apart: BTreeSet<BTreeSet<&str>> = apart.filter(|events| !events.is_empty()).collect();
    let apart = apart.iter().map(|events| match &Vec::from_iter(events.iter().copied())[..] {
        [one] => (*one).to_string(),
        several => format!("{{{}}}", several.join(",")),
    });
    let alone = latencies.into_iter().chain(energy).map(str::to_string);
    let texts = plan.passes.iter().map(text).chain(alone).chain(apart);
    texts.map(|text| text.parse().expect("a list of events")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
