//! The registers of instruction-based sampling, and instructions to sample.

use super::{read, user};
use pmu_model::{CpuidResult, Delta, GuestMemory, Outcome, Pmu, Retirement, Ring, Sampled};

pub const FETCH_CTL: u32 = 0xC001_1030;
pub const FETCH_LINEAR: u32 = 0xC001_1031;
pub const FETCH_PHYSICAL: u32 = 0xC001_1032;
pub const OP_CTL: u32 = 0xC001_1033;
pub const OP_RIP: u32 = 0xC001_1034;
pub const OP_DATA: u32 = 0xC001_1035;
pub const OP_DATA2: u32 = 0xC001_1036;
pub const OP_DATA3: u32 = 0xC001_1037;
pub const DATA_LINEAR: u32 = 0xC001_1038;
pub const DATA_PHYSICAL: u32 = 0xC001_1039;
pub const IBS_CTL: u32 = 0xC001_103A;
pub const BRANCH_TARGET: u32 = 0xC001_103B;
pub const FETCH_EXTENDED: u32 = 0xC001_103C;
pub const OP_DATA4: u32 = 0xC001_103D;

/// OP_CTL.
pub const EN: u64 = 1 << 17;
pub const VAL: u64 = 1 << 18;
pub const COUNTS_OPS: u64 = 1 << 19;
/// FETCH_CTL.
pub const FETCH_EN: u64 = 1 << 48;
pub const FETCH_VAL: u64 = 1 << 49;
pub const FETCH_RANDOM: u64 = 1 << 57;

pub const FULL: CpuidResult =
    CpuidResult { eax: u32::MAX, ebx: u32::MAX, ecx: u32::MAX, edx: u32::MAX };

/// No memory is needed.
struct Nothing;

impl GuestMemory for Nothing {
    fn read(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn write(&mut self, _: u64, _: u64) -> Option<()> {
        None
    }

    fn write_physical(&mut self, _: u64, _: u64) -> Option<()> {
        None
    }
}

/// An instruction at `ip`, a byte long, that retires with this delta.
pub fn instruction(pmu: &mut Pmu, ip: u64, delta: &Delta, sampled: Sampled) -> Outcome {
    let outcome = pmu.advance(delta);
    if outcome.due == 0 {
        return outcome;
    }
    let retired = Retirement { ip, next: ip + 1, sampled, ..Retirement::default() };
    pmu.write_record(outcome.due, &retired, &mut Nothing)
}

/// The instruction with this number.
pub fn step(pmu: &mut Pmu, number: u64) -> Outcome {
    instruction(pmu, 0x1000 + number, &user(1), Sampled::default())
}

/// One that has more to tell.
pub fn sample(pmu: &mut Pmu, delta: &Delta, sampled: Sampled) -> Outcome {
    instruction(pmu, 0x1000, delta, sampled)
}

/// The number of the first instruction that is sampled from now on.
pub fn first_sample(pmu: &mut Pmu) -> u64 {
    (1..100_000).find(|n| step(pmu, *n).ibs).expect("a sample")
}

/// The current count of OP_CTL.
pub fn count(pmu: &mut Pmu) -> u64 {
    read(pmu, OP_CTL) >> 32 & 0x7FF_FFFF
}

/// Instructions in ring 3, one by one.
pub const STEP: Delta = Delta::step(Ring::User);
