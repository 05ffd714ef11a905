//! Whether the PMU is barecount's own emulated one. Results say so; nothing else depends on it.

use super::access::Registers;

/// Facts that the emulated PMU gives of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Emulated {
    /// Number of the model that it presents.
    pub model: u32,
    /// The clock makes 2^this ticks of the TSC per instruction.
    pub tsc_shift: u32,
    /// Processors that have it: the first ones.
    pub processors: u32,
    /// A plugin in QEMU's translator counts for it; else it steps.
    pub plugin: bool,
    /// It presents a recorded processor; the model is the one whose behaviour that has.
    pub recorded: bool,
}

/// Where another processor comes under its own copy of the emulated PMU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WayIn {
    /// Physical address of a function of the C ABI that takes the other address, and returns 0 if the processor has
    /// the PMU from then on.
    pub entry: u64,
    /// What it takes.
    pub argument: u64,
}

/// Hypervisors answer from leaf 0x40000000 on, 0x100 apart; the first is the machine's own.
const LEAF: u32 = 0x4000_0100;
/// Of the facts' EDX: a plugin counts.
const PLUGIN: u32 = 1 << 0;
/// Likewise: a recorded processor.
const RECORDED: u32 = 1 << 1;
/// `barecountPMU` in EBX, ECX and EDX.
const SIGNATURE: [&[u8; 4]; 3] = [b"bare", b"coun", b"tPMU"];

impl Emulated {
    /// Asks CPUID.
    pub fn detect(registers: &dyn Registers) -> Option<Self> {
        let leaf = registers.cpuid(LEAF, 0);
        let signature = SIGNATURE.map(|part| u32::from_le_bytes(*part));
        if [leaf.ebx, leaf.ecx, leaf.edx] != signature || leaf.eax <= LEAF {
            return None;
        }
        let facts = registers.cpuid(LEAF + 1, 0);
        // Those that do not say had no way to hold more than one.
        Some(Self {
            model: facts.eax,
            tsc_shift: facts.ebx,
            processors: facts.ecx.max(1),
            plugin: facts.edx & PLUGIN != 0,
            recorded: facts.edx & RECORDED != 0,
        })
    }

    /// The way in for processor number `index`, asked on the first one. `None` if it is not to have the PMU.
    #[must_use]
    pub fn way_in(&self, registers: &dyn Registers, index: u32) -> Option<WayIn> {
        if index >= self.processors || registers.cpuid(LEAF, 0).eax < LEAF + 2 {
            return None;
        }
        let leaf = registers.cpuid(LEAF + 2, index);
        let whole = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let way = WayIn { entry: whole(leaf.eax, leaf.ebx), argument: whole(leaf.ecx, leaf.edx) };
        (way.entry != 0).then_some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msr::{Absent, Msr};
    use raw_cpuid::CpuIdResult;

    /// Its three leaves, and the way in of each processor.
    #[derive(Clone)]
    struct Leaves {
        first: [u32; 4],
        facts: [u32; 4],
        ways: Vec<[u32; 4]>,
    }

    impl Registers for Leaves {
        fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
            let [eax, ebx, ecx, edx] = match leaf {
                0x4000_0100 => self.first,
                0x4000_0101 => self.facts,
                0x4000_0102 => self.ways[subleaf as usize],
                _ => [0; 4],
            };
            CpuIdResult { eax, ebx, ecx, edx }
        }
        fn rdmsr(&mut self, _: Msr) -> Result<u64, Absent> {
            Err(Absent)
        }
        fn wrmsr(&mut self, _: Msr, _: u64) -> Result<(), Absent> {
            Err(Absent)
        }
        fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
            Err(Absent)
        }
    }

    fn leaves() -> Leaves {
        let [ebx, ecx, edx] = SIGNATURE.map(|part| u32::from_le_bytes(*part));
        let ways = vec![[0x5000, 2, 0x7000, 3], [0, 0, 0x7000, 3], [0x9000, 0, 0, 0]];
        Leaves { first: [0x4000_0102, ebx, ecx, edx], facts: [7, 6, 3, 1], ways }
    }

    #[test]
    fn its_facts_stand_in_the_leaf_behind_the_signature() {
        let facts = |facts| Emulated::detect(&Leaves { facts, ..leaves() });
        let expected =
            Emulated { model: 7, tsc_shift: 6, processors: 3, plugin: true, recorded: false };
        assert_eq!(facts([7, 6, 3, 1]), Some(expected));
        let stepping = Emulated { plugin: false, ..expected };
        assert_eq!(facts([7, 6, 3, 4]), Some(stepping), "another bit");
        assert_eq!(facts([7, 6, 3, 2]), Some(Emulated { recorded: true, ..stepping }));
        let one = Emulated { processors: 1, ..stepping };
        assert_eq!(facts([7, 6, 0, 0]), Some(one), "one that does not say how many");
        for number in 0..4 {
            let mut other = leaves();
            // Another signature; or no leaf behind it.
            other.first[number] = if number == 0 { 0x4000_0100 } else { 0 };
            assert_eq!(Emulated::detect(&other), None, "{number}");
        }
        let mut few = leaves();
        few.first[0] = 0x4000_0101;
        assert!(Emulated::detect(&few).is_some());
    }

    #[test]
    fn the_way_in_is_each_processors_own() {
        let machine = leaves();
        let pmu = Emulated::detect(&machine).unwrap();
        let way = |entry, argument| Some(WayIn { entry, argument });
        let first = way(0x2_0000_5000, 0x3_0000_7000);
        assert_eq!(pmu.way_in(&machine, 0), first);
        assert_eq!(pmu.way_in(&machine, 1), None, "it is not to have one");
        assert_eq!(pmu.way_in(&machine, 2), way(0x9000, 0));
        assert_eq!(pmu.way_in(&machine, 3), None, "there are three");
        let mut highest = leaves();
        highest.first[0] = 0x4000_0101;
        assert_eq!(pmu.way_in(&highest, 0), None, "the leaf is not there");
        highest.first[0] = 0x4000_0103;
        assert_eq!(pmu.way_in(&highest, 0), first);
    }
}
