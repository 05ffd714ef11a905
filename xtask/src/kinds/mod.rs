//! The kinds of items on the host, one module each: how a kind's result looks in every form.
//!
//! The table of kinds is [`protocol::kinds!`], and that of their sections in job files is here. A kind implements [`Shown`] for its
//! record; every command, form and comparison reaches it through this. In its module, `text` is what terminals show of it, and `page` what
//! pages do. A new kind is one module with all that the host knows of it: what is read of its section as well
//! ([`FileItem`](crate::job::file::FileItem) and [`Section`](crate::job::file::Section)), and what it takes
//! ([`Planned`](crate::forecast::Planned)). Those of the older ones are in [`crate::job`] and [`crate::forecast`].
//!
//! - [`figures`] are what is compared; [`mod@page`] is what kinds write their parts of pages with; [`places`] names code.
//! - [`energy`], [`uncore`] and [`moves`] are shown of several kinds.

pub(crate) mod count;
pub(crate) mod energy;
mod exact;
mod facts;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod moves;
pub(crate) mod page;
pub(crate) mod places;
pub(crate) mod processors;
mod sample;
pub(crate) mod snippet;
pub(crate) mod tasks;
pub(crate) mod uncore;

use crate::collect::Report;
use crate::context::Context;
use crate::document::Document;
use crate::primitives::csv::Row;
use crate::primitives::point::Point;
use crate::primitives::style::{ERROR, paint};
use crate::program::places::Names;
use comfy_table::Cell;
use figures::Figure;
use html_report::model::Part;
use page::PageFigure;
use protocol::record::{
    CountResult, ExactResult, FactsResult, HistoryResult, ItemRecord, Metric, ProcessorsResult,
    Record, SampleResult, SnippetResult, TasksResult, Verdict,
};

/// What the result of an item looks like.
pub trait Shown: ItemRecord {
    /// The section of all results of the kind in the table for people; empty: there are none.
    fn section(report: &Report, context: &Context) -> String
    where
        Self: Sized;

    /// Rows of the first table there, which items without a section of their own have.
    fn rows(&self) -> Vec<Vec<Cell>> {
        Vec::new()
    }

    /// The test point of TAP, but for what it missed.
    fn tap(&self) -> Point;

    /// The rows of CSV, but for what it missed; `verdict` stands in that column.
    fn csv(&self, report: &Report, verdict: &str) -> Vec<Row>;

    /// Whether the row of CSV that has this text for its event is that of the figure which an expectation names so. Kinds write a word
    /// before some events.
    fn is_csv_row(&self, event: &str, figure: &str) -> bool {
        let alone = event.split_once(' ').map(|(_, event)| event);
        event == figure || alone == Some(figure)
    }

    /// What comparisons know of it. `steady`: one run tells all.
    fn compared(&self, steady: bool) -> Compared;

    /// Its part of the page.
    fn page(&self, document: &Document) -> Page;

    /// Its figures on the page.
    fn page_figures(&self, document: &Document) -> Vec<PageFigure> {
        page::general(document, self.compared(document.steady()), |_| true)
    }

    /// The figures with a spread, for how well the report repeats.
    fn metrics(&self) -> Vec<&Metric> {
        Vec::new()
    }

    /// The same, to be changed.
    fn metrics_mut(&mut self) -> Vec<&mut Metric> {
        Vec::new()
    }

    /// Names what it says of places in compiled code.
    fn name_places(&mut self, _names: &mut Names) {}
}

/// What stands after the name in the heading of a section: that the item failed, or nothing.
pub(crate) fn failed(verdict: Verdict) -> String {
    if verdict == Verdict::Fail { format!(" {}", paint(ERROR, "FAIL")) } else { String::new() }
}

/// What a comparison knows of a result.
pub struct Compared {
    /// The kind, as the record's type has it.
    pub kind: &'static str,
    /// Whether its events are those of the emulated PMU.
    pub emulated: bool,
    /// Executions that a figure was divided by, where there are such.
    pub per: Option<u64>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// What a result shows on the page.
pub struct Page {
    /// What the page calls the kind.
    pub kind: &'static str,
    /// Its tables and plots.
    pub parts: Vec<Part>,
    /// Whether they are worth a look at once.
    pub open: bool,
    /// Whether its code is among them, so that it needs no listing.
    pub lists_code: bool,
}

/// Calls a macro with the table of what stands in a job file: key, what is read, and what is decided of it. Those that stand for
/// snippets are decided by themselves; all others become items after them, in this order.
macro_rules! sections {
    ($with:ident!()) => {
        $with! {
            /// Pieces of code to measure.
            snippet: crate::job::file::RawSnippet, "Vec<crate::job::file::RawSnippet>";
            /// Workloads: tasks that a timer switches between.
            run: crate::job::run::RawRun, "Vec<crate::job::run::RawRun>" => runs: crate::job::run::RunFile;
            /// Instruction forms, each measured for latency and throughput.
            characterise: crate::job::file::RawForms, "Vec<crate::job::file::RawForms>";
            /// Events that are counted while tasks run.
            count: crate::job::count::RawCount, "Vec<crate::job::count::RawCount>" => counts: crate::job::count::CountFile;
            /// Code that runs on several processors at the same time.
            processors: crate::job::file::RawSnippet, "Vec<crate::job::file::RawSnippet>";
            /// What the processor's caches, TLBs and core are, what lies between processors, and what takes their time.
            facts: crate::job::facts::RawFacts, "Vec<crate::job::facts::RawFacts>" => fact_sheets: crate::job::facts::FactsFile;
            /// Code that is sampled while it runs.
            sample: crate::job::sample::RawSample, "Vec<crate::job::sample::RawSample>" => samples: crate::job::sample::SampleFile;
        }
    };
}

macro_rules! of_record {
    (($record:expr)
        items $items:tt
        results { $($(#[$result_doc:meta])* $name:ident($($result:ident)::+),)* }
    ) => {
        match $record {
            $(Record::$name(result) => Some(result),)*
            _ => None,
        }
    };
}

macro_rules! all_sections {
    (($report:expr, $context:expr)
        items $items:tt
        results { $($(#[$result_doc:meta])* $name:ident($($result:ident)::+),)* }
    ) => {
        [$(<$($result)::+ as Shown>::section($report, $context),)*].concat()
    };
}

/// The result of an item, if the record is one.
#[must_use]
pub fn shown(record: &Record) -> Option<&dyn Shown> {
    protocol::kinds!(of_record!(record))
}

/// The same, to be changed.
pub fn shown_mut(record: &mut Record) -> Option<&mut dyn Shown> {
    protocol::kinds!(of_record!(record))
}

/// The sections of all kinds, in the order of the table.
#[must_use]
pub fn result_sections(report: &Report, context: &Context) -> String {
    protocol::kinds!(all_sections!(report, context))
}

/// The item that `record` is the result of, as comparisons know it.
#[must_use]
pub fn compared(record: &Record, steady: bool) -> Option<figures::Item> {
    let result = shown(record)?;
    let Compared { kind, emulated, per, figures } = result.compared(steady);
    let head = result.head();
    let uncounted = result.uncounted().into_iter().map(|one| (one.event, one.reason));
    let without = result.figures().into_iter().filter(|figure| figure.value.is_none());
    let without = without.map(|figure| (figure.label, "it never had a counter".to_string()));
    Some(figures::Item {
        index: head.item,
        kind,
        name: head.name.to_string(),
        emulated,
        per,
        figures,
        uncounted: uncounted.chain(without).collect(),
    })
}
