//! Workloads that are sampled while they run.

pub(crate) mod page;
pub(crate) mod text;

use super::figures::counted;
use super::{Compared, Page, Shown, energy, uncore};
use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::{self, Row};
use crate::primitives::point::{Data, Point};
use crate::program::places::Names;
use crate::samples::memory::class;
use crate::samples::{Profile, data, retired};
use protocol::record::{ItemRecord, SampleResult, SampledCount};

/// An event's figure in CSV: its overflows, or its count if no sample was taken by it.
fn figure(one: &SampledCount) -> (String, u64) {
    match one.is_sampled() {
        true => (format!("sampled {}", one.event), one.overflows),
        false => (format!("counted {}", one.event), one.witness.unwrap_or(0)),
    }
}

/// Rows of CSV for what is told of data, branches and calls.
trait Told {
    fn told(&self, report: &Report) -> Vec<(String, u64)>;
}

impl Told for SampleResult {
    fn told(&self, report: &Report) -> Vec<(String, u64)> {
        let profile = Profile::bare(report, self);
        let mut rows = Vec::new();
        for (index, one) in self.events.iter().enumerate() {
            rows.extend(retired::rows(one));
            let event = &one.event;
            for line in profile.lines(index) {
                rows.push((format!("sampled {event} of data line {:#x}", line.line), line.count));
            }
            for page in profile.pages(index) {
                rows.push((format!("sampled {event} of data page {:#x}", page.line), page.count));
            }
            for level in profile.levels(index) {
                rows.push((format!("sampled {event} from {}", level.source), level.count));
            }
            for (least, count) in profile.latencies(index) {
                rows.push((format!("sampled {event} latency {}", class(least)), count));
            }
        }
        rows.extend(profile.values.iter().flat_map(crate::samples::groups::ValueRow::figures));
        for one in &profile.vectors {
            rows.push((format!("different values of {}", one.name), one.different as u64));
        }
        for one in &self.outcomes {
            let at = format!("sampled branch at {:#x}", one.address.0);
            rows.push((at.clone(), one.count));
            rows.push((format!("{at} taken"), one.taken));
            rows.push((format!("{at} mispredicted"), one.mispredicted));
        }
        for one in self.stacks.iter().flat_map(|stacks| &stacks.stacks) {
            let frames: Vec<String> =
                one.frames.iter().rev().map(|frame| format!("{:#x}", frame.0)).collect();
            rows.push((format!("calls {}", frames.join(" ")), one.count));
        }
        rows
    }
}

impl Shown for SampleResult {
    fn section(report: &Report, context: &Context) -> String {
        text::sections(report, context)
    }

    fn tap(&self) -> Point {
        let mut point = Point::new(&self.name, true);
        for one in &self.events {
            let data = Data::new().text("event", &one.event);
            if !one.is_sampled() {
                let counted = one.witness.unwrap_or(0);
                point.push("counted", data.plain("count", counted));
                continue;
            }
            let data = data.plain("overflows", one.overflows).plain("dropped", one.dropped);
            point.push("sampled", data);
        }
        energy::push(&mut point, &self.energy);
        uncore::push(&mut point, &self.uncore);
        point.uncounted(&self.uncounted())
    }

    fn csv(&self, report: &Report, verdict: &str) -> Vec<Row> {
        let row = |event: String, count: u64, verdict: &str| {
            let mut fields = vec![self.item.to_string(), self.name.clone(), event];
            // One run, whose overflows are counted; the report itself has the rest.
            fields.extend(std::iter::repeat_n(count.to_string(), 4));
            fields.extend(["1".into(), "1".into()]);
            csv::with_verdict(fields, verdict)
        };
        let mut rows = Vec::new();
        for one in &self.events {
            let (name, count) = figure(one);
            rows.push(row(name, count, verdict));
            let estimates = one.qualified.iter();
            rows.extend(estimates.map(|what| {
                row(format!("estimated {}, {}", one.event, what.only), what.estimate, "")
            }));
        }
        for part in &self.processors {
            for one in &part.events {
                let (name, count) = figure(one);
                rows.push(row(format!("{name} on processor {}", part.cpu), count, ""));
            }
        }
        for one in data::addresses(report, self) {
            let event = self.events.get(one.event as usize);
            let event = event.map_or("", |event| event.event.as_str());
            let event = format!("sampled {event} of data at {:#x}", one.address.0);
            rows.push(row(event, one.count, ""));
        }
        rows.extend(self.told(report).into_iter().map(|(event, count)| row(event, count, "")));
        for one in self.branches.iter().flat_map(|branches| &branches.edges) {
            let event = format!("branch from {:#x} to {:#x}", one.from.0, one.to.0);
            rows.push(row(event, one.count, ""));
        }
        rows.extend(energy::rows((self.item, &self.name), &self.energy, verdict));
        rows.extend(uncore::rows((self.item, &self.name), &self.uncore, verdict));
        rows.extend(csv::uncounted(self.item, &self.name, &self.uncounted()));
        rows
    }

    // What a counter saw of a sampled event has no row.
    fn is_csv_row(&self, event: &str, figure: &str) -> bool {
        let is_own = |one: &SampledCount| match figure.strip_prefix(one.event.as_str()) {
            Some("") => !one.is_sampled() && event == format!("counted {figure}"),
            Some(", overflows") => event == format!("sampled {}", one.event),
            Some(", estimate") => event.starts_with(&format!("estimated {}, ", one.event)),
            _ => false,
        };
        event == figure || self.events.iter().any(is_own)
    }

    fn compared(&self, steady: bool) -> Compared {
        let figures = counted::of_samples(self, steady);
        Compared { kind: "sample", emulated: self.emulated, per: None, figures }
    }

    fn page(&self, document: &Document) -> Page {
        let parts = page::parts(document, self);
        Page { kind: "samples", parts, open: true, lists_code: false }
    }

    fn name_places(&mut self, names: &mut Names) {
        if let Some(schedule) = &mut self.schedule {
            names.tasks(&mut schedule.tasks);
        }
        // Looked for here so that what is missing is told; the rows are named where they are made.
        for (program, place) in self.code.iter().filter_map(|code| Some((code.program?, code))) {
            let _ = names.at(program, place.body[0].0);
        }
    }
}
