//! Histories: a snippet looked at cycle by cycle.

use super::{Compared, Page, Planned, Shown};
use crate::collect::Report;
use crate::compare::figures::measured;
use crate::job::forecast::{STEPPED_A_SECOND, Slow, Steps, of_body, texts};
use crate::page::Document;
use crate::page::items::{self, PageFigure, history};
use crate::program::places::Names;
use crate::render::csv::{self, Row};
use crate::render::tap::point::Point;
use crate::render::{self, Context};
use protocol::job::History;
use protocol::record::HistoryResult;

impl Planned for History<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        let snippet = &self.snippet;
        let why = slow.first(texts(snippet).chain([&*self.clock]))?;
        // A row ends the run when the clock has come so far: on average half of the body.
        let runs = self.rows().saturating_mul(snippet.runs.into());
        let body = of_body(snippet, snippet.unroll.into());
        let instructions = runs.saturating_mul(body) / 2;
        Some(Steps { instructions, rate: STEPPED_A_SECOND, why })
    }
}

impl Shown for HistoryResult {
    fn section(report: &Report, context: &Context) -> String {
        render::history::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        render::history::point(self)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (event, [median, min, max], agree) in render::history::figures(self) {
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
        Page { kind: "history", parts: history::parts(self), open: true, lists_code: false }
    }

    // Rows stand in the plot.
    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        items::general(document, self.compared(document.steady()), |figure| {
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
