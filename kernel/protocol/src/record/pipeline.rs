//! What a core is, as measured.

use super::{Fit, Times};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A core. Times are in tenths of a cycle, or of a tick of the TSC.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineFacts {
    /// What a mispredicted return costs, its address in the store buffer.
    pub mispredict_tenths: Times,
    /// The return stack.
    pub returns: ReturnsFact,
    /// The table of targets of indirect jumps.
    pub targets: TargetsFact,
    /// The instruction cache.
    #[serde(default)]
    pub code: CodeCacheFact,
    /// Store forwarding and the store buffer.
    #[serde(default)]
    pub stores: StoresFact,
    /// How many instructions it issues in a cycle, and can retire at least.
    #[serde(default)]
    pub issue: WidthFact,
    /// How many instructions it retires in a cycle at most.
    #[serde(default)]
    pub retire: RetireFact,
    /// The micro-op cache, the loop buffer and the decoders.
    #[serde(default)]
    pub front: FrontEndFact,
    /// The table of direct jumps.
    #[serde(default)]
    pub direct: DirectFact,
    /// How many instructions of several kinds are in flight at once.
    #[serde(default)]
    pub window: Vec<WindowFact>,
    /// What some code costs because of its operands or of what comes before it.
    #[serde(default)]
    pub hazards: Vec<HazardFact>,
}

/// A return stack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReturnsFact {
    /// Return addresses that it keeps; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Why they are not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many depths rise as if they were on the other side of it.
    pub doubtful: u32,
    /// What it was determined from: the depth of calls, and what returning from there takes beyond dropping the stack, in tenths.
    pub evidence: Vec<[i64; 2]>,
}

/// A table of targets.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetsFact {
    /// Ways; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Sets; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<u32>,
    /// Bytes of code that share a set; absent: there is one set, or it is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granule: Option<u32>,
    /// Why something is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many tries were nearer to the line between fitting and not fitting than to what they should be.
    pub doubtful: u32,
    /// What it was determined from: how many jumps at which distance were all predicted, and cycles beyond direct ones.
    pub evidence: Vec<Fit>,
}

impl TargetsFact {
    /// Its entries, if they are determined.
    #[must_use]
    pub fn entries(&self) -> Option<u32> {
        Some(self.ways? * self.sets?)
    }
}

/// The instruction cache.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeCacheFact {
    /// What fetching a line costs that it does not hold, the mean of 60; 0: it costs nothing that is seen.
    pub miss_tenths: u64,
    /// Bytes of a line; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Ways; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Bytes from a line to the next one of the same set; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_stride: Option<u32>,
    /// Why something is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many tries were nearer to the line between staying and not staying than to what they should be.
    pub doubtful: u32,
    /// What it was determined from: how many lines at which distance stayed, and cycles of 64 rounds beyond code in adjacent lines.
    pub evidence: Vec<Fit>,
}

impl CodeCacheFact {
    /// Its bytes, if they are determined.
    #[must_use]
    pub fn bytes(&self) -> Option<u32> {
        Some(self.ways? * self.set_stride?)
    }
}

/// Store forwarding and the store buffer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoresFact {
    /// Loads after stores, case by case.
    pub forward: Vec<ForwardFact>,
    /// Entries of the store buffer; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Why they are not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many numbers of stores before the step take longer than they should.
    pub doubtful: u32,
    /// What they were determined from: how many stores, and what flushing the lines and storing takes, in tenths.
    pub evidence: Vec<[i64; 2]>,
}

/// A load after a store.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardFact {
    /// Bytes that are stored.
    pub store: u32,
    /// Bytes that are loaded.
    pub load: u32,
    /// The load's address less the store's.
    pub offset: i32,
    /// The stored bytes are of two lines.
    pub crosses: bool,
    /// What the load takes beyond one that reads other bytes, which may be less than nothing: least, median and most, in tenths.
    pub tenths: [i64; 3],
}

impl ForwardFact {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { store, load, offset, crosses, .. } = self;
        match offset {
            4096.. => "4K aliasing".to_string(),
            _ if *crosses => format!("forward {load} of {store} across lines"),
            0 => format!("forward {load} of {store}"),
            _ => format!("forward {load} of {store} at {offset}"),
        }
    }
}

/// How many instructions a core issues in a cycle.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WidthFact {
    /// Instructions in a cycle; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Why it is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it was determined from: how many NOPs the longer programs have more.
    pub nops: u64,
    /// What they take longer, in cycles.
    pub cycles: u64,
}

/// How many instructions a core retires in a cycle at most.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetireFact {
    /// Instructions in a cycle; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Why it is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it was determined from: a counter mask, and the cycles in which at least as many instructions retired.
    #[serde(default)]
    pub evidence: Vec<[u64; 2]>,
}

/// What delivers instructions to a core: micro-op cache, loop buffer, decoders.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontEndFact {
    /// The most instructions of a loop that the micro-op cache holds, at whatever density; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uop_cache: Option<u32>,
    /// The most instructions of a loop that the loop buffer holds; absent: none shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_buffer: Option<u32>,
    /// Instructions that are decoded in a cycle; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode: Option<u32>,
    /// Why the micro-op cache is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the width of decoding is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_reason: Option<String>,
    /// Loops of NOPs, by their density.
    #[serde(default)]
    pub loops: Vec<NopLoops>,
}

impl FrontEndFact {
    /// The longest loop of a loop buffer, in instructions: no known one has more than 144 entries, and no micro-op cache as few.
    pub const MOST_LOOPED: u32 = 192;
}

/// Loops of so many NOPs in 32 bytes of code.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NopLoops {
    /// NOPs in 32 bytes.
    pub density: u32,
    /// The most instructions of a loop before each step, and what each instruction costs before and after it, in thousandths of a cycle.
    pub steps: Vec<[u64; 3]>,
    /// How many loops cost as if they were on the other side of a step.
    #[serde(default)]
    pub doubtful: u32,
    /// What they were determined from: instructions of a loop, and what each costs, in thousandths of a cycle.
    pub evidence: Vec<[u64; 2]>,
}

/// The table of direct jumps (branch target buffer).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectFact {
    /// The most jumps at any distance after which one more costs time; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Why they are not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Loops of jumps, by the distance of their jumps.
    #[serde(default)]
    pub loops: Vec<DirectLoops>,
}

/// Loops of direct jumps so many bytes apart.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectLoops {
    /// Bytes from one jump to the next.
    pub distance: u32,
    /// The most jumps of a loop before each step, and what each costs before and after it, in tenths of a cycle.
    pub steps: Vec<[u64; 3]>,
    /// How many loops cost as if they were on the other side of a step.
    #[serde(default)]
    pub doubtful: u32,
    /// What they were determined from: jumps of a loop, and what each costs, in tenths of a cycle.
    pub evidence: Vec<[u64; 2]>,
}

/// How many instructions of a kind are in flight at once.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowFact {
    /// What holds them.
    pub name: String,
    /// Its entries, as far as such instructions use them up; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Why they are not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many numbers of instructions are on the wrong side of the step.
    pub doubtful: u32,
    /// What they were determined from: how many instructions between two loads that miss, and what is saved if the second does not wait for the
    /// first, in tenths.
    pub evidence: Vec<[i64; 2]>,
}

/// Code that may be slow.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HazardFact {
    /// What may make it slow.
    pub name: String,
    /// What it costs each time: least, median and most, in tenths; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenths: Option<[i64; 3]>,
    /// Why it is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
