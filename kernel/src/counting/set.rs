//! Event sets: requests that are put together first and bound later.

use super::error::{SetError, attribute};
use super::request::Request;
use crate::events::Known;
use crate::snippet::events::{Counted, EFFORT, at, countable_at_rest, metrics_apart};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use arch::pmu::{Counter, Selection};
use core::sync::atomic::{AtomicU64, Ordering};
use events::encode::{Encoded, encode};
use events::hybrid::check_list;
use events::parse::parse_event;
use events::passes;
use events::request::Item;
use events::set::EventSet;
use protocol::record::Counting;

/// Requests that count at the same time: each with its number and its counter.
pub type Group = Vec<(usize, Counted)>;

/// How a set may use the counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sharing {
    /// All requests at the same time; a set that does not fit is refused.
    Together,
    /// In the fewest groups, which take turns.
    InTurns,
}

/// A set, not bound to anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    id: u64,
    requests: Vec<Request>,
    groups: Vec<Group>,
    sharing: Sharing,
}

/// Numbers of sets.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Set {
    /// Finds counters for all requests on the processor that is `known`.
    ///
    /// # Errors
    /// The first request that cannot be counted, with attribute and reason, or those that conflict.
    pub fn build(
        requests: Vec<Request>,
        sharing: Sharing,
        known: &Known,
    ) -> Result<Self, SetError> {
        let groups = groups(&requests, sharing, known)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, requests, groups, sharing })
    }

    /// A set whose counters are chosen already, group by group.
    pub(crate) fn of_groups(chosen: &[Vec<(Counter, Selection)>]) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (mut requests, mut groups) = (Vec::new(), Vec::new());
        for (pass, chosen) in (0..).zip(chosen) {
            let mut group = Group::new();
            for &(counter, selection) in chosen {
                let (number, event) = (requests.len(), counter.to_string());
                let (name, remarks) = (event.clone(), Vec::new());
                let counting =
                    Counting { name, counter: event.clone(), pass, remarks, ..Counting::default() };
                requests.push(Request::new(&event));
                // It stays where it is.
                let (merges, counters, metric) = (false, 0, None);
                group.push((
                    number,
                    Counted {
                        number,
                        event,
                        counter,
                        selection,
                        merges,
                        counters,
                        metric,
                        level: 0,
                        retired: None,
                        counting,
                    },
                ));
            }
            groups.push(group);
        }
        Self { id, requests, groups, sharing: Sharing::InTurns }
    }

    /// The set with another request in the place of number `index`. Counts of the other requests go on.
    ///
    /// # Errors
    /// There is no such request, or as for [`Set::build`]; the set stays as it was.
    pub fn replace(
        &mut self,
        index: usize,
        request: Request,
        known: &Known,
    ) -> Result<(), SetError> {
        let mut requests = self.requests.clone();
        let count = requests.len();
        *requests.get_mut(index).ok_or(SetError::NoRequest { index, count })? = request;
        self.groups = groups(&requests, self.sharing, known)?;
        self.requests = requests;
        Ok(())
    }

    /// The set's number; buffers belong to one set.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The requests.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// What counts at the same time; more than one group take turns.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
}

fn groups(requests: &[Request], sharing: Sharing, known: &Known) -> Result<Vec<Group>, SetError> {
    if requests.is_empty() {
        return Err(SetError::Empty);
    }
    starts(requests)?;
    let mut set = EventSet::default();
    for (index, request) in requests.iter().enumerate() {
        let number = set.requests.len();
        set.requests.push(encoded(index, request, known)?);
        match request.correlate {
            true => set.correlates.push(number),
            false => set.items.push([number].into()),
        }
    }
    // Whether they fit at once, and what is in the way if not.
    if sharing == Sharing::Together {
        events::assign::assign(&set.requests)?;
    }
    // A set of correlates alone is one group of its own.
    if set.items.is_empty() {
        set.items.push(core::mem::take(&mut set.correlates));
    }
    let plan = passes::plan(&set, EFFORT).map_err(|error| error.0)?;
    if let Some(refused) = plan.refused.into_iter().next() {
        return Err(refused.conflict.into());
    }
    let mut groups = Vec::with_capacity(plan.passes.len());
    for (pass, planned) in (0..).zip(&plan.passes) {
        let places = planned.requests.iter().zip(&planned.assignment.places);
        let members = places.map(|(&number, place)| {
            let counted = at(number, &set.requests[number], place, pass, known);
            let counted =
                counted.map_err(|reason| refused(number, &requests[number], None, reason));
            counted.map(|counted| (number, counted))
        });
        let members = members.collect::<Result<Group, _>>()?;
        check_slots(requests, &members)?;
        groups.push(members);
    }
    Ok(groups)
}

/// PERF_METRICS divides fixed counter 3, which then belongs to it: it starts from 0 at each reading.
fn check_slots(requests: &[Request], group: &Group) -> Result<(), SetError> {
    let counted: Vec<&Counted> = group.iter().map(|(_, one)| one).collect();
    let refuse = |at: usize, attribute, reason: String| {
        let index = group[at].0;
        Err(refused(index, &requests[index], attribute, reason))
    };
    if let Some((at, reason)) = metrics_apart(&counted) {
        return refuse(at, None, reason);
    }
    let is_slots =
        |(index, one): &(usize, Counted)| one.counter == SLOTS && requests[*index].every.is_some();
    let has_metrics = counted.iter().any(|one| one.metric.is_some());
    match group.iter().position(is_slots).filter(|_| has_metrics) {
        Some(at) => {
            let reason =
                "PERF_METRICS is read together with fixed counter 3, which then has no periods";
            refuse(at, Some("every"), reason.to_string())
        }
        None => Ok(()),
    }
}

fn refused(
    index: usize,
    request: &Request,
    attribute: Option<&'static str>,
    reason: impl ToString,
) -> SetError {
    SetError::Request { index, text: request.text.clone(), attribute, reason: reason.to_string() }
}

/// A request in the terms of the PMU.
fn encoded(index: usize, request: &Request, known: &Known) -> Result<Encoded, SetError> {
    let mut parsed =
        parse_event(&request.text).map_err(|error| refused(index, request, None, error))?;
    parsed.attributes.inherit(&request.attributes);
    if let Some(rings) = request.rings {
        parsed.attributes.user = Some(rings.contains(arch::pmu::Rings::USER));
        parsed.attributes.kernel = Some(rings.contains(arch::pmu::Rings::KERNEL));
    }
    if request.every == Some(0) {
        let reason = String::from("a period of 0 events never ends");
        return Err(refused(index, request, Some("every"), reason));
    }
    let alone = [Item { requests: [parsed.clone()].into() }];
    check_list(&alone).map_err(|error| SetError::MixedCores(error.to_string()))?;
    let encoded = encode(&parsed, &known.processor, known.core.as_ref())
        .map_err(|error| refused(index, request, attribute(&error.reason), error.reason))?;
    countable_at_rest(encoded, known).map_err(|reason| refused(index, request, None, reason))
}

/// Whether each trigger can act.
fn starts(requests: &[Request]) -> Result<(), SetError> {
    for (index, request) in requests.iter().enumerate() {
        let text = || request.text.clone();
        if !request.starts.is_empty() && request.every.is_none() {
            return Err(SetError::NeverOverflows { index, text: text() });
        }
        for &other in &request.starts {
            if other >= requests.len() {
                return Err(SetError::NoRequest { index: other, count: requests.len() });
            }
            if other == index {
                return Err(SetError::StartsItself { index, text: text() });
            }
        }
    }
    Ok(())
}
