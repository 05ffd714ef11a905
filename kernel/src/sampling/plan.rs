//! From events and rates to counters and periods.

mod period;
mod possible;
mod requested;
mod witnesses;

pub(super) use witnesses::architectural;

use super::{Sampler, branches, ibs, memory, only, precise, shares};
use crate::snippet::events::{self, Use};
use crate::snippet::measure::Unmeasured;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::{Counter, Rings, Selection};
use arch::time::tsc;
use period::count;
use possible::possible;
use protocol::job::sampling::{Rate, Sampling};
use protocol::record::Uncounted;
use requested::Requested;
use witnesses::witnesses;

/// Shortest period of an event that counts ring 0. The handler's end, which such a counter sees, has up to 55 instructions;
/// with a period that fits into it the machine would do nothing but handle overflows.
pub const MIN_PERIOD: u64 = 64;

/// An event with its counter and period.
#[derive(Clone, Debug, PartialEq)]
pub struct Armed {
    /// As the job has it.
    pub event: String,
    /// The counter that samples.
    pub counter: Counter,
    /// What it is programmed with, the interrupt included.
    pub selection: Selection,
    /// Events between two overflows.
    pub period: u64,
    /// A counter that counts the same without interrupts, and what it is programmed with.
    pub witness: Option<(Counter, Selection)>,
    /// Doubts about the count.
    pub remarks: Vec<String>,
    /// The instruction-based samples that are taken, by a unit beside the counter.
    pub ibs: Option<ibs::IbsEvent>,
    /// A counter that has to count another event, so that this one counts at all.
    pub auxiliary: Option<(Counter, Selection)>,
}

impl Armed {
    /// What the counter starts from is so many events away from its overflow. With PEBS it is one less than the period:
    /// the overflow arms the counter, and the record is of the event after it.
    #[must_use]
    pub fn distance(&self) -> u64 {
        self.period - u64::from(self.selection.precise)
    }
}

/// Finds a counter for each event of `item`, all at the same time, and what they are sampled by. Events that cannot be
/// sampled by are left out with their reasons.
///
/// # Errors
/// The events do not fit the counters together; there is nothing left to sample by; the counting run failed.
pub fn plan(
    machine: &mut impl Sampler,
    item: &Sampling,
) -> Result<(Vec<Armed>, Vec<Uncounted>), Unmeasured> {
    if item.events.is_empty() {
        return match item.branches || item.call_graph.is_some() {
            true => Err(Unmeasured::Refused(branches::NO_EVENT.to_string())),
            false => Ok((Vec::new(), Vec::new())),
        };
    }
    let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
    let has = pmu.driver.capabilities().clone();
    let requested = Requested::of(item, pmu.known, &has);
    let purpose = Use::Sampling { precise: item.precise && has.is_intel() };
    let planned = events::plan_for(purpose, &requested.texts, pmu.known);
    if planned.passes.len() > 1 {
        let late = planned.passes[1..].iter().flatten().map(|one| format!("`{}`", one.event));
        return Err(Unmeasured::Refused(format!(
            "sampling takes a counter for each event at the same time; beside the others there is none for {}",
            late.collect::<Vec<_>>().join(", ")
        )));
    }
    let mut left_out = planned.uncounted;
    for one in &mut left_out {
        one.event = requested.name(item, core::mem::take(&mut one.event));
        if !item.only.is_empty() && has.is_intel() {
            one.reason += only::PRECISE;
        }
    }
    left_out.extend(requested.refused.iter().cloned());
    // On an emulated PMU each run is the same; elsewhere none knows how the last one began.
    let emulated = machine.has_emulated_pmu();
    let seed = if emulated { ibs::SEED } else { tsc::now() as u32 };
    let random = item.randomise.then_some(seed);
    let (mut armed, mut rates) = (Vec::<Armed>::new(), Vec::new());
    let mut places = Vec::new();
    for one in planned.passes.into_iter().flatten() {
        // A group in braces is one text with several events, which then have its rate.
        let sampled = requested.ibs.filter(|(_, ibs_event)| ibs_event.beside() == one.event);
        let (event, ibs_event) = match sampled {
            Some((number, ibs_event)) => (item.events[number].event.to_string(), Some(ibs_event)),
            None => (requested.name(item, one.event), None),
        };
        let rate = requested.rate(item, one.number, &event);
        if one.merges {
            let reason = "it takes a pair of counters, whose overflow is not sampled".to_string();
            left_out.push(Uncounted { event, reason });
            continue;
        }
        let ibs_event = ibs_event.map(|ibs_event| ibs::IbsEvent { random, ..ibs_event });
        let possible = match ibs_event {
            None if item.randomise => Err(ibs::FIXED.to_string()),
            Some(_) => ibs::check(item),
            None => precise::check(&one.selection, &has, &armed, item)
                .and_then(|()| precise::check_period(one.level, rate, &has, emulated)),
        };
        let possible = possible.and_then(|()| only::check(&one.selection, ibs_event, &has, item));
        if let Err(reason) = possible {
            left_out.push(Uncounted { event, reason });
            continue;
        }
        places.push((one.counter, one.counters));
        let mut remarks = one.counting.remarks;
        remarks.extend(ibs_event.map(ibs::remark));
        armed.push(Armed {
            event,
            counter: one.counter,
            selection: match (ibs_event, one.selection.precise) {
                // What is estimated of ring 3 is counted there.
                (Some(_), _) if !item.only.is_empty() => one.selection.in_rings(Rings::USER),
                (Some(_), _) => one.selection,
                (None, true) => one.selection.with_records(),
                (None, false) => one.selection.with_interrupt(),
            },
            period: 0,
            witness: None,
            remarks,
            ibs: ibs_event,
            auxiliary: None,
        });
        rates.push(rate);
    }
    memory::auxiliary(&mut armed, &has).map_err(Unmeasured::Refused)?;
    if rates.iter().any(|rate| matches!(rate, Rate::PerSecond(_))) {
        count(machine, item, &mut armed, &rates, &mut left_out)?;
    } else {
        for (one, rate) in armed.iter_mut().zip(&rates) {
            if let Rate::Period(period) = rate {
                one.period = *period;
            }
        }
    }
    armed.retain(|one| match possible(machine, one) {
        Ok(()) => true,
        Err(reason) => {
            left_out.push(Uncounted { event: one.event.clone(), reason });
            false
        }
    });
    if armed.is_empty() && item.interval_ns == 0 {
        let reasons = left_out.iter().map(|one| format!("{}: {}", one.event, one.reason));
        let mut reasons: Vec<String> = reasons.collect();
        if reasons.is_empty() {
            reasons.push(shares::NOT_SAMPLED.to_string());
        }
        return Err(Unmeasured::Refused(reasons.join("; ")));
    }
    branches::check(item, &has, &armed).map_err(Unmeasured::Refused)?;
    witnesses(&mut armed, &has, &places);
    Ok((armed, left_out))
}

#[cfg(test)]
mod tests;
