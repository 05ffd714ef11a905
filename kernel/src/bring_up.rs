//! What a bring-up makes of what it reads: CPUID's answers, and series of measured values.

use crate::conformance::Measured;
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{INDEXED_LEAVES, Measure};

/// An answer of CPUID: EAX and ECX, then EAX to EDX.
pub type Answer = [u32; 6];

/// Where leaves begin, and how many are asked for at most after that: basic, hypervisors', extended, Transmeta's, Centaur's.
/// None is longer than 0x30 on any processor that is known (SDM vol. 2, CPUID; APM vol. 3, appendix E).
const RANGES: [u32; 5] = [0, 0x4000_0000, 0x8000_0000, 0x8086_0000, 0xc000_0000];
const MOST_LEAVES: u32 = 0x40;
/// Hypervisors that are shown beside the first one begin so far apart.
const NEXT_HYPERVISOR: u32 = 0x100;
/// Sub-leaves that are asked for: more than any leaf but 0xD has, which has one for each bit of XCR0.
const SUBLEAVES: u32 = 64;

/// Every answer of `cpuid`, but sub-leaves that are empty.
pub fn answers(cpuid: impl Fn(u32, u32) -> [u32; 4]) -> Vec<Answer> {
    let mut all = Vec::new();
    let mut range = |first: u32| {
        let highest = cpuid(first, 0)[0];
        // Who does not have the range answers with something else.
        if !(first..first + MOST_LEAVES).contains(&highest) {
            return;
        }
        for leaf in first..=highest {
            let subleaves = if INDEXED_LEAVES.contains(&leaf) { SUBLEAVES } else { 1 };
            for subleaf in 0..subleaves {
                let [eax, ebx, ecx, edx] = cpuid(leaf, subleaf);
                // The leaves of topology repeat the sub-leaf in ECX and have the processor's number in EDX.
                let empty = [eax, ebx, ecx & !0xff] == [0; 3]
                    && (edx == 0 || matches!(leaf, 0xb | 0x1f | 0x8000_0026));
                if subleaf == 0 || !empty {
                    all.push([leaf, subleaf, eax, ebx, ecx, edx]);
                }
            }
        }
    };
    for first in RANGES {
        range(first);
    }
    range(RANGES[1] + NEXT_HYPERVISOR);
    all
}

/// Those that are not as on another processor.
#[must_use]
pub fn differing(own: Vec<Answer>, other: &[Answer]) -> Vec<Answer> {
    own.into_iter().filter(|answer| !other.contains(answer)).collect()
}

/// The record of a series of `values`, one at least. They are small or measured times, so 63 bits hold them.
#[must_use]
pub fn measure(item: u32, name: &str, unit: &str, mut values: Vec<i64>) -> Measure {
    values.sort_unstable();
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    Measure {
        item,
        name: name.to_string(),
        cpu: None,
        unit: unit.to_string(),
        runs: values.len() as u32,
        min: at(0),
        median: at(values.len() / 2),
        max: at(values.len().wrapping_sub(1)),
        told: None,
        bound: None,
    }
}

/// The same of what the conformance suite measured.
#[must_use]
pub fn measured(item: u32, measured: Measured) -> Measure {
    let values = measured.values.into_iter().map(|value| value as i64).collect();
    let bound = measured.bound.map(|bound| bound as i64);
    Measure { bound, ..measure(item, measured.name, measured.unit, values) }
}

/// A rate in Hz: `counts` of a timer in `ticks` of a clock of `hz`.
#[must_use]
pub fn rate(counts: u64, ticks: u64, hz: u64) -> u64 {
    (u128::from(counts) * u128::from(hz) / u128::from(ticks.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x10_every_leaf_is_asked_for_and_empty_sub_leaves_are_left_out() {
        let cpuid = |leaf: u32, subleaf: u32| match (leaf, subleaf) {
            (0, _) => [0xd, 1, 2, 3],
            (4, 0..=2) => [leaf + subleaf, 0, 0, 0],
            (0xb, 0..=1) => [1, 2, 0x100 | subleaf, 7],
            // Beyond the last level ECX and EDX are not 0.
            (0xb, _) => [0, 0, subleaf, 7],
            (0xd, 63) => [9, 0, 0, 0],
            (0x8000_0000, _) => [0x8000_0001, 0, 0, 0],
            // Another processor's answer to what it does not have.
            (0x4000_0000 | 0xc000_0000, _) => [0xd, 1, 2, 3],
            (0x4000_0100, _) => [0x4000_0101, 5, 5, 5],
            (4 | 7 | 0xd.., _) => [0; 4],
            _ => [leaf, 0, 0, 0],
        };
        let all = answers(cpuid);
        let of = |leaf: u32| all.iter().filter(|answer| answer[0] == leaf).count();
        assert_eq!([of(0), of(1), of(4), of(7), of(0xb), of(0xd)], [1, 1, 3, 1, 2, 2]);
        assert_eq!([of(0x8000_0000), of(0x8000_0001), of(0x8000_0002)], [1, 1, 0]);
        assert_eq!(
            [of(0x4000_0000), of(0x4000_0100), of(0x4000_0101), of(0xc000_0000)],
            [0, 1, 1, 0]
        );
        let mut other = all.clone();
        other[1][3] = 0x0100_0000;
        assert_eq!(differing(other, &all), [[1, 0, 1, 0x0100_0000, 0, 0]]);
        assert_eq!(answers(|_, _| [u32::MAX; 4]), [[0; 6]; 0]);
    }

    #[test]
    fn x10_a_series_is_its_ends_and_its_middle() {
        let one = measure(3, "skew.tsc", "TSC ticks", alloc::vec![5, -2, 1]);
        assert_eq!((one.item, one.runs, one.min, one.median, one.max), (3, 3, -2, 1, 5));
        let none = measure(0, "x", "y", alloc::vec![]);
        assert_eq!((none.runs, none.median), (0, 0));
        assert_eq!(rate(3_579, 1_000_000, 1_000_000_000), 3_579_000);
        assert_eq!(rate(u64::MAX / 2, 0, 2), u64::MAX - 1);
    }
}
