//! Tasks that moved between processors: where each was, and what was counted of it there.

pub(crate) mod page;

use crate::kinds::count;
use crate::kinds::count::text::{cpus, right_but, value};
use crate::primitives::table::{Width, empty, fit};
use comfy_table::Table;
use protocol::record::{CountResult, TaskResult, TaskShare, Together};

/// The head of [`rows`].
pub(crate) const MOVES: [&str; 6] = ["task", "moves", "cpu", "switches", "TSC ticks", "ring 3"];
/// The head of [`rows_of_processors`].
pub(crate) const PROCESSORS: [&str; 5] = ["cpu", "taken", "switches", "ticks", "ring 3"];

/// Where a task was, behind its name.
pub(crate) fn on(task: &TaskResult) -> String {
    let cpus: Vec<String> = task.shares.iter().map(|share| share.processor.to_string()).collect();
    match &cpus[..] {
        [] => String::new(),
        [cpu] => format!(" (cpu {cpu})"),
        cpus => format!(" (cpus {})", cpus.join(", ")),
    }
}

/// Of each task that may move and each processor that it was on: what it did there.
pub(crate) fn rows(tasks: &[TaskResult]) -> Vec<[String; 6]> {
    let of = |task: &TaskResult| {
        let moves = task.moves.unwrap_or_default().to_string();
        let row = |share: &TaskShare| {
            let user = share.user_instructions.map_or(String::new(), |count| count.to_string());
            let (cpu, switches) = (share.processor.to_string(), share.switches.to_string());
            [task.name.clone(), moves.clone(), cpu, switches, share.time.to_string(), user]
        };
        task.shares.iter().map(row).collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of).collect()
}

/// Of each processor: what it took from others, and what ran there.
pub(crate) fn rows_of_processors(together: Option<&Together>) -> Vec<[String; 5]> {
    let Some(Together { processors, shares, .. }) = together else { return Vec::new() };
    let row = |(cpu, share): (&u32, &protocol::record::ProcessorShare)| {
        let user = share.user_instructions.map_or(String::new(), |count| count.to_string());
        let counts = [share.taken, share.switches, share.ticks].map(|count| count.to_string());
        let [taken, switches, ticks] = counts;
        [cpu.to_string(), taken, switches, ticks, user]
    };
    processors.iter().zip(shares).map(row).collect()
}

/// Figures of the CSV: a task's instructions of ring 3 by processor.
pub(crate) fn figures(task: &TaskResult) -> impl Iterator<Item = (String, Option<u64>)> + '_ {
    let name = |share: &TaskShare| format!("user instructions, cpu {}", share.processor);
    task.shares.iter().map(move |share| (name(share), share.user_instructions))
}

/// The names of the columns of a count's shares, and a row for each event and processor: the processor's count, the kernel's part, and
/// that of each task which may move.
pub(crate) fn rows_of_counts(count: &CountResult) -> (Vec<String>, Vec<Vec<String>>) {
    let may = |task: &&TaskResult| task.moves.is_some();
    let mut head = ["event", "cpu", "sum"].map(String::from).to_vec();
    head.extend(count.tasks.iter().filter(may).map(|task| task.name.clone()));
    head.push("kernel".to_string());
    let mut rows = Vec::new();
    for (set, event) in count::text::figures(count) {
        for ((cpu, sum), share) in cpus(count).iter().zip(&event.cpus).zip(&event.shares) {
            let mut row = vec![format!("{set}{}", event.event), cpu.to_string(), value(sum)];
            let moving = count.tasks.iter().zip(&share.tasks).filter(|(task, _)| may(task));
            row.extend(moving.map(|(_, one)| value(one)));
            row.push(value(&share.kernel));
            rows.push(row);
        }
    }
    (head, rows)
}

/// The tables of where tasks were, if some may move.
pub(crate) fn of_tasks(tasks: &[TaskResult], together: Option<&Together>, width: Width) -> String {
    let mut out = String::new();
    if tasks.iter().any(|task| task.moves.is_some()) {
        out += &filled(&MOVES.map(String::from), 1, rows(tasks).map_rows(), width);
        let rows = rows_of_processors(together).map_rows();
        out += &filled(&PROCESSORS.map(String::from), 0, rows, width);
    }
    out
}

/// The table of what was counted of them by processor.
pub(crate) fn of_counts(count: &CountResult, width: Width) -> String {
    match rows_of_counts(count) {
        (_, rows) if rows.is_empty() => String::new(),
        (head, rows) => filled(&head, 1, rows, width),
    }
}

/// Rows as a table takes them.
trait Rows {
    fn map_rows(self) -> Vec<Vec<String>>;
}

impl<const N: usize> Rows for Vec<[String; N]> {
    fn map_rows(self) -> Vec<Vec<String>> {
        self.into_iter().map(Vec::from).collect()
    }
}

fn filled(head: &[String], left: usize, rows: Vec<Vec<String>>, width: Width) -> String {
    let mut table: Table = empty();
    right_but(&mut table, head, left);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    format!("{}\n", fit(table, width))
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use crate::render::render;
    use protocol::hex::Hex;
    use protocol::record::{
        CountCpu, CountResult, CountShare, CountValue, CountedEvent, ProcessorShare, Record,
        TaskEnd, TaskResult, TaskShare, TasksResult, Together,
    };

    fn task(name: &str, moves: Option<u64>, shares: &[(u32, u64)]) -> TaskResult {
        let share = |&(processor, user): &(u32, u64)| TaskShare {
            processor,
            switches: 3,
            time: 44,
            user_instructions: Some(user),
        };
        TaskResult {
            name: name.into(),
            entry: Hex(0),
            end: TaskEnd::Exit,
            turns: 5,
            switches: 6,
            time: 88,
            value: Hex(0),
            memory_crc32: Hex(0),
            fault: None,
            user_instructions: Some(shares.iter().map(|share| share.1).sum()),
            child_user_instructions: None,
            added_to: None,
            outlived: None,
            cpu: 0,
            moves,
            shares: shares.iter().map(share).collect(),
            bits: 64,
            ended_bits: None,
        }
    }

    fn together() -> Option<Together> {
        let share = |taken, user| ProcessorShare {
            taken,
            switches: 9,
            ticks: 8,
            user_instructions: Some(user),
        };
        let shares = vec![share(5, 100), share(6, 23)];
        Some(Together { processors: vec![0, 2], in_turn: true, shares, ..Together::default() })
    }

    fn rendered(record: Record, format: Format) -> String {
        let records = vec![Numbered { seq: 0, record }];
        let report = Report { records, ..Report::default() };
        render(&report, &Context::default(), format)
    }

    fn run() -> Record {
        let ticks = protocol::record::Ticks::default();
        Record::Tasks(TasksResult {
            item: 0,
            name: "moved".into(),
            verdict: protocol::record::Verdict::None,
            misses: vec![],
            restored: vec![],
            tasks: vec![task("goes", Some(11), &[(0, 100), (2, 23)]), task("stays", None, &[])],
            switches: 18,
            ticks,
            interrupts: vec![],
            user_instructions: Some(123),
            emulated: true,
            tsc: [0; 2],
            together: together(),
            energy: vec![],
            uncore: vec![],
            uncounted: vec![],
        })
    }

    fn count() -> Record {
        let value = |raw| CountValue { raw, scaled: Some(raw), counted: 9, enabled: 9 };
        let share =
            |kernel, goes| CountShare { kernel: value(kernel), tasks: vec![value(goes), value(7)] };
        let event = CountedEvent {
            event: "loads".into(),
            sum: value(140),
            cpus: vec![value(110), value(30)],
            kernel: value(10),
            tasks: vec![value(123), value(7)],
            shares: vec![share(3, 100), share(7, 23)],
            ..CountedEvent::default()
        };
        let cpu = |processor| CountCpu { processor, ..CountCpu::default() };
        Record::Count(CountResult {
            name: "moved".into(),
            tasks: vec![task("goes", Some(11), &[(0, 100), (2, 23)]), task("stays", None, &[])],
            events: vec![event],
            cpus: vec![cpu(0), cpu(2)],
            together: together(),
            ..CountResult::default()
        })
    }

    /// A line of the table, its cells apart by one space.
    fn has_row(table: &str, row: &str) -> bool {
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.into_iter().any(|line| line == row)
    }

    #[test]
    fn i8_t9_c3_tasks_that_moved_are_in_every_form() {
        for (record, of_csv) in [
            (
                run(),
                &[
                    "0,moved,goes moves,11,11,11,11,1,1,,,,",
                    "0,moved,\"goes user instructions, cpu 2\",23,23,23,23,1,1,,,,",
                ],
            ),
            (
                count(),
                &[
                    "0,moved,\"count loads, task goes, cpu 2\",23,23,23,23,1,1,true",
                    "0,moved,\"count loads, kernel, cpu 2\",7,7,7,7,1,1,true",
                ],
            ),
        ] {
            let table = rendered(record.clone(), Format::Table);
            for row in ["goes 11 0 3 44 100", "goes 11 2 3 44 23", "0 5 9 8 100", "2 6 9 8 23"] {
                assert!(has_row(&table, row), "{row}: {table}");
            }
            assert!(table.contains("goes (cpus 0, 2)"), "{table}");
            if matches!(record, Record::Count(_)) {
                assert!(has_row(&table, "loads 0 110 100 3"), "{table}");
                assert!(has_row(&table, "loads 2 30 23 7"), "{table}");
            }
            let csv = rendered(record.clone(), Format::Csv);
            for row in of_csv {
                assert!(csv.contains(row), "{row}: {csv}");
            }
            let json = rendered(record.clone(), Format::Json);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            let one = &json["records"][0];
            assert_eq!(one["tasks"][0]["moves"], 11);
            assert_eq!(one["tasks"][0]["shares"][1]["processor"], 2);
            assert_eq!(one["together"]["shares"][1]["taken"], 6);
            let page = rendered(record, Format::Html);
            for part in ["Where tasks ran", "What processors did"] {
                assert!(page.contains(part), "{part}");
            }
        }
        assert!(rendered(count(), Format::Html).contains("Counts by processor of tasks that move"));
    }
}
