//! A report for eyes and for other programs.

pub(crate) mod checks;
pub(crate) mod clean;
pub(crate) mod count;
pub mod csv;
pub(crate) mod energy;
pub mod exact;
pub(crate) mod facts;
pub mod forms;
mod found;
pub(crate) mod history;
pub mod json;
pub(crate) mod metrics;
pub(crate) mod moves;
pub mod notes;
pub(crate) mod processors;
pub(crate) mod samples;
pub mod style;
pub mod table;
pub mod tap;
pub(crate) mod tasks;
pub(crate) mod uncore;
pub(crate) mod values;
#[cfg(test)]
mod whole;

use crate::cli::Format;
use crate::collect::Report;
use crate::honest::{self, Certificate};
use crate::interrupt;
use crate::job::About;
use crate::job::sample::TaskCode;
use crate::metrics::ItemMetrics;
use crate::samples::Resolver;
use crate::symbols::image_base;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
pub use table::Width;

/// What made a report: versions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Tools {
    /// Of this program.
    pub barecount: String,
    /// Of the compiler, which assembles and builds the firmware.
    pub rustc: String,
    /// Of QEMU, if the machine is one of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu: Option<String>,
}

/// How the run came about, as far as the firmware cannot know it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Context {
    /// `qemu`, or the serial device or file.
    pub source: String,
    /// `kvm` or `tcg`; absent for a real machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// The guest's PMU, as the host tool chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// Why these two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it was booted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// TSC ticks per instruction, if QEMU's icount makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks_per_instruction: Option<u64>,
    /// What made the report, if it was made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// The job, if it is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<About>,
    /// Whether the records come from the firmware, and how that is known; absent where they carry no codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<&'static str>,
    /// Metrics of snippets, if some were requested.
    #[serde(skip)]
    pub metrics: Vec<ItemMetrics>,
    /// What is to be said about the boots.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// How wide tables may be.
    #[serde(skip)]
    pub width: Width,
    /// What the emulated PMU said.
    #[serde(skip)]
    pub pmu_said: Vec<String>,
    /// Backtrace of a crash, resolved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// Labels and bodies of sampled tasks, if the job is known here, by the item's index.
    #[serde(skip)]
    pub sampled: Vec<(u32, Vec<TaskCode>)>,
    /// The firmware's file with symbols, if it is here.
    #[serde(skip)]
    pub kernel: Option<PathBuf>,
    /// Names of the job's items, if the job is known here.
    #[serde(skip)]
    pub items: Vec<String>,
    /// The signal that interrupted the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<&'static str>,
    /// Why the machine did not finish, beyond what the report shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

impl Context {
    /// Exit code of a command that shows `report`.
    #[must_use]
    pub fn exit_code(&self, report: &Report) -> u8 {
        match (self.interrupted, &self.complaint) {
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

    /// What resolves the addresses of `report`.
    #[must_use]
    pub fn resolver(&self, report: &Report) -> Resolver {
        let kernel = self.kernel.as_deref().map(|path| (path, image_base(report)));
        Resolver::new(&self.sampled, kernel)
    }
}

/// The report in `format`. Styled text; whoever prints it strips the styles where they do not belong.
#[must_use]
pub fn render(report: &Report, context: &Context, format: Format) -> String {
    let report = &forms::per_instruction(report);
    if format == Format::Json {
        return json::render(report, context);
    }
    if format == Format::Html {
        let text = json::render(report, context);
        let document = crate::page::read(text.as_bytes(), &context.source);
        return crate::page::render(&[document.expect("our own document")], None);
    }
    let (report, context) = (&*clean::report(report), &clean::context(context));
    match format {
        Format::Table => table::render(report, context),
        Format::Tap => tap::render(report, context),
        Format::Csv | Format::Json | Format::Html => csv::render(report),
    }
}

/// A figure with at most three decimals, without trailing zeros.
#[must_use]
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// Joules with the prefix that suits them: `15.26 nJ`.
#[must_use]
pub fn joules(value: f64) -> String {
    const PREFIXES: [(f64, &str); 5] =
        [(1e12, "pJ"), (1e9, "nJ"), (1e6, "µJ"), (1e3, "mJ"), (1.0, "J")];
    let fits = |(scale, _): &&(f64, &str)| (value * scale).abs() < 1000.0;
    let (scale, unit) = PREFIXES.iter().find(fits).unwrap_or(&PREFIXES[4]);
    format!("{} {unit}", number(value * scale))
}

#[cfg(test)]
mod tests {
    use super::{Context, number, render};
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use protocol::record::Record;

    fn report(records: &[&str]) -> Report {
        let parse = |text: &&str| serde_json::from_str::<Record>(text).unwrap();
        let numbered = (0..).zip(records.iter().map(parse));
        let records = numbered.map(|(seq, record)| Numbered { seq, record }).collect();
        Report { records, ..Report::default() }
    }

    #[test]
    fn s4_joules_have_the_prefix_that_suits_them() {
        for (value, text) in [
            (0.0, "0 pJ"),
            (1.526e-8, "15.26 nJ"),
            (-0.0125, "-12.5 mJ"),
            (9.999e-4, "999.9 µJ"),
            (4096.0, "4096 J"),
            // A thousand is one of the next.
            (1.0, "1 J"),
            (999e-12, "999 pJ"),
        ] {
            assert_eq!(super::joules(value), text);
        }
    }

    #[test]
    fn a_skipped_item_is_no_failure_in_any_format() {
        let report = report(&[
            r#"{"type":"error","code":"skipped","item":3,"name":"pop","text":"this processor has no POPCNT"}"#,
            r#"{"type":"end","records":2,"outcome":"skip","passed":0,"failed":0,"measured":0,"on_end":"halt"}"#,
        ]);
        let context = Context::default();
        let table = render(&report, &context, Format::Table);
        for part in ["item 3 (pop): this processor has no POPCNT", "1 skipped"] {
            assert!(table.contains(part), "{table}");
        }
        assert!(!table.contains("FAULT") && !table.contains("error"), "{table}");
        let tap = render(&report, &context, Format::Tap);
        assert!(tap.contains("ok 1 - pop # SKIP this processor has no POPCNT\n"), "{tap}");
        assert!(!tap.contains("not ok"), "{tap}");
        let csv = render(&report, &context, Format::Csv);
        assert!(csv.contains("skipped") && !csv.contains("error"), "{csv}");
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
            assert_eq!(plain.exit_code(&report), code, "{outcome}");
            let complaint = Some("the machine was reset".to_string());
            let reset = Context { complaint, ..Context::default() };
            assert_eq!(reset.exit_code(&report), 3, "{outcome}");
            let interrupted = Context { interrupted: Some("SIGINT"), ..reset };
            // 128 + SIGINT, as shells have it.
            assert_eq!(interrupted.exit_code(&report), 130, "{outcome}");
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
            Context::default()
                .exit_code(&Report { records: records.collect(), ..Report::default() })
        };
        let honest = || case(include_str!("whole/honest.json"));
        let lying = || case(include_str!("whole/lying.json"));
        let without = || case(include_str!("whole/uncertified.json"));
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

    #[test]
    fn the_heading_says_what_cannot_be_relied_on() {
        let report = report(&[
            r#"{"type":"machine","vendor":"GenuineIntel","brand":"x","family":6,"model":1,"stepping":1,
                "topology":{"apic_id":0,"threads_per_core":1,"threads_per_package":1},
                "pmu_absent":"CPUID announces none","watchdog_absent":"there is no PMU",
                "tsc":{"hz":64000000,"source":"acpi_pm_timer","invariant":true,"told_hz":2000000000},
                "apic":{"mode":"xapic","timer_hz":1},"processors":[],"memory_bytes":1}"#,
        ]);
        let table = render(&report, &Context::default(), Format::Table);
        for part in [
            "TSC 64 MHz (measured against the ACPI timer), where CPUID or the hypervisor states 2000 MHz",
            "no watchdog ends a snippet that does not end: there is no PMU",
        ] {
            assert!(table.contains(part), "{table}");
        }
    }

    /// A record of each kind with the same misses: a figure out of its bounds, and an event that was not counted.
    fn missed() -> Vec<Record> {
        let head = r#""item":3,"name":"bad","verdict":"fail","misses":[
            {"figure":"loads","min":1.0,"max":2.0,"value":7.0},{"figure":"nosuch","reason":"no such event"}],
            "uncounted":[{"event":"nosuch","reason":"no such event"}],"tsc":[0,1]"#;
        let of_tasks = r#""tasks":[],"switches":0"#;
        let ticks = r#"{"count":0,"min":0,"median":0,"max":0}"#;
        [
            r#""type":"result","per":1,"runs":1,"metrics":[]"#.to_string(),
            r#""type":"exact","per":1,"counts":[],"opcodes":[],"listing":[],"listed":0"#.to_string(),
            r#""type":"history","clock":"cycles","step":1,"runs":1,"per":1,"stopped_by":"freeze","passes":[],
               "series":[]"#
                .to_string(),
            format!(r#""type":"count",{of_tasks},"events":[],"groups":1,"passes":0,"ticks":0"#),
            format!(r#""type":"tasks",{of_tasks},"ticks":{ticks},"interrupts":[]"#),
            r#""type":"processors","per":1,"runs":1,"processors":[],"sums":[],
               "start_skew":{"min":0,"median":0,"max":0},"snapshot":{"deadline":0,"skew":0,"events":[]}"#
                .to_string(),
            r#""type":"facts","timer":"tsc","bytes":0,"cpuid":[],"memory":{"line_evidence":[],"first_tenths":0,
               "memory_tenths":0,"caches":[],"tlbs":[],"crossing_tenths":[0,0],"curve":[]}"#
                .to_string(),
            r#""type":"sample","events":[],"tasks":[],"code":[],"on_full":"drop","delivery":"fixed","handling":"h",
               "interrupts":0,"spurious":0,"back_to_back":0,"ticks":0,"capability":{"overflow_interrupt":true,
               "culprit":"c","freeze":"f","skid":"s","data_address":"d"}"#
                .to_string(),
        ]
        .iter()
        .map(|own| serde_json::from_str(&format!("{{{own},{head}}}")).expect("a record"))
        .collect()
    }

    macro_rules! names {
        (() items $items:tt results { $($(#[$doc:meta])* $name:ident($result:ident),)* }) => {
            [$(stringify!($name)),*]
        };
    }

    #[test]
    fn every_format_shows_what_an_item_of_every_kind_missed() {
        for kind in protocol::kinds!(names!()) {
            let is_of = |record: &Record| format!("{record:?}").starts_with(&format!("{kind}("));
            assert_eq!(missed().iter().filter(|record| is_of(record)).count(), 1, "{kind}");
        }
        for record in missed() {
            let records = vec![Numbered { seq: 0, record }];
            let report = Report { records, ..Report::default() };
            let rendered = |format| render(&report, &Context::default(), format);
            let (bounds, uncounted) =
                ("loads came to 7; expected 1 to 2", "nosuch was not counted: no such event");
            let table = rendered(Format::Table);
            assert!(table.contains(&format!("item 3 (bad): {bounds}")), "{table}");
            assert!(table.contains("1 item fails because not every requested"), "{table}");
            let tap = rendered(Format::Tap);
            assert!(tap.contains("not ok 1 - bad"), "{tap}");
            let csv = rendered(Format::Csv);
            for text in [bounds, uncounted] {
                assert!(tap.contains(text), "{tap}");
                assert!(csv.contains(&format!("3,bad,{text},,,,,,,,,,missed\n")), "{csv}");
            }
            let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
            assert_eq!(json["records"][0]["misses"][0]["max"], 2.0);
            assert_eq!(json["records"][0]["verdict"], "fail");
        }
    }

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        let seen = [1.0, 0.25, 1.0 / 3.0, -0.0001, 100.0, 1234.5].map(number);
        assert_eq!(seen, ["1", "0.25", "0.333", "0", "100", "1234.5"]);
    }
}
