//! Heat maps: a table whose cells are coloured by their values, so that who does not see colours has the numbers.

use crate::axis::number;
use crate::model::Heat;
use crate::short;
use maud::{Markup, html};

/// The map.
pub fn render(heat: &Heat) -> Markup {
    let (low, high) = bounds(heat);
    html! {
        div.scroll tabindex="0" role="group" aria-label=(heat.title) {
            table.heat {
                caption { (heat.title) ": " (number(low)) " " i style="--h:0%" {} i style="--h:50%" {} i style="--h:100%" {} " " (number(high)) }
                thead {
                    tr { th scope="col" { (heat.rows_are) " ↓ " (heat.columns_are) " →" } @for label in &heat.labels { th.n scope="col" { (label) } } }
                }
                tbody {
                    @for (label, row) in heat.labels.iter().zip(&heat.values) {
                        tr { th.n scope="row" { (label) } @for value in row { (cell(*value, low, high)) } }
                    }
                }
            }
        }
    }
}

fn cell(value: Option<f64>, low: f64, high: f64) -> Markup {
    match value.filter(|value| value.is_finite()) {
        None => html! { td.n.none { "–" } },
        Some(value) => html! {
            td.n style=(format!("--h:{}%", short(share(value, low, high) * 100.0, 0))) { (number(value)) }
        },
    }
}

/// Least and greatest.
fn bounds(heat: &Heat) -> (f64, f64) {
    let all = || heat.values.iter().flatten().flatten().copied().filter(|value| value.is_finite());
    let (low, high) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

/// How far a value lies from the least to the greatest; where all are the same they are the least.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: Vec<Vec<Option<f64>>>) -> Heat {
        let labels = (0..values.len()).map(|label| label.to_string()).collect();
        Heat { title: "a < b".into(), labels, values, ..Heat::default() }
    }

    #[test]
    fn d3_a_heat_map_has_every_number_and_darker_cells_for_greater_ones() {
        let heat = map(vec![vec![None, Some(10.0)], vec![Some(30.0), Some(20.0)]]);
        let text = render(&heat).into_string();
        assert!(text.contains("a &lt; b") && !text.contains("a < b"), "{text}");
        for cell in [
            r#"<td class="n none">–</td>"#,
            r#"<td class="n" style="--h:0%">10</td>"#,
            r#"<td class="n" style="--h:100%">30</td>"#,
            r#"<td class="n" style="--h:50%">20</td>"#,
        ] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
    }

    #[test]
    fn d3_a_heat_map_of_nothing_or_of_equals_is_no_accident() {
        assert!(render(&Heat::default()).into_string().contains("</table>"));
        let text = render(&map(vec![vec![Some(5.0)], vec![Some(f64::NAN)]])).into_string();
        assert!(text.contains("--h:0%\">5<") && text.contains("–"), "{text}");
    }
}
