//! Counts over time as plots: of each set and each processor, and there by task.

use crate::document::Document;
use crate::kinds::count::text::series::{self, SetSeries};
use crate::kinds::tasks::text::label;
use html_report::model::{Part, Plot, Series};
use protocol::record::{CountInterval, CountResult, CountedEvent};

/// Events whose counts differ by more than this would flatten each other in one plot.
const APART: f64 = 20.0;

/// Rows of one set and one processor, and how their time is told.
struct Rows<'a> {
    rows: Vec<&'a CountInterval>,
    events: &'a [CountedEvent],
    /// Of the time, for a plot's axis.
    unit: &'a str,
    /// From TSC ticks to the unit.
    scale: f64,
    /// Behind each title: which set and which processor, if there are several.
    of: String,
}

/// The plots: for each set and processor the events, those of very different number in plots of their own, and each event by task.
pub(super) fn series(document: &Document, count: &CountResult) -> Vec<Part> {
    let hz = document.report.machine().map(|machine| machine.tsc.hz).filter(|&hz| hz > 0);
    let (unit, scale) = match (hz, document.run.ticks_per_instruction) {
        // Ticks that are instructions are no time.
        (Some(hz), None) => ("milliseconds", 1e3 / hz as f64),
        _ => ("TSC ticks", 1.0),
    };
    plots(count, unit, scale)
}

fn plots(count: &CountResult, unit: &str, scale: f64) -> Vec<Part> {
    let mut plots = Vec::new();
    for set in series::of(count) {
        for cpu in set.processors() {
            let rows = Rows::new(&set, cpu, unit, scale);
            plots.extend(by_event(&rows));
            // One task's share is all but the kernel's: the counts by task say that.
            if count.tasks.len() > 1 {
                plots.extend(by_task(&rows, count));
            }
        }
    }
    plots
}

fn by_event(rows: &Rows) -> Vec<Part> {
    let line = |(index, name): (usize, String)| {
        line(name, rows.rows.iter().map(|row| row.raw.get(index).copied().unwrap_or(0)))
    };
    let names = rows.events.iter().map(|event| event.event.clone());
    let mut lines: Vec<Series> = names.enumerate().map(line).collect();
    lines.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let mut groups: Vec<Vec<Series>> = Vec::new();
    for line in lines {
        match groups.last_mut() {
            Some(group) if most(&group[0]) <= APART * most(&line).max(1.0) => group.push(line),
            _ => groups.push(vec![line]),
        }
    }
    let plot = |series: Vec<Series>| {
        let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
        rows.plot(format!("Over time: {}", names.join(", ")), series)
    };
    groups.into_iter().map(plot).collect()
}

/// Each event: the tasks that had any, and the kernel.
fn by_task(rows: &Rows, count: &CountResult) -> Vec<Part> {
    let plot = |(index, name): (usize, String)| {
        let of = |row: &CountInterval, task: usize| {
            row.tasks.get(task).and_then(|raw| raw.get(index)).copied().unwrap_or(0)
        };
        let kernel = |row: &&CountInterval| {
            let tasks: u64 = (0..count.tasks.len()).map(|task| of(row, task)).sum();
            row.raw.get(index).copied().unwrap_or(0).saturating_sub(tasks)
        };
        let tasks = count
            .tasks
            .iter()
            .enumerate()
            .map(|(task, one)| line(label(one), rows.rows.iter().map(|row| of(row, task))));
        let kernel = line("kernel".to_string(), rows.rows.iter().map(kernel));
        let lines: Vec<Series> = tasks.chain([kernel]).filter(|one| most(one) > 0.0).collect();
        (!lines.is_empty()).then(|| rows.plot(format!("By task over time: {name}"), lines))
    };
    let names = rows.events.iter().map(|event| event.event.clone());
    names.enumerate().filter_map(plot).collect()
}

fn line(name: String, counts: impl Iterator<Item = u64>) -> Series {
    Series { name, y: counts.map(|count| count as f64).collect(), band: Vec::new() }
}

fn most(one: &Series) -> f64 {
    one.y.iter().copied().fold(0.0, f64::max)
}

impl<'a> Rows<'a> {
    fn new(set: &SetSeries<'a>, cpu: u32, unit: &'a str, scale: f64) -> Self {
        let rows = set.rows.iter().copied().filter(|row| row.processor == cpu).collect();
        let mut of = set.name.map_or(String::new(), |name| format!(", set {name}"));
        if set.processors().len() > 1 {
            of += &format!(", processor {cpu}");
        }
        Self { rows, events: set.events, unit, scale, of }
    }

    fn plot(&self, title: String, series: Vec<Series>) -> Part {
        Part::Plot(Plot {
            title: title + &self.of,
            x_label: format!("{} since counting began", self.unit),
            y_label: "events in each interval".to_string(),
            x: self.rows.iter().map(|row| row.tsc as f64 * self.scale).collect(),
            series,
            steps: true,
            ..Plot::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::hex::Hex;
    use protocol::record::{CountedSet, TaskEnd, TaskResult};

    /// A line's name and its values.
    type Line = (String, Vec<f64>);

    /// The plots' titles and lines.
    fn drawn(count: &CountResult) -> Vec<(String, Vec<Line>)> {
        let of = |part: Part| {
            let Part::Plot(plot) = part else { panic!("no plot") };
            (plot.title, plot.series.into_iter().map(|one| (one.name, one.y)).collect())
        };
        plots(count, "TSC ticks", 1.0).into_iter().map(of).collect()
    }

    fn row(processor: u32, raw: [u64; 2], tasks: [[u64; 2]; 2]) -> CountInterval {
        let tasks = tasks.map(|task| task.to_vec()).into();
        CountInterval { tsc: 5, raw: raw.into(), tasks, processor, set: 0 }
    }

    #[test]
    fn x5_counts_over_time_are_drawn_by_event_by_task_and_by_processor() {
        let event = |event: &str| CountedEvent { event: event.into(), ..CountedEvent::default() };
        let task = |name: &str| TaskResult {
            name: name.into(),
            entry: Hex(0),
            end: TaskEnd::Exit,
            turns: 1,
            switches: 2,
            time: 3,
            value: Hex(0),
            memory_crc32: Hex(0),
            fault: None,
            user_instructions: None,
            child_user_instructions: None,
            added_to: None,
            outlived: None,
            moves: None,
            shares: Vec::new(),
            cpu: 0,
            bits: 64,
            ended_bits: None,
        };
        let mut count = CountResult {
            events: vec![event("cycles"), event("misses")],
            tasks: vec![task("a"), task("b")],
            intervals: vec![
                row(0, [100, 2], [[60, 0], [30, 2]]),
                row(0, [200, 1], [[150, 0], [50, 1]]),
                row(3, [70, 0], [[0, 0], [70, 0]]),
            ],
            ..CountResult::default()
        };
        let line = |name: &str, y: &[f64]| (name.to_string(), y.to_vec());
        let expected = [
            ("Over time: cycles, processor 0", vec![line("cycles", &[100.0, 200.0])]),
            ("Over time: misses, processor 0", vec![line("misses", &[2.0, 1.0])]),
            (
                "By task over time: cycles, processor 0",
                vec![
                    line("a", &[60.0, 150.0]),
                    line("b", &[30.0, 50.0]),
                    line("kernel", &[10.0, 0.0]),
                ],
            ),
            ("By task over time: misses, processor 0", vec![line("b", &[2.0, 1.0])]),
            ("Over time: cycles, processor 3", vec![line("cycles", &[70.0])]),
            ("Over time: misses, processor 3", vec![line("misses", &[0.0])]),
            ("By task over time: cycles, processor 3", vec![line("b", &[70.0])]),
        ];
        assert_eq!(drawn(&count), expected.map(|(title, lines)| (title.to_string(), lines)));
        // Of one processor and one task there is one plot of each kind of event.
        count.intervals.truncate(2);
        count.tasks.truncate(1);
        let titles: Vec<_> = drawn(&count).into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles, ["Over time: cycles", "Over time: misses"]);
        // Each set has its own.
        let set = |name: &str, events: Vec<CountedEvent>| CountedSet {
            name: name.into(),
            events,
            ..CountedSet::default()
        };
        let first = std::mem::take(&mut count.events);
        count.sets = vec![set("whole", first), set("part", vec![event("loads")])];
        let loads =
            CountInterval { raw: vec![9], set: 1, processor: 1, ..CountInterval::default() };
        count.intervals.push(loads);
        let lines = drawn(&count).pop().unwrap();
        assert_eq!(lines, ("Over time: loads, set part".to_string(), vec![line("loads", &[9.0])]));
        assert_eq!(drawn(&count)[0].0, "Over time: cycles, set whole");
    }
}
