use super::*;
use crate::collect::Numbered;
use protocol::record::{Aggregates, RetiredRecords, Series, Verdict};

/// A report of items with these names, and medians of the TSC and of `cycles`.
fn report(items: &[(&str, f64, Option<f64>)]) -> Report {
    let records = (0..).zip(items).map(|(item, (name, ticks, cycles))| {
        let figures = [("tsc", Some(*ticks)), ("cycles", *cycles), ("uops", cycles.map(|_| 24.0))];
        let metrics = figures.into_iter().filter_map(|(event, value)| {
            let value = value?;
            let value = Aggregates { min: value, median: value, mean: value, max: value };
            let series = [1, 2].map(|distinct| Series { distinct, ..Series::default() });
            let event = event.to_string();
            Some(Metric {
                event,
                value,
                deterministic: false,
                series,
                counting: None,
                energy: None,
                retired: None,
            })
        });
        let result = SnippetResult {
            item,
            name: (*name).to_string(),
            misses: vec![],
            verdict: Verdict::None,
            per: 100,
            runs: 10,
            metrics: metrics.collect(),
            uncounted: Vec::new(),
            planning: 0,
            controls: Vec::new(),
            restored: Vec::new(),
            unwatched: 0,
            smis: 0,
            emulated: false,
            tsc: [0; 2],
        };
        Numbered { seq: item, record: Record::Result(result) }
    });
    per_instruction(&Report { records: records.collect(), ..Report::default() })
}

#[test]
fn n3_ways_back_are_taken_off_and_bodies_divided_by_their_instructions() {
    let report = report(&[
        ("latency: imul r64, r64 (1 -> 1)", 3.0, None),
        ("latency: imul r64, r64 (2 -> 1; back: movsxd r64, r32; breaking 1)", 4.5, None),
        ("throughput: imul r64, r64 (8 apart)", 8.5, None),
        ("latency: movq xmm, r64 (2 -> 1; back: movq r64, xmm)", 6.0, None),
        ("latency: movsxd r64, r32 (2 -> 1)", 1.25, None),
        ("latency: mov r64, m64 (address -> 1)", 4.0, None),
        ("latency: mov m64, r64 (2 -> memory; back: mov r64, m64)", 5.0, None),
        ("nop", 8.0, None),
    ]);
    let rows = rows(&report);
    let forms: Vec<_> = rows.iter().map(|row| row.form.as_str()).collect();
    assert_eq!(
        forms,
        ["imul r64, r64", "movq xmm, r64", "movsxd r64, r32", "mov r64, m64", "mov m64, r64"]
    );
    let latency = |row: usize, index: usize| {
        let latency = &rows[row].latency[index];
        (latency.measured, latency.value, latency.at_most)
    };
    assert_eq!(latency(0, 0), (3.0, 3.0, false));
    assert_eq!(latency(0, 1), (4.5, 3.25, false));
    assert_eq!(latency(1, 0), (6.0, 5.0, true));
    // What a load takes from its address on says nothing of the time from a store.
    assert_eq!(latency(4, 0), (5.0, 4.0, true));
    let throughput = rows[0].throughput.as_ref().unwrap();
    assert_eq!((throughput.value, throughput.copies), (8.5 / 8.0, 8));
    let results: Vec<_> = report.results().map(|r| (r.per, r.metrics[0].value.max)).collect();
    assert_eq!((results[2], results[7]), ((800, 8.5 / 8.0), (100, 8.0)));
    let text = table(&report, "TSC ticks", Width::default());
    for part in [
        "each instruction in TSC ticks",
        "≤ 5",
        "1.062",
        "8 apart",
        "back by movsxd r64, r32, new 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("nop"), "{text}");
}

#[test]
fn n3_core_cycles_go_before_ticks_where_all_items_have_them() {
    let name = "throughput: inc r64 (8 apart)";
    let row = |items: &[(&str, f64, Option<f64>)]| rows(&report(items)).remove(0);
    let one = row(&[(name, 8.0, Some(16.0))]);
    let throughput = one.throughput.unwrap();
    assert_eq!((one.unit, throughput.value), ("cycles", 2.0));
    assert_eq!(throughput.events, [("uops".to_string(), 3.0)]);
    let one = row(&[(name, 8.0, Some(16.0)), ("throughput: nop (8 apart)", 8.0, None)]);
    assert_eq!((one.unit, one.throughput.unwrap().value), ("tsc", 1.0));
}

#[test]
fn a_report_without_forms_has_no_table_of_them() {
    assert_eq!(table(&report(&[("nop", 1.0, None)]), "TSC ticks", Width::default()), "");
}

/// What the figures count stands above them; an emulated item that is no form says nothing of that.
#[test]
fn n3_the_table_says_what_its_figures_count_and_events_are_figures_too() {
    let items = [
        ("throughput: inc r64 (8 apart)", 8.0, Some(16.0)),
        ("throughput: dec r64 (7 apart)", 8.0, Some(14.0)),
        ("other", 1.0, Some(1.0)),
    ];
    let text = |emulated: Option<usize>| {
        let mut report = report(&items);
        for (index, numbered) in report.records.iter_mut().enumerate() {
            if let Record::Result(result) = &mut numbered.record {
                result.emulated = emulated == Some(index);
            }
        }
        table(&report, "TSC ticks", Width::default())
    };
    for (emulated, unit) in [
        (None, "cycles"),
        (Some(2), "cycles"),
        (Some(1), "cycles (emulated, by its rule, of the way back too)"),
    ] {
        let head = text(emulated).lines().next().unwrap().to_string();
        assert_eq!(head, format!("instruction forms, each instruction in {unit}"));
    }
    // 24 micro-operations of 8 instructions, and of 7.
    let lines: Vec<String> = text(None).lines().map(|line| line.trim_end().to_string()).collect();
    let [inc, dec] = ["inc", "dec"].map(|form| {
        lines.iter().find(|line| line.contains(form)).unwrap().trim_end_matches(['│', '|', ' '])
    });
    assert!(inc.ends_with("    3") && dec.ends_with("3.429"), "{lines:#?}");
    assert_eq!(inc.chars().count(), dec.chars().count(), "{lines:#?}");
}

/// Of few instructions that read what they write, each waits for itself.
#[test]
fn n3_a_throughput_that_a_chain_explains_is_an_upper_bound() {
    let report = report(&[
        ("latency: add r8, r8 [32-bit] (1 -> 1)", 1.0, None),
        ("throughput: add r8, r8 [32-bit] (2 apart)", 1.0, None),
        ("latency: div r32 [32-bit] (eax -> eax)", 24.0, None),
        ("throughput: div r32 [32-bit] (3 apart)", 20.0, None),
        ("latency: imul r32, r32 [32-bit] (1 -> 1)", 3.0, None),
        ("throughput: imul r32, r32 [32-bit] (5 apart)", 5.0, None),
        ("latency: lea r32, m [32-bit] (address -> 1)", 8.0, None),
        ("throughput: lea r32, m [32-bit] (5 apart)", 5.0, None),
    ]);
    let rows = rows(&report);
    let bounds: Vec<_> = rows.iter().map(|row| row.throughput.as_ref().unwrap().bound).collect();
    // DIV's are 6.7 cycles apart and would be 8 by its latency.
    assert_eq!(bounds, [Some("at most"), Some("at most"), None, None]);
    assert!(table(&report, "TSC ticks", Width::default()).contains("≤ 0.5"));
}

/// A partner may have partners. What could run beside others at no cost is a lower bound, and what stands beside a form
/// that was not measured by itself an upper one.
#[test]
fn d2_what_stands_beside_a_form_is_subtracted_and_its_events_too() {
    let report = report(&[
        ("throughput: faddp st, st0 (8 apart; with fld1)", 16.0, Some(32.0)),
        ("throughput: fld1 (8 apart; with ffree st + fincstp)", 8.0, Some(24.0)),
        ("throughput: ffree st (8 apart)", 4.0, Some(8.0)),
        ("throughput: fincstp (8 apart)", 4.0, Some(12.0)),
        ("throughput: call rel32 (8 apart; with ret + jmp rel8)", 4.0, Some(64.0)),
        ("throughput: ret (8 apart; with call rel32 + jmp rel8)", 4.0, Some(64.0)),
        ("throughput: jmp rel8 (8 apart)", 4.0, Some(16.0)),
        ("throughput: fcompp (8 apart; with fld1 + fld1)", 4.0, Some(6.0)),
    ]);
    let rows = rows(&report);
    let of = |form: &str| {
        let row = rows.iter().find(|row| row.form == form).unwrap();
        let one = row.throughput.as_ref().unwrap();
        (one.bound, one.value, one.measured, one.events[0].1)
    };
    // 24 events of 8 instructions; those beside it have as many each.
    assert_eq!(of("ffree st"), (None, 1.0, 1.0, 3.0));
    assert_eq!(of("fld1"), (Some("at least"), 0.5, 3.0, -3.0));
    assert_eq!(of("faddp st, st0"), (Some("at least"), 3.5, 4.0, 6.0));
    assert_eq!(of("call rel32"), (Some("at most"), 8.0, 8.0, 3.0));
    assert_eq!(of("ret").0, Some("at most"));
    // Never less than nothing.
    assert_eq!(of("fcompp").1, 0.0);
    let text = table(&report, "TSC ticks", Width::default());
    for part in ["≥ 3.5", "≤ 8", "8 apart, 3 with ffree st + fincstp"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A latency of retirement is a mean of records, each of one instruction.
#[test]
fn a_mean_of_records_is_not_divided_by_the_copies_of_a_body() {
    let mut report = report(&[("throughput: imul r64, r64 (8 apart)", 8.0, Some(8.0))]);
    for numbered in &mut report.records {
        let Record::Result(result) = &mut numbered.record else { continue };
        result.metrics[2].retired = Some(RetiredRecords::default());
        result.metrics[2].value.median = 18.0;
        let miss =
            |figure: &str| serde_json::from_str(&format!(r#"{{"figure":"{figure}","max":8.0}}"#));
        result.misses = ["cycles", "uops"].map(|figure| miss(figure).unwrap()).to_vec();
    }
    let divided = per_instruction(&report);
    let result = divided.results().next().unwrap();
    let medians: Vec<f64> = result.metrics.iter().map(|metric| metric.value.median).collect();
    assert_eq!(medians, [0.125, 0.125, 18.0]);
    let bounds: Vec<_> = result.misses.iter().map(|miss| miss.max).collect();
    assert_eq!(bounds, [Some(1.0), Some(8.0)]);
    // Nor is it a count of the form's.
    assert!(rows(&divided)[0].throughput.as_ref().unwrap().events.is_empty());
}
