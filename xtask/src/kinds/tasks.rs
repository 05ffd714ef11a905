//! Workloads that are run for their own sake.

use super::{Compared, Page, Planned, Shown};
use crate::collect::Report;
use crate::compare::figures::counted;
use crate::page::Document;
use crate::page::items::tasks;
use crate::program::places::Names;
use crate::render::csv::{self, Row};
use crate::render::tap::point::Point;
use crate::render::{self, Context};
use protocol::job::Tasks;
use protocol::record::TasksResult;

// Nothing is counted, so nothing is stepped.
impl Planned for Tasks<'_> {}

impl Shown for TasksResult {
    fn section(report: &Report, context: &Context) -> String {
        render::tasks::sections(report, context.width)
    }

    fn tap(&self) -> Point {
        let mut point = render::tasks::point(&self.name, &self.tasks);
        render::energy::push(&mut point, &self.energy);
        render::uncore::push(&mut point, &self.uncore);
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
        let mut rows: Vec<Row> = render::tasks::figures(self).map(row).collect();
        rows.extend(render::energy::rows((self.item, &self.name), &self.energy, verdict));
        rows.extend(render::uncore::rows((self.item, &self.name), &self.uncore, verdict));
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted));
        rows
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = counted::of_tasks(self, steady);
        Compared { kind: "tasks", emulated: self.emulated, per: None, figures }
    }

    fn page(&self, _document: &Document) -> Page {
        Page { kind: "tasks", parts: tasks::parts(self), open: true, lists_code: false }
    }

    fn name_places(&mut self, names: &mut Names) {
        names.tasks(&mut self.tasks);
    }
}
