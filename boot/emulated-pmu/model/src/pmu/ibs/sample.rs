//! A sample: what the registers say of the tagged instruction.

use super::registers::FETCH_STATUS;
use super::{FETCH, LATENCY_ENABLE, LATENCY_THRESHOLD, LATENCY_THRESHOLD_AT, OP, layout};
use crate::Pmu;
use crate::branch::{Branch, BranchKind};
use crate::delta::Delta;
use crate::model::ibs as features;
use crate::mutation::Mutation;
use crate::occurrence::Occurrence;
use crate::pmu::gate::Which;
use crate::pmu::pebs::Retirement;
use crate::selection::Selection;
use crate::timing::{Latency, MISPREDICTED, Stalls};
use crate::uarch::{Access, AccessKind};

/// How large a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Small = 0,
    /// 2 MiB.
    Large = 1,
    /// 1 GiB.
    Giant = 2,
}

impl PageSize {
    /// By the bits of an address that are the offset in the page.
    #[must_use]
    pub const fn of_offset_bits(bits: u32) -> Self {
        match bits {
            0..21 => Self::Small,
            21..30 => Self::Large,
            _ => Self::Giant,
        }
    }
}

/// What a sample reports an instruction in addition to its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Where it is in physical memory, and in how large a page.
    pub code: Option<(u64, PageSize)>,
    /// The branch, if it is one. A misprediction is taken from the delta as well.
    pub branch: Option<Branch>,
    /// Its first data access, if it has one, and how large the page is.
    pub access: Option<(Access, PageSize)>,
}

/// What the report of the instruction said of it that a record or a sample is of.
#[derive(Clone, Copy, Debug)]
pub(in crate::pmu) struct Seen {
    cycles: u16,
    /// Cycles from the retirement before to its own.
    pub(in crate::pmu) retire_latency: u16,
    mispredicted: bool,
    pub(in crate::pmu) source: Source,
    /// How long its data took.
    pub(in crate::pmu) latency: Latency,
    first_tlb_miss: bool,
    pub(in crate::pmu) second_tlb_miss: bool,
    pub(in crate::pmu) locked: bool,
}

/// Where the data was found, if caches are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pmu) enum Source {
    Unknown,
    First,
    Last,
    Memory,
}

impl Seen {
    pub const NOTHING: Self = Self {
        cycles: 0,
        retire_latency: 0,
        mispredicted: false,
        source: Source::Unknown,
        latency: Latency { miss: 0, translation: 0 },
        first_tlb_miss: false,
        second_tlb_miss: false,
        locked: false,
    };

    fn of(delta: &Delta, stalls: Stalls, retire_latency: u16) -> Self {
        use Occurrence::*;
        let any = |list: &[Occurrence]| delta.sum(Selection::of(list)) > 0;
        let source = if any(&[LoadLlcMiss, StoreLlcMiss]) {
            Source::Memory
        } else if any(&[LoadLlcHit, StoreLlcHit]) {
            Source::Last
        } else if any(&[LoadL1Hit, StoreL1Hit]) {
            Source::First
        } else {
            Source::Unknown
        };
        let saturated = |cycles: u64| u16::try_from(cycles).unwrap_or(u16::MAX);
        let walks = any(&[LoadWalk, StoreWalk]);
        Self {
            cycles: saturated(delta.instructions.saturating_add(stalls.cycles())),
            retire_latency,
            mispredicted: delta.sum(MISPREDICTED) > 0,
            source,
            latency: Latency::of(delta),
            first_tlb_miss: walks || any(&[LoadStlbHit, StoreStlbHit]),
            second_tlb_miss: walks,
            locked: any(&[Locked]),
        }
    }
}

impl Pmu {
    /// What was reported of the instruction that a record or a sample is of.
    pub(in crate::pmu) fn seen(&self) -> &Seen {
        &self.ibs.seen
    }

    /// The instruction of a record or a sample has been reported.
    pub(in crate::pmu) fn note_tagged(&mut self, delta: &Delta, stalls: Stalls) {
        self.ibs.seen = Seen::of(delta, stalls, self.timing.retire_latency(delta));
    }

    /// Samples the instruction for the units of a mask. Returns whether an interrupt is requested.
    pub(in crate::pmu) fn take_samples(&mut self, due: u64, retired: &Retirement) -> bool {
        let mut interrupt = false;
        for which in [Which::IbsFetch, Which::IbsOp] {
            if due & which.bit() != 0 {
                interrupt |= self.take_sample(which, retired);
            }
        }
        interrupt && !self.is(Mutation::IbsInterruptLost)
    }

    fn take_sample(&mut self, which: Which, retired: &Retirement) -> bool {
        let filters = self.ibs.control(which) & layout(which).l3_miss_only != 0;
        let missed = which == Which::IbsOp && self.ibs.seen.source == Source::Memory;
        let fast = which == Which::IbsOp && self.is_too_fast(retired);
        if filters && !missed || fast {
            // The count starts over with random low bits.
            let random = u64::from(self.ibs.draw() & 0x7F);
            self.ibs_start(which, random);
            return false;
        }
        match which {
            Which::IbsFetch => self.sample_fetch(retired),
            _ => self.sample_op(retired),
        }
        self.stop_with_sample(which);
        true
    }

    /// Whether the latency filter is on, and the instruction is not a load that missed the first level for long enough.
    fn is_too_fast(&self, retired: &Retirement) -> bool {
        let control = self.ibs.control(Which::IbsOp);
        if control & LATENCY_ENABLE == 0 {
            return false;
        }
        let least = 128 * ((control >> LATENCY_THRESHOLD_AT & LATENCY_THRESHOLD) + 1);
        let access = retired.sampled.access;
        let loads = access.is_some_and(|(access, _)| access.kind != AccessKind::Store);
        let missed = matches!(self.ibs.seen.source, Source::Last | Source::Memory);
        !loads || !missed || u64::from(self.ibs.seen.latency.miss) <= least
    }

    /// Complete, and with nothing missed: fetches take no time in this machine.
    fn sample_fetch(&mut self, retired: &Retirement) {
        const COMPLETE: u64 = 1 << 50;
        const PHYSICAL_VALID: u64 = 1 << 52;
        const PAGE_SIZE_AT: u32 = 53;
        let mut status = COMPLETE;
        let linear = if self.is(Mutation::IbsFetchOfNext) { retired.next } else { retired.ip };
        let mut physical = 0;
        if let Some((at, page)) = retired.sampled.code {
            physical = at;
            status |= PHYSICAL_VALID | (page as u64) << PAGE_SIZE_AT;
        }
        if self.is(Mutation::IbsFetchIncomplete) {
            status &= !COMPLETE;
        }
        let registers = &mut self.ibs.registers;
        registers[FETCH.control] = registers[FETCH.control] & !FETCH_STATUS | status;
        (registers[1], registers[2], registers[12]) = (linear, physical, 0);
    }

    fn sample_op(&mut self, retired: &Retirement) {
        let rip = if self.is(Mutation::IbsRipOfNext) { retired.next } else { retired.ip };
        let (data, target) = self.op_data(retired.sampled.branch);
        let [data_2, data_3, linear, physical] = self.op_data_3(retired.sampled.access);
        let words = [rip, data, data_2, data_3, linear, physical];
        let first = OP.control + 1;
        self.ibs.registers[first..first + words.len()].copy_from_slice(&words);
        self.ibs.registers[11] = target;
        // No load of this machine is sent again.
        self.ibs.registers[13] = 0;
    }

    /// OP_DATA, and the target of a branch that was taken. An instruction retires in the cycle in which it completes.
    fn op_data(&self, branch: Option<Branch>) -> (u64, u64) {
        const TAG_TO_RETIRE_AT: u32 = 16;
        const RETURN: u64 = 1 << 34;
        const TAKEN: u64 = 1 << 35;
        const MISPREDICTED: u64 = 1 << 36;
        const BRANCH: u64 = 1 << 37;
        let cycles = u64::from(self.ibs.seen.cycles) << TAG_TO_RETIRE_AT;
        let lost = self.is(Mutation::IbsBranchFlagsLost);
        let Some(branch) = branch.filter(|_| !lost) else { return (cycles, 0) };
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        let flags = BRANCH
            | bit(branch.kind == BranchKind::Return, RETURN)
            | bit(branch.taken && !self.is(Mutation::IbsTakenLost), TAKEN)
            | bit(branch.mispredicted || self.ibs.seen.mispredicted, MISPREDICTED);
        (cycles | flags, if branch.taken { branch.to } else { 0 })
    }

    /// OP_DATA2, OP_DATA3, and the addresses.
    fn op_data_3(&self, access: Option<(Access, PageSize)>) -> [u64; 4] {
        const LOAD: u64 = 1 << 0;
        const STORE: u64 = 1 << 1;
        const FIRST_TLB_MISS: u64 = 1 << 2;
        const SECOND_TLB_MISS: u64 = 1 << 3;
        const PAGE_AT: u32 = 3;
        const MISS: u64 = 1 << 7;
        const MISALIGNED: u64 = 1 << 8;
        const LOCKED: u64 = 1 << 15;
        const VALID: u64 = 1 << 17 | 1 << 18;
        const SECOND_MISS: u64 = 1 << 20;
        const WIDTH_AT: u32 = 22;
        const LATENCY_AT: u32 = 32;
        const REFILL_AT: u32 = 48;
        let Some((access, page)) = access else { return [0; 4] };
        let seen = &self.ibs.seen;
        let loads = access.kind != AccessKind::Store;
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        let missed = matches!(seen.source, Source::Last | Source::Memory);
        let mut data_3 = VALID
            | bit(loads, LOAD)
            | bit(access.kind != AccessKind::Load, STORE)
            | bit(seen.first_tlb_miss, FIRST_TLB_MISS)
            | bit(seen.second_tlb_miss, SECOND_TLB_MISS)
            | bit(missed, MISS)
            | bit(access.is_split(), MISALIGNED)
            | bit(access.locked, LOCKED);
        if page != PageSize::Small && !seen.first_tlb_miss {
            // Bits 4 and 5: found in the first level, in a page of 2 MiB or 1 GiB.
            data_3 |= 1 << (PAGE_AT + page as u32);
        }
        if missed && loads && !self.is(Mutation::IbsLatencyLost) {
            data_3 |= u64::from(seen.latency.miss) << LATENCY_AT;
        }
        if self.offers(features::WIDE_COUNT) {
            // Family 10h has none of these.
            data_3 |= bit(missed, SECOND_MISS) | width(access.bytes) << WIDTH_AT;
            data_3 |= u64::from(seen.latency.translation) << REFILL_AT;
        }
        let data_2 = if loads { self.source(seen.source) } else { 0 };
        let physical = match self.is(Mutation::IbsPhysicalIsLinear) {
            true => access.linear,
            false => access.physical,
        };
        let linear = if self.is(Mutation::IbsDataAddressLost) { 0 } else { access.linear };
        [data_2, data_3, linear, physical]
    }

    fn offers(&self, feature: u32) -> bool {
        self.spec().amd().is_some_and(|amd| amd.ibs & feature != 0)
    }

    /// OP_DATA2's data source: of what the first level had there is none. The last level is 1 on family 10h (its third level)
    /// and since Zen 4 (a cache of this core complex), 2 in between. No line is modified in another cache: bit 5 (PPRs, CacheHitSt).
    fn source(&self, source: Source) -> u64 {
        const MEMORY: u64 = 3;
        const OWNED: u64 = 1 << 5;
        match source {
            Source::Unknown | Source::First => 0,
            Source::Last if self.offers(features::WIDE_COUNT) && !self.offers(features::ZEN_4) => {
                2 | OWNED
            }
            Source::Last if self.offers(features::ZEN_4) => 1 | OWNED,
            Source::Last => 1,
            Source::Memory => MEMORY,
        }
    }
}

/// OP_DATA3's width: 1 is a byte, and each further number twice as much, up to 64 bytes. 0 of any other.
const fn width(bytes: u32) -> u64 {
    match bytes {
        1 | 2 | 4 | 8 | 16 | 32 | 64 => bytes.trailing_zeros() as u64 + 1,
        _ => 0,
    }
}
