//! Folded stacks: one line for each stack, its frames from the outermost on, and a count. Flame graph programs read them.

use super::{Place, Profile};
use std::fmt::Write;

/// The profiles as folded stacks: item, event, task, symbol, address with its instruction. Where the calls that led to samples are
/// known, their functions are in front of the symbol, the outermost first.
#[must_use]
pub fn write(profiles: &[Profile]) -> String {
    let mut out = String::new();
    for profile in profiles {
        let event = |event: usize| profile.result.events.get(event).map_or("?", |one| &one.event);
        for row in &profile.stacks {
            let leaf = row.frames.first().map_or(String::new(), |(at, place)| leaf(*at, place));
            let frames = [&*profile.result.name, event(row.event), &row.task].into_iter();
            let frames = frames.chain(row.symbols()).chain([&*leaf]);
            let frames: Vec<String> = frames.map(clean).collect();
            let _ = writeln!(out, "{} {}", frames.join(";"), row.count);
        }
        for row in profile.rows.iter().filter(|_| profile.stacks.is_empty()) {
            let event = event(row.event);
            let leaf = leaf(row.address, &row.place);
            let task = format!("{}{}", row.task, super::width(row.bits));
            let frames = [&*profile.result.name, event, &task, &row.place.symbol, &leaf];
            let frames: Vec<String> = frames.iter().map(|frame| clean(frame)).collect();
            // Writing to a String does not fail.
            let _ = writeln!(out, "{} {}", frames.join(";"), row.count);
        }
    }
    out
}

/// The innermost frame: an address with its instruction.
fn leaf(address: u64, place: &Place) -> String {
    match &*place.instruction {
        "" => format!("{address:#x}"),
        instruction => format!("{address:#x} {instruction}"),
    }
}

/// A frame's text without what separates frames and lines.
fn clean(frame: &str) -> String {
    frame.chars().map(|c| if c == ';' || c.is_control() { ',' } else { c }).collect()
}
