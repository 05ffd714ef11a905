//! Histories: a snippet looked at cycle by cycle.

pub(crate) mod page;
pub(crate) mod text;

use super::figures::measured;
use super::page::{PageFigure, general};
use super::{Compared, Page, Shown};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::Point;
use crate::program::places::Names;
use protocol::record::HistoryResult;

impl Shown for HistoryResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        text::point(self)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (event, [median, min, max], agree) in text::figures(self) {
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            fields.extend([median.to_string(), min.to_string()]);
            // A mean of medians would be of little use.
            fields.extend([String::new(), max.to_string()]);
            fields.extend([self.runs.to_string(), self.per.to_string(), agree.to_string()]);
            rows.push(csv::with_verdict(fields, verdict));
        }
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    // An event without a row is its last one.
    fn is_csv_row(&self, event: &str, figure: &str) -> bool {
        let of = |name: &str, at: &str| event == format!("{name} up to {} {at}", self.clock);
        if let Some((name, at)) = figure.rsplit_once(", row ") {
            return of(name, at);
        }
        let last = self.series.iter().find(|one| one.event == figure).map(|one| one.median.len());
        last.is_some_and(|rows| of(figure, &(rows as u64 * u64::from(self.step)).to_string()))
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = measured::of_history(self, steady);
        Compared { kind: "history", emulated: self.emulated, per: Some(self.per), figures }
    }

    fn page(&self, _document: &Document) -> Page {
        Page { kind: "history", parts: page::parts(self), open: true, lists_code: false }
    }

    // Rows stand in the plot.
    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        general(document, self.compared(document.steady()), |figure| {
            !figure.name.contains(", row ")
        })
    }

    fn name_places(&mut self, names: &mut Names) {
        let Some(program) = self.program else { return };
        for place in &mut self.places {
            if let Some(frame) = names.at(program, place.address.0) {
                (place.function, place.location) = (frame.function, frame.location);
            }
        }
    }
}
