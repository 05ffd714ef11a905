//! Plots: lines as SVG that stretches with the page, and around it labels of the page's own text, which do not.
//!
//! The values stand in a table below. It is what a reader without a picture has, and where the script's read-out finds them.

use crate::axis::{Scale, number};
use crate::model::{Cell, Plot, Series, Table};
use crate::{short, table};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Styles of lines; further ones begin again.
const STYLES: usize = 7;

/// The plot and its table.
pub fn render(plot: &Plot) -> Markup {
    let all = plot.series.iter().flat_map(|one| one.y.iter().chain(one.band.iter().flatten()));
    let y = Scale::of(all.copied()).rounded(4);
    let last = plot.x.last().copied().unwrap_or(1.0);
    let x = if plot.from < last {
        Scale { low: plot.from, high: last }
    } else {
        Scale { low: plot.from, high: plot.from + 1.0 }
    };
    let percent = |share: f64| short(share * 100.0, 2);
    html! {
        figure.plot {
            figcaption { (plot.title) }
            ul.legend {
                @for (index, one) in plot.series.iter().enumerate() { li { i.s.(format!("s{}", index % STYLES)) {} (one.name) } }
                @if let Some((_, text)) = &plot.mark { li { i.mark {} (text) } }
            }
            p.y { (plot.y_label) }
            div.pl role="img" aria-label=(label(plot)) data-x0=(x.low) data-x1=(x.high) data-y0=(y.low) data-y1=(y.high)
                data-steps[plot.steps] {
                svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true" {
                    path.grid d=(PreEscaped(grid(y))) {}
                    @if let Some((at, _)) = plot.mark {
                        @let at = short(x.place(at) * 1000.0, 1);
                        path.mark d=(PreEscaped(format!("M{at} 0V100"))) {}
                    }
                    @for (index, one) in plot.series.iter().enumerate() {
                        @let style = format!("s{}", index % STYLES);
                        @if let Some(band) = band(one, plot, x, y) { path.band.(style) d=(PreEscaped(band)) {} }
                        path.s.(style) d=(PreEscaped(line(one, plot, x, y))) {}
                    }
                }
                @for tick in y.ticks(4) { span.yt style=(format!("bottom:{}%", percent(y.place(tick)))) { (number(tick)) } }
                @for tick in x.ticks(6) { span.xt style=(format!("left:{}%", percent(x.place(tick)))) { (number(tick)) } }
            }
            p.x { (plot.x_label) }
            details.data { summary { "The same as a table" } (table::render(&values(plot))) }
        }
    }
}

/// What a reader who does not see the picture is told first.
fn label(plot: &Plot) -> String {
    let names: Vec<&str> = plot.series.iter().map(|one| one.name.as_str()).collect();
    format!(
        "Plot: {}. {} over {}: {}. The table below has the values.",
        plot.title,
        plot.y_label,
        plot.x_label,
        names.join(", ")
    )
}

fn grid(y: Scale) -> String {
    y.ticks(4).into_iter().fold(String::new(), |mut path, tick| {
        // Writing to a String does not fail, here and below.
        let _ = write!(path, "M0 {}H1000", short(100.0 - y.place(tick) * 100.0, 2));
        path
    })
}

fn at(x: Scale, y: Scale, place: f64, value: f64) -> (String, String) {
    (short(x.place(place) * 1000.0, 1), short(100.0 - y.place(value) * 100.0, 2))
}

fn line(one: &Series, plot: &Plot, x: Scale, y: Scale) -> String {
    let mut path = String::new();
    let mut before = plot.from;
    for (index, (&place, &value)) in plot.x.iter().zip(&one.y).enumerate() {
        let (to, height) = at(x, y, place, value);
        let (from, _) = at(x, y, before, value);
        let _ = match (plot.steps, index) {
            (true, 0) => write!(path, "M{from} {height}H{to}"),
            (true, _) => write!(path, "V{height}H{to}"),
            (false, 0) => write!(path, "M{to} {height}"),
            (false, _) => write!(path, "L{to} {height}"),
        };
        before = place;
    }
    path
}

/// The area between least and greatest, where they differ.
fn band(one: &Series, plot: &Plot, x: Scale, y: Scale) -> Option<String> {
    let band =
        Some(&one.band).filter(|band| !plot.steps && band.iter().any(|[low, high]| low != high))?;
    let mut path = String::new();
    let above = plot.x.iter().zip(band).map(|(&place, &[_, high])| at(x, y, place, high));
    let below = plot.x.iter().zip(band).rev().map(|(&place, &[low, _])| at(x, y, place, low));
    for (index, (to, height)) in above.chain(below).enumerate() {
        let _ = write!(path, "{}{to} {height}", if index == 0 { 'M' } else { 'L' });
    }
    path.push('z');
    Some(path)
}

fn values(plot: &Plot) -> Table {
    let names = plot.series.iter().map(|one| (one.name.clone(), true));
    let row = |(index, &place): (usize, &f64)| {
        let values =
            plot.series.iter().map(|one| one.y.get(index).map_or(String::new(), |&y| number(y)));
        std::iter::once(number(place)).chain(values).map(Cell::text).collect()
    };
    Table {
        caption: format!("{}: {}", plot.title, plot.y_label),
        columns: std::iter::once((plot.x_label.clone(), true)).chain(names).collect(),
        rows: plot.x.iter().enumerate().map(row).collect(),
        filter: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(steps: bool) -> Plot {
        Plot {
            title: "a < b".into(),
            x: vec![1.0, 2.0, 4.0],
            series: vec![Series { name: "loads".into(), y: vec![0.0, 2.0, 1.0], band: vec![] }],
            steps,
            ..Plot::default()
        }
    }

    #[test]
    fn x5_a_step_lasts_until_its_place_and_a_line_goes_from_point_to_point() {
        let (x, y) = (Scale { low: 0.0, high: 4.0 }, Scale { low: 0.0, high: 2.0 });
        let [steps, lines] =
            [true, false].map(|steps| line(&plot(steps).series[0], &plot(steps), x, y));
        assert_eq!(steps, "M0 100H250V0H500V50H1000");
        assert_eq!(lines, "M250 100L500 0L1000 50");
    }

    #[test]
    fn x5_a_plot_has_its_values_as_a_table_and_escapes_its_title() {
        let text = render(&plot(true)).into_string();
        assert!(text.contains("a &lt; b") && !text.contains("a < b"), "{text}");
        assert_eq!(text.matches("<tr>").count(), 4, "{text}");
        assert!(render(&Plot::default()).into_string().contains("</figure>"));
    }

    #[test]
    fn x5_a_band_is_drawn_where_runs_differ() {
        let (x, y) = (Scale { low: 0.0, high: 4.0 }, Scale { low: 0.0, high: 2.0 });
        let mut plot = plot(false);
        plot.series[0].band = vec![[0.0, 0.0], [1.0, 2.0], [1.0, 1.0]];
        let path = band(&plot.series[0], &plot, x, y).unwrap();
        assert_eq!(path, "M250 100L500 0L1000 50L1000 50L500 50L250 100z");
        plot.series[0].band[1] = [2.0, 2.0];
        assert_eq!(band(&plot.series[0], &plot, x, y), None);
    }
}
