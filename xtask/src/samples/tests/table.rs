//! The table, CSV and TAP of a profile.

use super::*;
use protocol::record::Uncounted;

#[test]
fn m8_m9_the_table_says_what_was_sampled_what_was_not_and_how_exact_it_is() {
    let uncounted = vec![Uncounted { event: "loads".into(), reason: "no counter".into() }];
    let report = report(vec![Record::Sample(SampleResult { uncounted, ..result() })]);
    let context = Context {
        sampled: vec![(
            4,
            vec![TaskCode { body: BODY.to_vec(), labels: vec![(1, "inner".into())] }],
        )],
        ..Context::default()
    };
    let table = render(&report, &context, Format::Table);
    let mut own = report.clone();
    for one in &mut own.records {
        if let Record::Sample(result) = &mut one.record {
            result.emulated = !result.emulated;
        }
    }
    let other = render(&own, &context, Format::Table);
    let labelled = [&table, &other].map(|text| text.contains("emulated PMU"));
    assert!(labelled == [true, false] || labelled == [false, true], "{table}{other}");
    for part in [
        "s;t",
        "cycles",
        "100",
        "work:inner",
        "imul rax, rax",
        "66.7 %",
        "none at all",
        "not available: test",
        "periods doubled 3 times, and halved 2 times when the rate fell again",
        "4 overflows",
        "erratum X1",
        "frozen",
        "emulated",
        "NMI",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&report, &context, Format::Csv);
    assert!(csv.contains("4,s;t,sampled cycles,11,"), "{csv}");
    assert!(csv.contains("4,s;t,loads,,,,,,,,,,uncounted\n"), "{csv}");
    assert!(render(&report, &context, Format::Tap).contains("ok 1 - s;t"));
    assert_eq!(report.items(), 1);
}
