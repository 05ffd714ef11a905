//! The machine that metrics are measured on.

use crate::events::{CpuName, cpu};
use crate::metrics::names::MetricError;
use crate::metrics::table::{self, Table};
use crate::recording::Recorded;
use events::processor::Processor;
use events::tables::{Core, Tables};
use pmu_model::Model;
use raw_cpuid::CpuId;

/// The machine that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its processor.
    pub cpu: CpuName,
    /// Its general-purpose counters, if that is known.
    pub counters: Option<u32>,
    /// The emulated PMU.
    pub model: Option<Model>,
}

impl Target {
    /// A machine with this emulated PMU; none has no processor that is known.
    #[must_use]
    pub fn of_model(model: Model) -> Option<Self> {
        let cpu = CpuName::of(&cpu::key_of(model)?);
        // It has a bit for each.
        let counters = model.spec().counters().count_ones();
        Some(Self { cpu, counters: Some(counters), model: Some(model) })
    }

    /// A machine with the emulated PMU of a recorded processor.
    #[must_use]
    pub fn of_recorded(recorded: &Recorded) -> Option<Self> {
        let cpu = CpuName::of(&cpu::key_of_leaves(&recorded.leaves)?);
        let model = recorded.own.then_some(recorded.nearest);
        Some(Self { cpu, counters: Some(recorded.counters), model })
    }

    /// A machine with this host's PMU. A guest may have fewer counters than a core without hyper-threading.
    #[must_use]
    pub fn of_host(cpu: CpuName) -> Self {
        let leaf = CpuId::new().get_performance_monitoring_info();
        let counters = leaf.map(|leaf| u32::from(leaf.number_of_counters())).filter(|&n| n > 0);
        Self { cpu, counters, model: None }
    }

    /// The processor's events and metrics.
    ///
    /// # Errors
    /// It has no table of events.
    pub fn tables<'a>(&self, tables: &Tables<'a>) -> Result<(Core<'a>, Table), MetricError> {
        let core = self.cpu.core(tables)?;
        let table = table::table(core.name());
        Ok((core, table))
    }

    pub(super) fn processor(&self, core: &Core<'_>) -> Processor {
        let mut processor = Processor::described_by(core);
        if let Some(count) = self.counters {
            processor.gp_counters &= 1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1);
        }
        processor
    }
}
