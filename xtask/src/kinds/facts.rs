//! Fact sheets.

pub(crate) mod page;
pub(crate) mod text;

use super::figures::measured;
use super::{Compared, Page, Shown};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::{Data, Point};
use protocol::record::{FactsResult, ItemRecord as _};

impl Shown for FactsResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        let mut point = Point::new(&self.name, true);
        for figure in self.figures() {
            let data = Data::new().text("figure", &figure.name);
            point.push("facts", data.number("value", figure.value.unwrap_or_default()));
        }
        point.uncounted(&self.uncounted)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for figure in self.figures() {
            let value = figure.value.unwrap_or_default().to_string();
            let mut fields = vec![self.item.to_string(), self.name.clone(), figure.name];
            fields.extend(std::iter::repeat_n(value, 4));
            fields.extend(["1".into(), "1".into()]);
            rows.push(csv::with_verdict(fields, verdict));
        }
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = measured::of_facts(self, steady);
        Compared { kind: "facts", emulated: self.emulated, per: None, figures }
    }

    fn page(&self, _document: &Document) -> Page {
        Page { kind: "facts", parts: page::parts(self), open: true, lists_code: false }
    }
}
