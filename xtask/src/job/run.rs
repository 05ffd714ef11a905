//! `[[run]]`: workloads that are run for their own sake.

use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names, RawExpect};
use super::file::{FileItem, JobFile, PackedItem, Section, Text};
use super::function::Programs;
use super::memory::MemoryFile;
use super::schema::ExpectText;
use super::whole::{self, is_whole};
use super::workload::{DEFAULT_LIMIT_US, RawTask, TaskFile, WorkloadFile, of_workload, place};
use crate::events::EventText;
use crate::limits::LimitTable;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
use protocol::job::Item;
use protocol::job::limits::{self, LimitError};
use protocol::job::workload::Tasks;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// A workload: tasks that a timer switches between.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Run")]
pub(crate) struct RawRun {
    /// Its name. Default: `run` and its number.
    name: Option<String>,
    /// Nanoseconds from one tick of the scheduler to the next; 0: none. Default: 1 ms.
    tick_ns: Option<u64>,
    /// Seed; with it each tick comes after half to one and a half of that time.
    jitter: Option<u64>,
    /// Microseconds after which a task is ended. Default: 10 s.
    limit_us: Option<u64>,
    /// Energy and events of the uncore that are read: of everything that runs. Other events are counted by `[[count]]`.
    #[serde(default)]
    events: Vec<EventText>,
    /// Metrics of energy and of the uncore to show.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    metrics: Vec<Asked>,
    #[schemars(with = "Option<ExpectText>")]
    expect: Option<RawExpect>,
    allow_uncounted: Option<bool>,
    limits: Option<LimitTable>,
    /// Memory besides the areas of each task; all of them share it.
    #[serde(default)]
    memory: Vec<MemoryFile>,
    /// The tasks, parents before their children.
    #[serde(default)]
    #[schemars(with = "Vec<RawTask>")]
    task: Vec<Spanned<RawTask>>,
}

/// A workload that is run for its own sake.
#[derive(Clone, Debug)]
pub struct RunFile {
    /// Its name.
    pub name: String,
    /// The tasks and the timer.
    pub workload: WorkloadFile,
    /// Microseconds that each task may take.
    pub limit_us: u64,
    /// Energy and events of the uncore that are read.
    pub(super) whole: Vec<EventText>,
    /// Metrics that are asked for.
    pub(super) metrics: Vec<Asked>,
    /// The same, ready for the machine that is measured.
    pub(super) asks: Vec<Ask>,
    /// What it has to come to.
    pub criteria: CriteriaFile,
    /// Where it stands.
    place: Place,
}

impl RunFile {
    /// The item.
    ///
    /// # Errors
    /// Everything that is wrong with the tasks, each named.
    pub fn item(&self) -> Result<Tasks<'static>, JobError> {
        let refused = |message| self.refused("", message);
        let assembled = self.workload.assemble().map_err(|error| error.in_item(refused))?;
        let name = Cow::Owned(self.name.clone());
        if let Some(event) = self.whole.iter().find(|event| !is_whole(event)) {
            let message = format!(
                "[[run]] reads energy and the uncore, and {event} is neither; count it in a [[count]] of the same tasks"
            );
            return Err(self.refused("", message));
        }
        let [energy, uncore] = whole::split(&self.whole);
        Ok(Tasks { name, workload: assembled.workload, limit_us: self.limit_us, energy, uncore })
    }

    /// The error that this run breaks a bound.
    fn at(&self, error: &LimitError) -> JobError {
        self.workload.task_error(error).unwrap_or_else(|| self.refused("", error.to_string()))
    }
}

impl FileItem for RunFile {
    of_workload!();

    fn asks(&self) -> &[Ask] {
        &self.asks
    }

    fn check_expected(&self, source: &str) -> Result<(), JobError> {
        let mut whole: Vec<String> =
            ["ticks", "switches", "instructions:u"].map(String::from).to_vec();
        for task in &self.workload.tasks {
            let figures = ["turns", "switches", "value", "instructions:u"];
            whole.extend(figures.map(|figure| format!("{figure}, task {}", task.name)));
        }
        whole.extend(Names::of_events(self.whole.iter()));
        let moves = self.workload.figures_of_moves();
        let mut names = Names { whole, ..Names::default() };
        if !moves.is_empty() {
            let name = |task: &TaskFile| format!("instructions:u, task {}", task.name);
            names.events = self.workload.tasks.iter().map(name).collect();
            names.behind = &[", cpu "];
        }
        names.whole.extend(moves);
        names.check(&self.criteria).map_err(|message| self.refused(source, message))
    }

    fn refused(&self, _source: &str, message: String) -> JobError {
        JobError::of_item("run", &self.place, &self.name, message)
    }
}

impl Section for RunFile {
    type Raw = RawRun;

    fn decide(
        raw: Spanned<RawRun>,
        number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError> {
        let place = place(text, source, &raw.span());
        let raw = raw.into_inner();
        let RawRun {
            name,
            tick_ns,
            jitter,
            limit_us,
            events,
            metrics,
            expect,
            allow_uncounted,
            limits,
            memory,
            task,
        } = raw;
        Ok(Self {
            name: name.unwrap_or_else(|| format!("run {number}")),
            workload: WorkloadFile {
                memory,
                ..WorkloadFile::decide(task, tick_ns, jitter, text, source)
            },
            limit_us: limit_us.unwrap_or(DEFAULT_LIMIT_US),
            whole: events,
            metrics,
            asks: Vec::new(),
            criteria: CriteriaFile::new(expect, allow_uncounted, limits),
            place,
        })
    }

    fn pack(
        _file: &JobFile,
        all: &[Self],
        programs: &Programs,
    ) -> Result<Vec<PackedItem>, JobError> {
        let pack = |run: &Self| {
            let mut tasks = run.item()?;
            programs.fill(&run.workload, &mut tasks.workload)?;
            let item = Item::Tasks(tasks);
            limits::check_item(&item).map_err(|error| run.at(&error))?;
            Ok((item, None))
        };
        all.iter().map(pack).collect()
    }
}
