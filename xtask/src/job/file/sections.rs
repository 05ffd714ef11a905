//! What stands in a job file: a section for each kind of item that is written down by itself, from the table in
//! [`crate::kinds`].
//!
//! A kind implements [`FileItem`] and [`Section`] where its keys are.

use super::SnippetFile;
use super::lines::Text;
use super::raw::RawOptions;
use crate::events::EventText;
use crate::job::errors::{JobError, Place};
use crate::job::expect::CriteriaFile;
use crate::job::function::Programs;
use crate::job::memory::MemoryFile;
use crate::job::sample::TaskCode;
use crate::job::workload::WorkloadFile;
use crate::limits::LimitTable;
use crate::metrics::request::Ask;
use protocol::hex::Hex;
use protocol::job::{Item, OnEnd, SelfTest};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

macro_rules! job {
    ($($(#[$doc:meta])* $key:ident: $raw:ty, $list:tt $(=> $all:ident: $decided:ty)?;)*) => {
        /// A job: what is measured, and how.
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
        #[schemars(rename = "Job")]
        pub(crate) struct RawJob {
            /// Version of the form of jobs. Default: the newest.
            #[schemars(with = "Option<u64>")]
            pub(super) version: Option<Spanned<u64>>,
            /// Name of the job. Default: the name of the file.
            pub(super) name: Option<String>,
            /// Rate of the serial line: 115200 divided by a whole number. Default: 115200.
            #[schemars(with = "Option<u32>")]
            pub(super) baud: Option<Spanned<u32>>,
            /// What a real machine does at the end. Default: halt.
            #[serde(default)]
            pub(super) on_end: OnEnd,
            /// Break the firmware on purpose, for tests of what it then reports.
            pub(super) self_test: Option<SelfTest>,
            /// Whether items pass although events of theirs were not counted. Default: false.
            #[serde(default)]
            pub(super) allow_uncounted: bool,
            /// Processors that the job needs, 1 to 255. Default: as many as it names.
            #[schemars(with = "Option<u32>")]
            pub(super) cpus: Option<Spanned<u32>>,
            /// What the job is for. Default: snippets.
            #[serde(default)]
            pub(super) kind: Purpose,
            /// With `kind = "conformance"` and `"bring-up"`: names of checks, with `*` as wild card. Default: all.
            #[schemars(with = "Option<Vec<String>>")]
            pub(super) checks: Option<Spanned<Vec<String>>>,
            /// What holds for every snippet that does not say otherwise.
            #[serde(default)]
            pub(super) defaults: RawOptions,
            $(
                $(#[$doc])*
                #[serde(default)]
                #[schemars(with = $list)]
                pub(super) $key: Vec<Spanned<$raw>>,
            )*
            /// How far figures of any item may get worse from one report to the next.
            #[serde(default)]
            pub(super) limits: LimitTable,
        }

        impl RawJob {
            /// Its items behind the snippets.
            fn behind_snippets(&self) -> usize {
                [$($({ stringify!($all); self.$key.len() },)?)*].iter().sum()
            }
        }

        /// A whole job, all decided.
        #[derive(Clone, Debug, Default)]
        pub struct JobFile {
            /// Where the text came from, for messages.
            pub source: String,
            /// The job's name.
            pub name: String,
            /// Rate of the serial line.
            pub baud: u32,
            /// What a real machine does at the end.
            pub on_end: OnEnd,
            /// For barecount's own tests.
            pub self_test: Option<SelfTest>,
            /// Whether items pass although events of theirs were not counted, if they do not say.
            pub allow_uncounted: bool,
            /// Processors that the job needs, if it says so.
            pub cpus: Option<u32>,
            /// Names of checks, if the conformance suite runs; it comes before the snippets. Empty: all.
            pub checks: Option<Vec<String>>,
            /// The suite is that of a bring-up, behind all that can be found out about the machine.
            pub brings_up: bool,
            /// The snippets; those of `[[processors]]` behind the others.
            pub snippets: Vec<SnippetFile>,
            $($(
                #[doc = concat!("The items of `[[", stringify!($key), "]]`; they come behind the snippets.")]
                pub $all: Vec<$decided>,
            )?)*
            /// How far a figure of any item may get worse from one report to the next.
            pub limits: LimitTable,
            /// Digest of the file's text, if it is a file.
            pub(in crate::job) text: Option<Hex>,
        }

        impl JobFile {
            /// The items but the suite, in their order.
            pub(in crate::job) fn items(&self) -> Vec<&dyn FileItem> {
                let mut all: Vec<&dyn FileItem> = Vec::new();
                all.extend(self.snippets.iter().map(|one| one as &dyn FileItem));
                $($(all.extend(self.$all.iter().map(|one| one as &dyn FileItem));)?)*
                all
            }

            /// The same, to be changed.
            pub(in crate::job) fn items_mut(&mut self) -> Vec<&mut dyn FileItem> {
                let mut all: Vec<&mut dyn FileItem> = Vec::new();
                all.extend(self.snippets.iter_mut().map(|one| one as &mut dyn FileItem));
                $($(all.extend(self.$all.iter_mut().map(|one| one as &mut dyn FileItem));)?)*
                all
            }

            /// Decides what the sections behind the snippets leave open.
            pub(super) fn take_sections(
                &mut self,
                raw: &mut RawJob,
                text: &Text,
                source: &str,
            ) -> Result<(), JobError> {
                $($(self.$all = decide(std::mem::take(&mut raw.$key), text, source)?;)?)*
                Ok(())
            }

            /// Packs the items behind the snippets.
            ///
            /// # Errors
            /// What is wrong with one of them.
            pub(in crate::job) fn pack_sections(
                &self,
                programs: &Programs,
            ) -> Result<Vec<PackedItem>, JobError> {
                let mut all = Vec::new();
                $($(all.extend(<$decided>::pack(self, &self.$all, programs)?);)?)*
                Ok(all)
            }

            /// Puts the items of `other` in front of the items of their kinds.
            fn put_in_front(&mut self, other: Self) {
                self.snippets.splice(0..0, other.snippets);
                $($(self.$all.splice(0..0, other.$all);)?)*
            }
        }
    };
}

sections!(job!());

/// An item as it goes to the machine, and what the host keeps of its tasks' code if addresses in it have to be named.
pub(crate) type PackedItem = (Item<'static>, Option<Vec<TaskCode>>);

/// What every item of a job file has.
pub(crate) trait FileItem {
    /// Where it stands.
    fn place(&self, source: &str) -> Place;

    /// What it has to come to.
    fn criteria(&self) -> &CriteriaFile;

    /// The same, to be changed.
    fn criteria_mut(&mut self) -> &mut CriteriaFile;

    /// The memory that its code sees.
    fn memory(&self) -> &[MemoryFile];

    /// The same, to be changed.
    fn memory_mut(&mut self) -> &mut Vec<MemoryFile>;

    /// The texts of its events.
    fn events(&self) -> Vec<&EventText> {
        Vec::new()
    }

    /// Metrics to show of it.
    fn asks(&self) -> &[Ask] {
        &[]
    }

    /// Its tasks, if it has some.
    fn workload(&self) -> Option<&WorkloadFile> {
        None
    }

    /// The greatest number of a processor that it names.
    fn greatest_cpu(&self) -> Option<u16> {
        self.workload().and_then(WorkloadFile::greatest_cpu)
    }

    /// Whether a machine with so many processors has all that it names.
    ///
    /// # Errors
    /// What it does not have.
    fn check_cpus(&self, cpus: u32) -> Result<(), JobError> {
        self.workload().map_or(Ok(()), |workload| workload.check_cpus(cpus))
    }

    /// Whether there can be every figure that is expected.
    ///
    /// # Errors
    /// The first one that there cannot.
    fn check_expected(&self, source: &str) -> Result<(), JobError>;

    /// The error that `message` says, with its place.
    fn refused(&self, source: &str, message: String) -> JobError;
}

/// A section of items behind the snippets.
pub(crate) trait Section: FileItem + Sized {
    /// What is read of one.
    type Raw;

    /// Decides what it leaves open. `number`: its place among all of its section, from 1.
    ///
    /// # Errors
    /// What cannot be.
    fn decide(
        raw: Spanned<Self::Raw>,
        number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError>;

    /// Assembles and checks all of a job.
    ///
    /// # Errors
    /// What is wrong with one of them.
    fn pack(file: &JobFile, all: &[Self], programs: &Programs)
    -> Result<Vec<PackedItem>, JobError>;
}

fn decide<S: Section>(
    all: Vec<Spanned<S::Raw>>,
    text: &Text,
    source: &str,
) -> Result<Vec<S>, JobError> {
    (1..).zip(all).map(|(number, raw)| S::decide(raw, number, text, source)).collect()
}

/// What a job is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
pub(super) enum Purpose {
    /// Measuring snippets.
    #[default]
    Snippets,
    /// Checking the PMU.
    Conformance,
    /// Whether the PMU can be believed: experiments in front of the job's own items.
    Honest,
    /// Finding out what a machine is, before its PMU is checked.
    BringUp,
}

impl RawJob {
    /// Its items at least: a form of instructions can become several.
    pub(super) fn items(&self) -> usize {
        let forms = self.characterise.iter().map(|one| one.get_ref().len()).sum::<usize>();
        let code = self.snippet.len() + self.processors.len() + forms;
        let suite = usize::from(matches!(self.kind, Purpose::Conformance | Purpose::BringUp));
        code + self.behind_snippets() + suite
    }
}

impl JobFile {
    /// Whether it has the experiments of a certificate.
    pub(in crate::job) fn is_honest(&self) -> bool {
        self.snippets.iter().any(|one| one.name.starts_with(crate::honest::PREFIX))
    }

    /// Puts the experiments of the certificate in front of the items of their kinds. Their places are not in this file.
    pub(in crate::job) fn add_experiments(&mut self) -> Result<(), JobError> {
        let mut given = super::parse(crate::honest::JOB, "the experiments of a certificate")?;
        for item in given.items_mut() {
            item.criteria_mut().allow_uncounted = Some(true);
        }
        given.snippets.iter_mut().for_each(|snippet| snippet.spans = None);
        self.checks = given.checks.take();
        self.put_in_front(given);
        Ok(())
    }

    /// Puts a fact sheet with the default memory among its items. Its place is not in this file.
    pub(in crate::job) fn add_facts(&mut self) -> Result<(), JobError> {
        let mut given = super::parse(crate::job::facts::JOB, "--facts")?;
        self.fact_sheets.append(&mut given.fact_sheets);
        Ok(())
    }

    /// How many processors it needs: as many as it says, and those that its items name.
    #[must_use]
    pub fn needed_cpus(&self) -> u32 {
        let named = self.items().into_iter().filter_map(FileItem::greatest_cpu).max();
        let named = named.map_or(1, |greatest| u32::from(greatest) + 1);
        named.max(self.cpus.unwrap_or(1))
    }
}
