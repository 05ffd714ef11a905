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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msr::{Absent, Msr};
    use raw_cpuid::CpuIdResult;

    /// Its two leaves.
    #[derive(Clone)]
    struct Leaves {
        first: [u32; 4],
        facts: [u32; 4],
    }

    impl Registers for Leaves {
        fn cpuid(&self, leaf: u32, _: u32) -> CpuIdResult {
            let [eax, ebx, ecx, edx] = match leaf {
                0x4000_0100 => self.first,
                0x4000_0101 => self.facts,
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
        Leaves { first: [0x4000_0101, ebx, ecx, edx], facts: [7, 6, 3, 1] }
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
            // Another signature; or no leaf after it.
            other.first[number] = if number == 0 { 0x4000_0100 } else { 0 };
            assert_eq!(Emulated::detect(&other), None, "{number}");
        }
    }
}
