//! How a report came about, as far as the firmware cannot know it.

use crate::collect::Report;
use crate::job::About;
use crate::job::sample::TaskCode;
use crate::metrics::ItemMetrics;
use crate::primitives::table::Width;
use crate::samples::Resolver;
use crate::symbols::image_base;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What made a report: versions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Tools {
    /// Of this program.
    pub barecount: String,
    /// Of the compiler, which assembles and builds the firmware.
    pub rustc: String,
    /// Of QEMU, if the machine is one of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu: Option<String>,
}

/// How the run came about, as far as the firmware cannot know it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Context {
    /// `qemu`, or the serial device or file.
    pub source: String,
    /// `kvm` or `tcg`; absent for a real machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// The guest's PMU, as the host tool chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// Why these two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it was booted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// TSC ticks per instruction, if QEMU's icount makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks_per_instruction: Option<u64>,
    /// What made the report, if it was made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// The job, if it is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<About>,
    /// Whether the records come from the firmware, and how that is known; absent where they carry no codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<&'static str>,
    /// Metrics of snippets, if some were requested.
    #[serde(skip)]
    pub metrics: Vec<ItemMetrics>,
    /// What is to be said about the boots.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// How wide tables may be.
    #[serde(skip)]
    pub width: Width,
    /// What the emulated PMU said.
    #[serde(skip)]
    pub pmu_said: Vec<String>,
    /// Backtrace of a crash, resolved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// Labels and bodies of sampled tasks, if the job is known here, by the item's index.
    #[serde(skip)]
    pub sampled: Vec<(u32, Vec<TaskCode>)>,
    /// The firmware's file with symbols, if it is here.
    #[serde(skip)]
    pub kernel: Option<PathBuf>,
    /// Names of the job's items, if the job is known here.
    #[serde(skip)]
    pub items: Vec<String>,
    /// The signal that interrupted the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<&'static str>,
    /// Why the machine did not finish, beyond what the report shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

impl Context {
    /// What resolves the addresses of `report`.
    #[must_use]
    pub fn resolver(&self, report: &Report) -> Resolver {
        let kernel = self.kernel.as_deref().map(|path| (path, image_base(report)));
        Resolver::new(&self.sampled, kernel)
    }
}
