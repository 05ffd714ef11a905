//! WRMSR, register by register. Intel faults on a reserved bit, AMD drops it.

use super::arch_pebs::THRESHOLD_REACHED;
use super::gate::Which;
use super::read::{PERFMON_AVAILABLE, TRACES_UNAVAILABLE};
use super::{Pmu, freeze};
use crate::error::Fault;
use crate::events;
use crate::model::{LbrKind, Pebs};
use crate::mutation::Mutation;
use crate::qualify::Qualifiers;
use crate::registers::Register;
use crate::selector::Selector;

/// HWCR\[30\]: the instructions-retired counter runs.
pub(super) const HWCR_IRPERF: u64 = 1 << 30;
/// Status bits that version 4 added: LBR_Frz, CTR_Frz, ASCI.
const STATUS_V4: u64 = freeze::LBR_FROZEN | freeze::COUNTERS_FROZEN | 1 << 60;
/// Status bit of version 3: uncore overflow.
const STATUS_V3: u64 = 1 << 61;
/// DS buffer threshold.
const STATUS_V2: u64 = 1 << 62;
/// CondChgd, which can be cleared and not set.
const STATUS_CHANGED: u64 = 1 << 63;
/// AMD's DEBUGCTL faults on this bit alone.
const AMD_DEBUGCTL_FAULTS: u64 = 1 << 6;

/// A value without reserved bits, or the fault.
pub(crate) const fn checked(msr: u32, value: u64, valid: u64) -> Result<u64, Fault> {
    if value & !valid == 0 {
        return Ok(value);
    }
    Err(Fault::Reserved { msr, value, reserved: value & !valid })
}

/// The low `bits` bits.
const fn low(bits: u8) -> u64 {
    (1 << bits) - 1
}

/// A linear address of 48 bits, or the fault.
fn canonical(msr: u32, value: u64) -> Result<u64, Fault> {
    let extended = (value as i64) << 16 >> 16;
    if extended as u64 == value {
        return Ok(value);
    }
    Err(Fault::Reserved { msr, value, reserved: value ^ extended as u64 })
}

impl Pmu {
    /// Writes, and says what the hardware should be given.
    pub(super) fn write(
        &mut self,
        register: Register,
        msr: u32,
        value: u64,
    ) -> Result<Option<u64>, Fault> {
        match register {
            Register::Counter(n) => self.write_legacy(n, value),
            Register::FullCounter(n) => self.write_full(n, msr, value)?,
            Register::Selector(n) => self.write_selector(n, msr, value)?,
            Register::Fixed(n) => {
                let width = low(self.fixed_bits());
                let value = match checked(msr, value, width) {
                    Err(_) if self.is(Mutation::FixedWidthUnchecked) => value & width,
                    checked => checked?,
                };
                self.fixed[n].set(value);
                self.armed &= !(1 << (32 + n));
            }
            Register::FixedControl => {
                let value = checked(msr, value, self.fixed_control_mask())?;
                let changed = value ^ self.fixed_control;
                for n in (0..super::MAX_FIXED).filter(|n| changed >> (4 * n) & 0xF != 0) {
                    self.armed &= !(1 << (32 + n));
                }
                self.fixed_control = value;
            }
            Register::GlobalStatus => {
                if self.is(Mutation::StatusWriteAccepted) {
                    self.status = value;
                } else if self.spec().intel().is_some() {
                    return Err(Fault::ReadOnly { msr, value });
                }
                // AMD ignores it (PPR; Linux, `kvm_pmu_set_msr`).
            }
            Register::Capabilities | Register::GlobalInUse | Register::InstructionsRetired => {
                return Err(Fault::ReadOnly { msr, value });
            }
            Register::GlobalControl => {
                self.global_control = self.global(msr, value, self.spec().global_mask())?;
            }
            Register::GlobalClear => {
                let bits = self.global(msr, value, self.status_mask(true))?;
                if self.is(Mutation::StatusClearsAll) {
                    self.status = 0;
                } else if !self.is(Mutation::StatusClearStuck) {
                    self.clear_status(bits);
                }
            }
            Register::GlobalSet => {
                let bits = self.global(msr, value, self.status_mask(false))?;
                if !self.is(Mutation::StatusSetIgnored) {
                    let lost = u64::from(self.is(Mutation::MetricsStatusStuck)) << 48;
                    self.status |= bits & !lost;
                }
            }
            Register::Metrics => {
                let fields = self.metrics_fields();
                let valid = if fields >= 8 { u64::MAX } else { low(8 * fields) };
                let checked = match checked(msr, value, valid) {
                    Err(_) if self.is(Mutation::MetricsReservedAccepted) => Ok(value & valid),
                    checked => checked,
                };
                match self.is(Mutation::MetricsWriteGoesOn) {
                    true => self.metrics.set_and_go_on(checked?),
                    false => self.metrics.set(checked?),
                }
            }
            Register::DebugControl => self.write_debugctl(msr, value)?,
            Register::MiscEnable => return self.write_misc_enable(msr, value).map(Some),
            Register::HardwareConfiguration => {
                self.hwcr = value;
                let host = self.host().hwcr & HWCR_IRPERF;
                return Ok(Some(value & !HWCR_IRPERF | host));
            }
            Register::Extra(n) => {
                let (_, valid) = self.spec().extra[n];
                self.extra[n] = checked(msr, value, valid)?;
            }
            Register::DsArea => self.ds_area = canonical(msr, value)?,
            Register::PebsEnable => {
                let valid = self.pebs().map_or(0, |pebs| pebs.enable);
                self.pebs_enable = checked(msr, value, valid)?;
                self.armed &= value;
            }
            Register::PebsDataConfig => {
                let valid = self.pebs().map_or(0, |pebs| pebs.data_config);
                let unchecked = self.is(Mutation::PebsDataConfigUnchecked);
                let value = if unchecked { value & valid } else { value };
                self.pebs_data_config = checked(msr, value, valid)?;
            }
            Register::Qualifier(n) => {
                let counters =
                    u64::from(self.spec().counters()) | u64::from(self.spec().fixed()) << 32;
                let value = checked(msr, value, Qualifiers::valid(n, counters))?;
                self.qualifiers.set(n, value);
            }
            Register::PebsBase => self.write_pebs_base(msr, value)?,
            Register::PebsIndex => self.write_pebs_index(msr, value)?,
            Register::Config(n) => self.write_config(Which::General(n), msr, value)?,
            Register::FixedConfig(n) => self.write_config(Which::Fixed(n), msr, value)?,
            Register::Ibs(n) => self.write_ibs(n, msr, value)?,
            Register::Energy(_) if self.is(Mutation::EnergyWriteAccepted) => {}
            Register::Energy(_) => return Err(Fault::ReadOnly { msr, value }),
            Register::Uncore(number) => self.write_uncore(number, value)?,
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
            | Register::DebugExtension => {
                let spec = self.spec();
                self.lbr.write(spec, register, msr, value)?;
            }
        }
        Ok(None)
    }

    /// Intel's legacy form: 32 bits, sign-extended to the counter's width; the upper half of the
    /// value is ignored, not checked.
    fn write_legacy(&mut self, n: usize, value: u64) {
        let extended = if self.is(Mutation::LegacyWriteZeroExtends) {
            u64::from(value as u32)
        } else {
            i64::from(value as u32 as i32) as u64
        };
        let width = low(self.counter_bits());
        self.counters[n].set(extended & width);
        self.armed &= !(1 << n);
    }

    fn write_full(&mut self, n: usize, msr: u32, value: u64) -> Result<(), Fault> {
        let width = low(self.counter_bits());
        let mut value = if self.is_amd() {
            value & width
        } else {
            checked(msr, value, low(self.spec().width_bits()))? & width
        };
        if self.is(Mutation::FullWidthTruncates) {
            value = u64::from(value as u32);
        }
        self.counters[n].set(value);
        self.armed &= !(1 << n);
        Ok(())
    }

    fn write_selector(&mut self, n: usize, msr: u32, value: u64) -> Result<(), Fault> {
        let valid = self.selector_bits();
        let value = if self.is_amd() || self.is(Mutation::SelectorReservedBitAccepted) {
            value & valid
        } else {
            checked(msr, value, valid)?
        };
        let meaning = events::decode_of(self.spec(), Selector(value), n);
        self.counters[n].program(value, meaning);
        self.armed &= !(1 << n);
        Ok(())
    }

    /// A value for one of the global registers.
    fn global(&self, msr: u32, value: u64, valid: u64) -> Result<u64, Fault> {
        if self.is_amd() || self.is(Mutation::GlobalReservedBitAccepted) {
            Ok(value & valid)
        } else {
            checked(msr, value, valid)
        }
    }

    /// For each fixed counter OS, USR and PMI; AnyThread where version 3 or 4 has it; and with adaptive records bit 32 + 4n.
    fn fixed_control_mask(&self) -> u64 {
        let spec = self.spec();
        let any = spec.intel().is_some_and(|intel| intel.any_thread);
        let adaptive = self.pebs().is_some_and(Pebs::is_adaptive);
        let field = if any { 0xF } else { 0xB } | u64::from(adaptive) << 32;
        (0..super::MAX_FIXED).filter(|n| spec.fixed() & 1 << n != 0).map(|n| field << (4 * n)).sum()
    }

    /// Bits of the status register that can be cleared, or set.
    fn status_mask(&self, clearing: bool) -> u64 {
        let counters = self.spec().global_mask();
        match self.spec().intel() {
            None => counters | freeze::LBR_FROZEN | freeze::COUNTERS_FROZEN,
            Some(intel) => {
                let v4 = if intel.version >= 4 { STATUS_V4 } else { 0 };
                let v3 = if intel.version >= 3 { STATUS_V3 } else { 0 };
                let changed = if clearing { STATUS_CHANGED } else { 0 };
                let reached = if intel.arch_pebs().is_some() { THRESHOLD_REACHED } else { 0 };
                counters | v4 | v3 | STATUS_V2 | reached | changed
            }
        }
    }

    fn clear_status(&mut self, bits: u64) {
        let kept = if self.is(Mutation::NeverUnfreezes) { freeze::COUNTERS_FROZEN } else { 0 };
        self.status &= !(bits & !kept);
    }

    /// With architectural LBRs, bit 0 reads as 0 and writes to it are dropped: ARCH_LBR_CTL took
    /// its place.
    fn write_debugctl(&mut self, msr: u32, value: u64) -> Result<(), Fault> {
        let spec = self.spec();
        let mut valid = spec.debugctl_mask;
        if self.is(Mutation::FreezeRefused) {
            valid &= !freeze::FREEZE_PERFMON_ON_PMI;
            checked(msr, value & freeze::FREEZE_PERFMON_ON_PMI, 0)?;
        }
        let value = if self.is_amd() {
            checked(msr, value, !AMD_DEBUGCTL_FAULTS)? & valid
        } else {
            checked(msr, value, valid)?
        };
        let dropped = match spec.lbr {
            LbrKind::Arch(_) => freeze::DEBUGCTL_LBR,
            _ => 0,
        };
        self.debugctl = value & !dropped;
        Ok(())
    }

    /// Bit 7 cannot be changed, and bits 11 and 12 fault if they would be (as KVM has it). The rest
    /// is the guest's and the hardware's.
    fn write_misc_enable(&mut self, msr: u32, value: u64) -> Result<u64, Fault> {
        let changed = (value ^ self.misc_enable) & TRACES_UNAVAILABLE;
        if changed != 0 {
            return Err(Fault::ReadOnlyBits { msr, value, bits: changed });
        }
        self.misc_enable = value | PERFMON_AVAILABLE;
        let ours = PERFMON_AVAILABLE | TRACES_UNAVAILABLE;
        Ok(value & !ours | self.host().misc_enable & ours)
    }
}
