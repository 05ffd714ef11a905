//! What CPUID says of caches and TLBs.

use alloc::vec::Vec;
use arch::cpu;
use raw_cpuid::CpuIdReader as _;

/// Leaf 2 (descriptors), 4 (caches), 0x18 (TLBs) of Intel; 0x80000005, 0x80000006, 0x80000019 (caches and TLBs) and 0x8000001D
/// (caches) of AMD. With sub-leaves: how many are asked for at most.
const LEAVES: [(u32, u32); 7] = [
    (2, 1),
    (4, 8),
    (0x18, 16),
    (0x8000_0005, 1),
    (0x8000_0006, 1),
    (0x8000_0019, 1),
    (0x8000_001d, 8),
];

/// The answers that are not all zeros.
pub fn answers() -> Vec<[u32; 6]> {
    let cpuid = cpu::native();
    let mut all = Vec::new();
    for (leaf, most) in LEAVES.into_iter().filter(|(leaf, _)| cpu::has_leaf(&cpuid, *leaf)) {
        for sub_leaf in 0..most {
            let answer = cpuid.cpuid2(leaf, sub_leaf);
            let [a, b, c, d] = [answer.eax, answer.ebx, answer.ecx, answer.edx];
            // Of leaves 4 and 0x8000001D the first one without a type ends the list.
            let ends = matches!(leaf, 4 | 0x8000_001d) && a & 0x1f == 0;
            if ends {
                break;
            }
            if [a, b, c, d] != [0; 4] {
                all.push([leaf, sub_leaf, a, b, c, d]);
            }
        }
    }
    all
}
