//! Counters that count the same without interrupts.

use super::Armed;
use crate::sampling::precise;
use alloc::vec::Vec;
use arch::pmu::errata::Effect;
use arch::pmu::{Capabilities, Counter, Selection};

/// The same, counted alone.
pub(super) fn plain(selection: &Selection) -> Selection {
    Selection { interrupt: false, precise: false, ..*selection }
}

/// Gives events that can be counted on any counter a second, free one; those with PEBS also one of `places`, the counters
/// that their event can be on.
pub(super) fn witnesses(armed: &mut [Armed], has: &Capabilities, places: &[(Counter, u64)]) {
    if has.errata.iter().any(|row| row.effect == Effect::LostInterrupts) {
        // Another counter would lose interrupts; the report's errata say why there is no reference count.
        return;
    }
    let taken = |counter| {
        let auxiliary =
            |one: &Armed| one.auxiliary.is_some_and(|(auxiliary, _)| auxiliary == counter);
        armed.iter().any(|one| one.counter == counter || auxiliary(one))
    };
    let mut free: Vec<Counter> = has.generals().filter(|&counter| !taken(counter)).collect();
    for one in armed {
        if one.ibs.is_some() {
            // Its counter interrupts nobody, and is one itself.
            continue;
        }
        let plain = plain(&one.selection);
        if one.selection.precise {
            let place = places.iter().find(|(counter, _)| *counter == one.counter);
            let (plain, at) = match one.counter {
                Counter::Fixed(_) => match architectural(one.counter, &plain) {
                    Some(same) => (same, u64::MAX),
                    None => continue,
                },
                Counter::General(_) => (plain, place.map_or(0, |place| place.1)),
            };
            one.witness = precise::witness(&plain, at, &mut free);
            continue;
        }
        let selection = match (one.counter, has.is_intel()) {
            (Counter::Fixed(_), true) => match architectural(one.counter, &plain) {
                Some(same) => same,
                None => continue,
            },
            // Architectural: instructions, cycles, branches. AMD's PMCx0C0, 0C2, 076 are as free.
            (Counter::General(_), true) if matches!(plain.event, 0xc0 | 0x3c | 0xc4) => plain,
            (Counter::General(_), false) if matches!(plain.event, 0xc0 | 0xc2 | 0x76) => plain,
            _ => continue,
        };
        let cycles = if has.is_intel() { 0x3c } else { 0x76 };
        let able = |counter: &Counter| {
            selection.event != cycles || u64::from(has.cycles) & counter.bit() != 0
        };
        if selection.extra.is_none()
            && let Some(at) = free.iter().position(able)
        {
            one.witness = Some((free.remove(at), selection));
        }
    }
}

/// What counts on any counter as `plain` does on a fixed one: 0 and 1 count the architectural events 0xC0 and 0x3C (SDM vol. 3,
/// table 20-2).
pub(in crate::sampling) fn architectural(counter: Counter, plain: &Selection) -> Option<Selection> {
    let event = match counter {
        Counter::Fixed(0) => 0xc0,
        Counter::Fixed(1) => 0x3c,
        _ => return None,
    };
    Some(Selection { event, umask: 0, ..*plain })
}
