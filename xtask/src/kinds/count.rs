//! Events that are counted while tasks run.

mod over_time;
pub(crate) mod page;
pub(crate) mod text;

use super::figures::counted;
use super::{Compared, Page, Shown, energy, uncore};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::Point;
use crate::program::places::Names;
use protocol::record::CountResult;

impl Shown for CountResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        text::point(self)
    }

    fn csv(&self, report: &Report, verdict: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (event, value) in text::rows(self) {
            let figure = value.scaled.map_or(String::new(), |scaled| scaled.to_string());
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            fields.extend(std::iter::repeat_n(figure, 4));
            // One run, exact if it was counted all the time.
            let whole = (value.counted == value.enabled).to_string();
            fields.extend(["1".into(), "1".into(), whole]);
            fields.extend(["1".into(), "1".into(), verdict.into()]);
            rows.push(fields);
        }
        for (event, raw) in text::series::rows(self) {
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            fields.extend(std::iter::repeat_n(raw.to_string(), 4));
            fields.extend(["1", "1", "true", "1", "1", verdict].map(String::from));
            rows.push(fields);
        }
        for (event, count, whole) in text::console::counts(report, self) {
            let figure = count.map_or(String::new(), |count| count.to_string());
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            fields.extend(std::iter::repeat_n(figure, 4));
            fields.extend(["1".into(), "1".into(), whole.to_string()]);
            fields.extend(["1".into(), "1".into(), verdict.into()]);
            rows.push(fields);
        }
        rows.extend(energy::rows((self.item, &self.name), &self.energy, verdict));
        rows.extend(uncore::rows((self.item, &self.name), &self.uncore, verdict));
        rows.extend(csv::uncounted(self.item, &self.name, text::all_uncounted(self)));
        for set in &self.sets {
            let what = match (&set.evicted, &set.refused) {
                (Some(_), _) => "evicted",
                (None, Some(_)) => "refused",
                (None, None) => continue,
            };
            rows.push(csv::without_figures(self.item, &self.name, &set.name, what));
        }
        rows
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = counted::of_count(self, steady);
        Compared { kind: "count", emulated: self.emulated, per: None, figures }
    }

    fn page(&self, document: &Document) -> Page {
        Page { kind: "count", parts: page::parts(document, self), open: true, lists_code: false }
    }

    fn name_places(&mut self, names: &mut Names) {
        names.tasks(&mut self.tasks);
    }
}
