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
