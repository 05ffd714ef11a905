//! All records, in one type.

use super::{
    AcpiTables, Check, ConsoleRecord, CountResult, CpuidLeaves, Crash, End, ErrorRecord,
    ExactResult, FactsResult, HistoryResult, ItemRecord, Machine, Measure, Msrs, ProcessorsResult,
    Progress, SampleResult, Samples, SnippetResult, Start, Suite, TasksResult,
};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

macro_rules! record {
    (()
        items $items:tt
        results { $($(#[$result_doc:meta])* $result:ident($($record:ident)::+),)* }
    ) => {
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
            $($(#[$result_doc])* $result($($record)::+),)*
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

kinds!(record!());

impl Record {
    /// The state that an item had changed and that was put back behind it, if the record is the one that ends an item and
    /// says so.
    pub fn restored_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::Error(error) => Some(&mut error.restored),
            _ => self.result_mut().map(|result| result.head_mut().restored),
        }
    }

    /// The same, to read: item, name and state of the records that are no errors.
    #[must_use]
    pub fn restored(&self) -> Option<(u32, &str, &[String])> {
        self.result().map(|result| {
            let head = result.head();
            (head.item, head.name, head.restored)
        })
    }

    /// The item that it belongs to, if it belongs to one, to be changed.
    pub fn item_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Samples(samples) => Some(&mut samples.item),
            Self::Console(console) => Some(&mut console.item),
            Self::Check(check) => Some(&mut check.item),
            Self::Suite(suite) => Some(&mut suite.item),
            Self::Cpuid(cpuid) => Some(&mut cpuid.item),
            Self::Msrs(msrs) => Some(&mut msrs.item),
            Self::Acpi(acpi) => Some(&mut acpi.item),
            Self::Measure(measure) => Some(&mut measure.item),
            Self::Error(error) => error.item.as_mut(),
            Self::Crash(crash) => crash.item.as_mut(),
            _ => self.result_mut().map(|result| result.head_mut().item),
        }
    }

    /// Whether it is the last one of an item: its result, a suite or an error.
    #[must_use]
    pub fn ends_item(&self) -> bool {
        match self {
            Self::Suite(_) => true,
            Self::Error(error) => error.item.is_some() && !error.more,
            _ => self.result().is_some_and(|result| !result.has_more()),
        }
    }
}
