//! Events of the uncore in an item that runs once: read before it and after it. There are no passes, so what does not fit at the same
//! time is not counted.

use super::{Wanted, programmed, rounds};
use crate::snippet::Runner;
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use events::parse::parse_list;
use protocol::record::{CountedUncore, Counting, Uncounted};

/// Why an event is not counted that has a counter, but not at the same time as others.
const NO_ROOM: &str = "its counter is taken by another event of the item, which runs once and has no second pass; count it in an \
                       item of its own, or in a [[snippet]]";

/// What is counted from the beginning of an item to its end.
#[derive(Debug)]
pub struct Whole {
    counted: Vec<(String, Counting)>,
}

/// Begins to count what can be counted at the same time; events in braces together, if that is possible. The rest goes to `uncounted`,
/// with its reason. `None`: nothing is counted.
pub fn begin(
    texts: &[Cow<str>],
    runner: &mut impl Runner,
    uncounted: &mut Vec<Uncounted>,
) -> Option<Whole> {
    let wanted = wanted(texts, uncounted);
    let mut first = rounds(&wanted, || runner.uncore(), uncounted);
    let later = if first.is_empty() { Vec::new() } else { first.split_off(1) };
    for one in later.into_iter().flatten() {
        let is_counted = first[0].iter().any(|other| other.event == one.event);
        if !is_counted && uncounted.iter().all(|other| other.event != one.event) {
            uncounted.push(Uncounted { event: one.event, reason: NO_ROOM.to_string() });
        }
    }
    let counted = programmed(runner, &mut first, 0, uncounted);
    (!counted.is_empty()).then(|| {
        runner.begin_uncore();
        Whole { counted }
    })
}

/// The groups of a job's texts.
fn wanted(texts: &[Cow<str>], uncounted: &mut Vec<Uncounted>) -> Vec<Vec<Wanted>> {
    let mut refuse = |event: &str, reason: String| {
        uncounted.push(Uncounted { event: event.to_string(), reason });
    };
    let mut groups = Vec::new();
    for text in texts {
        let items = match parse_list(text) {
            Ok(items) => items,
            Err(error) => {
                refuse(text, error.to_string());
                continue;
            }
        };
        for item in items {
            let mut group = Vec::new();
            for request in &item.requests {
                match Wanted::of(request) {
                    Some(Ok(wanted)) => group.push(wanted),
                    Some(Err(reason)) => refuse(&request.text, reason),
                    None => refuse(&request.text, "it is no event of the uncore".to_string()),
                }
            }
            if !group.is_empty() {
                groups.push(group);
            }
        }
    }
    groups
}

impl Whole {
    /// What was counted in `ticks` of the TSC. The registers have the values again that they had.
    #[must_use]
    pub fn end(self, runner: &mut impl Runner, ticks: u64) -> Vec<CountedUncore> {
        runner.end_uncore();
        let counts = runner.uncore_counts();
        let all = self.counted.into_iter().zip(counts).map(|((event, counting), &count)| {
            let Counting { name, counter, units, reader, processors, .. } = counting;
            CountedUncore { event, name, counter, units, count, ticks, reader, processors }
        });
        let all = all.collect();
        // Of nothing: that cannot fail.
        let _ = runner.program_uncore(&[]);
        all
    }
}

#[cfg(test)]
mod tests;
