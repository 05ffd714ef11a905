//! Where a logical processor is in its package.

use super::{Cpuid, has_leaf};

/// Counts that CPUID gives, 1 where it gives none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Topology {
    /// Local APIC id.
    pub apic_id: u32,
    /// Logical processors of one core.
    pub threads_per_core: u32,
    /// Logical processors of one package.
    pub threads_per_package: u32,
}

/// Level types of leaves 0xB and 0x1F: ECX bits 15:8 (SDM vol. 2, CPUID).
const LEVEL_INVALID: u32 = 0;
const LEVEL_THREAD: u32 = 1;

impl Topology {
    /// Reads leaf 0x1F, else 0xB, else leaf 1 with AMD's 0x8000001E.
    pub fn read(cpuid: &impl Cpuid) -> Self {
        for leaf in [0x1f, 0xb] {
            if has_leaf(cpuid, leaf) && cpuid.cpuid2(leaf, 0).ebx & 0xffff != 0 {
                return Self::levels(cpuid, leaf);
            }
        }
        Self::legacy(cpuid)
    }

    fn levels(cpuid: &impl Cpuid, leaf: u32) -> Self {
        let first = cpuid.cpuid2(leaf, 0);
        let mut topology = Self { apic_id: first.edx, threads_per_core: 1, threads_per_package: 1 };
        // Six levels are defined; a broken hypervisor must not keep us here.
        for subleaf in 0..8 {
            let level = cpuid.cpuid2(leaf, subleaf);
            match level.ecx >> 8 & 0xff {
                LEVEL_INVALID => break,
                LEVEL_THREAD => topology.threads_per_core = (level.ebx & 0xffff).max(1),
                _ => {}
            }
            // Each level counts all threads at and below it, so the last one is the package's.
            topology.threads_per_package = (level.ebx & 0xffff).max(1);
        }
        topology
    }

    fn legacy(cpuid: &impl Cpuid) -> Self {
        const HTT: u32 = 1 << 28;
        let leaf = cpuid.cpuid1(1);
        let threads = if leaf.edx & HTT != 0 { (leaf.ebx >> 16 & 0xff).max(1) } else { 1 };
        let per_core = if has_leaf(cpuid, 0x8000_001e) {
            (cpuid.cpuid1(0x8000_001e).ebx >> 8 & 0xff) + 1
        } else {
            1
        };
        Self { apic_id: leaf.ebx >> 24, threads_per_core: per_core, threads_per_package: threads }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{INTEL, table};
    use super::*;

    #[test]
    fn levels_of_leaf_0xb_give_threads_and_package() {
        let cpu = table(&[
            (0, 0, [0xb, INTEL[0], INTEL[1], INTEL[2]]),
            (0xb, 0, [1, 2, 0x100, 5]),
            (0xb, 1, [4, 16, 0x201, 5]),
            (0xb, 2, [0, 0, 2, 5]),
        ]);
        let expected = Topology { apic_id: 5, threads_per_core: 2, threads_per_package: 16 };
        assert_eq!(Topology::read(&cpu), expected);
    }

    #[test]
    fn an_old_processor_is_read_from_leaf_1() {
        let cpu = table(&[
            (0, 0, [4, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x6fb, 0x0304_0800, 0, 1 << 28]),
            (4, 0, [0; 4]),
        ]);
        let expected = Topology { apic_id: 3, threads_per_core: 1, threads_per_package: 4 };
        assert_eq!(Topology::read(&cpu), expected);
    }
}
