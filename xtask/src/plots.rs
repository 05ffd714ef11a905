//! Plots as SVG files.
//!
//! [`Plot`] draws lines over a common axis, and knows nothing of where they come from; [`history`] makes one of a history.

mod history;

pub use history::history;

use plotters::coord::Shift;
use plotters::prelude::*;

/// Width of a plot, and height of each of its panels, in pixels.
const SIZE: (u32, u32) = (960, 300);

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Curves that have their vertical axis in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What that axis shows.
    pub y: String,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Panels above each other, which have their horizontal axis in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Stands above.
    pub title: String,
    /// What the horizontal axis shows.
    pub x: String,
    /// From the top down.
    pub panels: Vec<Panel>,
    /// A vertical line.
    pub mark: Option<f64>,
}

impl Plot {
    /// The plot as the text of an SVG file.
    ///
    /// # Errors
    /// Why it could not be drawn, in a sentence.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        let size = (SIZE.0, SIZE.1 * self.panels.len().max(1) as u32);
        {
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            self.draw(&area)
                .map_err(|error| format!("`{}` cannot be drawn: {error}", self.title))?;
        }
        Ok(text)
    }

    fn draw<D: DrawingBackend>(
        &self,
        area: &DrawingArea<D, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<D::ErrorType>> {
        area.fill(&WHITE)?;
        let area = area.titled(&self.title, ("sans-serif", 18))?;
        for (panel, area) in self.panels.iter().zip(area.split_evenly((self.panels.len(), 1))) {
            self.draw_panel(panel, &area)?;
        }
        area.present()
    }

    fn draw_panel<D: DrawingBackend>(
        &self,
        panel: &Panel,
        area: &DrawingArea<D, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<D::ErrorType>> {
        let all = self.panels.iter().flat_map(|panel| &panel.curves);
        let x = bounds(all.flat_map(|curve| &curve.points).map(|point| point.0));
        let y = bounds(panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1));
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(52)
            .build_cartesian_2d(x, y.clone())?;
        chart.configure_mesh().x_desc(&self.x).y_desc(&panel.y).light_line_style(WHITE).draw()?;
        if let Some(mark) = self.mark {
            let line = [(mark, y.start), (mark, y.end)];
            chart.draw_series([PathElement::new(line, BLACK.mix(0.4))])?;
        }
        for (index, curve) in panel.curves.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?.label(&curve.name).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
            });
        }
        let labels = chart.configure_series_labels();
        let labels = { labels }.position(SeriesLabelPosition::UpperLeft).border_style(BLACK).draw();
        labels
    }
}

/// From the least to the greatest value and 0, with room above.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(0.0, f64::min);
    let most = values.fold(least + 1.0, f64::max);
    least..most + (most - least) / 20.0
}
