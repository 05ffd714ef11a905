//! How fast data are moved.

use super::{Row, size, sureness, unit};
use crate::primitives::number;
use protocol::record::{BandwidthFacts, BandwidthPoint, BandwidthSum, FactsResult, Times};

/// How it was measured.
pub(crate) fn heading(facts: &BandwidthFacts) -> String {
    let registers = match facts.width {
        8 => "general registers of 8 bytes".to_string(),
        width => format!("vector registers of {width} bytes"),
    };
    format!(
        "bandwidth, in order of addresses, through {registers}; loaded and stored bytes are counted"
    )
}

/// All figures.
pub(crate) fn rows(sheet: &FactsResult, facts: &BandwidthFacts) -> Vec<Row> {
    let alone = facts.alone.iter().filter_map(|point| point_row(sheet, facts, point));
    alone.chain(facts.together.iter().map(|sum| sum_row(sheet, facts, sum))).collect()
}

fn place(level: u32) -> String {
    match level {
        0 => "memory".to_string(),
        level => format!("L{level}"),
    }
}

/// Bytes in a cycle, or a tick, and in a second unless the TSC counts instructions, as the emulated PMU's does.
fn value(sheet: &FactsResult, hz: u64, rates: [Option<f64>; 2]) -> String {
    let [Some(per_cycle), Some(per_tick)] = rates else { return "not determined".to_string() };
    let unit = unit(sheet).trim_end_matches('s');
    let rounded = (per_cycle * 100.0).round() / 100.0;
    let in_a_cycle = format!("{} bytes/{unit}", number(rounded));
    if sheet.emulated {
        return in_a_cycle;
    }
    let per_second = (per_tick * hz as f64 / 1e8).round() / 10.0;
    format!("{in_a_cycle}, {} GB/s", number(per_second))
}

/// How far samples agree, and what is doubtful.
fn sure(times: Times, doubts: &[String]) -> String {
    let Times { least, median, ninetieth, .. } = times;
    let agree = sureness(least, median, ninetieth);
    match doubts {
        [] => agree.to_string(),
        doubts => format!("doubtful: {}", doubts.join("; ")),
    }
}

fn point_row(sheet: &FactsResult, facts: &BandwidthFacts, point: &BandwidthPoint) -> Option<Row> {
    let level = point.level?;
    let unit = unit(sheet);
    let Times { runs, least, most, .. } = point.cycles;
    Some(Row {
        figure: format!("{}, {}", place(level), point.by.name()),
        value: value(sheet, facts.tsc_hz, [point.per_cycle(), point.per_tick()]),
        told: sure(point.cycles, &point.doubts),
        evidence: format!(
            "{} of working set; {runs} samples of {}, {least} to {most} {unit}",
            size(point.bytes),
            size(point.moved)
        ),
    })
}

fn sum_row(sheet: &FactsResult, facts: &BandwidthFacts, sum: &BandwidthSum) -> Row {
    let rate = |times: Times| (times.median > 0).then(|| times.median as f64 / 1000.0);
    let count = sum.each.len();
    let together = if facts.in_turn { "one after the other" } else { "at the same time" };
    let of = |one: &[u64; 2]| sum.moved as f64 / one[0].max(1) as f64;
    let rates = sum.each.iter().map(of);
    let (least, most) = (rates.clone().fold(f64::MAX, f64::min), rates.fold(0.0, f64::max));
    let two = |rate: f64| number((rate * 100.0).round() / 100.0);
    Row {
        figure: format!("{}, {} by all", place(sum.level), sum.by.name()),
        value: value(sheet, facts.tsc_hz, [rate(sum.milli_per_cycle), rate(sum.milli_per_tick)]),
        told: sure(sum.milli_per_tick, &sum.doubts),
        evidence: format!(
            "{count} processors {together}, {} each; {} samples; of each {} to {}",
            size(sum.bytes),
            sum.milli_per_tick.runs,
            two(least),
            two(most)
        ),
    }
}

/// What was not measured, and what is not what it seems, in sentences.
pub(crate) fn untold(facts: &BandwidthFacts, emulated: bool) -> Vec<String> {
    let mut all: Vec<String> =
        facts.reasons.iter().map(|reason| format!("bandwidth: {reason}")).collect();
    if emulated {
        all.push("bytes a second: the TSC of the emulated PMU counts instructions, and only cycles have the time of memory".to_string());
    }
    if facts.in_turn && facts.processors > 1 {
        all.push("what processors take from each other: one runs at a time, so the sum is that of each alone".to_string());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::Moving;
    use serde_json::json;

    fn sheet() -> FactsResult {
        serde_json::from_value(json!({
            "item": 0, "name": "a", "timer": "core_cycles", "bytes": 0, "cpuid": [], "tsc": [0, 1],
        }))
        .unwrap()
    }

    fn times(least: u64, median: u64, ninetieth: u64) -> Times {
        Times { runs: 7, least, median, ninetieth, most: ninetieth }
    }

    fn facts() -> BandwidthFacts {
        let point = |by, bytes, level, cycles, ticks| BandwidthPoint {
            by,
            bytes,
            level,
            moved: 1 << 20,
            cycles,
            ticks,
            doubts: Vec::new(),
        };
        let fast = (times(16_384, 16_384, 16_400), times(14_000, 14_043, 14_050));
        let slow = (times(80_000, 100_000, 180_000), times(80_000, 90_000, 180_000));
        let sum = BandwidthSum {
            by: Moving::NonTemporal,
            bytes: 1 << 20,
            level: 0,
            moved: 1 << 20,
            each: vec![[100_000, 90_000], [200_000, 180_000]],
            milli_per_cycle: times(15_000, 15_728, 15_800),
            milli_per_tick: times(17_000, 17_476, 17_500),
            doubts: vec!["too small".into(), "and more".into()],
        };
        BandwidthFacts {
            width: 32,
            tsc_hz: 3_000_000_000,
            processors: 2,
            alone: vec![
                point(Moving::Read, 16 << 10, Some(1), fast.0, fast.1),
                point(Moving::Read, 32 << 10, None, fast.0, fast.1),
                point(Moving::Copy, 1 << 20, Some(0), slow.0, slow.1),
            ],
            together: vec![sum],
            reasons: vec!["L3: its size was not determined".into()],
            ..BandwidthFacts::default()
        }
    }

    #[test]
    fn d1_bandwidth_is_reported_with_how_sure_it_is() {
        let (sheet, facts) = (sheet(), facts());
        assert!(heading(&facts).contains("vector registers of 32 bytes"));
        let rows = rows(&sheet, &facts);
        let cells: Vec<[&str; 3]> =
            rows.iter().map(|row| [&*row.figure, &*row.value, &*row.told]).collect();
        // 2^20 bytes in 16,384 cycles, and in 14,043 ticks of a third of a nanosecond; points between levels are of the plot alone.
        assert_eq!(
            cells,
            [
                ["L1, read", "64 bytes/cycle, 224 GB/s", "steady"],
                ["memory, copy", "10.49 bytes/cycle, 35 GB/s", "unsteady"],
                [
                    "memory, non-temporal write by all",
                    "15.73 bytes/cycle, 52.4 GB/s",
                    "doubtful: too small; and more"
                ],
            ]
        );
        assert!(rows[0].evidence.starts_with("16 KiB of working set; 7 samples of 1 MiB, 16384"));
        let of_all = &rows[2].evidence;
        assert!(of_all.starts_with("2 processors at the same time, 1 MiB each"), "{of_all}");
        assert!(of_all.ends_with("of each 5.24 to 10.49"), "{of_all}");
    }

    #[test]
    fn d1_what_bandwidth_does_not_say_is_said() {
        let facts = facts();
        assert_eq!(untold(&facts, false), ["bandwidth: L3: its size was not determined"]);
        let turns = BandwidthFacts { in_turn: true, ..facts };
        let all = untold(&turns, true);
        assert!(all.len() == 3 && all[1].contains("counts instructions"), "{all:?}");
        assert!(all[2].contains("one runs at a time"), "{all:?}");
        assert_eq!(value(&sheet(), 1, [None, Some(1.0)]), "not determined");
        let emulated = FactsResult { emulated: true, ..sheet() };
        assert_eq!(value(&emulated, 1_000_000_000, [Some(0.5), Some(9.0)]), "0.5 bytes/cycle");
    }
}
