//! Snippets: machine code that is measured.

pub(crate) mod page;
pub(crate) mod text;
mod values;

use super::figures::measured;
use super::page::PageFigure;
use super::{Compared, Page, Shown};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::forms;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::{Data, Point};
use comfy_table::Cell;
use protocol::record::{Metric, SnippetResult, Verdict};

impl Shown for SnippetResult {
    // Forms have a table of their own, and so have listed values.
    fn section(report: &Report, context: &Context) -> String {
        let values = values::section(report, context.width);
        values + &forms::table(report, text::unit(context), context.width)
    }

    fn rows(&self) -> Vec<Vec<Cell>> {
        if forms::is_form(self) {
            return Vec::new();
        }
        self.metrics.iter().map(|metric| text::row(self, metric)).collect()
    }

    fn tap(&self) -> Point {
        let mut point = Point::new(&self.name, self.verdict != Verdict::Fail);
        for Metric { event, value, deterministic, energy, .. } in &self.metrics {
            let all = [("median", value.median), ("min", value.min), ("max", value.max)];
            let data =
                all.into_iter().fold(Data::new().text("event", event), |data, (key, value)| {
                    data.measured(key, value, energy.is_some())
                });
            point.push("metrics", data.plain("deterministic", deterministic));
        }
        point.uncounted(&self.uncounted)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let row = |metric: &Metric| {
            let measured = (self.runs, self.per, verdict);
            csv::of_metric(self.item, &self.name, metric.event.clone(), metric, measured)
        };
        let mut rows: Vec<Row> = self.metrics.iter().map(row).collect();
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = measured::of_metrics(&self.metrics, self.runs, self.per, steady, "");
        Compared { kind: "result", emulated: self.emulated, per: Some(self.per), figures }
    }

    fn page(&self, _document: &Document) -> Page {
        let (kind, parts) = (page::kind(self), page::parts(self));
        Page { kind, parts, open: false, lists_code: false }
    }

    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        page::figures(document, self)
    }

    fn metrics(&self) -> Vec<&Metric> {
        self.metrics.iter().collect()
    }

    fn metrics_mut(&mut self) -> Vec<&mut Metric> {
        self.metrics.iter_mut().collect()
    }
}
