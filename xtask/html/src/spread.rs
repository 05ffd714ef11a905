//! How the values of a figure are distributed over the runs: bars over the values, or a span where only its ends are known.

use crate::axis::number;
use crate::model::Spread;
use crate::short;
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most bars of a picture.
const BINS: usize = 48;

/// One picture a figure, with its least, median and greatest value.
pub fn render(spreads: &[Spread]) -> Markup {
    html! {
        div.spreads {
            @for spread in spreads {
                @let [low, high] = spread.bounds;
                figure.spread {
                    figcaption { (spread.name) }
                    @if !spread.values.is_empty() && low < high {
                        svg viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true" {
                            path d=(PreEscaped(bars(&spread.values, low, high))) {}
                        }
                        p { (number(low)) span { "median " (number(median(&spread.values))) } span { (number(high)) } }
                    } @else if low < high {
                        div.span aria-hidden="true" {}
                        p { (number(low)) span { (number(high)) } }
                    }
                    p.said { (said(spread)) }
                }
            }
        }
    }
}

/// The same in words.
fn said(spread: &Spread) -> String {
    let runs = spread.values.len();
    let [low, high] = spread.bounds;
    if low == high {
        return match runs {
            0 | 1 => format!("always {}", number(low)),
            runs => format!("{} in all {runs} runs", number(low)),
        };
    }
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    spread.values.iter().for_each(|value| *counts.entry(value.to_bits()).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count);
    match most.filter(|(_, count)| **count > 1) {
        Some((&value, count)) => {
            let value = number(f64::from_bits(value));
            format!(
                "{} different values; {value} most often, in {count} of {runs} runs",
                spread.distinct
            )
        }
        None if runs == 0 => format!("{} different values", spread.distinct),
        None => format!("{runs} runs, all different"),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// A path of one bar for each part of the range that has values; as high as they are many.
fn bars(values: &[f64], low: f64, high: f64) -> String {
    let mut counts = [0_usize; BINS];
    for value in values {
        let at = (value - low) / (high - low) * BINS as f64;
        counts[(at as usize).min(BINS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let width = 100.0 / BINS as f64;
    let mut path = String::new();
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (count as f64 / most as f64 * 23.0).max(2.0);
        // Writing to a String does not fail.
        let _ = write!(
            path,
            "M{} 24v-{}h{}v{}z",
            short(bin as f64 * width, 1),
            short(height, 1),
            short(width * 0.86, 1),
            short(height, 1)
        );
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_every_run_is_in_a_bar() {
        let path = bars(&[1.0, 1.0, 2.0, 9.0], 1.0, 9.0);
        assert_eq!(path.matches('M').count(), 3);
        assert!(path.starts_with("M0 24v-23h1.8v23z"), "{path}");
        // The greatest is in the last one, not after it.
        assert!(path.contains("M97.9 24v-11.5"), "{path}");
    }

    #[test]
    fn x5_a_distribution_is_told_in_words() {
        let spread = |values: &[f64], bounds, distinct| Spread {
            name: "n".into(),
            values: values.to_vec(),
            bounds,
            distinct,
        };
        for (values, bounds, distinct, expected) in [
            (&[3.0, 3.0][..], [3.0, 3.0], 1, "3 in all 2 runs"),
            (&[], [3.0, 3.0], 1, "always 3"),
            (&[1.0, 2.0, 2.0], [1.0, 2.0], 2, "2 different values; 2 most often, in 2 of 3 runs"),
            (&[1.0, 2.0], [1.0, 2.0], 2, "2 runs, all different"),
            (&[], [1.0, 2.0], 2, "2 different values"),
        ] {
            assert_eq!(said(&spread(values, bounds, distinct)), expected);
        }
        assert_eq!(median(&[4.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
