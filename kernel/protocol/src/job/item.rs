//! One item of a job, of whatever kind.

mod parts;

use super::limits::LimitError;
use super::workload::Workload;
use super::{Conformance, Count, Exact, Facts, History, Processors, Sampling, Snippet, Tasks};
use serde::{Deserialize, Serialize};

macro_rules! item {
    (()
        items { $($(#[$item_doc:meta])* $item:ident($($part:ident)::+),)* }
        results $results:tt
    ) => {
        /// One item of a job: something to do, with a report of its own.
        #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
        pub enum Item<'a> {
            $($(#[$item_doc])* $item(#[serde(borrow)] $($part)::+<'a>),)*
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
    };
}

kinds!(item!());

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
