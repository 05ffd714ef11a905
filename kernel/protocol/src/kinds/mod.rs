//! The kinds of items, in one table: what a job can ask for, and the record that each ends with.
//!
//! A kind is one module here. It says of its job part what every item has to say ([`JobPart`]), and of its record what every
//! result has to say ([`ItemRecord`]); a new kind also has its two types there. Everything else in this crate reaches a kind
//! through these two traits, so nothing but the table lists them. Where the host and the firmware list them,
//! they do it with [`kinds!`](macro@crate::kinds) or in one `match` over [`Item`].

mod conformance;
mod count;
mod exact;
mod facts;
mod history;
mod processors;
mod sample;
mod snippet;
mod tasks;
#[cfg(test)]
mod tests;

use crate::digest;
use crate::job::{Conformance, Count, Exact, Facts, History, Processors, Sampling, Snippet, Tasks};
use crate::limits::LimitError;
use crate::record::{
    AcpiTables, Check, ConsoleRecord, CountResult, CpuidLeaves, Crash, End, ErrorRecord,
    ExactResult, FactsResult, HistoryResult, Machine, Measure, Miss, Msrs, ProcessorsResult,
    Progress, SampleResult, Samples, SnippetResult, Start, Suite, TaskResult, TasksResult,
    Uncounted, Verdict,
};
use crate::verdict::Figure;
use crate::workload::Workload;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Calls a macro with the table of kinds: `kinds!(name!(arguments))` becomes
/// `name! { (arguments) items { … } results { … } }`.
///
/// An item's place in the table is its number in a packed job: a new one goes to the end.
#[macro_export]
macro_rules! kinds {
    ($with:ident! $arguments:tt) => {
        $with! {
            $arguments
            items {
                /// Measure a piece of machine code.
                Snippet(Snippet),
                /// Check the PMU.
                Conformance(Conformance),
                /// Step through a piece of machine code.
                Exact(Exact),
                /// Run tasks.
                Tasks(Tasks),
                /// Count events while tasks run.
                Count(Count),
                /// Measure a piece of machine code on several processors at once.
                Processors(Processors),
                /// Sample a workload.
                Sample(Sampling),
                /// Look at a piece of machine code cycle by cycle.
                History(History),
                /// Find out all that can be known of a machine, then check its PMU by what was measured.
                BringUp(Conformance),
                /// Find out what the processor's caches and TLBs are.
                Facts(Facts),
            }
            results {
                /// What a snippet cost.
                Result(SnippetResult),
                /// What stepping through a snippet came to.
                Exact(ExactResult),
                /// In which cycles of a snippet events happened.
                History(HistoryResult),
                /// How a workload's tasks ran.
                Tasks(TasksResult),
                /// What was counted while tasks ran.
                Count(CountResult),
                /// What a snippet cost on several processors.
                Processors(ProcessorsResult),
                /// What sampling a workload came to.
                Sample(SampleResult),
                /// What the processor's caches and TLBs are.
                Facts(FactsResult),
            }
        }
    };
}

macro_rules! enums {
    (()
        items { $($(#[$item_doc:meta])* $item:ident($part:ident),)* }
        results { $($(#[$result_doc:meta])* $result:ident($record:ident),)* }
    ) => {
        /// One item of a job: something to do, with a report of its own.
        #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
        pub enum Item<'a> {
            $($(#[$item_doc])* $item(#[serde(borrow)] $part<'a>),)*
        }

        impl<'a> Item<'a> {
            /// The item's name, as the report gives it.
            #[must_use]
            pub fn name(&self) -> &str {
                self.part().name()
            }

            /// What its kind says of it.
            #[must_use]
            pub fn part(&self) -> &dyn JobPart<'a> {
                match self {
                    $(Self::$item(part) => part,)*
                }
            }

            /// The same, to be changed.
            pub fn part_mut(&mut self) -> &mut dyn JobPart<'a> {
                match self {
                    $(Self::$item(part) => part,)*
                }
            }
        }

        /// One line of the report.
        #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Record {
            /// The first record of every boot.
            Start(Start),
            /// What the firmware runs on.
            Machine(Machine),
            /// How far the run is; at most one a second.
            Progress(Progress),
            $($(#[$result_doc])* $result($record),)*
            /// Single samples of a workload.
            Samples(Samples),
            /// What the console of an item says.
            Console(ConsoleRecord),
            /// What CPUID answers on a processor.
            Cpuid(CpuidLeaves),
            /// Registers of a processor.
            Msrs(Msrs),
            /// The ACPI tables.
            Acpi(AcpiTables),
            /// A property of the machine.
            Measure(Measure),
            /// What a check of the PMU found.
            Check(Check),
            /// What all checks of an item came to.
            Suite(Suite),
            /// Something that did not work; the run goes on.
            Error(ErrorRecord),
            /// The firmware itself failed; nothing follows but the end record.
            Crash(Crash),
            /// The last record of every boot.
            End(End),
        }

        impl Record {
            /// What its kind says of it, if it is the result of an item.
            #[must_use]
            pub fn result(&self) -> Option<&dyn ItemRecord> {
                match self {
                    $(Self::$result(result) => Some(result),)*
                    _ => None,
                }
            }

            /// The same, to be changed.
            pub fn result_mut(&mut self) -> Option<&mut dyn ItemRecord> {
                match self {
                    $(Self::$result(result) => Some(result),)*
                    _ => None,
                }
            }
        }
    };
}

kinds!(enums!());

/// What the job part of a kind says of itself.
pub trait JobPart<'a> {
    /// The item's name, as the report gives it.
    fn name(&self) -> &str;

    /// Checks it.
    ///
    /// # Errors
    /// The first value outside its bounds.
    fn check(&self) -> Result<(), LimitError>;

    /// The code that it measures, if it is one snippet.
    fn snippet(&self) -> Option<&Snippet<'a>> {
        None
    }

    /// The same, to be changed.
    fn snippet_mut(&mut self) -> Option<&mut Snippet<'a>> {
        None
    }

    /// The tasks that it runs, if it does.
    fn workload(&self) -> Option<&Workload<'a>> {
        None
    }

    /// Whether the report lists the value of every run if its snippet says so.
    fn lists_values(&self) -> bool {
        false
    }
}

/// What the record that ends an item of a kind says of itself.
pub trait ItemRecord {
    /// What every such record has.
    fn head(&self) -> Head<'_>;

    /// The same, to be changed.
    fn head_mut(&mut self) -> HeadMut<'_>;

    /// Whether `item` is of the kind that ends so.
    fn is_of(&self, item: &Item) -> bool;

    /// Whether it can be of the item that a job calls `name`.
    fn is_named(&self, name: &str) -> bool {
        self.head().name == name
    }

    /// Whether the item has another such record after it, so that it has not ended.
    fn has_more(&self) -> bool {
        false
    }

    /// All its figures that an expectation can name.
    fn figures(&self) -> Vec<Figure>;

    /// What was asked for and not counted: events, and sets that lost the counters or never had them.
    fn uncounted(&self) -> Vec<Uncounted>;

    /// The figures of a digest: by default those that are of no task, no processor and no row, whose name has no comma.
    fn digest(&self) -> Vec<digest::Figure> {
        let all = self.figures().into_iter().filter(|one| !one.name.contains(','));
        all.map(|one| digest::single(&one.name, one.value)).collect()
    }

    /// Whether what is expected of every item of the kind holds; `None`: nothing is.
    fn agrees(&self) -> Option<bool> {
        None
    }

    /// The tasks that ran: each has to exit.
    fn tasks(&self) -> &[TaskResult] {
        &[]
    }
}

/// What every record has that ends an item.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The item's index in its job.
    pub item: u32,
    /// Its name.
    pub name: &'a str,
    /// Whether it passed.
    pub verdict: Verdict,
    /// What of it did not.
    pub misses: &'a [Miss],
    /// State that the item had changed and that was put back after it.
    pub restored: &'a [String],
}

/// The same, to be changed.
#[derive(Debug)]
pub struct HeadMut<'a> {
    /// The item's index in its job.
    pub item: &'a mut u32,
    /// Whether it passed.
    pub verdict: &'a mut Verdict,
    /// What of it did not.
    pub misses: &'a mut Vec<Miss>,
    /// State that the item had changed and that was put back after it.
    pub restored: &'a mut Vec<String>,
}

/// [`ItemRecord::head`] and [`ItemRecord::head_mut`] of a record that has the fields by these names.
macro_rules! head {
    () => {
        fn head(&self) -> $crate::kinds::Head<'_> {
            let Self { item, name, verdict, misses, restored, .. } = self;
            $crate::kinds::Head { item: *item, name, verdict: *verdict, misses, restored }
        }

        fn head_mut(&mut self) -> $crate::kinds::HeadMut<'_> {
            let Self { item, verdict, misses, restored, .. } = self;
            $crate::kinds::HeadMut { item, verdict, misses, restored }
        }
    };
}
use head;
