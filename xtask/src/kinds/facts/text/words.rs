//! Figures of a fact sheet, and what they are in words.

use crate::primitives::number;

/// A figure in words.
pub(crate) struct Row {
    /// What.
    pub figure: String,
    /// What was measured.
    pub value: String,
    /// What CPUID says, with a mark if it is something else.
    pub told: String,
    /// What it was determined from.
    pub evidence: String,
}

impl Row {
    /// Its cells, in order.
    pub(crate) fn cells(self) -> Vec<String> {
        vec![self.figure, self.value, self.told, self.evidence]
    }
}

/// The columns of a table of figures.
pub(crate) const HEAD: [&str; 4] = ["figure", "measured", CONFIDENCE, "from"];
/// The same where CPUID says something as well.
pub(crate) const HEAD_MEMORY: [&str; 5] = ["figure", "measured", "by CPUID", CONFIDENCE, "from"];
/// Above the column that says how far to trust a figure.
pub(crate) const CONFIDENCE: &str = "how sure";
/// A table next to the figures.
pub(crate) struct Grid {
    /// What it is.
    pub caption: String,
    /// Its columns.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// Ticks of the TSC in words, with what they are in time.
pub(crate) fn ticks(ticks: f64, hz: u64) -> String {
    format!("{} ticks ({})", number(round(ticks)), time(ticks, hz))
}

/// Ticks of the TSC as time.
pub(crate) fn time(ticks: f64, hz: u64) -> String {
    let ns = ticks * 1e9 / hz.max(1) as f64;
    match ns {
        0.0..1e3 => format!("{} ns", number(round(ns))),
        1e3..1e6 => format!("{} µs", number(round(ns / 1e3))),
        _ => format!("{} ms", number(round(ns / 1e6))),
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// How far samples agree: by how far the ninth of ten is above the least, as a share of the middle one.
pub(crate) fn sureness(least: u64, median: u64, ninetieth: u64) -> &'static str {
    let apart = (ninetieth - least.min(ninetieth)) as f64 / median.max(1) as f64;
    match apart {
        0.0..=0.1 => "steady",
        0.1..=0.5 => "varies",
        _ => "unsteady",
    }
}

/// Bytes in words.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", number(bytes as f64 / 1024.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_d4_ticks_are_told_as_time_and_samples_by_how_they_agree() {
        assert_eq!(ticks(150.0, 3_000_000_000), "150 ticks (50 ns)");
        assert_eq!(ticks(4_812.34, 1_000_000_000), "4812.3 ticks (4.8 µs)");
        assert_eq!(
            (time(2.5e9, 1_000_000_000), time(1.0, 0)),
            ("2500 ms".into(), "1000 ms".into())
        );
        assert_eq!(
            [sureness(100, 105, 110), sureness(100, 120, 150), sureness(10, 20, 90)],
            ["steady", "varies", "unsteady"]
        );
        assert_eq!(sureness(0, 0, 0), "steady");
    }
}
