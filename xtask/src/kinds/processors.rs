//! Snippets that run on several processors at once.

pub(crate) mod page;
pub(crate) mod text;

use super::figures::measured;
use super::{Compared, Page, Shown};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::{Data, Point};
use protocol::record::{Metric, ProcessorsResult};

impl Shown for ProcessorsResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        let mut point = Point::new(&self.name, true);
        for sum in &self.sums {
            let is_energy = measured::parts(self, &sum.event).any(|one| one.energy.is_some());
            let data = Data::new().text("event", &sum.event);
            let data = data.measured("sum", sum.value, is_energy);
            point.push("sums", data);
        }
        point.uncounted(&self.uncounted)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for one in &self.processors {
            for metric in &one.metrics {
                let event = format!("{} on cpu {}", metric.event, one.processor);
                let measured = (self.runs, self.per, verdict);
                rows.push(csv::of_metric(self.item, &self.name, event, metric, measured));
            }
        }
        for sum in &self.sums {
            let mut fields = vec![self.item.to_string(), self.name.clone()];
            fields.extend([format!("{}, sum", sum.event), sum.value.to_string()]);
            // Of medians; it has no spread.
            fields.extend([String::new(), String::new(), String::new()]);
            fields.extend([self.runs.to_string(), self.per.to_string()]);
            rows.push(csv::with_verdict(fields, verdict));
        }
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = measured::of_processors(self, steady);
        Compared { kind: "processors", emulated: self.emulated, per: Some(self.per), figures }
    }

    fn page(&self, _document: &Document) -> Page {
        Page { kind: "processors", parts: page::parts(self), open: true, lists_code: false }
    }

    fn metrics(&self) -> Vec<&Metric> {
        self.processors.iter().flat_map(|one| &one.metrics).collect()
    }

    fn metrics_mut(&mut self) -> Vec<&mut Metric> {
        self.processors.iter_mut().flat_map(|one| &mut one.metrics).collect()
    }
}
