//! Plots as SVG files.
//!
//! [`Plot`] draws lines over a common axis, and knows nothing of where they come from; [`history`] makes one of a history.

mod history;

pub use history::history;

use plotters::coord::Shift;
use plotters::prelude::*;

/// Width of a plot, and height of each of its panels, in pixels.
const SIZE: (u32, u32) = (960, 300);

/// Colours that colour-blind people can distinguish (Okabe and Ito, Color Universal Design), one curve after the other.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
];

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
        let x = range(all.flat_map(|curve| &curve.points).map(|point| point.0));
        let y = range(panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1));
        // Room above, and on the right for the legend.
        let y = y.start..y.end + (y.end - y.start) / 10.0;
        let x = x.start..x.end + (x.end - x.start) / 5.0;
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(52)
            .build_cartesian_2d(x, y.clone())?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&panel.y)
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.15))
            .label_style(("sans-serif", 14))
            .draw()?;
        if let Some(mark) = self.mark {
            let line = [(mark, y.start), (mark, y.end)];
            chart.draw_series([PathElement::new(line, BLACK.mix(0.4))])?;
        }
        for (index, curve) in panel.curves.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?.label(&curve.name).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
            });
        }
        if panel.curves.is_empty() {
            return Ok(());
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.4))
            .label_font(("sans-serif", 14))
            .draw()
    }
}

/// From the least to the greatest value and 0.
fn range(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(0.0, f64::min);
    least..values.fold(least + 1.0, f64::max)
}
