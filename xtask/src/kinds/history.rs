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
