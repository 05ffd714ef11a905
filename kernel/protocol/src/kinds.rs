//! The kinds of items, in one table: what a job can ask for, and the record that each ends with.
//!
//! A kind has a type that says of itself what every item has to say ([`JobPart`](crate::job::JobPart)), and one that says what every result
//! has to say ([`ItemRecord`](crate::record::ItemRecord)). Everything else in this crate reaches a kind through these two traits, so nothing
//! but the table lists them. Where the host and the firmware list them, they do it with [`kinds!`](macro@crate::kinds) or in one `match` over
//! [`Item`](crate::job::Item).
//!
//! A new kind is a module here with both types, which the table calls `protocol::kinds::…`. Those of the older ones are in [`crate::job`]
//! and [`crate::record`].

/// Calls a macro with the table of kinds: `kinds!(name!(arguments))` becomes
/// `name! { (arguments) items { … } results { … } }`.
///
/// An item's place in the table is its number in a packed job: a new one goes to the end. A type is a name that is imported where the table is
/// read, or a path.
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
