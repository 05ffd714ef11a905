//! How counting started and stopped at addresses.

use super::plural;
use protocol::record::{CountGate, CountResult};

/// Of each task, behind what else the item did.
pub(crate) fn gates(count: &CountResult) -> String {
    let one = |gate: &CountGate| {
        let task = count.tasks.get(usize::from(gate.task)).map_or("", |task| &task.name);
        let alone = if count.gates.len() == 1 { " alone" } else { "" };
        let depth = |deepest| format!(", {} deep", plural(deepest, "start"));
        let depth = gate.deepest.map_or(String::new(), depth);
        let (starts, taken) = (plural(gate.starts, "time"), plural(gate.taken, "exception"));
        format!("; in {task}{alone}: started {starts}, stopped {}{depth} ({taken})", gate.stops)
    };
    count.gates.iter().map(one).collect()
}

/// What the kernel's own way has cost each event that ring 0 has too, a sentence each.
pub(crate) fn taken_out(count: &CountResult) -> Vec<String> {
    let each = count.events.iter().filter_map(|event| Some((&event.event, event.taken_out?)));
    each.map(|(event, taken_out)| {
        format!("{event}: {taken_out} of the kernel's own were taken out at each interruption")
    })
    .collect()
}
