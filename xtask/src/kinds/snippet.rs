//! Snippets: machine code that is measured.

use super::{Compared, Page, Planned, Shown};
use crate::collect::Report;
use crate::compare::figures::measured;
use crate::job::forecast::{Slow, Steps};
use crate::page::Document;
use crate::page::items::{PageFigure, snippet};
use crate::render::Context;
use crate::render::csv::{self, Row};
use crate::render::tap::point::{Data, Point};
use crate::render::{forms, table, values};
use comfy_table::Cell;
use protocol::job::Snippet;
use protocol::record::{Metric, SnippetResult, Verdict};

impl Planned for Snippet<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        slow.of_runs(self, 1)
    }
}

impl Shown for SnippetResult {
    // Forms have a table of their own, and so have listed values.
    fn section(report: &Report, context: &Context) -> String {
        let values = values::section(report, context.width);
        values + &forms::table(report, table::unit(context), context.width)
    }

    fn rows(&self) -> Vec<Vec<Cell>> {
        if forms::is_form(self) {
            return Vec::new();
        }
        self.metrics.iter().map(|metric| table::row(self, metric)).collect()
    }

    fn tap(&self) -> Point {
        let mut point = Point::new(&self.name, self.verdict != Verdict::Fail);
        for Metric { event, value, deterministic, .. } in &self.metrics {
            let data = Data::new().text("event", event).number("median", value.median);
            let data = data.number("min", value.min).number("max", value.max);
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
        let (kind, parts) = (snippet::kind(self), snippet::parts(self));
        Page { kind, parts, open: false, lists_code: false }
    }

    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        snippet::figures(document, self)
    }

    fn metrics(&self) -> Vec<&Metric> {
        self.metrics.iter().collect()
    }

    fn metrics_mut(&mut self) -> Vec<&mut Metric> {
        self.metrics.iter_mut().collect()
    }
}
