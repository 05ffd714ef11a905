//! What items are called in a job file: the table of the sections, with what is read of each and what is decided of it.

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
            /// What the processor's caches and TLBs are.
            facts: crate::job::facts::RawFacts, "Vec<crate::job::facts::RawFacts>" => fact_sheets: crate::job::facts::FactsFile;
            /// Code that is sampled while it runs.
            sample: crate::job::sample::RawSample, "Vec<crate::job::sample::RawSample>" => samples: crate::job::sample::SampleFile;
        }
    };
}
pub(super) use sections;
