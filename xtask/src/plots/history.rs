//! The plot of a history: above what happened in each cycle, below all up to it.

use super::{Curve, Panel, Plot};
use protocol::record::{HistoryResult, HistorySeries};

/// The plot of a history.
#[must_use]
pub fn history(history: &HistoryResult) -> Plot {
    let emulated = if history.emulated { ", emulated PMU" } else { "" };
    let place = |row: usize| (row as u64 * u64::from(history.step)) as f64;
    let curve = |one: &HistorySeries, points| Curve { name: one.event.clone(), points };
    let each = history.series.iter().map(|one| curve(one, steps(&one.each, place)));
    let sums = history.series.iter().map(|one| {
        let sums = one.median.iter().enumerate().map(|(row, &value)| (place(row + 1), value));
        curve(one, std::iter::once((0.0, 0.0)).chain(sums).collect())
    });
    let row = match history.step {
        1 => "events in it".to_string(),
        step => format!("events in {step} {}", history.clock),
    };
    let from = if history.end_to_end { "the switch" } else { "the snippet's beginning" };
    Plot {
        title: format!("{} ({} runs a row{emulated})", history.name, history.runs),
        x: format!("{} from {from} on", history.clock),
        panels: vec![
            Panel { y: row, curves: each.collect() },
            Panel { y: "events so far".to_string(), curves: sums.collect() },
        ],
        mark: history.passes.first().and_then(|pass| pass.end).map(|end| end as f64),
    }
}

/// A level for each row, from the end of the one before to its own.
fn steps(each: &[f64], place: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let level = |(row, &value): (usize, &f64)| [(place(row), value), (place(row + 1), value)];
    each.iter().enumerate().flat_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::history::text::tests::example;

    #[test]
    fn n4_the_plot_has_each_cycle_and_the_sums() {
        let plot = history(&example());
        let [each, sums] = &plot.panels[..] else { panic!("{plot:?}") };
        assert_eq!(each.curves[1].points[7..11], [(4.0, 0.0), (4.0, 4.0), (5.0, 4.0), (5.0, 1.0)]);
        assert_eq!(sums.curves[1].points[4..7], [(4.0, 0.0), (5.0, 4.0), (6.0, 5.0)]);
        assert_eq!((plot.mark, each.curves.len()), (Some(6.0), 2));
        assert!(plot.x.contains("cycles") && plot.title.contains("emulated"));
    }

    #[test]
    fn n4_the_drawing_is_an_svg_with_every_curve() {
        let mut example = example();
        example.name = "a < b & c".into();
        let svg = history(&example).svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
        // Each curve twice, and its line in the legend.
        let lines = svg.matches("<polyline").count();
        assert!(lines >= 8, "{lines}");
        for event in ["branches", "loads"] {
            assert_eq!(svg.lines().filter(|line| line.trim() == event).count(), 2, "{svg}");
        }
        // The mark of the end is in both panels; without an end there is none.
        example.passes[0].end = None;
        let without = history(&example).svg().unwrap().matches("<polyline").count();
        assert_eq!(lines - without, 2);
    }

    #[test]
    fn n4_a_history_without_rows_can_be_drawn() {
        let mut example = example();
        example.series.clear();
        assert!(history(&example).svg().unwrap().contains("</svg>"));
    }
}
