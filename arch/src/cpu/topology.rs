//! Where a logical processor is in its package.

use super::{Cpuid, has_leaf};

/// Counts that CPUID gives, 1 where it gives none, and how its APIC ids are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Topology {
    /// Local APIC id.
    pub apic_id: u32,
    /// Logical processors of one core.
    pub threads_per_core: u32,
    /// Logical processors of one package.
    pub threads_per_package: u32,
    /// Lower bits of the APIC id that differ within a core. Ids have gaps, so these may be more than the counts take.
    pub core_bits: u32,
    /// Lower bits of the APIC id that differ within a package.
    pub package_bits: u32,
}

/// Level types of leaves 0xB and 0x1F: ECX bits 15:8 (SDM vol. 2, CPUID).
const LEVEL_INVALID: u32 = 0;
const LEVEL_THREAD: u32 = 1;

impl Topology {
    /// Reads leaf 0x1F, else 0xB, else leaf 1 with Intel's 4 or AMD's 0x8000001E.
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
        let mut topology = Self {
            apic_id: first.edx,
            threads_per_core: 1,
            threads_per_package: 1,
            core_bits: 0,
            package_bits: 0,
        };
        // Six levels are defined; a broken hypervisor must not keep us here.
        for subleaf in 0..8 {
            let level = cpuid.cpuid2(leaf, subleaf);
            match level.ecx >> 8 & 0xff {
                LEVEL_INVALID => break,
                LEVEL_THREAD => {
                    topology.threads_per_core = (level.ebx & 0xffff).max(1);
                    topology.core_bits = level.eax & 0x1f;
                }
                _ => {}
            }
            // Each level counts all threads at and below it, so the last one is the package's; and so are the bits to shift out.
            topology.threads_per_package = (level.ebx & 0xffff).max(1);
            topology.package_bits = level.eax & 0x1f;
        }
        topology
    }

    fn legacy(cpuid: &impl Cpuid) -> Self {
        const HTT: u32 = 1 << 28;
        let leaf = cpuid.cpuid1(1);
        let threads = if leaf.edx & HTT != 0 { (leaf.ebx >> 16 & 0xff).max(1) } else { 1 };
        let bits = |count: u32| count.next_power_of_two().trailing_zeros();
        let (own, per_core) = if has_leaf(cpuid, 0x8000_001e) {
            let extended = cpuid.cpuid1(0x8000_001e);
            (extended.eax, (extended.ebx >> 8 & 0xff) + 1)
        } else {
            // Both count ids, in powers of two.
            let cores = intel_cores(cpuid).unwrap_or(threads);
            (0, 1 << bits(threads).saturating_sub(bits(cores)))
        };
        // Leaf 1 counts ids, not threads. AMD's 0x80000008 ECX[15:12] has the bits, if it is not 0 (APM vol. 3, E.4.7).
        let stated = match has_leaf(cpuid, 0x8000_0008) {
            true => cpuid.cpuid1(0x8000_0008).ecx >> 12 & 0xf,
            false => 0,
        };
        Self {
            // Leaf 1 has the initial id, AMD's leaf the one that firmware gave (APM vol. 3, Fn8000_001E_EAX; Linux,
            // `parse_8000_001e`). It is filled on some of family 15h without TOPOEXT too, and 0 where it is reserved.
            apic_id: if own == 0 { leaf.ebx >> 24 } else { own },
            threads_per_core: per_core,
            threads_per_package: threads,
            core_bits: bits(per_core),
            package_bits: if stated == 0 { bits(threads) } else { stated },
        }
    }

    /// The number of its core, which no core of another package has, and of its package.
    #[must_use]
    pub const fn place(&self) -> [u32; 2] {
        [self.apic_id >> self.core_bits, self.apic_id >> self.package_bits]
    }
}

/// Ids for cores in a package, by leaf 4: EAX bits 31:26 of a cache's sub-leaf (SDM vol. 2, CPUID). Bits 4:0 are 0
/// where there is none.
fn intel_cores(cpuid: &impl Cpuid) -> Option<u32> {
    const CACHE: u32 = 0x1f;
    /// The first letters of GenuineIntel: to others the leaf is reserved.
    const GENU: u32 = 0x756e_6547;
    let is_intel = cpuid.cpuid1(0).ebx == GENU;
    let eax = if is_intel && has_leaf(cpuid, 4) { cpuid.cpuid2(4, 0).eax } else { 0 };
    (eax & CACHE != 0).then_some((eax >> 26) + 1)
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
        let counts = |threads_per_core, threads_per_package| {
            let (core_bits, package_bits) = (1, 4);
            Topology { apic_id: 5, threads_per_core, threads_per_package, core_bits, package_bits }
        };
        assert_eq!(Topology::read(&cpu), counts(2, 16));
        assert_eq!(Topology::read(&cpu).place(), [2, 0]);
        // One thread of each core is off: ids have gaps, and all are of one package still.
        let cpu = table(&[
            (0, 0, [0xb, INTEL[0], INTEL[1], INTEL[2]]),
            (0xb, 0, [1, 1, 0x100, 14]),
            (0xb, 1, [4, 8, 0x201, 14]),
            (0xb, 2, [0, 0, 2, 14]),
        ]);
        assert_eq!(Topology::read(&cpu).place(), [7, 0]);
    }

    #[test]
    fn ids_of_amd_have_the_bits_that_it_states() {
        let cpu = table(&[
            (0, 0, [1, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0, 0x0c06_0800, 0, 1 << 28]),
            (0x8000_0000, 0, [0x8000_001e, 0, 0, 0]),
            (0x8000_0008, 0, [0, 0, 0x4005, 0]),
            (0x8000_001e, 0, [0, 0x100, 0, 0]),
        ]);
        let topology = Topology::read(&cpu);
        assert_eq!((topology.threads_per_core, topology.threads_per_package), (2, 6));
        assert_eq!(topology.place(), [6, 0]);
    }

    #[test]
    fn an_old_processor_is_read_from_leaf_1() {
        let cpu = table(&[
            (0, 0, [4, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x6fb, 0x0304_0800, 0, 1 << 28]),
            (4, 0, [0; 4]),
        ]);
        let (threads_per_core, threads_per_package) = (1, 4);
        let (core_bits, package_bits) = (0, 2);
        let expected =
            Topology { apic_id: 3, threads_per_core, threads_per_package, core_bits, package_bits };
        assert_eq!(Topology::read(&cpu), expected);
    }

    /// Leaves 1 and 4 as libcpuid's test data has them.
    #[test]
    fn threads_of_a_core_are_known_by_leaf_4_where_there_is_no_leaf_0xb() {
        let counts = |cpu: Topology| {
            [cpu.threads_per_core, cpu.threads_per_package, cpu.core_bits, cpu.package_bits]
        };
        let atom_d525 = table(&[
            (0, 0, [0xa, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x106ca, 0x0204_0800, 0, 0xbfeb_fbff]),
            (4, 0, [0x0400_4121, 0x0140_003f, 0x3f, 1]),
        ]);
        let atom = Topology::read(&atom_d525);
        assert_eq!((counts(atom), atom.place()), ([2, 4, 1, 2], [1, 0]));
        let core2_quad_q6600 = table(&[
            (0, 0, [0xa, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x6fb, 0x0004_0800, 0, 0xbfeb_fbff]),
            (4, 0, [0x0c00_0121, 0x01c0_003f, 0x3f, 1]),
        ]);
        assert_eq!(counts(Topology::read(&core2_quad_q6600)), [1, 4, 0, 2]);
        let pentium_4_640 = table(&[
            (0, 0, [5, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0xf43, 0x0002_0800, 0, 0xbfeb_fbff]),
            (4, 0, [0x4121, 0x01c0_003f, 0x1f, 0]),
        ]);
        assert_eq!(counts(Topology::read(&pentium_4_640)), [2, 2, 1, 1]);
        // Leaf 4 is not Intel's here.
        let other = table(&[
            (0, 0, [4, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
            (1, 0, [0x6fb, 0x0004_0800, 0, 1 << 28]),
            (4, 0, [0x121, 0, 0, 0]),
        ]);
        assert_eq!(counts(Topology::read(&other)), [1, 4, 0, 2]);
    }
}
