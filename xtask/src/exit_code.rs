//! The exit code of a command that shows a report.

use crate::collect::Report;
use crate::context::Context;
use crate::honest::{self, Certificate};
use crate::interrupt;

/// That of a command that shows `report`.
#[must_use]
pub fn of(context: &Context, report: &Report) -> u8 {
    match (context.interrupted, &context.complaint) {
        (Some(_), _) => interrupt::EXIT_CODE,
        (None, Some(_)) => 3,
        (None, None) => {
            let (code, certificate) = (report.exit_code(), Certificate::of(report));
            match certificate {
                // A lie is a failure, and without a PMU there is nothing to certify.
                Some(certificate) if code == 0 => certificate.exit_code(),
                Some(Certificate { honest: None, .. })
                    if code == 1 && !honest::others_failed(report) =>
                {
                    Certificate::WITHOUT_PMU
                }
                _ => code,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use protocol::record::Record;

    fn report(records: &[&str]) -> Report {
        let parse = |text: &&str| serde_json::from_str::<Record>(text).unwrap();
        let numbered = (0..).zip(records.iter().map(parse));
        let records = numbered.map(|(seq, record)| Numbered { seq, record }).collect();
        Report { records, ..Report::default() }
    }

    /// What stopped the run comes before what it found.
    #[test]
    fn the_exit_code_is_that_of_the_first_trouble() {
        let end = |outcome: &str| {
            format!(
                r#"{{"type":"end","records":1,"outcome":"{outcome}","passed":0,"failed":0,"measured":0,"on_end":"halt"}}"#
            )
        };
        for (outcome, code) in
            [("pass", 0), ("fail", 1), ("bad_job", 2), ("crash", 3), ("skip", 77)]
        {
            let report = report(&[&end(outcome)]);
            let plain = Context::default();
            assert_eq!(of(&plain, &report), code, "{outcome}");
            let complaint = Some("the machine was reset".to_string());
            let reset = Context { complaint, ..Context::default() };
            assert_eq!(of(&reset, &report), 3, "{outcome}");
            let interrupted = Context { interrupted: Some("SIGINT"), ..reset };
            // 128 + SIGINT, as shells have it.
            assert_eq!(of(&interrupted, &report), 130, "{outcome}");
        }
    }

    /// A lie is a failure, and where there is no PMU nothing could be certified; but what failed by itself comes first.
    #[test]
    fn the_exit_code_of_a_certificate_is_that_of_what_it_says() {
        let case = |text: &str| -> Vec<Record> {
            let case: serde_json::Value = serde_json::from_str(text).unwrap();
            serde_json::from_value(case["records"].clone()).unwrap()
        };
        let with = |mut records: Vec<Record>, outcome: &str, more: Option<&str>| {
            records.pop();
            let more = more.into_iter().map(|text| serde_json::from_str(text).unwrap());
            records.extend(more);
            let end = format!(
                r#"{{"type":"end","records":1,"outcome":"{outcome}","passed":0,"failed":0,"measured":0,"on_end":"halt"}}"#
            );
            records.push(serde_json::from_str(&end).unwrap());
            let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
            of(&Context::default(), &Report { records: records.collect(), ..Report::default() })
        };
        let honest = || case(include_str!("render/whole/honest.json"));
        let lying = || case(include_str!("render/whole/lying.json"));
        let without = || case(include_str!("render/whole/uncertified.json"));
        let other =
            r##"{"type":"error","code":"snippet_fault","item":7,"name":"other","text":"#UD"}"##;
        for (records, outcome, more, code) in [
            (honest(), "pass", None, 0),
            (honest(), "fail", Some(other), 1),
            (lying(), "pass", None, 1),
            (lying(), "crash", None, 3),
            (without(), "pass", None, 77),
            (without(), "fail", None, 77),
            (without(), "fail", Some(other), 1),
            (without(), "crash", None, 3),
        ] {
            assert_eq!(with(records, outcome, more), code, "{outcome} {more:?}");
        }
    }
}
