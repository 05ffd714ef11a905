//! Codes whose unit mask is several unit masks of one event.

use super::{Candidate, Closeness, text};
use crate::event::Event;
use crate::parse::is_modifier;
use crate::register::EventSelect;
use crate::tables::fold;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// For each event name under which the unit mask can be put together, the fewest unit masks that a
/// greedy choice finds. Unit masks with one bit each, the usual case, are found exactly.
pub(super) fn candidates<'t>(
    events: &[Event<'t>],
    select: &EventSelect,
    differs: u64,
) -> Vec<Candidate<'t>> {
    let wanted = select.wide_umask();
    // Unit masks are joined as they are: the rest must be as the registers have it.
    let parts = events.iter().filter(|event| {
        let way = event.ways()[0];
        event.ways().len() == 1
            && way.msr.is_none()
            && way.umask != 0
            && way.umask & !wanted == 0
            && (event.cmask, event.invert, event.edge, event.any_thread)
                == (select.cmask, select.invert, select.edge, select.any_thread)
    });
    let mut groups: Vec<(&str, Vec<Event<'t>>)> = Vec::new();
    for event in parts {
        let Some((base, _)) = event.name.split_once('.') else {
            continue;
        };
        match groups.iter_mut().find(|(name, _)| fold::same(name, base)) {
            Some((_, events)) => events.push(*event),
            None => groups.push((base, [*event].into())),
        }
    }
    groups.into_iter().filter_map(|(_, events)| join(events, wanted, select, differs)).collect()
}

fn join<'t>(
    mut events: Vec<Event<'t>>,
    wanted: u16,
    select: &EventSelect,
    differs: u64,
) -> Option<Candidate<'t>> {
    // A unit mask after a colon must not read as a modifier, as ANY does: only the first one stands
    // after a dot.
    let modifier =
        |event: &Event<'_>| event.name.split_once('.').is_some_and(|(_, mask)| is_modifier(mask));
    if let Some(first) = events.iter().position(modifier) {
        let first = events[first];
        events.retain(|event| !modifier(event));
        events.push(first);
    }
    events.sort_by_key(|event| {
        let bits = event.ways()[0].umask.count_ones();
        (!modifier(event), event.deprecated, core::cmp::Reverse(bits))
    });
    let mut covered = 0;
    let mut name = String::new();
    let mut used = 0;
    for event in events {
        let umask = event.ways()[0].umask;
        if umask & !covered == 0 {
            continue;
        }
        covered |= umask;
        used += 1;
        if name.is_empty() {
            name = event.name.to_string();
        } else {
            let (_, mask) = event.name.split_once('.')?;
            name.push(':');
            name.push_str(mask);
        }
    }
    // One unit mask alone is an event of its own, found elsewhere.
    if covered != wanted || used < 2 {
        return None;
    }
    // What the events have as the register has it goes without saying.
    let base = EventSelect {
        edge: select.edge,
        invert: select.invert,
        any_thread: select.any_thread,
        cmask: select.cmask,
        ..EventSelect::default()
    };
    let text = text::with_settings(&name, &base, select);
    Some(Candidate { event: None, closeness: Closeness::UnitMasks, text, differs })
}
