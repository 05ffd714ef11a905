use super::*;
use crate::cli::Format;
use crate::collect::Numbered;
use crate::context::Context;
use crate::render::render;
use protocol::hex::Hex;
use protocol::record::{Applied, Counting, HistoryPass, HistoryPlace, Record, Uncounted};

fn series(event: &str, each: &[f64]) -> HistorySeries {
    let mut sum = 0.0;
    let median: Vec<f64> = each
        .iter()
        .map(|value| {
            sum += value;
            sum
        })
        .collect();
    let remarks = vec!["erratum X1".to_string()];
    let counter = "counter 0".to_string();
    HistorySeries {
        event: event.into(),
        counting: Counting { name: event.into(), counter, remarks, ..Counting::default() },
        front: 3.0,
        min: median.clone(),
        max: median.clone(),
        median,
        each: each.to_vec(),
    }
}

/// A history with a jump in the second cycle, loads in the fifth and sixth, and an end at the sixth.
pub(crate) fn example() -> HistoryResult {
    HistoryResult {
        item: 7,
        name: "a # b".into(),
        verdict: protocol::record::Verdict::None,
        misses: vec![],
        clock: "cycles".into(),
        step: 1,
        runs: 3,
        per: 1,
        end_to_end: false,
        stopped_by: StoppedBy::Freeze,
        passes: vec![HistoryPass {
            front: 4,
            end: Some(6),
            whole: 14.0,
            skid: [0, 0],
            instructions: Vec::new(),
        }],
        series: vec![
            series("branches", &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            series("loads", &[0.0, 0.0, 0.0, 0.0, 4.0, 1.0, 0.0]),
        ],
        program: None,
        places: vec![],
        uncounted: vec![Uncounted { event: "nonsense".into(), reason: "no such event".into() }],
        controls: vec![Applied { option: "turbo=off".into(), applied: false, note: "why".into() }],
        restored: vec!["CR8".into()],
        remarks: vec!["the first row".into()],
        emulated: true,
        tsc: [0; 2],
    }
}

fn rendered(history: HistoryResult, format: Format) -> String {
    let records = vec![Numbered { seq: 0, record: Record::History(history) }];
    let report = Report { records, ..Report::default() };
    assert_eq!(report.items(), 1);
    let text = render(&report, &Context::default(), format);
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn m16_the_table_has_a_plot_and_merges_rows_that_are_alike() {
    let table = rendered(example(), Format::Table);
    for part in [
        "7 a # b",
        "3 runs for each row; 4 cycles of the code before it are subtracted; the snippet ends at 6; frozen by the \
         processor",
        "  branches (emulated)      1 ·█····|·",
        "  loads (emulated)         1 ····█▂|·",
        "not counted: nonsense: no such event",
        "doubtful: the first row",
        "doubtful: loads: erratum X1",
        "not available: turbo=off: why",
        "restored: it changed CR8",
    ] {
        assert!(table.contains(part), "{part}:\n{table}");
    }
    let cells = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = table.lines().map(cells).collect();
    for row in [["3-4", "0", "1", "0", "0"], ["5", "0", "1", "4", "4"], ["6", "0", "1", "1", "5"]] {
        assert!(rows.iter().any(|cells| cells == &row), "{row:?}\n{table}");
    }
}

#[test]
fn m16_runs_that_disagree_and_a_late_stop_are_shown() {
    let mut history = example();
    history.stopped_by = StoppedBy::Handler;
    history.passes[0] =
        HistoryPass { front: 4, end: None, whole: 14.0, skid: [11, 19], instructions: Vec::new() };
    history.series[1].max[6] = 9.0;
    history.series[1].each[2] = -0.5;
    history.end_to_end = true;
    let table = rendered(history, Format::Table);
    for part in [
        "stopped by the interrupt's handler 11 to 19 cycles late",
        "the rows end before the snippet",
        "from the switch",
        "5 (5-9)",
        "··-·█▂·",
    ] {
        assert!(table.contains(part), "{part}:\n{table}");
    }
}

#[test]
fn m16_long_plots_take_several_lines() {
    let mut history = example();
    history.step = 2;
    history.passes[0].end = Some(164);
    history.series = vec![series("branches", &[1.0; 100])];
    let table = rendered(history, Format::Table);
    let (first, second) = ("█".repeat(80), "█".repeat(18));
    assert!(table.contains(&format!(" 2 {first}\n")), "{table}");
    assert!(table.contains(&format!(" 162 ██|{second}\n")), "{table}");
    let merged =
        table.lines().any(|line| line.split_whitespace().eq(["1-200", "1", "each", "100"]));
    assert!(merged, "{table}");
}

#[test]
fn m16_every_other_form_has_every_row() {
    let csv = rendered(example(), Format::Csv);
    assert!(csv.contains("7,a # b,loads up to cycles 5,4,4,,4,3,1,true,,,\n"), "{csv}");
    assert!(csv.contains("7,a # b,loads in cycles 6,1,1,,1,3,1,true,,,\n"), "{csv}");
    assert!(csv.contains("7,a # b,nonsense,,,,,,,,,,uncounted\n"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * 7 + 1);
    let tap = rendered(example(), Format::Tap);
    let point = "ok 1 - a \u{ff03} b\n  ---\n  name: \"a # b\"\n  history:\n    - event: \"branches\"\n      \
                 clock: \"cycles\"\n      step: 1\n      front: 4\n      end: 6\n      \
                 each: \"0 1 0 0 0 0 0\"\n";
    assert!(tap.contains(point), "{tap}");
    let json: serde_json::Value = serde_json::from_str(&rendered(example(), Format::Json)).unwrap();
    let loads = &json["records"][0]["series"][1];
    assert_eq!(loads["median"], serde_json::json!([0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 5.0]));
    assert_eq!(json["records"][0]["passes"][0]["front"], 4);
}

#[test]
fn m16_rows_of_compiled_code_name_function_file_and_line() {
    let place = |address, function: &str, line: u32| HistoryPlace {
        address: Hex(address),
        function: (!function.is_empty()).then(|| function.into()),
        location: (line > 0).then(|| format!("/somewhere/walk.rs:{line}")),
    };
    let places = vec![
        place(0x1000, "walk", 12),
        place(0x1004, "walk", 12),
        place(0x1008, "step", 0),
        place(0x100c, "step", 0),
        place(0x1010, "walk", 13),
        place(0x1014, "walk", 14),
        place(0x9000, "", 0),
    ];
    let table = rendered(HistoryResult { places, ..example() }, Format::Table);
    let rows: Vec<String> = table
        .lines()
        .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for end in ["walk, walk.rs:12", "step", "walk, walk.rs:13", "walk, walk.rs:14"] {
        assert!(rows.iter().any(|row| row.ends_with(end)), "{end}: {rows:#?}");
    }
    // Rows 3 and 4 are alike in all figures, and the next is in another function.
    assert!(rows.iter().any(|row| row.starts_with("3-4 ")), "{rows:#?}");
    assert!(!rendered(example(), Format::Table).contains("walk"));
}
