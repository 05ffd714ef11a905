//! Folded stacks: one line for each stack, its frames from the outermost on, and a count. Flame graph programs read them.

use super::Profile;
use std::fmt::Write;

/// The profiles as folded stacks: item, event, task, symbol, address with its instruction.
#[must_use]
pub fn write(profiles: &[Profile]) -> String {
    let mut out = String::new();
    for profile in profiles {
        for row in &profile.rows {
            let event = profile.result.events.get(row.event).map_or("?", |event| &event.event);
            let mut leaf = format!("{:#x}", row.address);
            if !row.place.instruction.is_empty() {
                let _ = write!(leaf, " {}", row.place.instruction);
            }
            let task = format!("{}{}", row.task, super::width(row.bits));
            let frames = [&profile.result.name, event, &task, &row.place.symbol, &leaf];
            let frames: Vec<String> = frames.iter().map(|frame| clean(frame)).collect();
            // Writing to a String does not fail.
            let _ = writeln!(out, "{} {}", frames.join(";"), row.count);
        }
    }
    out
}

/// A frame's text without what separates frames and lines.
fn clean(frame: &str) -> String {
    frame.chars().map(|c| if c == ';' || c.is_control() { ',' } else { c }).collect()
}
