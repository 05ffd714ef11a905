//! Work that goes on over time, for counting and sampling: tasks that a scheduler switches between.

use crate::job::LoopCounter;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Tasks, and how they share the processors.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Workload<'a> {
    /// The tasks. A parent stands before its children.
    #[serde(borrow)]
    pub tasks: Vec<Task<'a>>,
    /// Time between two timer ticks, in nanoseconds; 0: no ticks, each task runs to its end.
    pub tick_ns: u64,
    /// Draws each tick evenly from half to one and a half of [`Workload::tick_ns`], by a generator that starts here.
    /// `None`: ticks are periodic.
    pub jitter: Option<u64>,
}

/// One task: machine code that runs a number of turns and ends.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Task<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Runs once, when the task starts.
    #[serde(borrow)]
    pub init: Cow<'a, [u8]>,
    /// Runs [`Task::turns`] times, as the body of a loop.
    #[serde(borrow)]
    pub body: Cow<'a, [u8]>,
    /// Iterations of the loop around the body; 0: the body alone, once.
    pub turns: u64,
    /// Where the loop keeps its count.
    pub loop_counter: LoopCounter,
    /// Whether x87, MMX, SSE, AVX or other extended state is the task's own and is switched with it.
    pub extended_state: bool,
    /// Where it runs.
    pub ring: Ring,
    /// Index of the task that starts this one when it starts itself, and that does not end before it; counts of a
    /// child begin at zero and are added to its parent's when it exits. `None`: it is there from the beginning.
    pub parent: Option<u16>,
    /// The processor that it runs on, as an index into those that the machine has; `None`: the first.
    pub cpu: Option<u16>,
}

/// The privilege level of code.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ring {
    /// Ring 0.
    #[default]
    #[serde(rename = "0")]
    Kernel,
    /// Ring 3.
    #[serde(rename = "3")]
    User,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_task()(
            name in ".{0,20}", init in prop::collection::vec(any::<u8>(), 0..20),
            body in prop::collection::vec(any::<u8>(), 0..40), turns: u64, memory: bool, extended_state: bool,
            user: bool, parent: Option<u16>, cpu: Option<u16>,
        ) -> Task<'static> {
            Task {
                name: Cow::Owned(name), init: Cow::Owned(init), body: Cow::Owned(body), turns, extended_state,
                loop_counter: if memory { LoopCounter::Memory } else { LoopCounter::R15 },
                ring: if user { Ring::User } else { Ring::Kernel }, parent, cpu,
            }
        }
    }

    prop_compose! {
        pub fn any_workload()(
            tasks in prop::collection::vec(any_task(), 0..4), tick_ns: u64, jitter: Option<u64>,
        ) -> Workload<'static> {
            Workload { tasks, tick_ns, jitter }
        }
    }
}
