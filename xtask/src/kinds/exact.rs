//! Exact mode: a snippet stepped instruction by instruction.

pub(crate) mod page;
pub(crate) mod text;

use super::figures::measured;
use super::page::{PageFigure, general};
use super::{Compared, Page, Shown};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::{Data, Point};
use crate::program::places::Names;
use protocol::record::ExactResult;

impl Shown for ExactResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        let agrees = self.comparisons.iter().all(|comparison| comparison.agrees);
        let mut point = Point::new(&self.name, agrees);
        for count in &self.counts {
            let data = Data::new().text("event", &count.event).number("value", count.value);
            point.push("exact", data);
        }
        point.uncounted(&self.uncounted)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for count in &self.counts {
            let mut fields = vec![self.item.to_string(), self.name.clone()];
            fields.push(format!("exact {}", count.event));
            fields.extend(std::iter::repeat_n(count.value.to_string(), 4));
            // One run, whose counts are exact.
            fields.extend(["1".into(), self.per.to_string(), "true".into()]);
            fields.extend(["1".into(), "1".into(), verdict.into()]);
            rows.push(fields);
        }
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn compared(&self, _steady: bool) -> Compared {
        let figures = measured::stepped(self);
        Compared { kind: "exact", emulated: false, per: Some(self.per), figures }
    }

    fn page(&self, _document: &Document) -> Page {
        // It has its own listing.
        Page { kind: "exact", parts: page::parts(self), open: false, lists_code: true }
    }

    // Mnemonics stand in the listing, and what did not happen nowhere.
    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        let is_opcode = |name: &str| self.opcodes.iter().any(|one| one.event == name);
        general(document, self.compared(document.steady()), |figure| {
            figure.value != 0.0 && !is_opcode(&figure.name)
        })
    }

    fn name_places(&mut self, names: &mut Names) {
        let Some(program) = self.program else { return };
        for row in &mut self.listing {
            if let Some(frame) = names.at(program, row.offset.into()) {
                (row.function, row.location) = (frame.function, frame.location);
            }
        }
    }
}
