//! What a reader has to know in addition to the figures: errors, crashes, defects of the report, other text.

use crate::collect::{Foreign, Report};
use crate::context::Context;
use crate::kinds::tasks::text::instruction;
use crate::primitives::counted;
use crate::primitives::style::{ERROR, FAINT, WARNING, paint};
use crate::text::printable;
use crate::verdict;
use anstyle::Style;
use protocol::record::{Crash, ErrorCode, Record, Registers, SnippetResult};
use protocol::verdict::{said as said_of, sentence};
use std::fmt::Write;

/// Most lines of other text that are shown.
const MAX_FOREIGN: usize = 10;
/// Most items that fail for one reason that are named.
const MAX_FAILED: usize = 8;

/// Something to know.
pub(crate) struct Note {
    /// How it is shown: [`ERROR`], [`WARNING`] or [`FAINT`].
    pub style: Style,
    /// What kind of thing it is.
    pub label: &'static str,
    /// The thing.
    pub text: String,
    /// Lines that belong to it.
    pub below: Vec<String>,
}

/// Writes all notes.
pub(super) fn write(out: &mut String, report: &Report, context: &Context) {
    print(out, &all(report, context));
}

fn print(out: &mut String, notes: &[Note]) {
    for note in notes {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{}: {}", paint(note.style, note.label), note.text);
        note.below.iter().for_each(|line| {
            let _ = writeln!(out, "{line}");
        });
    }
}

/// All notes, in the order in which they are told.
pub(crate) fn all(report: &Report, context: &Context) -> Vec<Note> {
    let notes = &mut Vec::new();
    collect(notes, report, context);
    std::mem::take(notes)
}

fn collect(out: &mut Vec<Note>, report: &Report, context: &Context) {
    for numbered in &report.records {
        match &numbered.record {
            Record::Error(error) => {
                let place = match (&error.item, &error.name) {
                    (Some(item), Some(name)) => format!("item {item} ({name}): "),
                    _ => String::new(),
                };
                let instruction = error.fault.as_ref().map(instruction);
                let instruction = instruction.unwrap_or_default();
                let text = format!("{place}{}{instruction}", error.text);
                let (style, label) = match error.code {
                    ErrorCode::Skipped => (WARNING, "skipped"),
                    _ => (ERROR, "error"),
                };
                line(out, style, label, &text);
                if let Some(fault) = &error.fault {
                    registers(out, &fault.registers);
                }
                put_back(out, &place, &error.restored);
            }
            Record::Crash(crash) => write_crash(out, crash, context),
            record => missed(out, record),
        }
    }
    events(out, report);
    failed_uncounted(out, report);
    machine(out, report);
    for problem in &report.problems {
        line(out, ERROR, "report", &problem.to_string());
    }
    for dispute in &report.disputes {
        line(out, ERROR, "report", dispute);
    }
    if report.end().is_none() {
        where_it_stopped(out, report, context);
    }
    if let Some(complaint) = &context.complaint {
        line(out, ERROR, "machine", complaint);
    }
    for said in said(report, context) {
        line(out, WARNING, "note", &said);
    }
    write_foreign(out, report);
}

/// What was not counted, and what is doubtful about what was: each once, with the first item that it is about.
fn events(out: &mut Vec<Note>, report: &Report) {
    type Said = (&'static str, String, String, usize);
    let mut said: Vec<Said> = Vec::new();
    let mut say = |label, text: String, result: &SnippetResult| match said
        .iter_mut()
        .find(|(l, t, ..)| *l == label && *t == text)
    {
        Some((.., more)) => *more += 1,
        None => said.push((label, text, format!("item {} ({})", result.item, result.name), 0)),
    };
    for result in report.results() {
        for uncounted in &result.uncounted {
            say("not counted", format!("{}: {}", uncounted.event, uncounted.reason), result);
        }
        for metric in &result.metrics {
            for remark in metric.counting.iter().flat_map(|counting| &counting.remarks) {
                say("doubtful", format!("{}: {remark}", metric.event), result);
            }
        }
    }
    for (label, text, item, more) in said {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        line(out, WARNING, label, &format!("{text}; in {item}{more}"));
    }
}

/// What became of the options of the machine, and what else is to be known about the machine while an item ran.
fn machine(out: &mut Vec<Note>, report: &Report) {
    for result in report.results() {
        let place = format!("item {} ({}): ", result.item, result.name);
        for one in &result.controls {
            let (style, label) =
                if one.applied { (FAINT, "applied") } else { (WARNING, "not available") };
            line(out, style, label, &format!("{place}{}: {}", one.option, one.note));
        }
        if result.unwatched > 0 {
            let text = "its events use every counter, so no watchdog can end it";
            line(out, WARNING, "note", &format!("{place}{text}"));
        }
        if result.smis > 0 {
            let text = format!(
                "{} system management interrupts occurred while it was measured",
                result.smis
            );
            line(out, WARNING, "doubtful", &format!("{place}{text}"));
        }
    }
    // A history says it in its own section.
    let shown = report.records.iter().filter(|one| !matches!(one.record, Record::History(_)));
    for (item, name, restored) in shown.filter_map(|one| one.record.restored()) {
        put_back(out, &format!("item {item} ({name}): "), restored);
    }
}

fn put_back(out: &mut Vec<Note>, place: &str, restored: &[String]) {
    if !restored.is_empty() {
        let text = format!("{place}it changed {}, which was restored", restored.join(", "));
        line(out, FAINT, "restored", &text);
    }
}

fn line(out: &mut Vec<Note>, style: Style, label: &'static str, text: &str) {
    out.push(Note { style, label, text: text.to_string(), below: Vec::new() });
}

/// A line that belongs to the note before.
fn below(out: &mut [Note], text: String) {
    if let Some(note) = out.last_mut() {
        note.below.push(text);
    }
}

/// What an item missed. Events that were not counted are told with all others of their kind.
fn missed(out: &mut Vec<Note>, record: &Record) {
    let (Some((item, name)), Some((_, misses))) = (verdict::item_of(record), said_of(record))
    else {
        return;
    };
    for miss in misses.iter().filter(|miss| !verdict::is_uncounted(miss)) {
        let text = format!("item {item} ({name}): {}", sentence(miss));
        line(out, ERROR, "missed", &text);
    }
}

/// Items that fail for events that were not counted, and how they need not.
fn failed_uncounted(out: &mut Vec<Note>, report: &Report) {
    let fails = |record: &Record| {
        let (_, misses) = said_of(record)?;
        let (item, name) = verdict::item_of(record)?;
        misses.iter().any(verdict::is_uncounted).then(|| format!("item {item} ({name})"))
    };
    let items: Vec<String> = report.records.iter().filter_map(|one| fails(&one.record)).collect();
    let more = items.len().saturating_sub(MAX_FAILED);
    let named = items[..items.len() - more].join(", ");
    let items = match (items.len(), more) {
        (0, _) => return,
        (1, _) => format!("{named} fails"),
        (_, 0) => format!("{named} fail"),
        _ => format!("{named} and {more} more fail"),
    };
    let text = format!(
        "{items} because not every requested event was counted; --allow-uncounted, or allow-uncounted = true in \
         the job, lets that pass"
    );
    line(out, ERROR, "not counted", &text);
}

fn write_crash(out: &mut Vec<Note>, crash: &Crash, context: &Context) {
    let mut text = format!("the firmware failed: {}", crash.text);
    if let Some(location) = &crash.location {
        let _ = write!(text, ", at {location}");
    }
    if let Some(code) = crash.error_code {
        let _ = write!(text, ", error code {code}");
    }
    if let Some(item) = crash.item {
        let name = context.items.get(item as usize).map(|n| format!(" ({n})")).unwrap_or_default();
        let _ = write!(text, ", while running item {item}{name}");
    }
    line(out, ERROR, "crash", &text);
    for (index, frame) in context.backtrace.iter().enumerate() {
        below(out, format!("  {index:2} {frame}"));
    }
    registers(out, &crash.registers);
}

fn registers(out: &mut [Note], r: &Registers) {
    let rows = [
        [("rip", r.rip), ("rflags", r.rflags), ("rsp", r.rsp), ("cr2", r.cr2)],
        [("rax", r.rax), ("rbx", r.rbx), ("rcx", r.rcx), ("rdx", r.rdx)],
        [("rsi", r.rsi), ("rdi", r.rdi), ("rbp", r.rbp), ("r8", r.r8)],
        [("r9", r.r9), ("r10", r.r10), ("r11", r.r11), ("r12", r.r12)],
    ];
    let rest = [("r13", r.r13), ("r14", r.r14), ("r15", r.r15)];
    for row in rows.iter().map(|row| &row[..]).chain([&rest[..]]) {
        let cells: Vec<String> = row.iter().map(|(n, v)| format!("{n:>6} {:#018x}", v.0)).collect();
        below(out, paint(FAINT, &cells.join(" ")));
    }
}

/// The item that was running when the report broke off.
fn where_it_stopped(out: &mut Vec<Note>, report: &Report, context: &Context) {
    let next = report.items() as usize;
    if report.records.is_empty() || report.crash().is_some() {
        return;
    }
    if let Some(name) = context.items.get(next) {
        let total = context.items.len();
        let text =
            format!("the machine stopped in item {next} ({name}); {next} of {total} were done");
        line(out, ERROR, "report", &text);
    }
}

/// In front of what barecount's own loader says on the serial line before there are records.
const LOADER: &str = "barecount: ";

/// What the loader and the emulated PMU said, and what is to be said about the boots, each thing once.
pub(super) fn said(report: &Report, context: &Context) -> Vec<String> {
    let loader = report.foreign.iter().filter_map(|foreign| foreign.text.strip_prefix(LOADER));
    let pmu = context.pmu_said.iter().map(|text| format!("the emulated PMU says: {}", clean(text)));
    let boots = context.notes.iter().map(|text| clean(text));
    let mut all: Vec<String> = Vec::new();
    for text in loader.map(clean).chain(pmu).chain(boots) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Text on the serial line that is not barecount's.
pub(super) fn foreign(report: &Report) -> impl Iterator<Item = &Foreign> {
    report.foreign.iter().filter(|foreign| !foreign.text.starts_with(LOADER))
}

fn clean(text: &str) -> String {
    printable(text.trim()).into_owned()
}

fn write_foreign(out: &mut Vec<Note>, report: &Report) {
    let count = foreign(report).count();
    if count == 0 {
        return;
    }
    line(
        out,
        WARNING,
        "note",
        &format!("{} of other text on the serial line:", counted(count, "line")),
    );
    for foreign in foreign(report).take(MAX_FOREIGN) {
        below(out, format!("  {}: {}", foreign.line, clean(&foreign.text)));
    }
    if count > MAX_FOREIGN {
        below(out, format!("  and {} more", count - MAX_FOREIGN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Numbered;

    #[test]
    fn x2_what_became_of_the_machine_is_told_by_item() {
        let result = r#"{"type":"result","item":4,"name":"a","verdict":"none","per":1,"runs":1,"metrics":[],
            "controls":[{"option":"ring=3","applied":true,"note":"so"},
                        {"option":"turbo=off","applied":false,"note":"there is no MSR 0x1a0"}],
            "restored":["CR8","IA32_PAT"],"unwatched":1,"smis":2,"tsc":[0,1]}"#;
        let record: Record = serde_json::from_str(result).unwrap();
        let records = vec![Numbered { seq: 0, record }];
        let report = Report { records, ..Report::default() };
        let mut notes = Vec::new();
        machine(&mut notes, &report);
        let mut out = String::new();
        print(&mut out, &notes);
        for part in [
            "item 4 (a): ring=3: so",
            "not available",
            "item 4 (a): turbo=off: there is no MSR 0x1a0",
            "no watchdog can end it",
            "2 system management interrupts",
            "item 4 (a): it changed CR8, IA32_PAT, which was restored",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        assert_eq!(out.lines().count(), 5);
    }

    fn record(json: &str) -> Numbered {
        Numbered { seq: 0, record: serde_json::from_str(json).unwrap() }
    }

    /// A snippet with one event that was not counted and a remark on another.
    fn snippet(item: u32, reason: &str) -> Numbered {
        record(&format!(
            r#"{{"type":"result","item":{item},"name":"a","verdict":"none","per":1,"runs":1,"metrics":[
               {{"event":"loads","min":4.0,"median":4.0,"mean":4.0,"max":4.0,"deterministic":true,"series":[
               {{"min":1,"max":1,"distinct":1}},{{"min":1,"max":1,"distinct":1}}],
               "counting":{{"name":"LOADS","counter":"counter 0","pass":0,"remarks":["erratum X1"]}}}}],
               "uncounted":[{{"event":"nosuch","reason":"{reason}"}}],"tsc":[0,1]}}"#
        ))
    }

    fn written(report: &Report, context: &Context) -> String {
        let mut out = String::new();
        write(&mut out, report, context);
        anstream::adapter::strip_str(&out).to_string()
    }

    #[test]
    fn what_is_true_of_several_items_is_said_once_with_their_number() {
        let records = vec![snippet(1, "unknown"), snippet(2, "unknown"), snippet(3, "no room")];
        let mut notes = Vec::new();
        events(&mut notes, &Report { records, ..Report::default() });
        let mut out = String::new();
        print(&mut out, &notes);
        let plain = anstream::adapter::strip_str(&out).to_string();
        assert_eq!(
            plain,
            "not counted: nosuch: unknown; in item 1 (a) and 1 more\n\
             doubtful: loads: erratum X1; in item 1 (a) and 2 more\n\
             not counted: nosuch: no room; in item 3 (a)\n"
        );
    }

    #[test]
    fn items_that_fail_for_events_are_named() {
        let failed = |item: u32| {
            record(&format!(
                r#"{{"type":"sample","item":{item},"name":"b","verdict":"fail","events":[],"tasks":[],"code":[],
                   "on_full":"drop","delivery":"fixed","handling":"h","interrupts":0,"spurious":0,"back_to_back":0,
                   "ticks":0,"capability":{{"overflow_interrupt":true,"culprit":"c","freeze":"f","skid":"s",
                   "data_address":"d"}},"misses":[{{"figure":"x","reason":"unknown"}}],"tsc":[0,1]}}"#
            ))
        };
        let said = |count: u32| {
            let records = (1..=count).map(failed).collect();
            let mut notes = Vec::new();
            failed_uncounted(&mut notes, &Report { records, ..Report::default() });
            notes.pop().map(|note| (note.label, note.text))
        };
        assert_eq!(said(0), None);
        for (count, items) in [
            (1, "item 1 (b) fails because"),
            (2, "item 1 (b), item 2 (b) fail because"),
            (10, "item 7 (b), item 8 (b) and 2 more fail because"),
        ] {
            let (label, text) = said(count).unwrap();
            assert_eq!(label, "not counted");
            assert!(text.contains(items), "{text}");
        }
    }

    /// Of a machine that nothing was done to and nothing came of, nothing is said.
    #[test]
    fn an_undisturbed_item_has_no_notes() {
        let plain = r#"{"type":"result","item":0,"name":"a","verdict":"none","per":1,"runs":1,"metrics":[],"tsc":[0,1]}"#;
        let end = r#"{"type":"end","records":2,"outcome":"pass","passed":0,"failed":0,"measured":1,"on_end":"halt"}"#;
        let report = Report { records: vec![record(plain), record(end)], ..Report::default() };
        assert_eq!(written(&report, &Context::default()), "");
    }

    #[test]
    fn a_report_that_breaks_off_names_the_item_that_ran() {
        let error = r#"{"type":"error","code":"device","item":0,"name":"a","text":"t"}"#;
        let context =
            Context { items: vec!["a".to_string(), "b".to_string()], ..Context::default() };
        let stopped = "report: the machine stopped in item 1 (b); 1 of 2 were done\n";
        let mut report = Report { records: vec![record(error)], ..Report::default() };
        assert_eq!(written(&report, &context), format!("error: item 0 (a): t\n{stopped}"));
        // A crash says it itself, and before there are records nothing ran.
        let registers = serde_json::to_string(&Registers::default()).unwrap();
        report.records.push(record(&format!(
            r#"{{"type":"crash","kind":"exception","text":"page fault","item":1,"registers":{registers},"backtrace":[]}}"#
        )));
        let text = written(&report, &context);
        assert!(
            text.contains("crash: the firmware failed: page fault, while running item 1 (b)\n"),
            "{text}"
        );
        assert!(text.contains("   rip 0x0000000000000000 rflags"), "{text}");
        assert!(!text.contains(stopped), "{text}");
        assert_eq!(written(&Report::default(), &context), "");
    }

    #[test]
    fn other_text_is_shown_up_to_a_bound_and_the_loaders_is_a_note() {
        let line = |line: u64, text: &str| Foreign { line, text: text.to_string() };
        let with = |count: u64| {
            let mut foreign: Vec<Foreign> =
                (1..=count).map(|n| line(n, " SeaBIOS\u{7} ")).collect();
            foreign.extend([line(90, "barecount: no disk"), line(91, "barecount: no disk ")]);
            let context = Context { notes: vec!["two boots".to_string()], ..Context::default() };
            written(&Report { foreign, ..Report::default() }, &context)
        };
        let notes = "note: no disk\nnote: two boots\n";
        assert_eq!(with(0), notes);
        let one = with(1);
        let expected = "note: 1 line of other text on the serial line:\n  1: SeaBIOS";
        assert!(one.starts_with(&format!("{notes}{expected}")), "{one}");
        let ten = with(10);
        assert!(ten.starts_with(&format!(
            "{notes}note: 10 lines of other text on the serial line:\n  1: SeaBIOS"
        )));
        assert!(ten.lines().count() == 13 && !ten.contains("more"), "{ten}");
        let eleven = with(11);
        assert!(eleven.ends_with("\n  and 1 more\n") && eleven.lines().count() == 14, "{eleven}");
    }
}
