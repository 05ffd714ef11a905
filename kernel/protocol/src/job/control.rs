//! What a snippet asks of the machine around it.

/// Ring of init code and body. In ring 3 nothing is in reach but the snippet's own code and memory areas.
pub use crate::job::workload::Ring;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The machine's state while a snippet runs. The default is what every snippet gets.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Control<'a> {
    /// Longest time of one run, in milliseconds of unhalted cycles at the TSC's rate; 0: no limit.
    pub time_limit_ms: u32,
    /// How interrupts are kept out.
    pub interrupts: Interrupts,
    /// Hardware prefetchers are switched off.
    pub prefetchers_off: bool,
    /// Turbo or core performance boost is switched off.
    pub turbo_off: bool,
    /// Core clock that is asked for, in MHz; 0: none.
    pub frequency_mhz: u32,
    /// Caches before each run.
    pub caches: Caches,
    /// The TLB is flushed before each run.
    pub flush_tlb: bool,
    /// Pages of the memory areas.
    pub page_size: PageSize,
    /// Memory type of the memory areas.
    pub memory_type: MemoryType,
    /// Ring of init code and body.
    pub ring: Ring,
    /// How often a run is repeated in which a system management interrupt came.
    pub smi_repeats: u32,
    /// Model-specific registers that are read before and after each run.
    #[serde(borrow)]
    pub msrs: Vec<ReadMsr<'a>>,
}

/// Milliseconds that no benign run needs.
pub const DEFAULT_TIME_LIMIT_MS: u32 = 10_000;
/// Repetitions after system management interrupts.
pub const DEFAULT_SMI_REPEATS: u32 = 3;

impl Default for Control<'_> {
    fn default() -> Self {
        Self {
            time_limit_ms: DEFAULT_TIME_LIMIT_MS,
            interrupts: Interrupts::default(),
            prefetchers_off: false,
            turbo_off: false,
            frequency_mhz: 0,
            caches: Caches::default(),
            flush_tlb: false,
            page_size: PageSize::default(),
            memory_type: MemoryType::default(),
            ring: Ring::default(),
            smi_repeats: DEFAULT_SMI_REPEATS,
            msrs: Vec::new(),
        }
    }
}

/// A model-specific register to read.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReadMsr<'a> {
    /// What the result calls it.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its number.
    pub number: u32,
}

/// How interrupts are kept out.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Interrupts {
    /// RFLAGS.IF is clear.
    #[default]
    Cli,
    /// The local APIC accepts none either: its task priority is the highest, its local entries are masked.
    Apic,
}

/// Caches before each run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caches {
    /// As the run before left them.
    #[default]
    Warm,
    /// Written back and emptied, by WBINVD.
    ColdByWbinvd,
    /// The lines of the memory areas and of the code are flushed, by CLFLUSH.
    ColdByClflush,
}

/// Pages of the memory areas.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    #[serde(rename = "4k")]
    Small,
    /// 2 MiB.
    #[serde(rename = "2m")]
    Large,
    /// 1 GiB.
    #[serde(rename = "1g")]
    Giant,
}

/// Memory types, as the page attribute table names them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryType {
    /// Write-back.
    #[default]
    #[serde(rename = "wb")]
    WriteBack,
    /// Write-through.
    #[serde(rename = "wt")]
    WriteThrough,
    /// Uncacheable.
    #[serde(rename = "uc")]
    Uncacheable,
    /// Write-combining.
    #[serde(rename = "wc")]
    WriteCombining,
}
