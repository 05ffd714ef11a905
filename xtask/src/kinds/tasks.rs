//! Workloads that are run for their own sake.

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
use protocol::record::TasksResult;

impl Shown for TasksResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        let mut point = text::point(&self.name, &self.tasks);
        energy::push(&mut point, &self.energy);
        uncore::push(&mut point, &self.uncore);
        point.uncounted(&self.uncounted)
    }

    fn csv(&self, _report: &Report, verdict: &str) -> Vec<Row> {
        let row = |(event, value, passed): (String, u64, bool)| {
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            fields.extend(std::iter::repeat_n(value.to_string(), 4));
            fields.extend(["1".into(), "1".into()]);
            // A task that exited did not fail the others.
            let own = if verdict == "fail" { "" } else { verdict };
            csv::with_verdict(fields, if passed { own } else { "fail" })
        };
        let mut rows: Vec<Row> = text::figures(self).map(row).collect();
        rows.extend(energy::rows((self.item, &self.name), &self.energy, verdict));
        rows.extend(uncore::rows((self.item, &self.name), &self.uncore, verdict));
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn is_csv_row(&self, event: &str, figure: &str) -> bool {
        let of_task = |(what, task): (&str, &str)| {
            let what = if what == "instructions:u" { "user instructions" } else { what };
            match task.split_once(", cpu ") {
                Some((task, cpu)) => event == format!("{task} {what}, cpu {cpu}"),
                None => event == format!("{task} {what}"),
            }
        };
        figure.split_once(", task ").map_or(event == figure, of_task)
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = counted::of_tasks(self, steady);
        Compared { kind: "tasks", emulated: self.emulated, per: None, figures }
    }

    fn page(&self, _document: &Document) -> Page {
        Page { kind: "tasks", parts: page::parts(self), open: true, lists_code: false }
    }

    fn name_places(&mut self, names: &mut Names) {
        names.tasks(&mut self.tasks);
    }
}
