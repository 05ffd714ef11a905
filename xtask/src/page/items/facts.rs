//! What a processor's caches and TLBs are.

use super::table;
use crate::render::facts::{self, Row};
use html_report::model::{Cell, Part, Plot, Series};
use protocol::record::FactsResult;

pub(crate) fn parts(sheet: &FactsResult) -> Vec<Part> {
    let row = |row: Row| {
        let mut cells = vec![Cell::text(row.figure), Cell::text(row.value)];
        cells.extend([Cell::text(row.told), Cell::text(row.evidence)]);
        cells
    };
    let rows = facts::rows(sheet).into_iter().map(row).collect();
    let head = ["figure", "measured", "by CPUID", "from"];
    let mut parts = vec![
        Part::Text(facts::heading(sheet)),
        table("Caches and TLBs", &head, head.len(), rows),
        Part::Plot(curve(sheet)),
    ];
    parts.extend(facts::untold(sheet).into_iter().map(Part::Text));
    parts
}

/// Latency over size. The axis is that of powers of two; sizes of caches are lines of their own.
fn curve(sheet: &FactsResult) -> Plot {
    let points = &sheet.memory.curve;
    let unit = facts::unit(sheet);
    let mut series = vec![Series {
        name: "a load in random order".to_string(),
        y: points.iter().map(|point| point.tenths as f64 / 10.0).collect(),
        band: Vec::new(),
    }];
    for cache in &sheet.memory.caches {
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
