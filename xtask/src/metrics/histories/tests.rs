use super::*;
use crate::events::Block;
use crate::kinds::history::text::tests::example;
use crate::metrics::names::{Asked, find};
use crate::metrics::request::{Target, ask, planned_beside};
use pmu_model::Model;
use protocol::record::HistoryPass;

const BESIDE: [&str; 2] = ["cycles", "instructions"];

fn asked(model: Model, name: &str) -> Result<Ask, String> {
    let block = Block::embedded();
    let target = Target::of_model(model).unwrap();
    let (core, table) = target.tables(&block.tables()).unwrap();
    let found = find(&table, &[name.parse::<Asked>().unwrap()]).unwrap();
    let one = ask(&target, &core, &table, &found[0]).unwrap();
    one.in_rows(&target, &core, &BESIDE).map_err(|error| error.to_string())
}

fn series(event: &str, pass: u32, median: &[f64]) -> HistorySeries {
    let before = std::iter::once(&0.0).chain(median);
    HistorySeries {
        event: event.to_string(),
        counting: Counting { name: event.to_string(), pass, ..Counting::default() },
        front: 2.0,
        each: median.iter().zip(before).map(|(now, before)| now - before).collect(),
        median: median.to_vec(),
        min: median.to_vec(),
        max: median.to_vec(),
    }
}

/// Rows of two cycles; the snippet ends in the third of four.
fn history(series: Vec<HistorySeries>) -> HistoryResult {
    let pass = |instructions: &[f64]| HistoryPass {
        front: 4,
        end: Some(6),
        whole: 14.0,
        skid: [0; 2],
        instructions: instructions.to_vec(),
    };
    let passes = vec![pass(&[]), pass(&[2.0, 5.0, 6.0, 9.0])];
    HistoryResult { step: 2, passes, series, uncounted: Vec::new(), ..example() }
}

fn row(ask: &Ask, history: &HistoryResult) -> (crate::metrics::MetricRow, ItemMetrics) {
    let mut item = of_history(history, std::slice::from_ref(ask), Clock::default());
    (item.rows.remove(0), item)
}

#[test]
fn s3_m16_a_metric_of_a_history_is_of_its_snippet_and_of_each_row() {
    let ipc = asked(Model::Skylake, "ipc").unwrap();
    let mut instructions = series("instructions", 0, &[1.0, 4.0, 6.0, 8.0]);
    let of = |instructions: HistorySeries| row(&ipc, &history(vec![instructions]));
    let (seen, item) = of(instructions.clone());
    // Six instructions in the six cycles of the snippet; the last row is after it.
    assert_eq!((seen.value, seen.spread), (Some(1.0), Some([1.0; 2])), "{seen:?}");
    assert_eq!(seen.each, [0.5, 1.5, 1.0, 1.0].map(Some));
    assert_eq!((item.step, item.end, &*seen.passes), (Some(2), Some(3), &[1][..]));
    assert!(seen.untrusted.is_empty(), "{seen:?}");
    (instructions.min[2], instructions.max[2]) = (3.0, 9.0);
    assert_eq!(of(instructions).0.spread, Some([0.5, 1.5]));
}

/// Of two passes each has its own counts of the clock and of instructions, so that a ratio with them is of one pass.
#[test]
fn s3_m16_a_metric_of_the_second_pass_takes_the_clock_and_instructions_of_that_pass() {
    let ratio = asked(Model::Skylake, "branch_ratio").unwrap();
    let all = vec![
        series("instructions", 0, &[2.0, 4.0, 6.0, 8.0]),
        series("branches", 1, &[1.0, 1.0, 3.0, 3.0]),
    ];
    let (seen, _) = row(&ratio, &history(all));
    assert_eq!((seen.value, &*seen.passes), (Some(50.0), &[2][..]), "{seen:?}");
    assert_eq!(seen.each, [50.0, 0.0, 200.0, 0.0].map(Some));
    assert!(seen.untrusted.is_empty(), "{seen:?}");
}

#[test]
fn s3_m16_rows_without_a_value_are_gaps() {
    let misses = asked(Model::Skylake, "branch_miss_rate").unwrap();
    let all = vec![
        series("branches", 0, &[0.0, 2.0, 2.0, 4.0]),
        series("branch-misses", 0, &[0.0, 1.0, 1.0, 1.0]),
    ];
    let (seen, _) = row(&misses, &history(all));
    assert_eq!(seen.each, [None, Some(50.0), None, Some(0.0)], "{seen:?}");
    assert_eq!(seen.value, Some(50.0));
    let none = row(&misses, &history(vec![series("branches", 0, &[1.0; 4])])).0;
    assert!(none.missing.is_some_and(|why| why.contains("branch-misses was not counted")));
}

#[test]
fn s3_m16_the_clock_under_the_tables_name_is_the_clock() {
    // Intel's names of the two fixed counters.
    let cpi = asked(Model::Skylake, "Info_Thread_IPC").unwrap();
    assert_eq!(cpi.events().collect::<Vec<_>>(), ["instructions", "cycles"]);
    let target = Target::of_model(Model::Skylake).unwrap();
    let block = Block::embedded();
    let (core, _) = target.tables(&block.tables()).unwrap();
    let planned = planned_beside(&target, &core, &mut [cpi], &BESIDE).unwrap();
    assert!(planned.is_empty(), "both are in every pass");
    let mut ratio = [asked(Model::Skylake, "branch_ratio").unwrap()];
    let planned = planned_beside(&target, &core, &mut ratio, &BESIDE).unwrap();
    let planned: Vec<String> = planned.iter().map(ToString::to_string).collect();
    assert_eq!(planned, ["branches"]);
    assert!(planned_beside(&target, &core, &mut ratio, &["no_such_event"]).is_err());
}

#[test]
fn s3_m16_what_no_row_has_is_refused_by_name() {
    for (name, what) in [("power", "energy-pkg"), ("frequency", "time")] {
        let why = asked(Model::Skylake, name).unwrap_err();
        assert!(why.contains(&format!("metric {name} needs {what}, which no row")), "{why}");
    }
}

#[test]
fn s3_m16_shares_of_many_slots_say_how_far_they_are_known() {
    let retiring = asked(Model::IceLake, "Retiring").unwrap();
    let field = retiring.events().find(|event| shares::field(event) == Some(0)).unwrap();
    let of = |slots: f64| {
        let rows = [1.0, 2.0, 3.0, 4.0].map(|row| row * slots / 4.0);
        row(&retiring, &history(vec![series(field, 0, &rows)])).1.row_slots
    };
    // Two slots are in front.
    assert_eq!([125.0, 126.0, 254.0].map(of), [None, Some(1.0), Some(2.0)]);
}
