//! The registers of instruction-based sampling. Reserved bits are dropped, as AMD does.

use super::{FETCH, OP};
use crate::Pmu;
use crate::error::Fault;
use crate::model::ibs as features;
use crate::mutation::Mutation;
use crate::pmu::gate::Which;

/// IBS_CTL: the interrupt's entry of the extended local vector table, 0, and that this is valid, as firmware leaves it.
const CONTROL: u64 = LVT_OFFSET_VALID;
const LVT_OFFSET_VALID: u64 = 1 << 8;
/// OP_CTL and FETCH_CTL: the maximum count.
const MAXIMUM: u64 = 0xFFFF;
/// OP_CTL: upper bits of the maximum count.
const MAXIMUM_WIDE: u64 = 0x7F << 20;
/// OP_CTL: the current count, of 20 or 27 bits.
const COUNT_AT: u32 = 32;
const COUNT: u64 = 0xF_FFFF;
const COUNT_WIDE: u64 = 0x7FF_FFFF;
/// FETCH_CTL: bits 19:4 of the current count.
const FETCH_COUNT_AT: u32 = 16;
/// FETCH_CTL: bits 3:0 of the count begin with random ones.
const FETCH_RANDOM: u64 = 1 << 57;
/// FETCH_CTL: latency, and what the fetch met, which are read-only.
pub(super) const FETCH_STATUS: u64 =
    0xFFFF << 32 | 1 << 50 | 1 << 51 | 1 << 52 | 3 << 53 | 3 << 55 | 1 << 58 | 3 << 60;

impl Pmu {
    /// Features that CPUID shows.
    pub(crate) fn ibs_features(&self) -> u32 {
        let all = self.spec().amd().map_or(0, |amd| amd.ibs);
        match all != 0 && self.is(Mutation::IbsFeatureTooMany) {
            true => all | features::OP_DATA_4,
            false => all,
        }
    }

    fn has_ibs(&self, feature: u32) -> bool {
        self.spec().amd().is_some_and(|amd| amd.ibs & feature != 0)
    }

    pub(in crate::pmu) fn read_ibs(&self, index: usize) -> u64 {
        let value = self.ibs.registers[index];
        match index {
            features::CTL if self.is(Mutation::IbsLvtOffsetInvalid) => 0,
            features::CTL => CONTROL,
            _ if index == FETCH.control && self.ibs_runs(Which::IbsFetch) => {
                value & !(MAXIMUM << FETCH_COUNT_AT)
                    | (self.ibs_count(Which::IbsFetch) >> 4 & MAXIMUM) << FETCH_COUNT_AT
            }
            _ if index == OP.control && self.ibs_runs(Which::IbsOp) => {
                let count = self.ibs_count(Which::IbsOp) & self.op_count_mask();
                value & !(COUNT_WIDE << COUNT_AT) | count << COUNT_AT
            }
            _ => value,
        }
    }

    /// Bits of the current count of operations that software sees.
    pub(super) fn op_count_mask(&self) -> u64 {
        match (self.has_ibs(features::READ_WRITE_COUNT), self.has_ibs(features::WIDE_COUNT)) {
            (false, _) => 0,
            (true, false) => COUNT,
            (true, true) => COUNT_WIDE,
        }
    }

    pub(in crate::pmu) fn write_ibs(
        &mut self,
        index: usize,
        msr: u32,
        value: u64,
    ) -> Result<(), Fault> {
        match index {
            features::CTL => return Err(Fault::ReadOnly { msr, value }),
            _ if index == FETCH.control => self.write_fetch_control(value),
            _ if index == OP.control => self.write_op_control(value),
            _ => self.ibs.registers[index] = value,
        }
        Ok(())
    }

    fn if_zen_4(&self, bit: u64) -> u64 {
        if self.has_ibs(features::ZEN_4) { bit } else { 0 }
    }

    fn write_fetch_control(&mut self, value: u64) {
        let valid = MAXIMUM
            | MAXIMUM << FETCH_COUNT_AT
            | FETCH.enable
            | FETCH.valid
            | FETCH_RANDOM
            | self.if_zen_4(FETCH.l3_miss_only);
        let status = self.ibs.registers[FETCH.control] & FETCH_STATUS;
        self.ibs.registers[FETCH.control] = value & valid | status;
        let low = if value & FETCH_RANDOM != 0 { u64::from(self.ibs.draw() & 0xF) } else { 0 };
        self.start_or_stop(Which::IbsFetch, (value >> FETCH_COUNT_AT & MAXIMUM) << 4 | low);
    }

    fn write_op_control(&mut self, value: u64) {
        let mut valid = MAXIMUM | OP.enable | OP.valid | self.if_zen_4(OP.l3_miss_only);
        if self.has_ibs(features::OP_COUNT) {
            valid |= super::COUNTS_OPS;
        }
        if self.has_ibs(features::WIDE_COUNT) {
            valid |= MAXIMUM_WIDE;
        }
        if self.has_ibs(features::LOAD_LATENCY) {
            valid |= super::LATENCY_FILTER;
        }
        let mut count = value >> COUNT_AT & self.op_count_mask();
        if self.is(Mutation::IbsCountWriteIgnored) {
            count = 0;
        }
        self.ibs.registers[OP.control] = value & valid | count << COUNT_AT;
        self.start_or_stop(Which::IbsOp, count);
    }

    fn start_or_stop(&mut self, which: Which, count: u64) {
        self.armed &= !which.bit();
        if self.ibs_runs(which) {
            self.ibs_start(which, count);
        }
    }

    /// The unit has a sample: its count stands where AMD says, with the low seven bits of operations' random
    /// (processor programming references, IbsOpCurCnt), and of fetches at the maximum.
    pub(super) fn stop_with_sample(&mut self, which: Which) {
        let random = u64::from(self.ibs.draw() & 0x7F) & self.op_count_mask();
        let maximum = self.ibs.registers[FETCH.control] & MAXIMUM;
        let valid = if self.is(Mutation::IbsValidNeverSets) { 0 } else { u64::MAX };
        match which {
            Which::IbsFetch => {
                let control = &mut self.ibs.registers[FETCH.control];
                *control = *control & !(MAXIMUM << FETCH_COUNT_AT) | maximum << FETCH_COUNT_AT;
                *control |= FETCH.valid & valid;
            }
            _ => {
                let control = &mut self.ibs.registers[OP.control];
                *control = *control & !(COUNT_WIDE << COUNT_AT) | random << COUNT_AT;
                *control |= OP.valid & valid;
            }
        }
        if self.ibs_runs(which) {
            // Planted faults alone.
            self.ibs_start(which, 0);
        }
    }
}
