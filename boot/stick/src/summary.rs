//! What is shown of a report: lines of at most 79 characters, for a text console.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::record::{Metric, Outcome, Record, Verdict};
use protocol::stream::{Event, Reader};

/// Width of a text console, less one: the last column begins a new line.
const WIDTH: usize = 79;
/// Characters of an item's name.
const NAME: usize = 44;

/// A report in lines. Those of items that missed something come first.
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
                Record::Result(one) => {
                    let place = if one.verdict == Verdict::Fail { &mut missed } else { &mut items };
                    place.push(item(&one.name, one.metrics.first(), one.verdict));
                }
                Record::Error(error) if error.item.is_some() => {
                    let name = error.name.as_deref().unwrap_or("?");
                    missed.push(format!("{} {}", column(name), error.text));
                }
                Record::Crash(crash) => missed.push(format!("the firmware failed: {}", crash.text)),
                Record::End(one) => end = Some(one),
                _ => {}
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
        None => "the run was cut off".to_string(),
    });
    if problems > 0 {
        lines.push(format!("{problems} defects of the report"));
    }
    lines.push(String::new());
    lines.extend(missed);
    lines.extend(items);
    lines.iter().map(|line| line.chars().take(WIDTH).collect()).collect()
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
    let cut: String =
        name.chars().take(NAME).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{cut:NAME$}")
}

fn item(name: &str, metric: Option<&Metric>, verdict: Verdict) -> String {
    let verdict = match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "MISS",
        Verdict::None => "",
    };
    let value = metric.map_or(String::new(), |metric| {
        let spread = if metric.deterministic { "" } else { " ~" };
        format!("{:>12.3} {}{spread}", metric.value.median, metric.event)
    });
    format!("{} {value:<26} {verdict}", column(name)).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::job::OnEnd;
    use protocol::line::encode;
    use protocol::record::{End, ErrorCode, ErrorRecord};

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
        let text: String =
            records.iter().enumerate().map(|(n, one)| encode(n as u32, one) + "\r\n").collect();
        let lines = lines(text.as_bytes());
        assert_eq!(lines[0], "FAIL: 1 passed, 2 failed, 0 measured");
        assert!(
            lines[2].starts_with("add ") && lines[2].ends_with("1.500 tsc           MISS"),
            "{lines:?}"
        );
        assert!(lines[3].starts_with("a name of more") && lines[3].contains("#UD"), "{lines:?}");
        assert!(lines[4].starts_with("imul ") && lines[4].ends_with("pass"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_part_and_damage_are_told() {
        let whole = encode(0, &result("imul", 3.0, Verdict::Pass)) + "\r\n{\"seq\":1,";
        let lines = lines(whole.as_bytes());
        assert!(
            lines[0] == "the run was cut off" && lines[1].ends_with("defects of the report"),
            "{lines:?}"
        );
    }
}
