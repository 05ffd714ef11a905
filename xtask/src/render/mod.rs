//! A report for eyes and for other programs.

pub(crate) mod checks;
pub mod csv;
mod found;
pub mod table;
pub mod tap;
#[cfg(test)]
mod whole;

use crate::cli::Format;
use crate::collect::Report;
use crate::context::Context;
use crate::{clean, forms, json};

/// The report in `format`. Styled text; whoever prints it strips the styles where they do not belong.
#[must_use]
pub fn render(report: &Report, context: &Context, format: Format) -> String {
    let report = &forms::per_instruction(report);
    if format == Format::Json {
        return json::render(report, context);
    }
    if format == Format::Html {
        let text = json::render(report, context);
        let document = crate::json::read(text.as_bytes(), &context.source);
        return crate::page::render(&[document.expect("our own document")], None);
    }
    let (report, context) = (&*clean::report(report), &clean::context(context));
    match format {
        Format::Table => table::render(report, context),
        Format::Tap => tap::render(report, context),
        Format::Csv | Format::Json | Format::Html => csv::render(report),
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use crate::primitives::number;
    use protocol::record::Record;

    fn report(records: &[&str]) -> Report {
        let parse = |text: &&str| serde_json::from_str::<Record>(text).unwrap();
        let numbered = (0..).zip(records.iter().map(parse));
        let records = numbered.map(|(seq, record)| Numbered { seq, record }).collect();
        Report { records, ..Report::default() }
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

    /// A fault is an exception in the item's code; of what was refused, no code ran.
    #[test]
    fn what_was_refused_is_no_fault() {
        for (code, word) in [
            ("snippet_fault", "FAULT"),
            ("unsupported", "ERROR"),
            ("device", "ERROR"),
            ("stray_interrupt", "ERROR"),
            ("step_limit", "STEP LIMIT"),
        ] {
            let report = report(&[&format!(
                r#"{{"type":"error","code":"{code}","item":3,"name":"a","text":"t"}}"#
            )]);
            let table = render(&report, &Context::default(), Format::Table);
            let row = table.lines().find(|line| line.contains("3   a")).unwrap_or_default();
            assert!(row.trim_end().ends_with(word), "{code}: {table}");
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
        (() items $items:tt results { $($(#[$doc:meta])* $name:ident($($result:ident)::+),)* }) => {
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
            assert!(table.contains("item 3 (bad) fails because not every requested"), "{table}");
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

    /// The verdicts of the rows of a snippet with two figures that failed for these misses.
    fn verdicts(verdict: &str, misses: &str) -> Vec<(String, String)> {
        let metric = |event: &str| {
            format!(
                r#"{{"event":"{event}","min":4.0,"median":4.0,"mean":4.0,"max":4.0,"deterministic":true,
                   "series":[{{"min":1,"max":1,"distinct":1}},{{"min":1,"max":1,"distinct":1}}]}}"#
            )
        };
        let report = report(&[&format!(
            r#"{{"type":"result","item":1,"name":"a","verdict":"{verdict}","per":1,"runs":1,
               "metrics":[{},{}],"misses":[{misses}],"tsc":[0,1]}}"#,
            metric("tsc"),
            metric("loads"),
        )]);
        let csv = render(&report, &Context::default(), Format::Csv);
        let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        rows.map(|row| (row[2].to_string(), row[12].to_string())).collect()
    }

    #[test]
    fn a_figure_of_csv_has_its_own_verdict() {
        let of = |verdict, misses| verdicts(verdict, misses).into_iter().map(|(_, one)| one);
        let of = |verdict, misses| of(verdict, misses).collect::<Vec<_>>();
        let miss = r#"{"figure":"loads","min":7.0,"value":4.0}"#;
        assert_eq!(of("fail", miss), ["", "fail", "missed"]);
        assert_eq!(of("pass", ""), ["pass", "pass"]);
        assert_eq!(of("none", ""), ["", ""]);
        // Nothing missed, and yet it failed: as a whole.
        assert_eq!(of("fail", ""), ["fail", "fail"]);
        let events: Vec<String> =
            verdicts("pass", "").into_iter().map(|(event, _)| event).collect();
        assert_eq!(events, ["tsc", "loads"]);
    }

    /// Each kind has its own words in the rows for what an expectation names.
    #[test]
    fn a_missed_figure_is_marked_in_the_rows_of_every_kind() {
        let of = |head: &str, figure: &str| {
            let miss = format!(r#"[{{"figure":"{figure}","min":99.0,"value":4.0}}]"#);
            let report = report(&[&format!(
                r#"{{{head},"item":1,"name":"a","verdict":"fail","misses":{miss},"tsc":[0,1]}}"#
            )]);
            let csv = render(&report, &Context::default(), Format::Csv);
            let rows = csv.lines().skip(1).filter(|line| line.ends_with(",fail"));
            rows.map(|line| line.split(',').nth(2).unwrap().trim_matches('"').to_string())
                .collect::<Vec<_>>()
        };
        let tasks = r#""type":"tasks","ticks":{"count":0,"min":0,"median":0,"max":0},"interrupts":[],
            "switches":4,"tasks":[{"name":"t","entry":"0x1000","end":"exit","turns":4,"switches":4,"time":9,
            "value":"0x0","memory_crc32":"0x0","user_instructions":7}]"#;
        assert_eq!(of(tasks, "turns, task t"), ["t turns"]);
        assert_eq!(of(tasks, "instructions:u, task t"), ["t user instructions"]);
        assert_eq!(of(tasks, "turns, task u"), [""; 0]);
        let history = r#""type":"history","clock":"cycles","step":2,"runs":1,"per":1,"stopped_by":"freeze",
            "passes":[],"series":[{"event":"loads","counting":{"name":"l","counter":"c","pass":0},"front":0.0,
            "median":[1.0,4.0],"min":[1.0,4.0],"max":[1.0,4.0],"each":[1.0,3.0]}]"#;
        assert_eq!(of(history, "loads, row 2"), ["loads up to cycles 2"]);
        assert_eq!(of(history, "loads"), ["loads up to cycles 4"]);
        let processors = r#""type":"processors","per":1,"runs":1,"processors":[],
            "sums":[{"event":"loads","value":4.0,"processors":2}],"start_skew":{"min":0,"median":0,"max":0},
            "snapshot":{"deadline":0,"skew":0,"events":[]}"#;
        assert_eq!(of(processors, "loads, sum"), ["loads"]);
        // An event's name may begin another's.
        let sample = r#""type":"sample","events":[{"event":"loads","overflows":3,"samples":3,"dropped":0,"throttled":0,
            "rest":0,"witness":30,"period":10},{"event":"loads.l1","overflows":2,"samples":2,"dropped":0,"throttled":0,
            "rest":0,"period":10}],"tasks":[],"code":[],
            "on_full":"drop","delivery":"fixed","handling":"h","interrupts":0,"spurious":0,"back_to_back":0,"ticks":0,
            "capability":{"overflow_interrupt":true,"culprit":"c","freeze":"f","skid":"s","data_address":"d"}"#;
        assert_eq!(of(sample, "loads, overflows"), ["sampled loads"]);
        assert_eq!(of(sample, "loads.l1, overflows"), ["sampled loads.l1"]);
        assert_eq!(of(sample, "loads"), [""; 0], "its count has no row");
    }

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        let seen = [1.0, 0.25, 1.0 / 3.0, -0.0001, 100.0, 1234.5].map(number);
        assert_eq!(seen, ["1", "0.25", "0.333", "0", "100", "1234.5"]);
    }
}
