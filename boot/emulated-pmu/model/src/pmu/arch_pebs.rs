//! Architectural PEBS: its registers, and where records go. It came with Panther Lake and Clearwater Forest (Intel Architecture
//! Instruction Set Extensions, chapter "Architectural PEBS"; Linux, `arch/x86/events/intel/core.c` and `ds.c`,
//! `union arch_pebs_index` and `struct arch_pebs_header` in `asm/perf_event.h`). Bits that are reserved: those that a KVM with
//! these registers refuses (`arch_pebs_index_rsvd`, `arch_pebs_cfg_c_rsvd`). What is not known is in [`crate::choices`].

use super::gate::Which;
use super::pebs::{GuestMemory, Retirement};
use super::write::checked;
use super::{MAX_COUNTERS, MAX_FIXED, Outcome, Pmu};
use crate::error::Fault;
use crate::model::{Pebs, arch};
use crate::mutation::Mutation;

/// IA32_PEBS_BASE: the buffer's size, 4 KiB shifted left by this, and its physical address. No processor has more than 52 bits of that.
const SIZE: u64 = 0xF;
const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;
const SMALLEST: u64 = 4096;
/// IA32_PEBS_INDEX: where the next record goes and the threshold, both in units of 16 bytes; the buffer is full; records are written.
const OFFSET_AT: u32 = 4;
const THRESHOLD_AT: u32 = 36;
const UNITS: u64 = 0x7F_FFFF;
const FULL: u64 = 1 << 31;
const ENABLE: u64 = 1 << 32;
const INDEX: u64 = UNITS << OFFSET_AT | FULL | ENABLE | UNITS << THRESHOLD_AT;
const UNIT: u64 = 16;
/// CFG_C: what the counter continues from after a record.
const RELOAD: u64 = 0xFFFF_FFFF;
/// Status bit 54: the threshold is reached, or there is no room.
pub(super) const THRESHOLD_REACHED: u64 = 1 << 54;
/// The same of the debug store.
const BUFFER_OVERFLOW: u64 = 1 << 62;

/// The registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchPebs {
    pub base: u64,
    pub index: u64,
    general: [u64; MAX_COUNTERS],
    fixed: [u64; MAX_FIXED],
}

impl ArchPebs {
    pub(super) const RESET: Self =
        Self { base: 0, index: 0, general: [0; MAX_COUNTERS], fixed: [0; MAX_FIXED] };

    /// A counter's CFG_C.
    pub(super) const fn config(&self, which: Which) -> u64 {
        match which {
            Which::General(n) => self.general[n],
            Which::Fixed(n) => self.fixed[n],
            Which::IbsFetch | Which::IbsOp => 0,
        }
    }

    /// Bytes of the buffer.
    const fn bytes(&self) -> u64 {
        SMALLEST << (self.base & SIZE)
    }

    /// Bytes in the buffer.
    const fn offset(&self) -> u64 {
        (self.index >> OFFSET_AT & UNITS) * UNIT
    }

    const fn threshold(&self) -> u64 {
        (self.index >> THRESHOLD_AT & UNITS) * UNIT
    }

    fn set_offset(&mut self, bytes: u64) {
        let units = (bytes / UNIT) & UNITS;
        self.index = self.index & !(UNITS << OFFSET_AT) | units << OFFSET_AT;
    }
}

impl Pmu {
    pub(super) fn write_pebs_base(&mut self, msr: u32, value: u64) -> Result<(), Fault> {
        self.arch_pebs.base = checked(msr, value, SIZE | ADDRESS)?;
        Ok(())
    }

    pub(super) fn write_pebs_index(&mut self, msr: u32, value: u64) -> Result<(), Fault> {
        self.arch_pebs.index = self.without_reserved(msr, value, INDEX)?;
        self.enable_records();
        Ok(())
    }

    /// CFG_C. A counter that cannot have records has all but the enable bit.
    pub(super) fn write_config(&mut self, which: Which, msr: u32, value: u64) -> Result<(), Fault> {
        let pebs = self.pebs();
        let can = pebs.is_some_and(|pebs| pebs.enable & which.bit() != 0);
        let groups = pebs.and_then(|pebs| pebs.architectural).map_or(0, |facts| facts.groups);
        let groups = self.there(groups);
        let enable = if can { arch::ENABLE } else { 0 };
        let valid = RELOAD | u64::from(groups) << 32 | enable;
        let value = self.without_reserved(msr, value, valid)?;
        match which {
            Which::General(n) => self.arch_pebs.general[n] = value,
            Which::Fixed(n) => self.arch_pebs.fixed[n] = value,
            Which::IbsFetch | Which::IbsOp => {}
        }
        self.enable_records();
        Ok(())
    }

    fn without_reserved(&self, msr: u32, value: u64, valid: u64) -> Result<u64, Fault> {
        match self.is(Mutation::ApebsReservedAccepted) {
            true => Ok(value & valid),
            false => checked(msr, value, valid),
        }
    }

    /// Which counters write records: those whose CFG_C says so, while IA32_PEBS_INDEX has records switched on.
    fn enable_records(&mut self) {
        let on = self.arch_pebs.index & ENABLE != 0 || self.is(Mutation::ApebsEnableIgnored);
        let dead = self.is(Mutation::ApebsFixedDead);
        let is_on = |which: &Which| {
            let config = self.arch_pebs.config(*which);
            on && config & arch::ENABLE != 0 && !(dead && matches!(which, Which::Fixed(_)))
        };
        self.pebs_enable = self.each().filter(is_on).map(Which::bit).sum();
        self.armed &= self.pebs_enable;
    }

    /// The machine has no AVX: records have no upper halves of YMM registers, and sub-leaf 4 of leaf 0x23 says so.
    pub fn withhold_upper_halves(&mut self) {
        self.withheld_groups = arch::YMM_UPPER;
    }

    /// Sub-leaf 4 EBX, of these groups of the model's.
    pub(crate) const fn there(&self, groups: u32) -> u32 {
        groups & !((self.withheld_groups >> 32) as u32)
    }

    /// Whether a counter that writes records requests one of these groups.
    fn asks_for(&self, groups: u64) -> bool {
        let mut on = self.each().filter(|which| self.pebs_enable & which.bit() != 0);
        on.any(|which| self.arch_pebs.config(which) & groups != 0)
    }

    pub(super) fn asks_for_vectors(&self) -> bool {
        self.asks_for(arch::VECTORS)
    }

    /// Whether records have the upper halves of YMM registers.
    #[must_use]
    pub fn records_upper_halves(&self) -> bool {
        self.asks_for(arch::YMM_UPPER)
    }

    /// Writes the record of the counters `due`, all of its fragments or none, and reloads them.
    pub(super) fn write_architectural(
        &mut self,
        pebs: &Pebs,
        due: u64,
        retired: &Retirement,
        memory: &mut dyn GuestMemory,
        outcome: &mut Outcome,
    ) {
        let fragments = self.architectural_record(pebs, due, retired);
        let start = self.arch_pebs.offset();
        let end = start + 8 * fragments.words().len() as u64;
        let room = end <= self.arch_pebs.bytes() && self.arch_pebs.index & FULL == 0;
        let fits = room || self.is(Mutation::ApebsFullIgnored);
        if fits {
            let from = (self.arch_pebs.base & ADDRESS) + start;
            for (at, word) in (from..).step_by(8).zip(fragments.words()) {
                let _ = memory.write_physical(at, *word);
            }
            if !(self.is(Mutation::ApebsRecordLost) && self.is_odd_record()) {
                self.arch_pebs.set_offset(end);
            }
        } else {
            self.arch_pebs.index |= FULL;
        }
        if !self.is(Mutation::ApebsReloadLost) {
            for which in self.each().filter(|which| due & which.bit() != 0) {
                let reload = self.reload(which);
                self.counter_mut(which).set(reload);
            }
        }
        let reached = !fits || self.arch_pebs.offset() >= self.arch_pebs.threshold();
        if reached && !self.is(Mutation::ApebsThresholdIgnored) {
            let old = self.is(Mutation::ApebsThresholdInOldBit);
            let bit = if old { BUFFER_OVERFLOW } else { THRESHOLD_REACHED };
            self.status |= bit;
            self.freeze_on_pmi();
            outcome.overflowed = bit;
            outcome.pmi = true;
        }
    }

    /// What a counter continues from: 32 bits, sign-extended, as of a legacy write to it.
    pub(super) fn reload(&self, which: Which) -> u64 {
        let low = self.arch_pebs.config(which) as u32;
        i64::from(low as i32) as u64 & ((1 << self.bits(which)) - 1)
    }
}
