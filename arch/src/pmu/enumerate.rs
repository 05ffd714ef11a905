//! What CPUID says of the PMU. Pure, so that tables of any processor can be read on the host.

use crate::cpu::{Cpuid, Vendor, has_leaf};

/// Whose programming model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Architecture {
    /// Architectural performance monitoring: leaf 0xA.
    Intel,
    /// AMD: legacy counters, extended ones, or PerfMonV2.
    Amd,
}

/// The counters that CPUID announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Enumeration {
    /// Whose programming model.
    pub architecture: Architecture,
    /// Intel: leaf 0xA EAX 7:0. AMD: 0 legacy, 1 extended, 2 PerfMonV2.
    pub version: u32,
    /// General-purpose counters.
    pub counters: u32,
    /// Their width in bits.
    pub counter_bits: u32,
    /// Fixed-function counters.
    pub fixed_counters: u32,
    /// Their width in bits.
    pub fixed_counter_bits: u32,
}

/// Reads leaf 0xA on Intel and compatible processors, 0x80000001 and 0x80000022 on AMD. `None` if no PMU
/// is announced.
pub fn enumerate(cpuid: &impl Cpuid, vendor: Vendor, family: u32) -> Option<Enumeration> {
    match vendor {
        Vendor::Amd => amd(cpuid, family),
        _ => intel(cpuid),
    }
}

fn intel(cpuid: &impl Cpuid) -> Option<Enumeration> {
    if !has_leaf(cpuid, 0xa) {
        return None;
    }
    let leaf = cpuid.cpuid1(0xa);
    let version = leaf.eax & 0xff;
    if version == 0 {
        return None;
    }
    // EDX means something from version 2 on (SDM vol. 3, 20.2.2).
    let edx = if version >= 2 { leaf.edx } else { 0 };
    let mut fixed_counters = edx & 0x1f;
    if version >= 5 {
        // A bitmap joins the count: counter i exists if its bit is set or i is below the count.
        fixed_counters = (leaf.ecx | ((1 << fixed_counters) - 1)).count_ones();
    }
    Some(Enumeration {
        architecture: Architecture::Intel,
        version,
        counters: leaf.eax >> 8 & 0xff,
        counter_bits: leaf.eax >> 16 & 0xff,
        fixed_counters,
        fixed_counter_bits: edx >> 5 & 0xff,
    })
}

fn amd(cpuid: &impl Cpuid, family: u32) -> Option<Enumeration> {
    const PERF_CTR_EXT_CORE: u32 = 1 << 23;
    const PERFMON_V2: u32 = 1;
    // Every AMD processor with long mode has the four legacy counters without announcing them. A smaller
    // family is an emulator's: QEMU's `-cpu max` says AMD, family 6.
    if family < 0xf || !has_leaf(cpuid, 0x8000_0001) {
        return None;
    }
    let extended = cpuid.cpuid1(0x8000_0001).ecx & PERF_CTR_EXT_CORE != 0;
    let v2 = has_leaf(cpuid, 0x8000_0022) && cpuid.cpuid1(0x8000_0022).eax & PERFMON_V2 != 0;
    let (version, counters) = match (v2, extended) {
        (true, _) => (2, cpuid.cpuid1(0x8000_0022).ebx & 0xf),
        (_, true) => (1, 6),
        _ => (0, 4),
    };
    // The width is not enumerated: 48 on all of them (AMD APM vol. 2, 13.2.1).
    Some(Enumeration {
        architecture: Architecture::Amd,
        version,
        counters,
        counter_bits: 48,
        fixed_counters: 0,
        fixed_counter_bits: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::{INTEL, table};

    #[test]
    fn skylake_and_ice_lake() {
        let cpu = table(&[
            (0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]),
            (0xa, 0, [0x0730_0404, 0, 0, 0x603]),
        ]);
        let seen = enumerate(&cpu, Vendor::Intel, 6).unwrap();
        assert_eq!((seen.version, seen.counters, seen.counter_bits), (4, 4, 48));
        assert_eq!((seen.fixed_counters, seen.fixed_counter_bits), (3, 48));
        let cpu = table(&[
            (0, 0, [0x1b, INTEL[0], INTEL[1], INTEL[2]]),
            (0xa, 0, [0x0830_0805, 0, 0xf, 0x8604]),
        ]);
        assert_eq!(enumerate(&cpu, Vendor::Intel, 6).unwrap().fixed_counters, 4);
    }

    #[test]
    fn version_1_has_no_fixed_counters_whatever_edx_says() {
        let cpu = table(&[
            (0, 0, [0xa, INTEL[0], INTEL[1], INTEL[2]]),
            (0xa, 0, [0x0728_0201, 0, 0, 0x503]),
        ]);
        assert_eq!(enumerate(&cpu, Vendor::Intel, 6).unwrap().fixed_counters, 0);
    }

    #[test]
    fn an_echoed_leaf_is_not_a_pmu() {
        // Highest leaf 4, whose content a read of 0xA returns.
        let cpu = table(&[(0, 0, [4, INTEL[0], INTEL[1], INTEL[2]]), (4, 0, [0x121, 0, 0, 0])]);
        assert_eq!(enumerate(&cpu, Vendor::Intel, 6), None);
        let cpu = table(&[(0, 0, [0xd, INTEL[0], INTEL[1], INTEL[2]]), (0xa, 0, [0; 4])]);
        assert_eq!(enumerate(&cpu, Vendor::Intel, 6), None);
    }

    #[test]
    fn qemus_made_up_amd_processor_announces_nothing() {
        let cpu = table(&[
            (0, 0, [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
            (0x8000_0000, 0, [0x8000_000a, 0, 0, 0]),
            (0x8000_0001, 0, [0; 4]),
        ]);
        assert_eq!(enumerate(&cpu, Vendor::Amd, 6), None);
    }

    #[test]
    fn the_three_amd_models() {
        const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65];
        let legacy = table(&[
            (0, 0, [5, AMD[0], AMD[1], AMD[2]]),
            (0x8000_0000, 0, [0x8000_001b, 0, 0, 0]),
            (0x8000_0001, 0, [0; 4]),
        ]);
        assert_eq!(enumerate(&legacy, Vendor::Amd, 0x10).unwrap().counters, 4);
        let extended = table(&[
            (0, 0, [0xd, AMD[0], AMD[1], AMD[2]]),
            (0x8000_0000, 0, [0x8000_0020, 0, 0, 0]),
            (0x8000_0001, 0, [0, 0, 1 << 23, 0]),
            // Above the highest extended leaf: must not be believed.
            (0x8000_0022, 0, [1, 9, 0, 0]),
        ]);
        let seen = enumerate(&extended, Vendor::Amd, 0x17).unwrap();
        assert_eq!((seen.version, seen.counters), (1, 6));
        let v2 = table(&[
            (0, 0, [0x10, AMD[0], AMD[1], AMD[2]]),
            (0x8000_0000, 0, [0x8000_0028, 0, 0, 0]),
            (0x8000_0001, 0, [0, 0, 1 << 23, 0]),
            (0x8000_0022, 0, [1, 6, 0, 0]),
        ]);
        let seen = enumerate(&v2, Vendor::Amd, 0x19).unwrap();
        assert_eq!((seen.version, seen.counters, seen.counter_bits), (2, 6, 48));
    }
}
