//! What is shown of a report: lines of at most 79 characters, for a text console.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::digest::{Item, Standing, item};
use protocol::record::digest::Figure;
use protocol::record::{Outcome, Record};
use protocol::stream::{Event, Reader};

/// Width of a text console, less one: the last column begins a new line.
const WIDTH: usize = 79;
/// Characters of an item's name.
const NAME: usize = 44;

/// A report in lines. Those of items that missed something come first; the others stay in the job's order.
#[must_use]
pub fn lines(report: &[u8]) -> Vec<String> {
    let mut reader = Reader::new();
    let mut events = reader.feed(report);
    events.extend(reader.finish());
    let (mut machine, mut missed, mut items) = (Vec::new(), Vec::new(), Vec::new());
    let (mut end, mut problems) = (None, 0);
    for event in events {
        match event {
            Event::Record { record, .. } => match *record {
                Record::Machine(one) => {
                    machine.push(one.brand.clone());
                    machine.push(match (&one.pmu, &one.pmu_absent) {
                        (Some(pmu), _) => {
                            format!("PMU version {}, {} counters", pmu.version, pmu.counters)
                        }
                        (None, reason) => {
                            format!("no PMU: {}", reason.as_deref().unwrap_or("unknown"))
                        }
                    });
                }
                Record::Crash(crash) => missed.push(format!("the firmware failed: {}", crash.text)),
                Record::End(one) => end = Some(one),
                record => {
                    if let Some(item) = item(&record) {
                        let is_wrong = matches!(item.standing, Standing::Missed | Standing::Error);
                        let place = if is_wrong { &mut missed } else { &mut items };
                        place.extend(lines_of(&item));
                    }
                }
            },
            Event::Problem(_) => problems += 1,
            Event::Foreign { .. } => {}
        }
    }
    let mut lines = machine;
    lines.push(match end {
        Some(end) => format!(
            "{}: {} passed, {} failed, {} measured",
            word(end.outcome),
            end.passed,
            end.failed,
            end.measured
        ),
        // The run was cut off, or the memory for its report was full.
        None => "the report has no end".to_string(),
    });
    if problems > 0 {
        lines.push(format!("{problems} defects of the report"));
    }
    lines.push(String::new());
    lines.extend(missed);
    lines.extend(items);
    lines.iter().map(|line| line.chars().take(WIDTH).map(plain).collect()).collect()
}

/// A character that takes one column: a line end in a message would begin another line.
fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::BadJob => "NO JOB",
        Outcome::Crash => "CRASH",
        Outcome::Skip => "NOTHING RUN",
    }
}

fn column(name: &str) -> String {
    let cut: String = name.chars().take(NAME).collect();
    format!("{cut:NAME$}")
}

/// An item with its first figure; one that missed with all of them, and what it missed.
fn lines_of(item: &Item) -> Vec<String> {
    let note = item.note.as_deref();
    let mark = match item.standing {
        Standing::Measured => "",
        Standing::Passed => "pass",
        Standing::Missed => "MISS",
        Standing::Error => {
            return Vec::from([format!("{} {}", column(&item.name), note.unwrap_or_default())]);
        }
        Standing::Skipped => "skip",
    };
    let row = |name: &str, figure: Option<&Figure>, mark: &str| {
        let value = figure.map_or(String::new(), value);
        format!("{} {value:<26} {mark}", column(name)).trim_end().to_string()
    };
    let mut figures = item.figures.iter().filter(|_| item.standing != Standing::Skipped);
    let mut lines = Vec::from([row(&item.name, figures.next(), mark)]);
    if item.standing == Standing::Missed {
        lines.extend(figures.map(|figure| row("", Some(figure), "")));
    }
    lines.extend(note.map(|note| format!("  {note}")));
    lines
}

fn value(figure: &Figure) -> String {
    let value = match figure.value {
        Some(thousandths) => format!("{:.3}", thousandths as f64 / 1000.0),
        None => "none".to_string(),
    };
    let spread = if figure.spread.is_some_and(|spread| spread > 0) { " ~" } else { "" };
    format!("{value:>12} {}{spread}", figure.event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::job::OnEnd;
    use protocol::line::encode;
    use protocol::record::{
        CountResult, Crash, CrashKind, End, ErrorCode, ErrorRecord, Miss, Registers, Suite, Verdict,
    };

    fn result(name: &str, median: f64, verdict: Verdict) -> Record {
        let json = format!(
            r#"{{"type":"result","item":0,"name":"{name}","tsc":[1,2],"per":1,"runs":3,"verdict":"{}","metrics":[
            {{"event":"tsc","min":{median},"median":{median},"mean":{median},"max":{median},"deterministic":true,
            "series":[{{"min":1,"max":1,"distinct":1}},{{"min":1,"max":1,"distinct":1}}]}}]}}"#,
            if verdict == Verdict::Fail { "fail" } else { "pass" }
        );
        let value: Result<Record, _> = serde_json::from_str(&json);
        value.unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn misses_come_first_and_lines_fit() {
        let error = ErrorRecord {
            code: ErrorCode::SnippetFault,
            item: Some(2),
            name: Some("a name of more than forty characters, which is too long".into()),
            text: "#UD at 0x40000000 while it ran, which is a long story".into(),
            fault: None,
            restored: Vec::new(),
            more: false,
        };
        let end = End { passed: 1, failed: 2, records: 4, ..End::without_items(Outcome::Fail) };
        assert_eq!(end.on_end, OnEnd::Halt);
        let records = [
            result("imul", 3.0, Verdict::Pass),
            result("add", 1.5, Verdict::Fail),
            Record::Error(error),
            Record::End(end),
        ];
        let lines = lines(text(&records).as_bytes());
        assert_eq!(lines[0], "FAIL: 1 passed, 2 failed, 0 measured");
        assert!(
            lines[2].starts_with("add ") && lines[2].ends_with("1.500 tsc           MISS"),
            "{lines:?}"
        );
        assert!(lines[3].starts_with("a name of more") && lines[3].contains("#UD"), "{lines:?}");
        assert!(lines[4].starts_with("imul ") && lines[4].ends_with("pass"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
    }

    fn text(records: &[Record]) -> String {
        (0..).zip(records).map(|(seq, record)| encode(seq, record) + "\r\n").collect()
    }

    #[test]
    fn x3_items_of_all_kinds_are_shown() {
        let miss = Miss {
            figure: "loads".to_string(),
            min: None,
            max: Some(3.0),
            value: Some(5.0),
            reason: None,
        };
        let count = CountResult {
            name: "a count".to_string(),
            verdict: Verdict::Fail,
            misses: vec![miss],
            ..CountResult::default()
        };
        let suite = |name: &str, passed, failed, reason: Option<&str>| Suite {
            item: 0,
            name: name.to_string(),
            passed,
            failed,
            skipped: 0,
            known_errata: 0,
            known_behaviours: 0,
            emulated: false,
            reason: reason.map(ToString::to_string),
            lacks: Vec::new(),
        };
        let records = [
            result("imul", 3.0, Verdict::Pass),
            Record::Suite(suite("no PMU", 0, 0, Some("there is no PMU"))),
            Record::Suite(suite("a suite", 12, 3, None)),
            Record::Suite(suite("another", 12, 0, None)),
            Record::Count(count),
        ];
        let lines = lines(text(&records).as_bytes());
        let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            lines[3..].iter().map(words).collect::<Vec<_>>(),
            [
                "a suite 12.000 checks passed MISS",
                "3.000 checks failed",
                "a count 0.000 ticks MISS",
                "0.000 switches",
                "loads came to 5; expected at most 3",
                "imul 3.000 tsc pass",
                "no PMU skip",
                "there is no PMU",
                "another 12.000 checks passed pass",
            ]
        );
    }

    /// The console would begin another line, and the page would be longer than its rows.
    #[test]
    fn a_line_end_in_a_message_is_a_blank() {
        let crash = Record::Crash(Crash {
            kind: CrashKind::Panic,
            text: "left != right\n  left: 1".to_string(),
            location: None,
            vector: None,
            error_code: None,
            item: None,
            registers: Registers::default(),
            backtrace: Vec::new(),
        });
        let lines = lines(text(&[crash]).as_bytes());
        assert_eq!(lines[3], "the firmware failed: left != right   left: 1");
    }

    #[test]
    fn a_part_and_damage_are_told() {
        let whole = encode(0, &result("imul", 3.0, Verdict::Pass)) + "\r\n{\"seq\":1,";
        let lines = lines(whole.as_bytes());
        assert!(
            lines[0] == "the report has no end" && lines[1].ends_with("defects of the report"),
            "{lines:?}"
        );
    }
}
