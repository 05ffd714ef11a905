//! The item as a test point.

use super::{all_uncounted, figures, lost, rows_of_bindings, rows_of_readings, stale, waiting};
use crate::kinds::{energy, tasks, uncore};
use crate::primitives::point::{Data, Point};
use protocol::record::{CountResult, Uncounted};

/// The item as a test point: it passes if every task exited.
pub(crate) fn point(count: &CountResult) -> Point {
    let mut point = tasks::text::point(&count.name, &count.tasks);
    for (set, event) in figures(count) {
        let data = Data::new().text("event", &format!("{set}{}", event.event));
        // Without a counter there is no count.
        point.push(
            "counts",
            match event.sum.scaled {
                Some(value) => data.plain("value", value),
                None => data.plain("value", "~"),
            },
        );
    }
    energy::push(&mut point, &count.energy);
    uncore::push(&mut point, &count.uncore);
    for [task, tsc, event, own, children] in rows_of_readings(count) {
        let data = Data::new().text("task", &task).text("tsc", &tsc).text("event", &event);
        point.push("readings", data.text("own", &own).text("children", &children));
    }
    for row in rows_of_bindings(count) {
        let fields = ["set", "cpu", "since", "waited", "until", "by", "generation", "counts"];
        let rest =
            fields.iter().zip(&row).fold(Data::new(), |data, (key, text)| data.text(key, text));
        point.push("bindings", rest);
    }
    for line in waiting(count).chain(stale(count)) {
        point.push("told", Data::new().text("what", &line));
    }
    for set in &count.sets {
        let Some(lost) = lost(set) else { continue };
        let data = Data::new().text("set", &set.name).text("bind", &set.bind);
        point.push("sets", data.text("lost", &lost));
    }
    let uncounted: Vec<Uncounted> = all_uncounted(count).cloned().collect();
    point.uncounted(&uncounted)
}
