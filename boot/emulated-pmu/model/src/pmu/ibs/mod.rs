//! Instruction-based sampling (AMD APM volume 2, 13.3; processor programming references, MSRC001_1030 to 103D).
//!
//! Each of the two units is a counter more, whose maximum count is where others wrap: of fetches, of which an instruction has
//! one, and of cycles or dispatched operations, of which an instruction has one as well. The instruction that retires after
//! the one at which the maximum is reached is the tagged one. The counters are in both rings, and neither the global control
//! nor a freeze stops them.

mod registers;
mod sample;

pub use sample::{PageSize, Sampled};

use super::Pmu;
use super::counter::{Counter, Gate};
use super::gate::Which;
use crate::RingMask;
use crate::mutation::Mutation;
use crate::occurrence::Bulk;
use crate::selection::Selection;
pub(super) use sample::{Seen, Source};

/// Registers from MSRC001_1030 on.
const REGISTERS: usize = 14;
/// Width of the counters here: room for a maximum of 27 bits, twice over for a planted fault.
pub(super) const BITS: u8 = 32;

/// The unit, as its control register says.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// The control register among the registers.
    control: usize,
    enable: u64,
    valid: u64,
    /// Only samples that missed the third-level cache.
    l3_miss_only: u64,
}

const FETCH: Layout = Layout { control: 0, enable: 1 << 48, valid: 1 << 49, l3_miss_only: 1 << 59 };
const OP: Layout = Layout { control: 3, enable: 1 << 17, valid: 1 << 18, l3_miss_only: 1 << 16 };

/// OP_CTL: dispatched operations are counted, not cycles.
const COUNTS_OPS: u64 = 1 << 19;

/// OP_CTL: loads alone whose miss took more cycles than the threshold, in 128ths less one, are sampled.
const LATENCY_FILTER: u64 = LATENCY_ENABLE | LATENCY_THRESHOLD << LATENCY_THRESHOLD_AT;
const LATENCY_ENABLE: u64 = 1 << 63;
const LATENCY_THRESHOLD: u64 = 0xF;
const LATENCY_THRESHOLD_AT: u32 = 59;

const fn layout(which: Which) -> &'static Layout {
    match which {
        Which::IbsFetch => &FETCH,
        _ => &OP,
    }
}

/// The state of both units.
#[derive(Clone, Debug)]
pub(super) struct Ibs {
    /// As software reads them; of the control registers, the counts as they stood when the unit last stopped.
    registers: [u64; REGISTERS],
    fetch: Counter,
    op: Counter,
    /// By how much each unit was started beyond the last count in front of its maximum.
    beyond: [u32; 2],
    /// For what AMD calls random.
    random: u32,
    seen: Seen,
}

impl Ibs {
    pub const RESET: Self = Self {
        registers: [0; REGISTERS],
        fetch: Counter::RESET,
        op: Counter::RESET,
        beyond: [0; 2],
        random: 0,
        seen: Seen::NOTHING,
    };

    pub const fn counter(&self, which: Which) -> &Counter {
        match which {
            Which::IbsFetch => &self.fetch,
            _ => &self.op,
        }
    }

    pub const fn counter_mut(&mut self, which: Which) -> &mut Counter {
        match which {
            Which::IbsFetch => &mut self.fetch,
            _ => &mut self.op,
        }
    }

    const fn control(&self, which: Which) -> u64 {
        self.registers[layout(which).control]
    }

    /// The maximum count: a multiple of 16.
    const fn maximum(&self, which: Which) -> u64 {
        let control = self.control(which);
        let wide = match which {
            Which::IbsFetch => 0,
            // OP_CTL[26:20] are bits 26 to 20 of the maximum.
            _ => control & 0x7F << 20,
        };
        wide | (control & 0xFFFF) << 4
    }

    /// The next of the numbers that stand for random ones, of 16 bits: the upper half of a linear congruential generator
    /// (multiplier 1,664,525, increment 1,013,904,223) that RESET sets to 0.
    const fn draw(&mut self) -> u16 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) as u16
    }
}

impl Pmu {
    /// Whether the unit counts: enabled, with a maximum, and without a sample that software has not taken yet.
    pub(super) fn ibs_runs(&self, which: Which) -> bool {
        let (control, layout) = (self.ibs.control(which), layout(which));
        control & layout.enable != 0
            && (control & layout.valid == 0 || self.is(Mutation::IbsCountsOn))
            && self.ibs.maximum(which) != 0
    }

    /// Its counter counts in both rings, and wants a sample rather than an interrupt when it overflows.
    pub(super) const fn ibs_gate() -> Gate {
        Gate { rings: RingMask::BOTH, interrupt: false }
    }

    /// What it counts.
    pub(super) fn ibs_event(&self, which: Which) -> Selection {
        let counts_cycles = which == Which::IbsOp
            && (self.ibs.control(which) & COUNTS_OPS == 0
                || self.is(Mutation::IbsCountControlIgnored));
        Selection::bulk(if counts_cycles { Bulk::Cycles } else { Bulk::Instructions })
    }

    /// Where the counter stands when the current count is 0.
    fn ibs_base(&self, which: Which) -> u64 {
        let maximum = self.ibs.maximum(which);
        let twice = u64::from(self.is(Mutation::IbsPeriodDoubled));
        (1 << BITS) - (maximum << twice)
    }

    /// The unit counts on from `count`; at or beyond the maximum, the next thing that is counted reaches it.
    fn ibs_start(&mut self, which: Which, count: u64) {
        let base = self.ibs_base(which);
        self.armed &= !which.bit();
        let last = (1 << BITS) - 1;
        let start = (base + count).min(last);
        self.ibs.counter_mut(which).set(start);
        self.ibs.beyond[usize::from(which == Which::IbsOp)] = (base + count - start) as u32;
    }

    /// The current count of a unit that runs: the maximum once that is reached.
    fn ibs_count(&self, which: Which) -> u64 {
        if self.is_armed(which) {
            return self.ibs.maximum(which);
        }
        let beyond = self.ibs.beyond[usize::from(which == Which::IbsOp)];
        self.ibs.counter(which).value.wrapping_sub(self.ibs_base(which)) + u64::from(beyond)
    }
}
