//! Counters and events that are to count a loop.

use super::{ATTEMPTS, INSTRUCTIONS, TrialMachine, window};
use crate::pmu::capabilities::{Capabilities, Counter, Fault, Wrong};
use crate::pmu::driver::Selection;
use crate::pmu::workload::Counts;
use alloc::vec::Vec;

/// Turns of the loop: enough for a reference clock of 100 MHz in addition to a core of several GHz to tick.
const TURNS: u64 = 1000;
/// The same for branches, for which an emulated PMU has to look at each instruction.
const BRANCH_TURNS: u64 = 16;

/// Each counter that is left counts: general-purpose ones and fixed counter 0 instructions, the others something.
pub(super) fn counters(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    let mut left: Vec<(Counter, Selection)> =
        has.counters().map(|counter| (counter, what(counter))).collect();
    let mut first = Some(window(machine, has, &left, TURNS));
    if matches!(first, Some(Err(_))) {
        // Which of them it is that a register refuses.
        first = None;
        left.retain(|one| match window(machine, has, core::slice::from_ref(one), 1) {
            Ok(_) => true,
            Err(error) => {
                has.give_up(one.0, Wrong::Refused(error));
                false
            }
        });
    }
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        if left.is_empty() {
            return;
        }
        let made = first.take().unwrap_or_else(|| window(machine, has, &left, TURNS));
        wrong = match made {
            Ok((seen, stated)) => left
                .iter()
                .zip(seen)
                .filter_map(|(&(counter, _), seen)| {
                    let why = match counter {
                        Counter::General(_) | Counter::Fixed(0) => {
                            near(seen, stated.instructions, &stated)
                        }
                        Counter::Fixed(_) if seen == 0 && counter.may_stand_still() => None,
                        Counter::Fixed(_) => some(seen, has.mask(counter), &stated),
                    };
                    why.map(|why| (counter, why))
                })
                .collect(),
            Err(error) => {
                left.iter().map(|&(counter, _)| (counter, Wrong::Refused(error))).collect()
            }
        };
        if wrong.is_empty() {
            return;
        }
    }
    for (counter, why) in wrong {
        has.give_up(counter, why);
    }
}

fn what(counter: Counter) -> Selection {
    match counter {
        Counter::General(_) => INSTRUCTIONS,
        // It ignores the event.
        Counter::Fixed(_) => Selection::of(0, 0),
    }
}

/// Within an eighth of what the code has: errata, and a hypervisor that counts some of its own, are no reason to give a
/// counter up.
fn near(seen: u64, expected: u64, stated: &Counts) -> Option<Wrong> {
    const BESIDE: u64 = 200;
    let apart = expected / 8 + BESIDE;
    match seen {
        0 => Some(Wrong::Still { instructions: stated.instructions }),
        _ if seen.abs_diff(expected) <= apart => None,
        _ => Some(Wrong::Miscounts { seen, stated: expected }),
    }
}

/// Anything, but not as much as only a counter that runs backwards can show.
fn some(seen: u64, mask: u64, stated: &Counts) -> Option<Wrong> {
    let instructions = stated.instructions;
    match seen {
        0 => Some(Wrong::Still { instructions }),
        _ if seen > mask / 2 => Some(Wrong::Wild { seen, instructions }),
        _ => None,
    }
}

/// An event of the loop.
struct Event {
    name: &'static str,
    selection: Selection,
    branches: bool,
}

/// The architectural events that a loop raises for certain (SDM vol. 3, table 20-1, by their bit in leaf 0xA EBX); on AMD
/// those that every processor has (PPR, PMCx076 and PMCx0C2).
fn list(has: &Capabilities) -> Vec<Event> {
    let event = |name, event, umask, branches| Event {
        name,
        selection: Selection::of(event, umask),
        branches,
    };
    if !has.is_intel() {
        return Vec::from([
            event("cycles", 0x76, 0, false),
            event("retired branches", 0xc2, 0, true),
        ]);
    }
    [
        (0, event("cycles", 0x3c, 0x00, false)),
        (2, event("reference cycles", 0x3c, 0x01, false)),
        (7, event("slots", 0xa4, 0x01, false)),
        (5, event("retired branches", 0xc4, 0x00, true)),
    ]
    .into_iter()
    .filter(|(bit, _)| has.events & has.coded() & 1 << bit != 0)
    .map(|(_, event)| event)
    .collect()
}

/// Each event that a loop raises is counted by general-purpose counters.
pub(super) fn events(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    let generals: Vec<Counter> = has.generals().collect();
    for (branches, turns) in [(false, TURNS), (true, BRANCH_TURNS)] {
        let list: Vec<Event> =
            list(has).into_iter().filter(|one| one.branches == branches).collect();
        for part in list.chunks(generals.len().max(1)) {
            together(machine, has, &generals, part, turns);
        }
    }
}

/// No more events than there are counters.
fn together(
    machine: &mut dyn TrialMachine,
    has: &mut Capabilities,
    generals: &[Counter],
    part: &[Event],
    turns: u64,
) {
    let counters: Vec<(Counter, Selection)> =
        generals.iter().zip(part).map(|(&counter, one)| (counter, one.selection)).collect();
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        wrong = match window(machine, has, &counters, turns) {
            Ok((seen, stated)) => {
                let each = part.iter().zip(seen).zip(generals);
                each.filter_map(|((one, seen), &counter)| {
                    let why = match one.branches {
                        true => near(seen, stated.branches, &stated),
                        false => some(seen, has.mask(counter), &stated),
                    };
                    why.map(|why| fault(one, why))
                })
                .collect()
            }
            Err(error) => part.iter().map(|one| fault(one, Wrong::Refused(error))).collect(),
        };
        if wrong.is_empty() {
            return;
        }
    }
    has.faults.extend(wrong);
}

fn fault(one: &Event, why: Wrong) -> Fault {
    let Selection { event, umask, .. } = one.selection;
    Fault::Event { name: one.name, event, umask, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An eighth and 200 of what the code has; half of what a counter holds for what has no figure.
    #[test]
    fn a_counter_is_given_up_from_these_counts_on() {
        let stated = Counts { instructions: 1_600, ..Counts::default() };
        let still = Some(Wrong::Still { instructions: 1_600 });
        assert_eq!(near(0, 1_600, &stated), still);
        for seen in [1_200, 1_600, 2_000] {
            assert_eq!(near(seen, 1_600, &stated), None, "{seen}");
        }
        for seen in [1, 1_199, 2_001, u64::MAX] {
            let wrong = Wrong::Miscounts { seen, stated: 1_600 };
            assert_eq!(near(seen, 1_600, &stated), Some(wrong), "{seen}");
        }
        let mask = (1 << 40) - 1;
        assert_eq!(some(0, mask, &stated), still);
        for seen in [1, 1 << 20, (1 << 39) - 1] {
            assert_eq!(some(seen, mask, &stated), None, "{seen:#x}");
        }
        for seen in [1 << 39, (1 << 39) + 1, mask] {
            let wild = Wrong::Wild { seen, instructions: 1_600 };
            assert_eq!(some(seen, mask, &stated), Some(wild), "{seen:#x}");
        }
    }
}
