use super::*;
use crate::events::Block;
use crate::metrics::names::{Asked, find};
use crate::metrics::request::{Target, ask, planned};
use pmu_model::Model;
use serde::Serialize;
use serde_json::json;

fn asks(model: Model, asked: &[&str]) -> Vec<Ask> {
    let block = Block::embedded();
    let target = Target::of_model(model).unwrap();
    let (core, table) = target.tables(&block.tables()).unwrap();
    let asked: Vec<Asked> = asked.iter().map(|name| name.parse().unwrap()).collect();
    let metrics = find(&table, &asked).unwrap();
    let mut asks: Vec<Ask> =
        metrics.iter().map(|one| ask(&target, &core, &table, one).unwrap()).collect();
    let _ = planned(&target, &core, &mut asks);
    asks
}

/// A result of two runs with these counts in passes.
fn result(counts: &[(&str, u64, u32)]) -> SnippetResult {
    let metric = |&(event, value, pass): &(&str, u64, u32)| {
        let series = |times: u64| {
            json!({"min": times * value, "max": times * value, "distinct": 1,
                   "values": [times * value, times * value + times - 1]})
        };
        let mut metric = json!({"event": event, "min": value, "median": value, "mean": value, "max": value,
               "deterministic": true, "series": [series(1), series(2)]});
        if event != "tsc" {
            metric["counting"] = json!({"name": event, "counter": "counter 0", "pass": pass});
        }
        metric
    };
    let metrics: Vec<_> = counts.iter().map(metric).collect();
    serde_json::from_value(json!({"item": 0, "name": "x", "verdict": "none", "per": 1, "runs": 2,
        "metrics": metrics, "tsc": [0, 1]}))
    .unwrap()
}

fn rows(model: Model, asked: &[&str], counts: &[(&str, u64, u32)]) -> Vec<MetricRow> {
    of_item(&result(counts), &asks(model, asked), Clock::default()).rows
}

#[test]
fn s3_a_metric_has_its_value_its_spread_and_its_pass() {
    let rows = rows(Model::Skylake, &["ipc"], &[("instructions", 300, 1), ("cycles", 100, 1)]);
    let row = &rows[0];
    assert_eq!((row.value, &row.passes[..]), (Some(3.0), &[2][..]));
    let [least, most] = row.spread.unwrap();
    assert!((least, most) == (301.0 / 101.0, 3.0), "{row:?}");
    assert!(row.untrusted.is_empty() && row.missing.is_none(), "{row:?}");
}

/// An event in two passes is that of the pass with the others.
#[test]
fn s3_the_counts_of_a_ratio_are_of_one_pass() {
    let counts = [("cycles", 7, 0), ("instructions", 30, 1), ("cycles", 10, 1), ("branches", 5, 0)];
    let rows = rows(Model::Skylake, &["ipc"], &counts);
    assert_eq!((rows[0].value, &rows[0].passes[..]), (Some(3.0), &[2][..]));
    let apart = [("instructions", 30, 0), ("cycles", 10, 1)];
    let rows = self::rows(Model::Skylake, &["ipc"], &apart);
    assert_eq!((rows[0].value, &rows[0].passes[..]), (Some(3.0), &[1, 2][..]));
    assert!(rows[0].untrusted[0].contains("at different times, in 2 passes"), "{rows:?}");
}

#[test]
fn s3_division_by_zero_and_missing_events_are_named() {
    let rows =
        rows(Model::Skylake, &["branch_miss_rate"], &[("branches", 0, 0), ("branch-misses", 0, 0)]);
    assert_eq!(rows[0].missing.as_deref(), Some("division by zero: branches is 0"));
    assert_eq!((rows[0].value, rows[0].exceeded), (None, None));
    let rows = self::rows(Model::Skylake, &["branch_miss_rate"], &[("branches", 4, 0)]);
    let missing = rows[0].missing.as_deref().unwrap();
    assert!(missing.contains("event branch-misses was not counted"), "{missing}");
}

#[test]
fn s3_thresholds_are_of_percents_or_of_shares_as_the_table_has_them() {
    let counts = |frontend: u64| {
        [("IDQ_UOPS_NOT_DELIVERED.CORE", frontend, 0), ("CPU_CLK_UNHALTED.THREAD", 100, 0)]
    };
    let exceeded =
        |frontend| rows(Model::Skylake, &["Frontend_Bound"], &counts(frontend))[0].exceeded;
    assert_eq!((exceeded(61), exceeded(59)), (Some(true), Some(false)));
    // On an E-core, 0.20 of six slots a cycle.
    let block = Block::embedded();
    let target = Target { cpu: "sierraforest".parse().unwrap(), counters: None, model: None };
    let (core, table) = target.tables(&block.tables()).unwrap();
    let metrics = find(&table, &["Frontend_Bound".parse().unwrap()]).unwrap();
    let asks = [ask(&target, &core, &table, &metrics[0]).unwrap()];
    let of = |slots| {
        let texts: Vec<String> = asks[0].events().map(str::to_string).collect();
        let counts: Vec<(&str, u64, u32)> = texts
            .iter()
            .map(|text| (text.as_str(), if text.starts_with("TOPDOWN") { slots } else { 100 }, 0))
            .collect();
        of_item(&result(&counts), &asks, Clock::default()).rows[0].clone()
    };
    assert_eq!((of(121).exceeded, of(119).exceeded), (Some(true), Some(false)), "{:?}", of(121));
}

#[test]
fn s3_time_is_that_of_the_tsc() {
    let asks = asks(Model::Skylake, &["frequency"]);
    let result = result(&[("tsc", 2000, 0), ("cycles", 3000, 0)]);
    let clock = Clock { hz: Some(2_000_000_000), of_instructions: false };
    let item = of_item(&result, &asks, clock);
    assert!((item.rows[0].value.unwrap() - 3.0).abs() < 1e-9, "{item:?}");
    let doubtful = of_item(&result, &asks, Clock { of_instructions: true, ..clock });
    assert!(doubtful.rows[0].untrusted[0].contains("instructions here"), "{doubtful:?}");
    let unknown = of_item(&result, &asks, Clock::default());
    assert_eq!(unknown.rows[0].missing.as_deref(), Some("there is no value of ms"));
}

#[test]
fn s3_errata_and_events_that_the_emulated_pmu_does_not_know_are_told() {
    let mut asks = asks(Model::Skylake, &["ipc"]);
    asks[0].silent = vec!["cycles".to_string()];
    let mut result = result(&[("instructions", 300, 0), ("cycles", 100, 0)]);
    result.emulated = true;
    result.metrics[0].counting.as_mut().unwrap().remarks = vec!["erratum SKX1".to_string()];
    let row = &of_item(&result, &asks, Clock::default()).rows[0];
    assert!(row.untrusted[0].contains("cycles: the emulated PMU counts nothing for it"), "{row:?}");
    assert_eq!(row.untrusted[1], "instructions: erratum SKX1");
}

/// What a server's metric with events of the uncore comes to.
fn of_server(name: &str, counts: &[(&str, u64, u32)], units: u32) -> MetricRow {
    let block = Block::embedded();
    let target = Target { cpu: "sapphirerapids".parse().unwrap(), counters: None, model: None };
    let (core, table) = target.tables(&block.tables()).unwrap();
    let metrics = find(&table, &[name.parse().unwrap()]).unwrap();
    let mut asks = [ask(&target, &core, &table, &metrics[0]).unwrap()];
    let texts = planned(&target, &core, &mut asks);
    assert_eq!(texts.iter().filter(|text| text.to_string().contains("uncore_cha")).count(), 1);
    let mut result = result(counts);
    for one in &mut result.metrics {
        if let Some(counting) = &mut one.counting {
            let agents = if one.event.ends_with("one_unit") { 1 } else { units };
            counting.units = if one.event.starts_with("UNC_") { agents } else { 0 };
        }
    }
    let clock = Clock { hz: Some(1_000), of_instructions: false };
    of_item(&result, &asks, clock).rows.remove(0)
}

#[test]
fn s3_metrics_of_the_uncore_are_made_of_the_sum_of_its_units() {
    // Two seconds, in which each of 56 agents had 3 thousand million clocks.
    let ticks = ("tsc", 2_000, 0);
    let clocks = ("UNC_CHA_CLOCKTICKS", 56 * 3_000_000_000, 0);
    let frequency = of_server("uncore_frequency", &[ticks, clocks], 56);
    assert_eq!(frequency.value, Some(1.5), "{frequency:?}");
    let latency = [
        ticks,
        ("UNC_CHA_TOR_OCCUPANCY.IA_MISS_DRD", 900, 0),
        ("UNC_CHA_TOR_INSERTS.IA_MISS_DRD", 10, 0),
        ("UNC_CHA_CLOCKTICKS:one_unit", 3_000_000_000, 0),
    ];
    let latency = of_server("Info_System_MEM_Read_Latency", &latency, 56);
    assert_eq!(latency.value, Some(60.0), "{latency:?}");
}

/// An event of the uncore that is counted in several passes is that of the pass with the others.
#[test]
fn s3_a_ratio_with_events_of_the_uncore_is_of_one_pass() {
    let counts = [
        ("UNC_CHA_TOR_INSERTS.IA_MISS_CRD", 7, 0),
        ("UNC_CHA_TOR_INSERTS.IA_MISS_CRD", 5, 1),
        ("INST_RETIRED.ANY", 10, 1),
    ];
    let row = of_server("llc_code_read_mpi_demand_plus_prefetch", &counts, 56);
    assert_eq!((row.value, &row.passes[..]), (Some(0.5), &[2][..]), "{row:?}");
    let row = of_server("llc_code_read_mpi_demand_plus_prefetch", &counts[2..], 56);
    let missing = row.missing.unwrap();
    assert!(missing.contains("UNC_CHA_TOR_INSERTS.IA_MISS_CRD was not counted"), "{missing}");
}

const LOADS: &str = "MEM_INST_RETIRED.LOCK_LOADS";
const LATENCY: &str = "MEM_INST_RETIRED.LOCK_LOADS:retire_latency";
const CYCLES: &str = "CPU_CLK_UNHALTED.THREAD";

/// The same with a retire latency, of 40 records.
fn with_latency(counts: &[(&str, u64, u32)], latency: Option<f64>) -> SnippetResult {
    let mut result = result(counts);
    let Some(mean) = latency else { return result };
    let mut metric = self::result(&[(LATENCY, 0, 1)]).metrics.remove(0);
    metric.value =
        serde_json::from_value(json!({"min": mean, "median": mean, "mean": mean, "max": mean}))
            .unwrap();
    metric.retired = Some(RetiredRecords { records: [40, 80], period: 7, ..Default::default() });
    result.metrics.push(metric);
    result
}

/// `100 * loads * latency / cycles`. That the latency is of another pass is no doubt, and each run has the mean of all.
#[test]
fn s3_a_metric_takes_the_mean_of_a_retire_latency_and_says_of_how_many_records() {
    let asks = asks(Model::ArrowLake, &["Lock_Latency"]);
    let row = |result: &SnippetResult| of_item(result, &asks, Clock::default()).rows[0].clone();
    let counts = [(LOADS, 2, 0), (CYCLES, 100, 0)];
    let found = row(&with_latency(&counts, Some(20.5)));
    assert_eq!((found.value, &found.passes[..]), (Some(41.0), &[1, 2][..]), "{found:?}");
    assert!(found.untrusted.is_empty(), "{found:?}");
    // Of the counts of each run.
    assert_eq!(found.spread, Some([41.0, 100.0 * (3.0 * 20.5) / 101.0]));
    let expected = RetiredRow { event: LATENCY.into(), mean: 20.5, records: 40, period: 7 };
    assert_eq!(found.retired, [expected]);
    // Without a record there is no value, and the machine's reason.
    let mut none = with_latency(&counts, None);
    let reason = "no record of the body states a retire latency".to_string();
    none.uncounted.push(protocol::record::Uncounted { event: LATENCY.into(), reason });
    let missing = row(&none);
    let said = missing.missing.clone().unwrap_or_default();
    assert!(missing.value.is_none() && said.starts_with(LATENCY), "{missing:?}");
    assert!(said.ends_with("no record of the body states a retire latency"), "{said}");
    // But for an event that was counted, and did not occur.
    let never = row(&with_latency(&[(LOADS, 0, 0), (CYCLES, 100, 0)], None));
    assert_eq!((never.value, never.retired.len()), (Some(0.0), 0), "{never:?}");
}

/// What did not occur may have any latency, in every formula.
#[test]
fn s3_a_latency_of_what_did_not_occur_changes_no_metric() {
    let block = Block::embedded();
    let mut formulas = 0;
    for name in ["redwoodcove", "lioncove_lnl", "lioncove_arl", "graniterapids"] {
        let target = Target { cpu: name.parse().unwrap(), counters: None, model: None };
        let (core, table) = target.tables(&block.tables()).unwrap();
        for metric in &table.metrics {
            if crate::metrics::names::not_yet(metric).is_some() {
                continue;
            }
            let asked = ask(&target, &core, &table, metric).unwrap();
            for latency in asked.latencies() {
                formulas += 1;
                let event = latency.trim_end_matches(":retire_latency");
                let value = |cycles: f64| {
                    let of = |(number, meaning): (usize, &Option<Meaning>)| {
                        Some(match meaning.as_ref()? {
                            Meaning::Event(text) if text == event => 0.0,
                            Meaning::Latency(text) if text == latency => cycles,
                            Meaning::Constant(Constant::Number(number)) => *number,
                            _ => 3.0 + number as f64 / 7.0,
                        })
                    };
                    asked
                        .formula
                        .value(&asked.meanings.iter().enumerate().map(of).collect::<Vec<_>>())
                };
                assert_eq!(value(0.0), value(50.0), "{name}: {}: {latency}", metric.name);
            }
        }
    }
    assert!(formulas > 114, "{formulas}");
}

/// Latencies are asked for once each, beside the passes of the counts.
#[test]
fn s3_latencies_are_planned_beside_the_counts() {
    let block = Block::embedded();
    let target = Target::of_model(Model::ArrowLake).unwrap();
    let (core, table) = target.tables(&block.tables()).unwrap();
    let asked =
        ["Lock_Latency", "Code_L2_Hit", "Code_L2_Miss", "Bottleneck_Data_Cache_Memory_Bandwidth"];
    let asked: Vec<Asked> = asked.iter().map(|name| name.parse().unwrap()).collect();
    let metrics = find(&table, &asked).unwrap();
    let mut asks: Vec<Ask> =
        metrics.iter().map(|one| ask(&target, &core, &table, one).unwrap()).collect();
    let texts: Vec<String> =
        planned(&target, &core, &mut asks).iter().map(ToString::to_string).collect();
    let of_latency: Vec<&String> =
        texts.iter().filter(|text| text.contains("retire_latency")).collect();
    // Nine of the bottleneck, the locked loads among them, and two of code.
    assert_eq!(of_latency.len(), 11, "{texts:#?}");
    assert!(of_latency.iter().all(|text| !text.starts_with('{')), "{texts:#?}");
    // Whether a metric fits is of its counts alone: two front-end events share MSR_PEBS_FRONTEND.
    assert_eq!(asks[..3].iter().map(|ask| ask.spread).collect::<Vec<_>>(), [false, true, false]);
    let refused = asks[0].clone().without_latencies().unwrap_err().to_string();
    assert!(refused.contains("in a [[snippet]] only"), "{refused}");
    assert!(self::asks(Model::ArrowLake, &["ipc"]).remove(0).without_latencies().is_ok());
}

/// The fields of a structure as its table in the guide has them: with `?` where they may be absent.
fn fields(full: &impl Serialize, empty: &impl Serialize) -> BTreeSet<String> {
    let keys = |value: &serde_json::Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let [full, always] = [serde_json::to_value(full), serde_json::to_value(empty)]
        .map(|value| keys(&value.unwrap()));
    assert!(always.is_subset(&full), "{always:?}");
    let marked = |key: &String| match always.contains(key) {
        true => key.clone(),
        false => format!("{key}?"),
    };
    full.iter().map(marked).collect()
}

#[test]
fn s3_the_guide_has_the_fields_of_metrics_in_json() {
    let guide = include_str!("../../../../docs/guide/metrics.md");
    let (_, section) = guide.split_once("## In JSON\n").expect("the section");
    let tables: Vec<BTreeSet<String>> = section
        .split("| --- | --- | --- |\n")
        .skip(1)
        .map(|table| {
            let rows = table.lines().take_while(|line| line.starts_with("| `"));
            rows.map(|row| row.split('`').nth(1).unwrap().to_string()).collect()
        })
        .collect();
    let retired = RetiredRow { event: "e".into(), ..RetiredRow::default() };
    let text = || Some("x".to_string());
    let row = MetricRow {
        name: "x".into(),
        unit: text(),
        level: 1,
        parent: text(),
        below: vec!["x".into()],
        brief: "x".into(),
        value: Some(1.0),
        spread: Some([1.0; 2]),
        each: vec![None],
        passes: vec![1],
        retired: vec![retired.clone()],
        missing: text(),
        untrusted: vec!["x".into()],
        exceeded: Some(true),
    };
    let item = ItemMetrics {
        item: 1,
        name: "x".into(),
        rows: vec![row.clone()],
        shares_known_to: Some(1.0),
        step: Some(1),
        end: Some(1),
        row_slots: Some(1.0),
        way: text(),
    };
    let expected = [
        fields(&item, &ItemMetrics::default()),
        fields(&row, &MetricRow::default()),
        fields(&retired, &RetiredRow::default()),
    ];
    assert_eq!(tables, expected);
}
