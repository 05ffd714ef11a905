//! Machine code to measure, and how.

use super::{Control, Filter};
use crate::bits::Bits;
use crate::program::Call;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Machine code to measure, and how.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Snippet<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Runs once before each measured run, outside the measurement.
    #[serde(borrow)]
    pub init: Cow<'a, [u8]>,
    /// The measured code. It is copied [`Snippet::unroll`] times, so it has to be position independent.
    #[serde(borrow)]
    pub body: Cow<'a, [u8]>,
    /// Copies of the body in a row.
    pub unroll: u32,
    /// Iterations of a loop around the copies; 0: no loop.
    pub loop_count: u64,
    /// Where the loop keeps its count.
    pub loop_counter: LoopCounter,
    /// Whether the code may touch x87, MMX, SSE, AVX or other extended state, which then is put into its
    /// initial configuration before each run.
    pub extended_state: bool,
    /// Runs before measuring.
    pub warmup: u32,
    /// Measured runs.
    pub runs: u32,
    /// Which two code sizes are subtracted from each other.
    pub difference: Difference,
    /// Whether the report lists the value of every run.
    pub values: bool,
    /// What to count besides the TSC: events, or groups in braces, in the syntax of the crate `events`.
    #[serde(borrow)]
    pub events: Vec<Cow<'a, str>>,
    /// What else stands around the body.
    #[serde(borrow)]
    pub setup: Setup<'a>,
}

/// What stands around the body of a snippet besides its init code. The default is nothing of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Setup<'a> {
    /// Runs once, before everything else. Registers start anew afterwards; memory stays as it leaves it.
    #[serde(borrow)]
    pub one_time_init: Cow<'a, [u8]>,
    /// Runs in each run immediately before the body, while the counters count. Both code sizes have it, so it
    /// cancels.
    #[serde(borrow)]
    pub late_init: Cow<'a, [u8]>,
    /// Runs before the first warm-up, of the smaller code size.
    pub initial_warmup: u32,
    /// Bytes from a multiple of 64 to the start of the body.
    pub alignment_offset: u8,
    /// Nothing touches memory from the end of the init code to the end of the body but they themselves. The TSC is
    /// kept in R12 and R13, which late init and body leave alone; R9 to R13 do not bring a value from the init code.
    pub no_memory: bool,
    /// The front end is drained before the body: LFENCE, then [`DRAIN_NOPS`] one-byte NOPs.
    pub drain_frontend: bool,
    /// What is asked of the machine.
    #[serde(borrow)]
    pub control: Control<'a>,
    /// What the code of all parts is. In 32-bit code EBX stands for R14, and a loop counts in memory.
    pub bits: Bits,
    /// A function that is called in place of the body, which is empty then.
    #[serde(borrow)]
    pub call: Option<Call<'a>>,
    /// Of which instructions the events are counted.
    #[serde(borrow)]
    pub only: Filter<'a>,
}

/// NOPs that drain the front end: more than its queues are thought to hold (not measured), and four lines of 64 bytes, so
/// that they keep the alignment.
pub const DRAIN_NOPS: usize = 256;

/// Where the loop around the copies keeps its count.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum LoopCounter {
    /// In R15: `dec r15; jnz`. The host chooses it when body and init leave R15 alone.
    #[default]
    R15,
    /// In memory, so that a snippet may use every register: `dec qword ptr [rip + x]; jnz`.
    Memory,
}

/// The overhead of measuring is cancelled by subtracting two runs that differ only in their copies.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// `unroll` copies against twice as many. Edge effects at both ends of the body cancel as well.
    #[default]
    Double,
    /// No copy against `unroll`.
    Empty,
}
