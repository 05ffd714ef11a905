//! A plot of one line of characters, or of several if it is long.

use std::fmt::Write;

/// Rows in one line of a plot.
const PLOT_WIDTH: usize = 80;
/// From nothing to the greatest value of a plot.
const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values of rows as characters.
pub(crate) struct PlotLine<'a> {
    /// What they are of.
    pub name: &'a str,
    /// `None`: there is none, which leaves a gap.
    pub values: &'a [Option<f64>],
    /// A bar is full at the greatest of the values, but not below this.
    pub least_full: f64,
    /// Events of the clock from row to row.
    pub step: u32,
    /// Rows up to the snippet's end.
    pub end: Option<usize>,
}

impl PlotLine<'_> {
    /// Writes it, with `width` columns for its name.
    pub(crate) fn write(&self, out: &mut String, width: usize) {
        let most = self.values.iter().flatten().copied().fold(self.least_full, f64::max);
        for (line, values) in self.values.chunks(PLOT_WIDTH).enumerate() {
            let first = line * PLOT_WIDTH;
            let mut bars = String::new();
            for (row, value) in (first..).zip(values) {
                bars.push(value.map_or(' ', |value| bar(value, most)));
                if self.end == Some(row + 1) {
                    bars.push('|');
                }
            }
            let name = if line == 0 { self.name } else { "" };
            let at = (first as u64 + 1) * u64::from(self.step);
            // Writing to a String does not fail.
            let _ = writeln!(out, "  {name:width$} {at:>6} {bars}");
        }
    }
}

fn bar(value: f64, most: f64) -> char {
    if value < 0.0 {
        return '-';
    }
    let steps = (BARS.len() - 1) as f64;
    // Whatever happened at all is seen.
    BARS[if value == 0.0 { 0 } else { (value / most * steps).ceil().clamp(1.0, steps) as usize }]
}
