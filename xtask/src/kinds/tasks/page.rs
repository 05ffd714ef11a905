//! How tasks ran.

use crate::kinds::page::{note, table};
use crate::kinds::tasks::text::{label, sentence, together, too_short};
use crate::kinds::{energy, moves, uncore};
use html_report::model::{Cell, Part, Tone};
use protocol::record::{TaskEnd, TaskResult, TasksResult};

pub(crate) fn parts(ran: &TasksResult) -> Vec<Part> {
    let ticks = &ran.ticks;
    let mut text = format!("{} switches, {} ticks", ran.switches, ticks.count);
    if ticks.max > 0 {
        text +=
            &format!(", {} to {} TSC ticks apart (median {})", ticks.min, ticks.max, ticks.median);
    }
    text += &ticks.lengthened.map(too_short).unwrap_or_default();
    if let Some(count) = ran.user_instructions {
        text += &format!("; {count} instructions in ring 3");
    }
    let mut parts = vec![Part::Text(text + ".")];
    parts.extend(ran.together.as_ref().map(|one| Part::Text(plain(&together(one)))));
    parts.extend(ran.energy.iter().map(|one| Part::Text(energy::line(one) + ".")));
    parts.extend(ran.uncore.iter().map(|one| Part::Text(uncore::line(one) + ".")));
    parts.push(of_tasks(&ran.tasks, ran.emulated));
    parts.extend(moves::page::of_tasks(&ran.tasks, ran.together.as_ref()));
    parts.extend(faults(&ran.tasks));
    let uncounted = ran.uncounted.iter().map(|one| format!("{}: {}", one.event, one.reason));
    parts.extend(uncounted.map(|text| note(Tone::Warn, "not counted", text)));
    if !ran.interrupts.is_empty() {
        let row = |one: &protocol::record::VectorCount| {
            vec![Cell::text(format!("{:#x}", one.vector)), Cell::text(one.count.to_string())]
        };
        parts.push(table(
            "Interrupts and exceptions by vector",
            &["vector", "taken"],
            1,
            ran.interrupts.iter().map(row).collect(),
        ));
    }
    parts
}

/// A text without the terminal's styles and line end.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string().trim_end().to_string()
}

/// The tasks, each with its share of the time.
pub(crate) fn of_tasks(tasks: &[TaskResult], emulated: bool) -> Part {
    let counted =
        if emulated { "instructions in ring 3 (emulated)" } else { "instructions in ring 3" };
    let head =
        ["task", "end", "turns", "switches", "TSC ticks", counted, "of its children", "value"];
    let all: u64 = tasks.iter().map(|task| task.time).sum();
    let row = |task: &TaskResult| {
        let count =
            |count: Option<u64>| Cell::text(count.map_or(String::new(), |count| count.to_string()));
        let end = match task.end {
            TaskEnd::Exit => Cell::text("exit"),
            TaskEnd::Fault => Cell::toned(Tone::Bad, "fault"),
            TaskEnd::Limit => Cell::toned(Tone::Bad, "took too long"),
        };
        vec![
            Cell::text(label(task)),
            end,
            Cell::text(task.turns.to_string()),
            Cell::text(task.switches.to_string()),
            Cell::bar(task.time.to_string(), crate::kinds::page::share(task.time, all)),
            count(task.user_instructions),
            count(task.child_user_instructions),
            Cell::text(task.value.to_string()),
        ]
    };
    table("Tasks", &head, 2, tasks.iter().map(row).collect())
}

/// What ended tasks that raised an exception.
pub(crate) fn faults(tasks: &[TaskResult]) -> impl Iterator<Item = Part> + '_ {
    tasks.iter().filter_map(|task| {
        let fault = task.fault.as_ref()?;
        Some(note(Tone::Bad, "fault", format!("{}: {}", task.name, sentence(fault))))
    })
}
