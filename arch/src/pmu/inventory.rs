//! Registers that have to do with counting, all of which can be read without changing anything.
//!
//! Intel: SDM vol. 4, chapter 2; AMD: PPR of family 19h model 61h, MSRs. Both makers reserve the numbers of those that a
//! processor lacks, and reading such a one raises #GP.

use crate::msr::Msr;

/// First register and how many follow each other.
type Run = (u32, u8);

/// On processors of every maker: TSC, APIC base, microcode, MPERF and APERF, DEBUGCTL and the last branches.
const COMMON: [Run; 6] = [(0x10, 1), (0x1b, 1), (0x8b, 1), (0xe7, 2), (0x1d9, 1), (0x1db, 4)];

/// In the order of their numbers: SMI count, feature control, counters, platform information, capabilities, event selects,
/// performance status and control, clock modulation, MISC_ENABLE, prefetchers, off-core response, turbo ratios, energy
/// preference, branch records' filter and top, fixed counters, metrics, PERF_CAPABILITIES, the global registers, PEBS, its
/// load latency and front end, full-width counters, Processor Trace, debug store, energy (its unit; package, memory, cores, graphics,
/// platform), HWP, architectural branch records.
const INTEL: [Run; 35] = [
    (0x34, 1),
    (0x3a, 1),
    (0xc1, 8),
    (0xce, 1),
    (0x10a, 1),
    (0x186, 8),
    (0x198, 2),
    (0x19a, 1),
    (0x1a0, 1),
    (0x1a4, 1),
    (0x1a6, 2),
    (0x1ad, 1),
    (0x1b0, 1),
    (0x1c8, 2),
    (0x309, 7),
    (0x329, 1),
    (0x345, 1),
    (0x38d, 6),
    (0x3f1, 2),
    (0x3f6, 2),
    (0x4c1, 8),
    (0x570, 1),
    (0x600, 1),
    (0x606, 1),
    (0x611, 1),
    (0x619, 1),
    (0x639, 1),
    (0x641, 1),
    (0x64d, 1),
    (0x770, 2),
    (0x774, 1),
    (0x14ce, 2),
    // Counters and event selects beyond the eighth have numbers of version 6 alone.
    (0x1920, 2),
    (0x1924, 2),
    (0x1928, 2),
];

/// In the order of their numbers: MPERF and APERF read-only, instructions retired, LBRv2's filter and switch, the global
/// registers, legacy selects and counters, HWCR, P-states, extended ones, those of L2 or L3 and of the northbridge or data
/// fabric, energy (its unit, core, package), DE_CFG, instruction-based sampling.
const AMD: [Run; 13] = [
    (0xc000_00e7, 3),
    (0xc000_010e, 2),
    (0xc000_0300, 4),
    (0xc001_0000, 8),
    (0xc001_0015, 1),
    (0xc001_0061, 3),
    (0xc001_0064, 8),
    (0xc001_0200, 12),
    (0xc001_0230, 12),
    (0xc001_0240, 8),
    (0xc001_0299, 3),
    (0xc001_1029, 1),
    (0xc001_1030, 13),
];

/// All of them, in the order of their numbers within the maker's; `amd`: of AMD's processors.
pub fn registers(amd: bool) -> impl Iterator<Item = Msr> {
    let own: &[Run] = if amd { &AMD } else { &INTEL };
    COMMON
        .iter()
        .chain(own)
        .flat_map(|&(first, count)| (0..count.into()).map(move |n| Msr(first + n)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn x10_each_register_is_listed_once_and_the_counters_are_among_them() {
        for amd in [false, true] {
            let all: Vec<u32> = registers(amd).map(|msr| msr.0).collect();
            let set: BTreeSet<u32> = all.iter().copied().collect();
            assert_eq!(set.len(), all.len(), "one twice");
            let counter = if amd { 0xc001_0201 } else { 0xc1 };
            assert!(set.contains(&counter) && set.contains(&0x1d9));
            assert_eq!(set.contains(&0xc001_0015), amd, "a register of the other maker");
        }
    }
}
