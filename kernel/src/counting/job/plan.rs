//! Finding counters for a set of a job, and saying what of it cannot be counted.

use crate::counting::gate::{BESIDE_RING_0, IN_RING_0, in_ring_0};
use crate::counting::request::Request;
use crate::counting::{Set, SetError, Sharing};
use crate::events::Known;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::Rings;
use protocol::job::count::{AtOverflow, CountRequest, SetOf};
use protocol::record::Uncounted;

/// A job's set, and what of it cannot be counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The set; `None`: nothing can be counted.
    pub set: Option<Set>,
    /// The number of each of its requests among the job's.
    pub events: Vec<usize>,
    /// Left out, each with its reason.
    pub uncounted: Vec<Uncounted>,
}

impl Planned {
    /// Nothing of the set can be counted, for `reason`.
    #[must_use]
    pub fn uncounted(set: &SetOf, reason: &str) -> Self {
        let uncounted = set.requests.iter().map(|request| refused(request, reason)).collect();
        Self { uncounted, ..Self::default() }
    }
}

/// Builds a set of a job. A request that cannot be counted is left out with its reason, and the rest goes on; a
/// request that it was to start counts from the beginning.
#[must_use]
pub fn plan(item: &SetOf, known: &Known) -> Planned {
    let mut left: Vec<usize> = (0..item.requests.len()).collect();
    let mut uncounted = Vec::new();
    let sharing = if item.together { Sharing::Together } else { Sharing::InTurns };
    while !left.is_empty() {
        let requests = left.iter().map(|&index| request(&item.requests[index], &left));
        let (index, reason) = match Set::build(requests.collect(), sharing, known) {
            Ok(set) => {
                let periods = periods_in_ring_0(item, &set);
                let metrics = metrics_in_ring_0(item, &set).map(|index| (index, METRICS_IN_RING_0));
                match (periods.or(metrics), too_often(item.at_overflow, &set)) {
                    (None, None) => return Planned { set: Some(set), events: left, uncounted },
                    (Some((index, reason)), _) => (index, reason.to_string()),
                    (None, Some(refused)) => refused,
                }
            }
            Err(SetError::Request { index, reason, attribute, .. }) => {
                let attribute = attribute.map_or(String::new(), |name| alloc::format!("{name}: "));
                (index, attribute + &reason)
            }
            Err(SetError::Conflict(conflict)) if conflict.requests.len() == 1 => {
                (conflict.requests[0].0, conflict.to_string())
            }
            // All of them are to blame.
            Err(error) => {
                let all = left.iter().map(|&index| refused(&item.requests[index], &error));
                uncounted.extend(all);
                break;
            }
        };
        uncounted.push(refused(&item.requests[left[index]], &reason));
        left.remove(index);
    }
    Planned { uncounted, ..Planned::default() }
}

/// Why a field of PERF_METRICS is not counted between addresses.
const METRICS_IN_RING_0: &str = "between addresses PERF_METRICS is counted in ring 3 only (`:u`), and with events of ring 3 alone";

/// A request with a period that cannot be counted between addresses, and why: it counts ring 0, or another one does.
fn periods_in_ring_0(item: &SetOf, set: &Set) -> Option<(usize, &'static str)> {
    if !item.gated {
        return None;
    }
    let has_period = |request: usize| set.requests()[request].every.is_some();
    if let Some(index) = in_ring_0(set, has_period) {
        return Some((index, IN_RING_0));
    }
    in_ring_0(set, |_| true)?;
    (0..set.requests().len()).find(|&index| has_period(index)).map(|index| (index, BESIDE_RING_0))
}

/// A field of PERF_METRICS that cannot be counted between addresses: what the kernel's own way comes to is taken out of counts of
/// ring 0, and of shares it cannot be.
fn metrics_in_ring_0(item: &SetOf, set: &Set) -> Option<usize> {
    in_ring_0(set, |_| true).filter(|_| item.gated)?;
    let all = set.groups().iter().flatten();
    all.filter(|(_, counted)| counted.metric.is_some()).map(|(index, _)| *index).next()
}

/// Least number of events between two overflows of a request that counts ring 0: the handler's own way out is counted
/// there, and a period that it fills leaves the tasks nothing. Measured on the emulated Skylake, whose loop of a task gets
/// on with 400 instructions and not with 300.
pub const MIN_EVERY_IN_RING_0: u64 = 500;

/// A request whose overflows would leave the tasks no time, by its number, and why.
pub(super) fn too_often(at_overflow: AtOverflow, set: &Set) -> Option<(usize, String)> {
    if at_overflow == AtOverflow::Stop {
        // There is one overflow, and no other.
        return None;
    }
    let mut all = set.groups().iter().flatten();
    let (index, every) = all.find_map(|(index, counted)| {
        let every = set.requests()[*index].every?;
        let counts_ring_0 = counted.selection.rings.contains(Rings::KERNEL);
        (every < MIN_EVERY_IN_RING_0 && counts_ring_0).then_some((*index, every))
    })?;
    let reason = alloc::format!(
        "every is {every}, and in ring 0, where the overflow's handler is counted as well, the least is \
         {MIN_EVERY_IN_RING_0}; in ring 3 alone (`:u`) it is 1"
    );
    Some((index, reason))
}

fn refused(request: &CountRequest, reason: impl ToString) -> Uncounted {
    Uncounted { event: request.event.to_string(), reason: reason.to_string() }
}

/// A request of a job in the library's terms; `left` are the numbers of those that are still there.
fn request(request: &CountRequest, left: &[usize]) -> Request {
    let place = |&other: &u16| left.iter().position(|&index| index == usize::from(other));
    Request {
        preset: request.preset,
        every: request.every,
        starts: request.starts.iter().filter_map(place).collect(),
        correlate: request.correlate,
        ..Request::new(&request.event)
    }
}
