//! Rows of a CSV.

use super::{cpus, figures};
use protocol::record::{CountResult, CountValue};

/// Rows of a CSV: who and how much, the sum first.
pub(crate) fn rows(count: &CountResult) -> Vec<(String, CountValue)> {
    let mut rows = Vec::new();
    for (set, event) in figures(count) {
        let name = |whose: &str| format!("count {set}{}{whose}", event.event);
        rows.push((name(""), event.sum));
        rows.push((name(", kernel"), event.kernel));
        for (cpu, value) in cpus(count).into_iter().zip(&event.cpus) {
            rows.push((name(&format!(", cpu {cpu}")), *value));
        }
        for (task, value) in count.tasks.iter().zip(&event.tasks) {
            rows.push((name(&format!(", task {}", task.name)), *value));
        }
        let shares = count.shares_of(event).into_iter();
        rows.extend(shares.map(|(whose, value)| (name(&whose), value)));
    }
    let readings = count.named_readings().into_iter();
    rows.extend(readings.map(|(name, value)| (format!("count {name}"), value)));
    let bindings = count.named_bindings().into_iter();
    rows.extend(bindings.map(|(name, raw)| {
        (format!("count {name}"), CountValue { raw, scaled: Some(raw), ..CountValue::default() })
    }));
    rows
}
