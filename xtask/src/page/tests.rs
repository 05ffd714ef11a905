use super::*;
use crate::cli::Format;
use crate::collect::{Numbered, Report};
use crate::context::Context;
use crate::render::render as text;
use protocol::record::Record;

fn record(json: &str) -> Numbered {
    let record: Record =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    Numbered { seq: 0, record }
}

fn report(records: &[&str]) -> Report {
    Report { records: records.iter().map(|one| record(one)).collect(), ..Report::default() }
}

const END: &str = r#"{"type":"end","records":9,"outcome":"pass","passed":0,"failed":0,"measured":1,"on_end":"halt"}"#;

/// A snippet whose runs took 11 to 13 ticks more for twice as much code.
fn snippet(item: u32, name: &str) -> String {
    let name = serde_json::to_string(name).unwrap();
    format!(
        r#"{{"type":"result","item":{item},"name":{name},"verdict":"none","per":1,"runs":3,"metrics":[
           {{"event":"tsc","min":11.0,"median":12.0,"mean":12.0,"max":13.0,"deterministic":false,"series":[
           {{"min":7,"max":7,"distinct":1,"values":[7,7,7]}},{{"min":18,"max":20,"distinct":3,"values":[18,20,19]}}]}}],
           "tsc":[0,1]}}"#
    )
}

fn page_of(report: &Report) -> String {
    text(report, &Context::default(), Format::Html)
}

#[test]
fn x5_the_page_of_a_run_is_that_of_its_saved_report() {
    let report = report(&[&snippet(0, "a"), END]);
    let json = text(&report, &Context::default(), Format::Json);
    let again = render(&[read(json.as_bytes(), "").unwrap()], None);
    assert_eq!(page_of(&report), again);
}

#[test]
fn x5_a_log_is_read_like_a_document_and_other_files_are_refused_by_name() {
    let start = r#"{"type":"start","program":"barecount","version":"9","protocol":1,"image_base":"0x0","tsc":[1,2]}"#;
    let lines = protocol::line::encode(0, &record(start).record);
    let document = read(lines.as_bytes(), "run.log").unwrap();
    assert_eq!((document.exit_code, document.report.records.len()), (3, 1));
    let page = render(&[document], None);
    assert!(
        page.contains("Report incomplete") && page.contains("the end record is missing"),
        "{page}"
    );
    for bad in [&b"{}"[..], b"", b"some text", b"{\"records\":[]}"] {
        let error = read(bad, "this.json").unwrap_err().to_string();
        assert!(error.starts_with("this.json is not a report"), "{error}");
    }
    let newer = br#"{"report":99,"run":{},"exit_code":0,"records":[]}"#;
    assert_eq!(
        read(newer, "f").unwrap_err().to_string(),
        "f: the report is of version 99; this program knows 1"
    );
    let wrong = br#"{"report":1,"run":{},"exit_code":0,"records":[{"type":"result"}]}"#;
    assert!(read(wrong, "f").unwrap_err().to_string().starts_with("f: record 0 cannot be read"));
}

/// Names are somebody else's: none of them becomes markup, a script, or text that is shown backwards.
#[test]
fn x5_no_name_becomes_markup() {
    let evil = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)> \" onload='x' \u{202e}\u{1b}[2J";
    let emoji = "\u{1f600}".repeat(200);
    let bad = serde_json::to_string(evil).unwrap();
    let check = format!(
        r#"{{"type":"check","item":1,"name":{bad},"verdict":"fail","expected":{bad},"seen":{bad},"source":{bad}}}"#
    );
    let error =
        format!(r#"{{"type":"error","code":"snippet_lost","item":2,"name":{bad},"text":{bad}}}"#);
    let task = format!(
        r#"{{"type":"tasks","item":3,"name":{bad},"tasks":[{{"name":"{emoji}","entry":"0x0","end":"exit","turns":1,
           "switches":1,"time":1,"value":"0x0","memory_crc32":"0x0"}}],"switches":1,"ticks":{{"count":0,"min":0,"median":0,
           "max":0}},"interrupts":[],"tsc":[0,1]}}"#
    );
    let report = report(&[&snippet(0, evil), &check, &error, &task, END]);
    let context =
        Context { complaint: Some(evil.into()), source: evil.into(), ..Context::default() };
    let json = text(&report, &context, Format::Json);
    let page =
        render(&[read(json.as_bytes(), evil).unwrap(), read(json.as_bytes(), "b").unwrap()], None);
    assert_eq!(page.matches("<script").count(), 1, "our own alone");
    for part in ["<img", "onerror=alert(2)>", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(part), "{part:?}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains(&emoji));
    assert!(page.contains("\\u{202e}"), "what turns the direction is spelt out");
}

/// The limits of an attachment, and nothing that is not in the file.
#[test]
fn x5_a_thousand_items_take_less_than_a_megabyte_and_a_half_and_nothing_is_loaded() {
    let all: Vec<String> =
        (0..1000).map(|item| snippet(item, &format!("snippet {item}"))).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).chain([END]).collect();
    let page = page_of(&report(&all));
    assert!(page.len() < 1_500_000, "{}", page.len());
    assert!(page.contains("snippet 999") && page.contains("default-src 'none'"));
    for part in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn x5_a_figure_has_its_range_and_its_distribution() {
    let page = page_of(&report(&[&snippet(0, "a"), END]));
    for part in [
        "3 distinct",
        "3 runs, all different",
        "7 in all 3 runs",
        "median 19",
        ">12<",
        ">11<",
        ">13<",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn x5_trust_is_told_in_words() {
    let machine = |rest: &str| {
        format!(
            r#"{{"type":"machine","vendor":"GenuineIntel","brand":"A processor","family":6,"model":94,"stepping":3,
               "topology":{{"apic_id":0,"threads_per_core":1,"threads_per_package":1}},"tsc":{{"hz":1000000000,
               "source":"cpuid","invariant":true}},"apic":{{"mode":"xapic","timer_hz":1}},"memory_bytes":1048576{rest}}}"#
        )
    };
    let heads = |machine: &str, run: &str| {
        let report = report(&[machine, END]);
        let mut json: serde_json::Value =
            serde_json::from_str(&text(&report, &Context::default(), Format::Json)).unwrap();
        json["run"] = serde_json::from_str(run).unwrap();
        let document = read(json.to_string().as_bytes(), "f").unwrap();
        trust::of(&document).into_iter().map(|one| one.head).collect::<Vec<_>>()
    };
    let pmu = r#","pmu":{"architecture":"intel","version":4,"counters":4,"counter_bits":48,"fixed_counters":3,
        "fixed_counter_bits":48,"features":[],"errata":["E1"],"conflicts":[]}"#;
    let emulated =
        format!(r#"{pmu},"emulated_pmu":{{"model":3,"tsc_shift":0}},"hypervisor":"TCG""#);
    let faulty =
        pmu.replace(r#""conflicts":[]"#, r#""conflicts":[],"faults":["counter 2 stands still"]"#);
    for (machine, run, expected) in [
        (machine(""), "{}", &["Report complete", "The machine itself", "No PMU"][..]),
        (
            machine(pmu),
            "{}",
            &[
                "Report complete",
                "The machine itself",
                "Counts of the processor's own PMU",
                "Known errata",
            ],
        ),
        (
            machine(&format!(r#"{pmu},"virtual_pmu":"KVM","hypervisor":"KVMKVMKVM""#)),
            r#"{"accelerator":"kvm"}"#,
            &[
                "Report complete",
                "A virtual machine on the host's processor",
                "Counts of a virtual PMU",
                "Known errata",
            ],
        ),
        (
            machine(&faulty),
            r#"{"accelerator":"kvm"}"#,
            &[
                "Report complete",
                "A virtual machine on the host's processor",
                "Counts of the processor's own PMU",
                "The PMU does not do what it announces",
            ],
        ),
        (
            machine(&emulated),
            r#"{"accelerator":"tcg","ticks_per_instruction":1,"authentication":"verified: so"}"#,
            &[
                "Report complete",
                "Exact, and not time",
                "Counts of an emulated PMU",
                "Known errata",
                "From the firmware",
            ],
        ),
        (
            machine(&emulated),
            r#"{"accelerator":"tcg","authentication":"not verified"}"#,
            &[
                "Report complete",
                "Times of a translator",
                "Counts of an emulated PMU",
                "Known errata",
                "Origin not verified",
            ],
        ),
        (
            machine(r#","hypervisor":"KVM""#),
            "{}",
            &["Report complete", "A machine with a hypervisor below", "No PMU"],
        ),
    ] {
        assert_eq!(heads(&machine, run), expected, "{run}");
    }
}

/// Items of one name belong together in their order, whatever their places.
#[test]
fn x5_several_runs_stand_side_by_side() {
    let one = report(&[&snippet(0, "a"), &snippet(1, "b"), &snippet(2, "b"), END]);
    let two = report(&[
        &snippet(0, "b"),
        &snippet(1, "new"),
        &snippet(2, "a").replace("\"median\":12.0", "\"median\":15.0"),
        END,
    ]);
    let documents: Vec<Document> = [("old", one), ("new", two)]
        .into_iter()
        .map(|(name, report)| {
            read(text(&report, &Context::default(), Format::Json).as_bytes(), name).unwrap()
        })
        .collect();
    let page = page(&documents, None);
    let shape: Vec<(&str, Vec<bool>)> = page
        .items
        .iter()
        .map(|item| (&*item.name, item.figures[0].values.iter().map(Option::is_some).collect()))
        .collect();
    assert_eq!(
        shape,
        [
            ("a", vec![true, true]),
            ("b", vec![true, true]),
            ("b", vec![true, false]),
            ("new", vec![false, true])
        ]
    );
    let text = render(&documents, None);
    for part in ["▲ +3", "(+25.0 %)", "not in all", "same", ">old<", ">new<"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Of a sum as of a snippet, and of its change.
#[test]
fn energy_has_the_prefix_that_suits_it_everywhere() {
    let of = |joules: f64| {
        let series = r#"{"min":1,"max":2,"distinct":2}"#;
        report(&[
            &format!(
                r#"{{"type":"processors","item":0,"name":"p","per":1,"runs":1,"tsc":[0,1],
                "processors":[{{"processor":0,"apic_id":0,"tsc_offset":0,"tsc_offset_error":0,"metrics":[
                {{"event":"energy-pkg","median":{joules},"min":{joules},"mean":{joules},"max":{joules},"deterministic":false,
                "series":[{series},{series}],"energy":{{"unit":14,"resolution":1e-9,"ticks":[1,2],"update":9}}}}],
                "snapshot_tsc":0,"snapshot":[]}}],"sums":[{{"event":"energy-pkg","value":{joules},"processors":1}}],
                "start_skew":{{"min":0,"median":0,"max":0}},"snapshot":{{"deadline":0,"skew":0,"events":[]}}}}"#
            ),
            END,
        ])
    };
    let document = |joules| {
        let json = text(&of(joules), &Context::default(), Format::Json);
        read(json.as_bytes(), "one").unwrap()
    };
    // Of runs side by side, the unit of the largest.
    for (runs, unit, expected) in [
        (&[1.5e-8][..], "nJ", &[15.0][..]),
        (&[1.5], "J", &[1.5]),
        (&[1.5e-8, 2e-5], "µJ", &[0.015, 20.0]),
    ] {
        let shown = page(&runs.iter().map(|&one| document(one)).collect::<Vec<_>>(), None);
        let figures = &shown.items[0].figures;
        assert_eq!(figures.len(), 2, "{figures:?}");
        for figure in figures {
            assert_eq!(figure.unit, unit, "{figure:?}");
            for (value, expected) in figure.values.iter().zip(expected) {
                let value = value.as_ref().and_then(|value| value.value).unwrap();
                assert!((value - expected).abs() < 1e-9, "{figure:?}");
            }
        }
    }
    let saved = |joules| {
        let json = text(&of(joules), &Context::default(), Format::Json);
        crate::compare::saved::parse(json.as_bytes(), "a.json").unwrap()
    };
    let limits = crate::compare::Limits::default();
    for (old, new, expected) in [(1.5e-8, 2e-8, ("nJ", 15.0, 20.0)), (2.0, 3.0, ("J", 2.0, 3.0))] {
        let comparison = crate::compare::compare(&saved(old), &saved(new), &limits, 0.99).unwrap();
        let change = changes::of(&comparison).figures.remove(0);
        let [old, new] = [change.old, change.new].map(|value| value.unwrap().round());
        assert_eq!((&*change.unit, old, new), expected);
    }
}

/// Ticks that are instructions in the one run and time in the other.
#[test]
fn x5_figures_of_different_units_are_not_subtracted() {
    let document = |ticks: Option<u64>, record: &str| {
        let json = text(&report(&[record, END]), &Context::default(), Format::Json);
        let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["run"]["ticks_per_instruction"] = ticks.into();
        read(json.to_string().as_bytes(), "f").unwrap()
    };
    let (slow, fast) = (snippet(0, "a"), snippet(0, "a").replace("12.0", "15.0"));
    let both = [document(Some(1), &slow), document(None, &fast)];
    let shown = page(&both, None);
    let figure = &shown.items[0].figures[0];
    let other = figure.values[1].as_ref().unwrap().other_unit.as_deref();
    assert_eq!(figure.unit, "ticks of the time stamp counter; a tick is an instruction here");
    assert_eq!(other, Some("ticks of the time stamp counter"));
    let text = render(&both, None);
    assert!(text.contains("different units") && !text.contains("+25.0 %"), "{text}");
    // What the first run did not count has the unit of the other.
    let uncounted = slow.replace(
        r#""metrics":["#,
        r#""uncounted":[{"event":"cycles","reason":"none"}],"metrics":["#,
    );
    let energy = slow.replace(r#""event":"tsc""#, r#""event":"cycles""#).replace(
        r#","series""#,
        r#","energy":{"unit":14,"resolution":1e-9,"ticks":[1,2],"update":9},"series""#,
    );
    let shown = page(&[document(None, &uncounted), document(None, &energy)], None);
    let figure = shown.items[0].figures.iter().find(|one| one.name == "cycles").unwrap();
    assert_eq!((&*figure.unit, figure.has_one_unit()), ("J", true));
}

#[test]
fn x5_checks_of_several_runs_are_one_matrix() {
    let check = |name: &str, verdict: &str, seen: &str| {
        format!(
            r#"{{"type":"check","item":0,"name":"{name}","verdict":"{verdict}","expected":"7","seen":"{seen}","source":"SDM"}}"#
        )
    };
    let one = report(&[&check("a.x", "pass", "7"), &check("b.y", "fail", "8"), END]);
    let two = report(&[
        &check("a.x", "skip", "-"),
        &check("a.z", "pass", "7"),
        &check("b.y", "known_erratum", "8"),
        &check("c.x", "known_behaviour", "8"),
        END,
    ]);
    let documents: Vec<Document> = [("one", one), ("two", two)]
        .into_iter()
        .map(|(name, report)| {
            read(text(&report, &Context::default(), Format::Json).as_bytes(), name).unwrap()
        })
        .collect();
    let suites = suites::of(&documents);
    let [suite] = &suites[..] else { panic!("{suites:?}") };
    let rows: Vec<String> = suite
        .checks
        .iter()
        .map(|check| {
            let verdicts =
                check.results.iter().map(|one| one.as_ref().map_or("-", |one| &one.verdict.text));
            format!("{}.{}: {}", check.family, check.name, verdicts.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(rows, ["a.x: pass skip", "a.z: - pass", "b.y: fail erratum", "c.x: - known"]);
}

/// Everything that a bring-up reports is on the page, long tables with a filter; of two runs with their names.
#[test]
fn x5_a_page_has_all_that_a_bring_up_found() {
    let report = report(&crate::bring_up::tests::LINES);
    let page = page_of(&report);
    for part in [
        "What the bring-up found",
        "Measured on this machine",
        "skid.interrupt",
        "IA32_PERFEVTSEL0",
        "0x4300c0",
        "power management timer of 24 bits",
        "CPUID of the boot processor",
        "756e6547",
        "data-filter",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let json = text(&report, &Context::default(), Format::Json);
    let document = |name| read(json.as_bytes(), name).unwrap();
    let both = render(&[document("one"), document("two")], None);
    assert!(both.contains("one: ACPI tables") && both.contains("two: ACPI tables"), "{both}");
    assert!(!page_of(&self::report(&[END])).contains("bring-up"), "nothing was found");
}
