//! A record of a console for whoever sits there.

use protocol::record::{
    ConsoleEvent, ConsoleRecord, ConsoleSet, ConsoleState, ConsoleWhat, CountValue,
};
use std::fmt::Write;

/// The record in lines of text.
#[must_use]
pub fn say(record: &ConsoleRecord) -> String {
    let said = said(record, &|task| task.to_string());
    let mut out = format!("console: at TSC tick {}: {said}", record.tsc);
    if record.what == ConsoleWhat::Done {
        record.text.iter().for_each(|text| out += &format!("\n  {text}"));
    }
    record.sets.iter().for_each(|set| out += &of_set(set));
    out
}

/// What was said, without the sets. `name` is that of a task by its number.
pub(crate) fn said(record: &ConsoleRecord, name: &dyn Fn(u16) -> String) -> String {
    let line = record.line.as_deref().unwrap_or("a line");
    let task = record.task.map_or(String::new(), |task| format!("task {} ", name(task)));
    match record.what {
        ConsoleWhat::Open => "open; `help` lists what can be said".to_string(),
        ConsoleWhat::Waits => format!("{task}waits for `go`"),
        ConsoleWhat::Late => format!("{task}waited for too long"),
        ConsoleWhat::Done if record.task.is_some() => format!("{line}: {task}goes on"),
        ConsoleWhat::Done => line.to_string(),
        ConsoleWhat::Refused => format!("{line}: refused: {}", record.text.join("; ")),
    }
}

/// What a set does, in a word.
pub(crate) fn state(state: ConsoleState) -> &'static str {
    match state {
        ConsoleState::Counts => "counts",
        ConsoleState::Stopped => "stopped",
        ConsoleState::Ended => "ended",
    }
}

/// A count: raw, or scaled where it had no counter all the time.
#[must_use]
pub fn value(count: &CountValue) -> String {
    match (count.scaled, count.counted == count.enabled) {
        (_, true) => count.raw.to_string(),
        (Some(scaled), false) => format!("~{scaled}"),
        (None, false) => "?".to_string(),
    }
}

fn of_set(set: &ConsoleSet) -> String {
    let [group, groups] = set.group;
    let task = set.task.map_or(String::new(), |task| format!(" (task {task})"));
    let mut out = format!(
        "\n  {} {}{task}: {}, generation {}",
        set.set,
        set.name,
        state(set.state),
        set.generation
    );
    if groups > 1 || set.passes > 0 {
        let _ = write!(out, ", group {} of {groups}, {} passes", group + 1, set.passes);
    }
    for event in &set.events {
        let _ = write!(out, "\n    {}", of_event(event));
    }
    for [msr, read] in &set.registers {
        let _ = write!(out, "\n    MSR {:#x}: {:#x}", msr.0, read.0);
    }
    out
}

fn of_event(event: &ConsoleEvent) -> String {
    let mut out = event.event.clone();
    if let Some(every) = event.every {
        let _ = write!(out, ", every {every}");
    }
    if let Some(now) = &event.now {
        let _ = write!(out, ": {}", value(now));
    }
    if let Some(overflows) = event.overflows {
        let _ = write!(out, ", overflows {overflows}");
    }
    if let Some(last) = event.at_overflow {
        let _ = write!(out, ", at the last one {last}");
    }
    let _ = write!(out, " ({}", event.counter);
    if let Some([msr, written]) = event.control {
        let _ = write!(out, ", MSR {:#x} = {:#x}", msr.0, written.0);
    }
    out += ")";
    if let Some(was) = &event.was {
        let _ = write!(out, "; was {}: {}", was.event, value(&was.count));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::hex::Hex;
    use protocol::record::ConsoleBefore;

    #[test]
    fn m7_an_answer_is_said_with_sets_counts_and_registers() {
        let whole = |raw| CountValue { raw, scaled: Some(raw), counted: 9, enabled: 9 };
        let half = CountValue { raw: 4, scaled: Some(8), counted: 1, enabled: 2 };
        let event = ConsoleEvent {
            event: "loads".into(),
            counter: "counter 1".into(),
            every: Some(100),
            overflows: Some(2),
            now: Some(half),
            at_overflow: Some(200),
            control: Some([Hex(0x186), Hex(0x43_00c0)]),
            was: Some(ConsoleBefore { event: "stores".into(), every: None, count: whole(7) }),
            ..ConsoleEvent::default()
        };
        let set = ConsoleSet {
            set: 2,
            name: "a".into(),
            task: Some(3),
            state: ConsoleState::Stopped,
            generation: 1,
            group: [0, 2],
            passes: 5,
            events: vec![event],
            registers: vec![[Hex(0x38f), Hex(3)]],
        };
        let record = ConsoleRecord {
            what: ConsoleWhat::Done,
            line: Some("status a".into()),
            tsc: 77,
            sets: vec![set],
            ..ConsoleRecord::default()
        };
        let expected = "console: at TSC tick 77: status a\n  2 a (task 3): stopped, generation 1, group 1 of 2, \
             5 passes\n    loads, every 100: ~8, overflows 2, at the last one 200 (counter 1, MSR 0x186 = \
             0x4300c0); was stores: 7\n    MSR 0x38f: 0x3";
        assert_eq!(say(&record), expected);
        let said = |what, task, text: &[&str]| {
            let text = text.iter().map(ToString::to_string).collect();
            let record = ConsoleRecord { what, task, text, ..ConsoleRecord::default() };
            say(&record).split_off("console: at TSC tick 0: ".len())
        };
        assert_eq!(said(ConsoleWhat::Waits, Some(1), &[]), "task 1 waits for `go`");
        assert_eq!(said(ConsoleWhat::Done, Some(1), &[]), "a line: task 1 goes on");
        assert_eq!(said(ConsoleWhat::Late, Some(1), &[]), "task 1 waited for too long");
        assert_eq!(said(ConsoleWhat::Refused, None, &["why"]), "a line: refused: why");
        assert_eq!(said(ConsoleWhat::Done, None, &["x", "y"]), "a line\n  x\n  y");
        assert!(said(ConsoleWhat::Open, None, &[]).starts_with("open"));
    }
}
