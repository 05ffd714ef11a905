//! What a fact sheet tells.

use crate::kinds::facts::text as facts;
use crate::kinds::facts::text::{Grid, bandwidth, cores, noise, pipeline};
use crate::kinds::page::table;
use html_report::model::{Cell, Heat, Part, Plot, Series};
use protocol::record::{
    BandwidthFacts, CoreFacts, FactsResult, MemoryFacts, Moving, NoiseFacts, PipelineFacts,
};
use std::collections::BTreeSet;

pub(crate) fn parts(sheet: &FactsResult) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(memory) = &sheet.memory {
        let rows = facts::rows(sheet, memory);
        parts.push(Part::Text(facts::heading(sheet)));
        parts.push(figures("Caches and TLBs", &facts::HEAD_MEMORY, rows));
        parts.push(Part::Plot(curve(sheet, memory)));
        parts.extend(facts::untold(memory).into_iter().map(Part::Text));
    }
    if let Some(told) = &sheet.bandwidth {
        parts.push(Part::Text(bandwidth::heading(told)));
        let rows = facts::cells(bandwidth::rows(sheet, told));
        parts.push(figures("Bandwidth", &facts::HEAD, rows));
        parts.extend(speeds(sheet, told).map(Part::Plot));
        parts.extend(bandwidth::untold(told, sheet.emulated).into_iter().map(Part::Text));
    }
    if let Some(core) = &sheet.core {
        parts.push(Part::Text(pipeline::heading(sheet)));
        let rows = pipeline::rows(sheet, core);
        parts.push(figures("The core", &facts::HEAD, facts::cells(rows)));
        parts.extend(returns(sheet, core).map(Part::Plot));
        parts.extend(stores(sheet, core).map(Part::Plot));
        parts.extend(front(sheet, core).map(Part::Plot));
        parts.extend(direct(sheet, core).map(Part::Plot));
        parts.extend(window(sheet, core).map(Part::Plot));
        parts.extend(pipeline::untold(core).into_iter().map(Part::Text));
    }
    if let Some(told) = &sheet.cores {
        parts.push(Part::Text(cores::heading(told)));
        parts.push(figures("Between cores", &facts::HEAD, facts::cells(cores::rows(sheet, told))));
        parts.extend(heats(told).into_iter().map(Part::Heat));
        parts.extend(contention(told).map(Part::Plot));
        parts.extend(cores::wakes(told).map(grid));
        parts.extend(cores::untold(told).into_iter().map(Part::Text));
    }
    if let Some(told) = &sheet.noise {
        parts.push(Part::Text(noise::heading(told)));
        parts.push(figures(
            "Stolen time and transitions",
            &facts::HEAD,
            facts::cells(noise::rows(told)),
        ));
        parts.extend(readings(told).map(Part::Plot));
        parts.extend(late(told).map(Part::Plot));
        parts.extend(noise::tables(told).into_iter().map(grid));
        parts.extend(noise::untold(told, sheet.emulated).into_iter().map(Part::Text));
    }
    parts
}

fn figures(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> Part {
    let row = |row: Vec<String>| row.into_iter().map(Cell::text).collect();
    table(caption, head, head.len(), rows.into_iter().map(row).collect())
}

fn grid(grid: Grid) -> Part {
    let head: Vec<&str> = grid.head.iter().map(String::as_str).collect();
    let row = |row: Vec<String>| row.into_iter().map(Cell::text).collect();
    table(&grid.caption, &head, 1, grid.rows.into_iter().map(row).collect())
}

/// Bandwidth over size, by the boot processor. Not all ways have the same sizes.
fn speeds(sheet: &FactsResult, told: &BandwidthFacts) -> Option<Plot> {
    let sizes: BTreeSet<u64> = told.alone.iter().map(|point| point.bytes).collect();
    let series = Moving::ALL.map(|by| {
        let own: Vec<[i64; 2]> = told
            .alone
            .iter()
            .filter(|point| point.by == by)
            .map(|point| [point.bytes as i64, (point.per_cycle().unwrap_or(0.0) * 1000.0) as i64])
            .collect();
        // As `at` has it, in tenths.
        let y = sizes.iter().map(|bytes| at(&own, *bytes as i64) / 100.0).collect();
        Series { name: by.name().to_string(), y, band: Vec::new() }
    });
    Some(Plot {
        title: "Bandwidth over the size of the working set".to_string(),
        x_label: "size, as a power of two of KiB".to_string(),
        y_label: format!("bytes a {}", facts::unit(sheet).trim_end_matches('s')),
        x: sizes.iter().map(|bytes| (*bytes as f64 / 1024.0).log2()).collect(),
        from: 0.0,
        series: series.into(),
        mark: None,
        steps: false,
    })
    .filter(|plot| plot.x.len() > 1)
}

/// What returns take over the depth of calls.
fn returns(sheet: &FactsResult, core: &PipelineFacts) -> Option<Plot> {
    let points = &core.returns.evidence;
    let series = Series {
        name: "all returns from this depth".to_string(),
        y: points.iter().map(|[_, tenths]| *tenths as f64 / 10.0).collect(),
        band: Vec::new(),
    };
    Some(Plot {
        title: "Returns from nested calls".to_string(),
        x_label: "depth of the calls".to_string(),
        y_label: facts::unit(sheet).to_string(),
        x: points.iter().map(|[depth, _]| *depth as f64).collect(),
        series: vec![series],
        ..Plot::default()
    })
    .filter(|plot| plot.x.len() > 1)
}

/// What stores take over their number.
fn stores(sheet: &FactsResult, core: &PipelineFacts) -> Option<Plot> {
    let points = &core.stores.evidence;
    let series = Series {
        name: "storing to so many lines that no cache holds".to_string(),
        y: points.iter().map(|[_, tenths]| *tenths as f64 / 10.0).collect(),
        band: Vec::new(),
    };
    Some(Plot {
        title: "Stores that no cache holds a line for".to_string(),
        x_label: "stores".to_string(),
        y_label: facts::unit(sheet).to_string(),
        x: points.iter().map(|[stores, _]| *stores as f64).collect(),
        series: vec![series],
        ..Plot::default()
    })
    .filter(|plot| plot.x.len() > 1)
}

/// What each jump of a loop costs, over their number.
fn direct(sheet: &FactsResult, core: &PipelineFacts) -> Option<Plot> {
    let unit = facts::unit(sheet);
    let names = ["Loops of direct jumps", "jumps"].map(String::from);
    let loops = core.direct.loops.iter();
    let loops = loops.map(|one| (format!("{} bytes apart", one.distance), &*one.evidence));
    loops_of(names, format!("{unit} of each jump"), loops.collect(), 10.0)
}

/// What each instruction of a loop of NOPs costs, over their number.
fn front(sheet: &FactsResult, core: &PipelineFacts) -> Option<Plot> {
    let unit = facts::unit(sheet);
    let names = ["Loops of NOPs", "instructions"].map(String::from);
    let loops = core.front.loops.iter();
    let loops = loops.map(|one| (format!("{} in 32 bytes", one.density), &*one.evidence));
    loops_of(names, format!("{unit} of each instruction"), loops.collect(), 1000.0)
}

/// What each part of a loop costs, over their number, in so many parts of a cycle. Not all loops have the same numbers.
fn loops_of(
    [title, parts]: [String; 2],
    y_label: String,
    loops: Vec<(String, &[[u64; 2]])>,
    of_cycle: f64,
) -> Option<Plot> {
    let numbers = loops.iter().flat_map(|(_, evidence)| evidence.iter().map(|[parts, _]| *parts));
    let numbers: Vec<u64> = numbers.collect::<BTreeSet<_>>().into_iter().collect();
    let cost = |evidence: &[[u64; 2]], number: u64| {
        let found = evidence.iter().find(|[parts, _]| *parts == number);
        found.map_or(f64::NAN, |[_, cost]| *cost as f64 / of_cycle)
    };
    let series = loops.into_iter().map(|(name, evidence)| Series {
        name,
        y: numbers.iter().map(|number| cost(evidence, *number)).collect(),
        band: Vec::new(),
    });
    Some(Plot {
        title,
        x_label: format!("{parts} of a loop, as a power of two"),
        y_label,
        x: numbers.iter().map(|number| (*number as f64).log2()).collect(),
        series: series.collect(),
        ..Plot::default()
    })
    .filter(|plot| plot.x.len() > 1)
}

/// What is saved by two loads at once, over what lies between them. Not all kinds have the same points.
fn window(sheet: &FactsResult, core: &PipelineFacts) -> Option<Plot> {
    let numbers = core.window.iter().flat_map(|one| one.evidence.iter().map(|[at, _]| *at));
    let numbers: Vec<i64> = numbers.collect::<BTreeSet<_>>().into_iter().collect();
    let series = core.window.iter().map(|one| Series {
        name: one.name.clone(),
        y: numbers.iter().map(|number| at(&one.evidence, *number)).collect(),
        band: Vec::new(),
    });
    Some(Plot {
        title: "Two loads that miss, and what lies between them".to_string(),
        x_label: "instructions between the loads".to_string(),
        y_label: format!("{} saved by overlapping", facts::unit(sheet)),
        x: numbers.iter().map(|number| *number as f64).collect(),
        series: series.collect(),
        ..Plot::default()
    })
    .filter(|plot| plot.x.len() > 1)
}

/// A curve's height, between two of its points on the line that joins them.
fn at(points: &[[i64; 2]], number: i64) -> f64 {
    let before = points.iter().rev().find(|[at, _]| *at <= number);
    let after = points.iter().find(|[at, _]| *at >= number);
    let (Some([from, low]), Some([to, high])) = (before, after) else { return f64::NAN };
    let part = (number - from) as f64 / (to - from).max(1) as f64;
    (*low as f64 + part * (high - low) as f64) / 10.0
}

/// The matrices of lines.
fn heats(told: &CoreFacts) -> Vec<Heat> {
    let labels: Vec<String> = told.processors.iter().map(|one| one.number.to_string()).collect();
    let heat = |matrix: &protocol::record::LineMatrix| {
        let value = |cell: &Option<[u64; 3]>| cell.map(|[_, median, _]| median as f64 / 10.0);
        let row = |row: &Vec<Option<[u64; 3]>>| row.iter().map(value).collect();
        Heat {
            title: format!("A line's way by {}, in ticks of the TSC", matrix.by.name()),
            rows_are: "processor that has the clock".to_string(),
            columns_are: "responding processor".to_string(),
            labels: labels.clone(),
            values: matrix.tenths.iter().map(row).collect(),
        }
    };
    told.matrices.iter().map(heat).collect()
}

/// What a change of a line takes, over the processors that change it.
fn contention(told: &CoreFacts) -> Option<Plot> {
    let points = |by: &protocol::record::Contention| by.points.clone();
    let longest = told.contention.iter().map(points).max_by_key(Vec::len)?;
    let series = told.contention.iter().map(|by| Series {
        name: by.by.name().to_string(),
        y: by.points.iter().map(|point| point.tenths() as f64 / 10.0).collect(),
        band: Vec::new(),
    });
    Some(Plot {
        title: "One line that all change".to_string(),
        x_label: "processors".to_string(),
        y_label: "ticks for each change".to_string(),
        x: longest.iter().map(|point| f64::from(point.processors)).collect(),
        series: series.collect(),
        ..Plot::default()
    })
    .filter(|plot| plot.x.len() > 1)
}

/// How long the times between two readings are: powers of two, and of ten upwards, as most are short.
fn readings(told: &NoiseFacts) -> Option<Plot> {
    let all = told
        .windows
        .iter()
        .map(|window| (format!("processor {}", window.processor), &window.buckets[..]));
    powers("Time from one reading to the next", "times", all.collect())
}

/// How late the timer is.
fn late(told: &NoiseFacts) -> Option<Plot> {
    let timer = told.timer.as_ref()?;
    powers("How late the timer comes", "interrupts", vec![("timer".into(), &timer.buckets)])
}

fn powers(title: &str, what: &str, all: Vec<(String, &[u64])>) -> Option<Plot> {
    let places = all.iter().map(|(_, buckets)| buckets.len()).max().filter(|count| *count > 0)?;
    let height = |count: Option<&u64>| match count {
        None | Some(0) => 0.0,
        // One is seen as something.
        Some(count) => (*count as f64).log10() + 1.0,
    };
    let series = all.into_iter().map(|(name, buckets)| Series {
        name,
        y: (0..places).map(|place| height(buckets.get(place))).collect(),
        band: Vec::new(),
    });
    Some(Plot {
        title: title.to_string(),
        x_label: "less than so many ticks, as a power of two".to_string(),
        y_label: format!("{what}: 1 for one, 2 for ten, 3 for a hundred"),
        x: (1..=places).map(|place| place as f64).collect(),
        series: series.collect(),
        steps: true,
        ..Plot::default()
    })
}

/// Latency over size. The axis is that of powers of two; sizes of caches are lines of their own.
fn curve(sheet: &FactsResult, memory: &MemoryFacts) -> Plot {
    let points = &memory.curve;
    let unit = facts::unit(sheet);
    let mut series = vec![Series {
        name: "a load in random order".to_string(),
        y: points.iter().map(|point| point.tenths as f64 / 10.0).collect(),
        band: Vec::new(),
    }];
    for cache in &memory.caches {
        let (Some(bytes), Some(tenths)) = (cache.bytes(), cache.tenths) else { continue };
        let served = points.iter().map(|point| match point.bytes <= bytes {
            true => tenths as f64 / 10.0,
            false => f64::NAN,
        });
        series.push(Series {
            name: format!("L{}, {}", cache.level, facts::size(bytes)),
            y: served.collect(),
            band: Vec::new(),
        });
    }
    Plot {
        title: "Latency over the size of the working set".to_string(),
        x_label: "size, as a power of two of KiB".to_string(),
        y_label: format!("{unit} a load"),
        x: points.iter().map(|point| (point.bytes as f64 / 1024.0).log2()).collect(),
        from: 0.0,
        series,
        mark: None,
        steps: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_between_its_points_a_curve_is_a_line() {
        let points = [[0, 100], [32, 20], [34, 0]];
        let of = |number| at(&points, number);
        assert_eq!([of(0), of(8), of(32), of(33), of(34)], [10.0, 8.0, 2.0, 1.0, 0.0]);
        assert!(of(35).is_nan() && of(-1).is_nan());
    }
}
