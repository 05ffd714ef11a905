//! What one processor is to count is programmed.

use super::bindings::Bindings;
use super::readings::Readings;
use super::series::AllSeries;
use super::{CountRun, Held, Share, Shares};
use crate::counting::contexts::{ContextError, Contexts};
use crate::counting::gate::{Gate, in_ring_0};
use crate::counting::owner::Owner;
use crate::counting::request::{AtOverflow, Notify, Run};
use crate::counting::snapshot::Clocks;
use crate::counting::taken_out::TakenOut;
use crate::counting::{CountingError, Counts, Platform, Set};
use alloc::boxed::Box;
use alloc::vec::Vec;
use arch::pmu::Driver;
use protocol::job::count;
use protocol::record::BindMoment;

impl CountRun {
    /// Programs what this processor is to count of `item`. Nothing counts yet.
    ///
    /// # Errors
    /// The PMU refuses a request.
    pub fn begin(
        item: &count::Count,
        shares: Shares,
        driver: &Driver,
        platform: &mut dyn Platform,
    ) -> Result<Self, ContextError> {
        let at_overflow = match item.at_overflow {
            count::AtOverflow::Same => AtOverflow::Same,
            count::AtOverflow::Next => AtOverflow::Next,
            count::AtOverflow::Stop => AtOverflow::Stop,
        };
        let run = Run { at_overflow, passes: item.passes, notify: Notify::empty() };
        let tasks = u16::try_from(item.workload.tasks.len()).unwrap_or(u16::MAX);
        let mut contexts = Contexts::new(Owner::new(Ok(()), tasks), tasks);
        let (mut held, mut now) = (Vec::new(), None);
        let mut series = AllSeries::new(item, &shares.sets);
        let mut taken_out = TakenOut::default();
        for Share { number, set, scopes, events, alone, .. } in shares.sets {
            let mut bindings = Vec::new();
            if sees_the_kernel(item, &set) {
                taken_out =
                    TakenOut::measure(&set, driver, platform).map_err(CountingError::from)?;
            }
            for scope in scopes {
                let (set, of) = (set.clone(), (scope, alone));
                let binding = contexts.prepare(set, run, driver.clone(), of, platform)?;
                bindings.push(binding);
            }
            if let Some(&first) = bindings.first() {
                now.get_or_insert_with(|| (first, Counts::new(&set)));
            }
            held.push(Held { number, bindings, events });
        }
        let ledger = (shares.cpu, shares.ledger);
        let mut bindings = Bindings::new(item, ledger, &held, &mut contexts);
        bindings.settle(BindMoment::default(), &held, &mut contexts, platform)?;
        // A binding counts at once; the kernel keeps what little that is.
        if let Some(claim) = contexts.system() {
            contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
        }
        if let Some(series) = &mut series {
            for (number, &binding) in held
                .iter()
                .flat_map(|held| held.bindings.iter().map(|binding| (held.number, binding)))
            {
                let claim = contexts.claim(binding);
                let set = contexts.session_of(binding).map(|session| session.set().clone());
                if let (Some(claim), Some(set)) = (claim, set) {
                    series.follow(number, &set, claim, tasks);
                }
            }
        }
        Ok(Self {
            contexts,
            held,
            bindings,
            begin: 0,
            ticks: 0,
            series,
            clocks: Clocks::read(platform),
            first: None,
            snapshot: None,
            now,
            gate: Gate::of(item, taken_out).map(Box::new),
            readings: Readings::new(tasks),
        })
    }
}

/// Whether something of `set` is counted between addresses, and counts ring 0: then the kernel's own way is to be kept out of
/// it ([`TakenOut`]).
#[must_use]
pub fn sees_the_kernel(item: &count::Count, set: &Set) -> bool {
    !item.gate.is_empty() && in_ring_0(set, |_| true).is_some()
}
