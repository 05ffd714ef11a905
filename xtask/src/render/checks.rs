//! What the conformance suite found, as a table and as test points.

use crate::collect::Report;
use crate::primitives::point::Point;
use crate::primitives::style::{ERROR, FAINT, GOOD, paint};
use crate::primitives::table::{Width, empty, fit};
use comfy_table::{Cell, Color};
use protocol::record::{Check, CheckVerdict, Record, Suite};
use std::fmt::Write;

/// The table of all checks, and what they came to. Empty if there was no suite.
pub(super) fn table(report: &Report, width: Width) -> String {
    let mut out = String::new();
    let heads = || {
        let mut table = empty();
        table.set_header(["check", "verdict", "expected", "seen"]);
        table
    };
    let mut table = heads();
    for numbered in &report.records {
        match &numbered.record {
            Record::Check(check) => {
                let (word, color) = verdict(check);
                table.add_row(vec![
                    Cell::new(&check.name),
                    Cell::new(word).fg(color),
                    Cell::new(&check.expected),
                    Cell::new(&check.seen),
                ]);
            }
            Record::Suite(suite) => {
                if !table.is_empty() {
                    // Writing to a String does not fail, here and below.
                    let _ = writeln!(out, "{}", fit(std::mem::replace(&mut table, heads()), width));
                }
                summary(&mut out, suite);
            }
            _ => {}
        }
    }
    // A report that broke off has checks without their suite.
    if !table.is_empty() {
        let _ = writeln!(out, "{}", fit(table, width));
    }
    out
}

fn verdict(check: &Check) -> (&'static str, Color) {
    match check.verdict {
        CheckVerdict::Pass => ("pass", Color::Green),
        CheckVerdict::Fail => ("FAIL", Color::Red),
        CheckVerdict::Skip => ("skip", Color::DarkGrey),
        CheckVerdict::KnownErratum => ("erratum", Color::Yellow),
        CheckVerdict::KnownBehaviour => ("known", Color::Yellow),
    }
}

fn summary(out: &mut String, suite: &Suite) {
    let style = match (suite.failed, suite.passed) {
        (1.., _) => ERROR,
        (0, 1..) => GOOD,
        (0, 0) => FAINT,
    };
    let mut text = format!(
        "{} checks passed, {} failed, {} skipped",
        suite.passed, suite.failed, suite.skipped
    );
    if suite.known_errata > 0 {
        let _ = write!(text, ", {} explained by errata", suite.known_errata);
    }
    if suite.known_behaviours > 0 {
        let _ = write!(text, ", {} known for this hypervisor", suite.known_behaviours);
    }
    if suite.emulated {
        text.push_str("; the PMU is emulated");
    }
    let _ = writeln!(out, "{}: {text}", paint(style, &suite.name));
    if let Some(reason) = &suite.reason {
        let _ = writeln!(out, "  skipped: {reason}");
    }
    if !suite.lacks.is_empty() {
        let _ = writeln!(
            out,
            "{}",
            paint(FAINT, &format!("  not offered: {}", suite.lacks.join(", ")))
        );
    }
}

/// One test point.
pub(super) fn point(check: &Check) -> Point {
    let point =
        Point::new(&check.name, matches!(check.verdict, CheckVerdict::Pass | CheckVerdict::Skip));
    let point = match check.verdict {
        CheckVerdict::Pass | CheckVerdict::Fail => point,
        CheckVerdict::Skip => return point.skip(&format!("needs {}", check.expected)),
        CheckVerdict::KnownErratum | CheckVerdict::KnownBehaviour => point.todo(&check.seen),
    };
    let point = point.text("expected", &check.expected).text("seen", &check.seen);
    point.text("source", &check.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Format;
    use crate::collect::Numbered;
    use crate::context::Context;
    use crate::render::render;
    use protocol::job::OnEnd;
    use protocol::record::{End, Outcome};

    fn check(name: &str, verdict: CheckVerdict) -> Record {
        Record::Check(Check {
            item: 0,
            name: name.into(),
            verdict,
            expected: "7 \"events\"".into(),
            seen: "8".into(),
            source: "the manual".into(),
        })
    }

    fn report(outcome: Outcome, records: Vec<Record>) -> Report {
        let end = Record::End(End {
            records: records.len() as u32 + 1,
            outcome,
            passed: 0,
            failed: 0,
            measured: 0,
            on_end: OnEnd::Halt,
            heap: None,
            stack: None,
        });
        let all = records.into_iter().chain([end]).zip(0..);
        let records = all.map(|(record, seq)| Numbered { seq, record }).collect();
        Report { records, ..Report::default() }
    }

    fn suite(passed: u32, failed: u32, reason: Option<&str>) -> Record {
        Record::Suite(Suite {
            item: 0,
            name: "conformance".into(),
            passed,
            failed,
            skipped: 1,
            known_errata: 1,
            known_behaviours: 1,
            emulated: true,
            reason: reason.map(String::from),
            lacks: vec!["PERF_METRICS".into()],
        })
    }

    fn five() -> Report {
        report(
            Outcome::Fail,
            vec![
                check("a.pass", CheckVerdict::Pass),
                check("a.fail", CheckVerdict::Fail),
                check("a.skip", CheckVerdict::Skip),
                check("a.known", CheckVerdict::KnownErratum),
                check("a.kvm", CheckVerdict::KnownBehaviour),
                suite(1, 1, None),
            ],
        )
    }

    #[test]
    fn k2_each_check_is_a_test_point() {
        let text = render(&five(), &Context::default(), Format::Tap);
        assert!(text.contains("ok 1 - a.pass\n"), "{text}");
        assert!(text.contains("not ok 2 - a.fail\n  ---\n  expected: \"7 \\\"events\\\"\"\n"));
        assert!(text.contains("ok 3 - a.skip # SKIP needs 7 \"events\"\n"));
        assert!(text.contains("not ok 4 - a.known # TODO 8\n"));
        assert!(text.contains("not ok 5 - a.kvm # TODO 8\n"));
        assert!(text.contains("1..5\n"));
    }

    #[test]
    fn k1_the_table_and_the_document_have_every_check() {
        let text = render(&five(), &Context::default(), Format::Table);
        for name in ["a.pass", "a.fail", "a.skip", "a.known", "a.kvm"] {
            assert!(text.contains(name), "{text}");
        }
        let all = "1 checks passed, 1 failed, 1 skipped, 1 explained by errata, 1 known for this hypervisor";
        assert!(text.contains(all), "{text}");
        assert!(text.contains("not offered: PERF_METRICS"));
        let text = render(&five(), &Context::default(), Format::Json);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["records"][1]["verdict"], "fail");
        assert_eq!(document["records"][5]["emulated"], true);
        assert_eq!(document["exit_code"], 1);
    }

    #[test]
    fn k2_csv_has_a_row_for_each_check() {
        let text = render(&five(), &Context::default(), Format::Csv);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
        let column = |name: &str| heads.iter().position(|head| head == name).unwrap();
        let columns = ["name", "event", "verdict", "expected", "seen", "source"].map(column);
        let rows: Vec<String> = reader
            .records()
            .map(|row| columns.map(|at| row.as_ref().unwrap()[at].to_string()).join("|"))
            .collect();
        let row = |check: &str, verdict: &str| {
            format!("conformance|{check}|{verdict}|7 \"events\"|8|the manual")
        };
        let all = [
            ("a.pass", "pass"),
            ("a.fail", "fail"),
            ("a.skip", "skip"),
            ("a.known", "erratum"),
            ("a.kvm", "known"),
        ];
        assert_eq!(rows, all.map(|(check, verdict)| row(check, verdict)));
        // Without a PMU there are no checks, and the reason has a row.
        let skipped = report(Outcome::Skip, vec![suite(0, 0, Some("no counters"))]);
        let text = render(&skipped, &Context::default(), Format::Csv);
        assert!(text.ends_with("0,conformance,,,,,,,,,,,skip,,no counters,\n"), "{text}");
    }

    #[test]
    fn k2_without_a_pmu_the_run_is_skipped_with_77() {
        let skipped = report(Outcome::Skip, vec![suite(0, 0, Some("no counters"))]);
        assert_eq!(skipped.exit_code(), 77);
        let text = render(&skipped, &Context::default(), Format::Tap);
        assert!(text.contains("ok 1 - conformance # SKIP no counters\n"), "{text}");
        let text = render(&skipped, &Context::default(), Format::Table);
        assert!(text.contains("skipped: no counters"), "{text}");
    }
}
