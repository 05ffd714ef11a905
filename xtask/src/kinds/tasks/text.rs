//! Workloads that were run.

use crate::collect::Report;
use crate::disassembly::{self, unhex};
use crate::kinds::failed;
use crate::primitives::point::{Data, Point, one_line};
use crate::primitives::style::{FAINT, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::samples::width;
use comfy_table::{Cell, CellAlignment, Color, Table};
use protocol::record::{Fault, TaskEnd, TaskResult, TasksResult, Together};
use std::fmt::Write;

/// One section for each item.
pub(crate) fn sections(report: &Report, columns: Width) -> String {
    report.tasks().map(|ran| section(ran, columns)).collect()
}

fn section(ran: &TasksResult, columns: Width) -> String {
    let mut out = String::new();
    let ticks = &ran.ticks;
    // Writing to a String does not fail, here and below.
    let (name, failed) = (paint(STRONG, &ran.name), failed(ran.verdict));
    let _ = writeln!(out, "{} {name}{failed}", ran.item);
    let mut line = format!("{} switches, {} ticks", ran.switches, ticks.count);
    if ticks.max > 0 {
        let _ = write!(
            line,
            ", {} to {} TSC ticks apart (median {})",
            ticks.min, ticks.max, ticks.median
        );
    }
    if let Some(interval) = ticks.lengthened {
        line += &too_short(interval);
    }
    if let Some(count) = ran.user_instructions {
        let _ = write!(line, "; {count} instructions in ring 3");
    }
    let _ = writeln!(out, "{}", paint(FAINT, &line));
    out += &ran.together.as_ref().map(together).unwrap_or_default();
    let _ = writeln!(out, "{}", fit(table(ran), columns));
    for one in &ran.energy {
        let _ = writeln!(out, "{}", crate::kinds::energy::line(one));
    }
    for one in &ran.uncore {
        let _ = writeln!(out, "{}", crate::kinds::uncore::line(one));
    }
    out += &crate::kinds::moves::of_tasks(&ran.tasks, ran.together.as_ref(), columns);
    out += &faults(&ran.tasks);
    for one in &ran.uncounted {
        let _ = writeln!(out, "  not counted: {}: {}", one.event, one.reason);
    }
    out
}

/// How several processors worked together, a line.
pub(crate) fn together(together: &Together) -> String {
    let numbers: Vec<String> = together.processors.iter().map(u32::to_string).collect();
    let what = if numbers.len() == 1 { "processor" } else { "processors" };
    let mut line = format!("{what} {}", numbers.join(", "));
    if together.in_turn {
        line += ", one after the other";
    }
    if let Some(skew) = together.begin_skew {
        let _ = write!(line, ", began within {skew} TSC ticks");
    }
    if let Some(skew) = together.end_skew {
        let _ = write!(line, ", read at the end within {skew}");
    }
    format!("{}\n", paint(FAINT, &line))
}

/// Ticks that left the tasks no time.
pub(crate) fn too_short(interval: u64) -> String {
    format!(
        "; a tick was due before the last one was dealt with: lengthened to {interval} TSC ticks"
    )
}

/// What ended tasks that raised an exception, a line each.
pub(crate) fn faults(tasks: &[TaskResult]) -> String {
    let line = |task: &TaskResult| {
        let fault = task.fault.as_ref()?;
        Some(format!("  {}: {}\n", task.name, sentence(fault)))
    };
    tasks.iter().filter_map(line).collect()
}

fn table(ran: &TasksResult) -> Table {
    let mut table = empty();
    let counted = if ran.emulated { "ring 3 (emulated)" } else { "ring 3" };
    let header = ["task", "turns", "switches", "TSC ticks", counted, "children", "value", ""];
    table.set_header(header);
    for index in 1..7 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for task in &ran.tasks {
        let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
        let cells = [
            label(task),
            task.turns.to_string(),
            task.switches.to_string(),
            task.time.to_string(),
            count(task.user_instructions),
            count(task.child_user_instructions),
            task.value.to_string(),
        ];
        let mut cells: Vec<Cell> = cells.map(Cell::new).into();
        cells.push(match task.end {
            TaskEnd::Exit => Cell::new(""),
            TaskEnd::Fault => Cell::new("FAULT").fg(Color::Red),
            TaskEnd::Limit => Cell::new("LIMIT").fg(Color::Red),
        });
        table.add_row(cells);
    }
    table
}

/// A task's name, with its processor if that is not the first, and its code if that is not the usual.
pub(crate) fn label(task: &TaskResult) -> String {
    let cpu = match (task.cpu, task.moves) {
        (_, Some(_)) => crate::kinds::moves::on(task),
        (0, None) => String::new(),
        (cpu, None) => format!(" (cpu {cpu})"),
    };
    match task.ended_bits {
        Some(ended) => format!("{}{cpu} ({}-bit, at its end {ended}-bit)", task.name, task.bits),
        None => format!("{}{cpu}{}", task.name, width(task.bits)),
    }
}

/// The instruction that raised an exception, as the processor decoded it, after a colon.
pub(crate) fn instruction(fault: &Fault) -> String {
    let bytes = fault.bytes.as_deref().and_then(unhex).unwrap_or_default();
    let at = if fault.part == "program" { fault.registers.rip.0 } else { 0 };
    match disassembly::instruction(&bytes, fault.offset.unwrap_or(at), fault.bits) {
        text if text.is_empty() => width(fault.bits).to_string(),
        text => format!(": {text}{}", width(fault.bits)),
    }
}

pub(crate) fn sentence(fault: &Fault) -> String {
    let place = match fault.offset {
        _ if let Some(function) = &fault.function => {
            let location = fault.location.as_ref().map_or(String::new(), |at| format!(", {at}"));
            format!("in `{function}`{location}")
        }
        Some(offset) => format!("at byte {offset} of its {}", fault.part),
        None => format!("outside its code, at {}", fault.registers.rip),
    };
    let address = match fault.vector {
        14 => format!(", address {}", fault.registers.cr2),
        _ => String::new(),
    };
    let overrun = if fault.overrun { ", its stack has overrun" } else { "" };
    let message = fault.message.as_ref().map_or(String::new(), |text| format!(": {text}"));
    format!("{} {place}{address}{overrun}{}{message}", fault.mnemonic, instruction(fault))
}

/// Whether every task exited.
pub(super) fn whole(tasks: &[TaskResult]) -> bool {
    tasks.iter().all(|task| task.end == TaskEnd::Exit)
}

/// A test point: it passes if every task exited.
pub(crate) fn point(name: &str, tasks: &[TaskResult]) -> Point {
    let mut point = Point::new(name, whole(tasks));
    for task in tasks {
        let end = match (&task.fault, task.end) {
            (Some(fault), _) => one_line(&sentence(fault)),
            (None, TaskEnd::Limit) => "took too long".to_string(),
            (None, _) => "exited".to_string(),
        };
        let data = Data::new().text("task", &task.name).text("end", &end);
        point.push("tasks", data.plain("turns", task.turns));
    }
    point
}

/// Figures of each task: what, how many, and whether the task exited.
pub(crate) fn figures(ran: &TasksResult) -> impl Iterator<Item = (String, u64, bool)> + '_ {
    ran.tasks.iter().flat_map(|task: &TaskResult| {
        let figures = [
            ("turns", Some(task.turns)),
            ("switches", Some(task.switches)),
            ("tsc", Some(task.time)),
            ("user instructions", task.user_instructions),
            ("moves", task.moves),
        ];
        let figures = figures.into_iter().map(|(what, count)| (what.to_string(), count));
        let all = figures.chain(crate::kinds::moves::figures(task));
        all.filter_map(move |(what, count)| {
            Some((format!("{} {what}", task.name), count?, task.end == TaskEnd::Exit))
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use crate::primitives::table::Width;
    use crate::render::render;
    use protocol::hex::Hex;
    use protocol::record::{
        Fault, Record, Registers, TaskEnd, TaskResult, TasksResult, Ticks, Together,
    };

    fn rendered(format: Format) -> String {
        let fault = Fault {
            vector: 14,
            mnemonic: "#PF".into(),
            error_code: Some(Hex(7)),
            part: "body".into(),
            offset: Some(3),
            copy: None,
            bytes: Some("4889c8".into()),
            registers: Registers { cr2: Hex(0x1234), ..Registers::default() },
            bits: 32,
            ..Fault::default()
        };
        let task = |name: &str, end| TaskResult {
            name: name.into(),
            entry: Hex(0),
            end,
            turns: 41,
            switches: 5,
            time: 678,
            value: Hex(0xabc),
            memory_crc32: Hex(0),
            fault: (end == TaskEnd::Fault).then(|| fault.clone()),
            user_instructions: Some(910),
            child_user_instructions: Some(0),
            added_to: None,
            outlived: None,
            moves: None,
            shares: Vec::new(),
            cpu: 0,
            bits: if end == TaskEnd::Fault { 32 } else { 64 },
            ended_bits: (end == TaskEnd::Limit).then_some(32),
        };
        let ran = TasksResult {
            item: 0,
            name: "two".into(),
            verdict: protocol::record::Verdict::Fail,
            misses: vec![],
            restored: Vec::new(),
            tasks: vec![
                task("a", TaskEnd::Fault),
                task("b", TaskEnd::Exit),
                task("c", TaskEnd::Limit),
            ],
            switches: 11,
            ticks: Ticks { count: 9, min: 50, median: 100, max: 150, lengthened: Some(99) },
            interrupts: vec![],
            user_instructions: Some(2730),
            emulated: true,
            tsc: [0; 2],
            together: None,
            energy: vec![],
            uncore: vec![],
            uncounted: vec![],
        };
        let records = vec![Numbered { seq: 0, record: Record::Tasks(ran) }];
        let report = Report { records, ..Report::default() };
        assert_eq!(report.items(), 1);
        render(&report, &Context::default(), format)
    }

    #[test]
    fn t9_a_run_of_tasks_is_in_every_form() {
        let table = rendered(Format::Table);
        for part in [
            "11 switches, 9 ticks, 50 to 150 TSC ticks apart (median 100); a tick was due",
            "lengthened to 99 TSC ticks; 2730 instructions in ring 3",
            "a: #PF at byte 3 of its body, address 0x1234: dec eax (32-bit)",
            "a (32-bit) ",
            "c (64-bit, at its end 32-bit)",
            "LIMIT",
            "0xabc",
            "ring 3 (emulated)",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
        let csv = rendered(Format::Csv);
        assert!(csv.contains("0,two,a turns,41,41,41,41,1,1,,,,fail\n"), "{csv}");
        assert!(csv.contains("0,two,b user instructions,910,910,910,910,1,1,,,,\n"), "{csv}");
        let tap = rendered(Format::Tap);
        assert!(
            tap.contains(
                "not ok 1 - two\n  ---\n  tasks:\n    - task: \"a\"\n      end: \"#PF at byte 3"
            ),
            "{tap}"
        );
        let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
        assert_eq!(json["records"][0]["tasks"][2]["end"], "limit");
    }

    #[test]
    fn processors_are_told_with_what_is_known_of_their_work() {
        let told = |processors: &[u32], in_turn, begin_skew, end_skew| {
            let processors = processors.to_vec();
            let shares = Vec::new();
            let together = Together { processors, in_turn, begin_skew, end_skew, shares };
            anstream::adapter::strip_str(&super::together(&together)).to_string()
        };
        assert_eq!(told(&[3], false, None, None), "processor 3\n");
        assert_eq!(told(&[0, 3], true, None, None), "processors 0, 3, one after the other\n");
        let both = "processors 0, 3, began within 5 TSC ticks, read at the end within 6\n";
        assert_eq!(told(&[0, 3], false, Some(5), Some(6)), both);
    }

    /// A timer of one tick has no distance to another.
    #[test]
    fn ticks_that_have_no_distance_are_counted_alone() {
        let ticks = Ticks { count: 1, min: 0, median: 0, max: 0, lengthened: None };
        let ran = TasksResult {
            item: 0,
            name: "t".into(),
            verdict: protocol::record::Verdict::None,
            misses: vec![],
            restored: vec![],
            tasks: vec![],
            switches: 2,
            ticks,
            interrupts: vec![],
            user_instructions: None,
            emulated: false,
            tsc: [0; 2],
            together: None,
            energy: vec![],
            uncore: vec![],
            uncounted: vec![],
        };
        let section = super::section(&ran, Width::default());
        let plain = anstream::adapter::strip_str(&section).to_string();
        assert!(plain.starts_with("0 t\n2 switches, 1 ticks\n"), "{plain}");
    }
}
