//! The series of a count: of each set the rows of each processor.

use super::right_but;
use crate::primitives::table::{Width, empty, fit};
use comfy_table::{Cell, Table};
use protocol::record::{CountInterval, CountResult, CountedEvent};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The rows of one set.
pub(crate) struct SetSeries<'a> {
    /// The set's name; `None`: the item has no sets.
    pub name: Option<&'a str>,
    /// Its events.
    pub events: &'a [CountedEvent],
    /// Its rows, those of one processor after those of another.
    pub rows: Vec<&'a CountInterval>,
}

/// The series, in the order of the sets.
pub(crate) fn of(count: &CountResult) -> Vec<SetSeries<'_>> {
    let sets: BTreeSet<u32> = count.intervals.iter().map(|row| row.set).collect();
    let series = |number: u32| {
        let set = count.sets.get(number as usize);
        SetSeries {
            name: set.map(|set| &*set.name),
            events: set.map_or(&count.events, |set| &set.events),
            rows: count.intervals.iter().filter(|row| row.set == number).collect(),
        }
    };
    sets.into_iter().map(series).collect()
}

impl SetSeries<'_> {
    /// The processors that have rows of it, in the order of their numbers.
    pub(crate) fn processors(&self) -> BTreeSet<u32> {
        self.rows.iter().map(|row| row.processor).collect()
    }

    fn table(&self) -> Table {
        let mut table = empty();
        let several = self.processors().len() > 1;
        let mut head = vec!["TSC ticks".to_string()];
        head.extend(several.then(|| "cpu".to_string()));
        head.extend(self.events.iter().map(|event| event.event.clone()));
        right_but(&mut table, &head, 0);
        for row in &self.rows {
            let cpu = several.then_some(u64::from(row.processor));
            let cells = std::iter::once(row.tsc).chain(cpu).chain(row.raw.iter().copied());
            table.add_row(cells.map(Cell::new));
        }
        table
    }
}

/// A table of each set's rows.
pub(super) fn tables(count: &CountResult, width: Width) -> String {
    let mut out = String::new();
    for one in of(count) {
        // Writing to a String does not fail.
        let _ = one.name.iter().try_for_each(|name| writeln!(out, "{name} over time"));
        let _ = writeln!(out, "{}", fit(one.table(), width));
    }
    out
}

/// Rows of a CSV: the event with its set and processor and the time at which the row ends, and the count.
pub(crate) fn rows(count: &CountResult) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for one in of(count) {
        let set = one.name.map_or(String::new(), |name| format!("{name}: "));
        let several = one.processors().len() > 1;
        for row in &one.rows {
            let cpu = if several { format!(", cpu {}", row.processor) } else { String::new() };
            for (event, raw) in one.events.iter().zip(&row.raw) {
                let name = format!("count {set}{}{cpu}, to TSC tick {}", event.event, row.tsc);
                rows.push((name, *raw));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::CountedSet;

    fn counted() -> CountResult {
        let event = |event: &str| CountedEvent { event: event.into(), ..CountedEvent::default() };
        let set = |name: &str, events: &[&str]| CountedSet {
            name: name.into(),
            events: events.iter().map(|name| event(name)).collect(),
            ..CountedSet::default()
        };
        let row = |set, processor, tsc, raw: &[u64]| CountInterval {
            set,
            processor,
            tsc,
            raw: raw.into(),
            tasks: vec![],
        };
        CountResult {
            sets: vec![set("a", &["loads"]), set("none", &["x"]), set("b", &["cycles", "misses"])],
            intervals: vec![
                row(0, 0, 10, &[71]),
                row(2, 0, 11, &[50, 3]),
                row(0, 4, 12, &[72]),
                row(2, 0, 21, &[60, 4]),
            ],
            ..CountResult::default()
        }
    }

    #[test]
    fn m6_each_sets_rows_are_in_a_table_of_its_own_and_in_csv() {
        let tables = tables(&counted(), Width::default());
        let lines: Vec<Vec<&str>> =
            tables.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["a", "over", "time"], "{tables}");
        assert_eq!(lines[1], ["TSC", "ticks", "cpu", "loads"]);
        assert_eq!(
            (&lines[3][..], &lines[4][..]),
            (&["10", "0", "71"][..], &["12", "4", "72"][..])
        );
        assert_eq!(lines[6], ["b", "over", "time"]);
        assert_eq!(lines[7], ["TSC", "ticks", "cycles", "misses"]);
        assert_eq!(lines[10], ["21", "60", "4"]);
        assert!(!tables.contains("none"), "{tables}");
        let rows = rows(&counted());
        let expected = [
            ("count a: loads, cpu 0, to TSC tick 10", 71),
            ("count a: loads, cpu 4, to TSC tick 12", 72),
            ("count b: cycles, to TSC tick 11", 50),
            ("count b: misses, to TSC tick 11", 3),
            ("count b: cycles, to TSC tick 21", 60),
            ("count b: misses, to TSC tick 21", 4),
        ];
        assert_eq!(rows, expected.map(|(name, raw)| (name.to_string(), raw)));
    }
}
