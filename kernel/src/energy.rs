//! Energy in addition to counts: from what a job requests to figures in joules.
//!
//! The registers move about once in a millisecond, and a run takes less than that. So energy is read around all runs of a code size
//! together, and around all tasks; a figure has its resolution, and one that its resolution would hide is none.

use crate::statistics;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::energy::{Domain, Energy, Interval, NoEnergy, Part, Place, Shared, Source, Still};
use events::energy;
use events::parse::parse_event;
use events::request::Request;
use protocol::hex::Hex;
use protocol::record::{
    Aggregates, CountedEnergy, Counting, EnergyMeter, EnergyReading, Metric, Uncounted,
};

/// The processor's registers of energy, or why there are none.
pub type Meters<'a> = Result<&'a mut dyn Source, NoEnergy>;

/// Energy that a job requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// What the figure is called: the label that the job gives it, or its text.
    pub event: String,
    /// Whose energy.
    pub domain: Domain,
}

impl Wanted {
    /// What a request requests, if it is energy.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        let domain = match energy::of(request)? {
            energy::Domain::Package => Domain::Package,
            energy::Domain::Cores => Domain::Cores,
            energy::Domain::Graphics => Domain::Graphics,
            energy::Domain::Memory => Domain::Memory,
            energy::Domain::Platform => Domain::Platform,
        };
        let event = request.attributes.label.clone().unwrap_or_else(|| request.text.clone());
        Some(Self { event, domain })
    }

    /// The same of a text.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        Self::of(&parse_event(text).ok()?)
    }
}

/// Energy that can be read: of one register.
#[derive(Clone, Debug, PartialEq)]
pub struct Had {
    /// What was requested.
    pub wanted: Wanted,
    /// Who reads it, and for which processors.
    pub shared: Shared,
}

impl Had {
    const fn place(&self) -> Place {
        Place { domain: self.wanted.domain, processor: self.shared.reader }
    }
}

/// The name of a domain in jobs.
fn name(domain: Domain) -> &'static str {
    energy::name(match domain {
        Domain::Package => energy::Domain::Package,
        Domain::Cores => energy::Domain::Cores,
        Domain::Graphics => energy::Domain::Graphics,
        Domain::Memory => energy::Domain::Memory,
        Domain::Platform => energy::Domain::Platform,
    })
}

/// What a processor can tell, for the machine record.
#[must_use]
pub fn meters(energy: &Energy) -> Vec<EnergyMeter> {
    let meter = |domain| {
        let register = energy.register(domain).ok()?;
        let (event, msr) = (name(domain).to_string(), Hex(register.0.into()));
        let filtered = energy.is_filtered();
        Some(EnergyMeter { event, msr, unit: energy.unit(domain), filtered })
    };
    energy.domains().filter_map(meter).collect()
}

/// What of it this processor can tell, each once for the processors that share the register. The rest goes to `uncounted`, each
/// with its reason and what there is.
pub fn had(wanted: &[Wanted], meters: Meters, uncounted: &mut Vec<Uncounted>) -> Vec<Had> {
    let mut refuse = |one: &Wanted, reason: String| {
        uncounted.push(Uncounted { event: one.event.clone(), reason });
    };
    let source = match meters {
        Ok(source) => source,
        Err(none) => {
            wanted.iter().for_each(|one| refuse(one, none.to_string()));
            return Vec::new();
        }
    };
    let energy = *source.energy();
    let names: Vec<&str> = energy.domains().map(name).collect();
    let mut all: Vec<Had> = Vec::new();
    for one in wanted {
        // Asked for twice, or by itself and by a metric.
        if all.iter().any(|other| other.wanted == *one) {
            continue;
        }
        match energy.register(one.domain) {
            Ok(_) => {
                let of = |shared| Had { wanted: one.clone(), shared };
                all.extend(source.shared(one.domain).into_iter().map(of));
            }
            Err(why) => refuse(one, format!("{why}; there is {}", names.join(", "))),
        }
    }
    all
}

/// Begins to read what can be had. Of nothing there is nothing.
///
/// # Errors
/// The registers do not move.
pub fn begin(had: &[Had], meters: Meters) -> Option<Result<Interval, Still>> {
    let source = meters.ok().filter(|_| !had.is_empty())?;
    let places: Vec<Place> = had.iter().map(Had::place).collect();
    Some(Interval::begin(&places, source))
}

/// Both code sizes of a snippet, of which a body was executed so often more in each run of the larger one.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// The intervals.
    pub intervals: [&'a Interval; 2],
    /// Executions by which a run of the one differs from one of the other.
    pub executions: u64,
    /// Runs in each, those among them that were made again: they took energy as the others did.
    pub runs: [u32; 2],
}

/// The figures of a snippet. What cannot be told from what the registers move by at once goes to `uncounted`.
#[must_use]
pub fn metrics(
    had: &[Had],
    meters: Meters,
    sizes: [(Option<Result<Interval, Still>>, u32); 2],
    executions: u64,
    uncounted: &mut Vec<Uncounted>,
) -> Vec<Metric> {
    let Ok(source) = meters else { return Vec::new() };
    let [(Some(small), few), (Some(large), many)] = sizes else { return Vec::new() };
    let runs = [few, many];
    let mut all: Vec<Metric> = Vec::new();
    for (index, one) in had.iter().enumerate() {
        let figure = match (&small, &large) {
            (Err(still), _) | (_, Err(still)) => Err(still.to_string()),
            (Ok(small), Ok(large)) => {
                let sizes = Sizes { intervals: [small, large], executions, runs };
                metric(one, index, source, &sizes)
            }
        };
        match figure {
            Ok(metric) => all.push(metric),
            Err(reason) => refuse(one, reason, uncounted),
        }
    }
    // A sum without one of its packages is none.
    all.retain(|one| is_whole(&one.event, uncounted));
    all
}

/// Notes why there is no figure, once for all registers of the same energy.
fn refuse(one: &Had, reason: String, uncounted: &mut Vec<Uncounted>) {
    let event = one.wanted.event.clone();
    if uncounted.iter().all(|other| other.event != event) {
        uncounted.push(Uncounted { event, reason });
    }
}

/// Whether all registers of an energy have figures.
fn is_whole(event: &str, uncounted: &[Uncounted]) -> bool {
    uncounted.iter().all(|one| one.event != event)
}

/// What is to be known of every figure.
fn remarks(energy: &Energy) -> Vec<String> {
    const FILTERED: &str =
        "energy filtering is on (IA32_MISC_PACKAGE_CTLS[0]): the processor adds random amounts";
    if energy.is_filtered() { Vec::from([FILTERED.to_string()]) } else { Vec::new() }
}

fn joules(units: f64, unit: u8) -> f64 {
    units / (1_u64 << unit) as f64
}

fn metric(one: &Had, index: usize, source: &dyn Source, sizes: &Sizes) -> Result<Metric, String> {
    let [small, large] = sizes.intervals.map(|interval| &interval.parts()[index]);
    let (unit, register) = place(one.wanted.domain, source)?;
    late(sizes.intervals)?;
    let [few, many] = sizes.runs.map(|runs| u64::from(runs.max(1)));
    // What the smaller size would have taken in as many runs as the larger one; a unit less is within the resolution.
    let in_as_many = |small: u64| small.saturating_mul(many) / few;
    let units = large.units() as f64 - in_as_many(small.units()) as f64;
    let step = (in_as_many(small.step) + large.step) as f64;
    let [ticks, longer] = sizes.intervals.map(Interval::ticks);
    let update = sizes.intervals[1].update();
    if units.abs() <= step {
        let us = update.saturating_mul(1_000_000) / source.hz().max(1);
        // Enough that the difference takes eight updates.
        let times = (8 * update).div_ceil(longer.saturating_sub(ticks).max(1));
        return Err(format!(
            "all runs of both codes differ by {units} units of 2^-{unit} J, and the register changes by {} at once, every {us} us: \
             that cannot be told from nothing; take some {times} times the runs or turns of the loop",
            large.step
        ));
    }
    let per = sizes.executions.saturating_mul(many).max(1) as f64;
    let [value, resolution] = [units, step].map(|units| joules(units, unit) / per);
    let series = [small, large].map(|part: &Part| statistics::series(&[part.units()], false));
    Ok(Metric {
        event: one.wanted.event.clone(),
        value: Aggregates {
            min: value - resolution,
            median: value,
            mean: value,
            max: value + resolution,
        },
        deterministic: false,
        series,
        counting: Some(Counting {
            name: name(one.wanted.domain).to_string(),
            counter: register,
            pass: 0,
            remarks: remarks(source.energy()),
            ..Counting::default()
        }),
        energy: Some(EnergyReading {
            unit,
            resolution,
            ticks: [ticks, longer],
            update,
            reader: one.shared.reader,
            processors: one.shared.processors.clone(),
        }),
        retired: None,
    })
}

/// The unit of a domain, and its register for the report.
fn place(domain: Domain, source: &dyn Source) -> Result<(u8, String), String> {
    let energy = source.energy();
    let register = energy.register(domain).map_err(|why| why.to_string())?;
    Ok((energy.unit(domain), format!("MSR {:#x}", register.0)))
}

fn late<const N: usize>(intervals: [&Interval; N]) -> Result<(), String> {
    match intervals.iter().any(|interval| interval.is_late()) {
        true => {
            Err("it took so long that the register may have wrapped more than once".to_string())
        }
        false => Ok(()),
    }
}

/// What was used while tasks ran; an error goes to `uncounted`.
#[must_use]
pub fn totals(
    had: &[Had],
    meters: Meters,
    interval: Option<Result<Interval, Still>>,
    uncounted: &mut Vec<Uncounted>,
) -> Vec<CountedEnergy> {
    let (Ok(source), Some(interval)) = (meters, interval) else { return Vec::new() };
    let mut all: Vec<CountedEnergy> = Vec::new();
    for (index, one) in had.iter().enumerate() {
        let total = match &interval {
            Err(still) => Err(still.to_string()),
            Ok(interval) => total(one, index, source, interval),
        };
        match total {
            Ok(total) => all.push(total),
            Err(reason) => refuse(one, reason, uncounted),
        }
    }
    all.retain(|one| is_whole(&one.event, uncounted));
    all
}

fn total(
    one: &Had,
    index: usize,
    source: &dyn Source,
    interval: &Interval,
) -> Result<CountedEnergy, String> {
    let (unit, register) = place(one.wanted.domain, source)?;
    late([interval])?;
    let part = &interval.parts()[index];
    let [joules, resolution] = [part.units(), part.step].map(|units| joules(units as f64, unit));
    if part.units() <= part.step {
        let us = interval.update().saturating_mul(1_000_000) / source.hz().max(1);
        return Err(format!(
            "the tasks were too short for it: {} units of 2^-{unit} J, and the register changes by {} at once, every {us} us",
            part.units(),
            part.step
        ));
    }
    Ok(CountedEnergy {
        event: one.wanted.event.clone(),
        register,
        joules,
        resolution,
        units: part.units(),
        unit,
        ticks: interval.ticks(),
        update: interval.update(),
        reader: one.shared.reader,
        processors: one.shared.processors.clone(),
    })
}

#[cfg(test)]
mod tests;
