//! RDMSR, register by register.

use super::Pmu;
use super::gate::Which;
use crate::mutation::Mutation;
use crate::registers::Register;

/// MISC_ENABLE\[7\]: performance monitoring is available.
pub(super) const PERFMON_AVAILABLE: u64 = 1 << 7;
/// MISC_ENABLE\[12:11\]: BTS and PEBS are unavailable.
pub(super) const TRACES_UNAVAILABLE: u64 = 3 << 11;
/// MISC_ENABLE\[12\].
const PEBS_UNAVAILABLE: u64 = 1 << 12;

impl Pmu {
    /// The host's MISC_ENABLE with the PMU's bits as they are here.
    pub(super) fn misc_enable_of(&self, host: u64) -> u64 {
        let unavailable = match self.pebs() {
            Some(_) => TRACES_UNAVAILABLE & !PEBS_UNAVAILABLE,
            None => TRACES_UNAVAILABLE,
        };
        host & !TRACES_UNAVAILABLE | PERFMON_AVAILABLE | unavailable
    }

    /// The value of a register of the model. The clearing and setting registers read as 0, as they
    /// do on Sandy Bridge silicon.
    pub(super) fn read(&mut self, register: Register) -> u64 {
        match register {
            Register::Counter(n) | Register::FullCounter(n) => self.value(n),
            Register::Selector(n) => self.counters[n].selector,
            Register::Fixed(n) => self.fixed[n].value,
            Register::FixedControl => self.fixed_control,
            Register::GlobalStatus => {
                let status = self.status;
                if self.is(Mutation::StatusReadClears) {
                    self.status = 0;
                }
                status
            }
            Register::GlobalControl => self.global_control,
            Register::GlobalClear | Register::GlobalSet => 0,
            Register::GlobalInUse => self.in_use(),
            Register::Capabilities => self.spec().intel().map_or(0, |intel| intel.capabilities),
            Register::Metrics => self.metrics_value(),
            Register::DebugControl => self.debugctl,
            Register::MiscEnable => self.misc_enable,
            Register::Extra(n) => self.extra[n],
            Register::DsArea => self.ds_area,
            Register::PebsEnable => self.pebs_enable,
            Register::PebsDataConfig => self.pebs_data_config,
            Register::PebsBase => self.arch_pebs.base,
            Register::PebsIndex => self.arch_pebs.index,
            Register::Config(n) => self.arch_pebs.config(Which::General(n)),
            Register::FixedConfig(n) => self.arch_pebs.config(Which::Fixed(n)),
            Register::HardwareConfiguration => self.hwcr,
            Register::InstructionsRetired => self.instructions_retired,
            Register::Ibs(n) => self.read_ibs(n),
            Register::Energy(n) => self.read_energy(n),
            Register::Uncore(msr) => self.read_uncore(msr),
            Register::Qualifier(n) => self.qualifiers.get(n),
            Register::LbrSelect
            | Register::LbrTos
            | Register::LbrFrom(_)
            | Register::LbrTo(_)
            | Register::LbrInfo(_)
            | Register::ArchLbrControl
            | Register::ArchLbrDepth
            | Register::LastBranchFrom
            | Register::LastBranchTo
            | Register::LerFrom
            | Register::LerTo
            | Register::LerInfo
            | Register::DebugExtension => self.lbr.read(self.spec(), register),
        }
    }

    /// What general-purpose counter `n` reads.
    pub(super) fn value(&self, n: usize) -> u64 {
        match n == 1 && self.is(Mutation::StuckAtMaximum) {
            true => (1 << self.counter_bits()) - 1,
            false => self.counters[n].value,
        }
    }

    /// `IA32_PERF_GLOBAL_INUSE`: counters whose selector names an event, fixed counters whose field
    /// enables a ring, and \[63\] if any of them would raise an interrupt. Enables do not matter.
    fn in_use(&self) -> u64 {
        let mut value = 0;
        let mut interrupt = false;
        for (n, counter) in self.counters.iter().enumerate() {
            value |= u64::from(counter.selector & 0xFF != 0) << n;
            interrupt |= counter.selector & crate::selector::bits::INT != 0;
        }
        for n in 0..self.fixed.len() {
            let field = self.fixed_field(n);
            value |= u64::from(field & 3 != 0) << (32 + n);
            interrupt |= field & 8 != 0;
        }
        value | u64::from(interrupt) << 63
    }

    /// The four bits of FIXED_CTR_CTRL that are fixed counter `n`'s.
    pub(super) fn fixed_field(&self, n: usize) -> u64 {
        let n = match n {
            0 | 1 if self.is(Mutation::FixedFieldsSwapped) => 1 - n,
            n => n,
        };
        self.fixed_control >> (4 * n) & 0xF
    }
}
