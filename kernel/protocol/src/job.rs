//! A job: what the firmware is asked to do, in the form in which it decodes it.
//!
//! Text and code borrow from the ramdisk, so that ten thousand snippets cost the firmware one vector.
//!
//! - [`limits`]: the bounds of all that it says, which both sides check.
//! - [`control`]: what a snippet asks of the machine. [`memory`]: memory that items see. [`requirement`]: what the code of items needs
//!   of the processor. [`criteria`]: what an item has to come to.
//! - [`exact`]: what is counted by stepping. [`history`]: what is counted cycle by cycle. [`facts`]: what a fact sheet has.
//! - [`workload`]: tasks, for counting and sampling; [`affinity`]: the processors that they run on. [`mod@count`]: what is counted
//!   over them, and [`gate`]: where that starts and stops. [`sampling`]: where they are when events happen.
//!
//! Nothing here knows what becomes of it: [`crate::record`].

pub mod affinity;
pub mod conformance;
pub mod control;
pub mod count;
pub mod criteria;
pub mod exact;
pub mod facts;
pub mod gate;
pub mod history;
mod item;
pub mod limits;
pub mod memory;
pub mod requirement;
pub mod sampling;
mod snippet;
pub mod workload;

pub use crate::core_kind::CoreKind;
pub use conformance::Conformance;
pub use control::Control;
pub use count::Count;
pub use criteria::{Bounds, Criteria, Expect};
pub use exact::{Exact, Filter};
pub use facts::Facts;
pub use history::History;
pub use item::{Item, JobPart};
pub use memory::Memory;
pub use requirement::Requirement;
pub use sampling::Sampling;
pub use snippet::{DRAIN_NOPS, Difference, LoopCounter, Setup, Snippet};
pub use workload::Tasks;

use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Everything that one boot does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Job<'a> {
    /// Shown in the report and on the screen.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Rate of the serial line, in bits per second; 8 data bits, no parity, 1 stop bit.
    pub baud: u32,
    /// What the machine does when the report is out.
    pub on_end: OnEnd,
    /// I/O port of QEMU's isa-debug-exit device, if the host attached one: written before [`Job::on_end`].
    pub exit_port: Option<u16>,
    /// For tests of barecount itself: break the firmware on purpose at the start of the run.
    pub self_test: Option<SelfTest>,
    /// What the processor has to have for some of the items.
    #[serde(borrow)]
    pub requires: Vec<Requirement<'a>>,
    /// The work, in order.
    #[serde(borrow)]
    pub items: Vec<Item<'a>>,
    /// What each item has to come to, in the same order. Items beyond its end have the default.
    #[serde(borrow)]
    pub criteria: Vec<Criteria<'a>>,
    /// Memory that items have besides what each item has.
    #[serde(borrow)]
    pub memory: Vec<Memory<'a>>,
}

impl<'a> Job<'a> {
    /// What the item of that index has to come to.
    #[must_use]
    pub fn criteria(&self, index: usize) -> &Criteria<'a> {
        const NONE: &Criteria = &Criteria { expect: Vec::new(), allow_uncounted: false };
        self.criteria.get(index).unwrap_or(NONE)
    }

    /// The memory that the item of that index asks for, in the order in which it does.
    pub fn memory_of(&self, index: u32) -> impl Iterator<Item = &Memory<'a>> {
        self.memory.iter().filter(move |memory| memory.is_of(index))
    }
}

/// What the machine does after the end record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnEnd {
    /// Stand still with the last screen.
    #[default]
    Halt,
    /// Reset the machine.
    Reboot,
    /// Switch it off through ACPI.
    PowerOff,
}

/// Ways to break the firmware on purpose, so that tests see what it then reports.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SelfTest {
    /// A Rust panic.
    Panic,
    /// A read through an address that nothing is mapped at.
    PageFault,
    /// Recursion into the guard page below the stack.
    StackOverflow,
    /// A write to the firmware's own code.
    WriteCode,
    /// A jump into the firmware's data.
    ExecuteData,
    /// A loop without end, interrupts off.
    Hang,
    /// A panic before it is known what the machine has.
    EarlyPanic,
}

/// Machine code that runs on every processor at the same time, or on one of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Processors<'a> {
    /// The code, and how it is measured.
    #[serde(borrow)]
    pub snippet: Snippet<'a>,
    /// The processor that it runs on, by its number; `None`: all.
    pub cpu: Option<u16>,
    /// The kind of core that it runs on, among whose processors `cpu` is then counted; `None`: each kind, one after the other.
    pub core: Option<CoreKind>,
    /// Afterwards, a loop of barecount's own on each of them with an interrupt at every so many instructions.
    pub interrupt_every: Option<u64>,
    /// Afterwards, so many rounds in which all of them do the same at once.
    pub contention: Option<u32>,
}

#[cfg(test)]
pub(crate) mod tests;
