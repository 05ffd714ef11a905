//! Which branch records there are.

use super::Capabilities;
use crate::cpu::{Identity, has_leaf};
use crate::msr::Msr;
use crate::pmu::access::{Registers, leaves};
use crate::pmu::numbers;

/// The branch records of a processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LbrKind {
    /// The processor keeps no branch records.
    None,
    /// A ring with a top-of-stack register.
    Legacy {
        /// Entries of the ring.
        entries: u8,
        /// PERF_CAPABILITIES\[5:0\]: 0 32-bit, 1 LIP, 2 EIP, 3 and 4 with flags in FROM, 5 and 7 with INFO registers,
        /// 6 with the time in TO.
        format: u8,
        /// FROM and TO begin at 0x40 and 0x60 (Core, Silvermont) instead of 0x680 and 0x6C0.
        old_place: bool,
        /// MSR_LBR_SELECT is there.
        filter: bool,
    },
    /// Intel's architectural records: leaf 0x1C.
    Architectural {
        /// The greatest depth that can be chosen.
        depth: u8,
        /// The misprediction flag is recorded.
        mispredict: bool,
        /// Branch types can be filtered.
        filter: bool,
    },
    /// AMD's LBRv2, newest first.
    AmdV2 {
        /// Entries.
        entries: u8,
    },
    /// One record, in the P6 layout: AMD before LBRv2.
    Single,
}

/// Leaf 7 EDX: architectural records.
const ARCH_LBR: u32 = 1 << 19;
/// Leaf 0x1C EBX: call-stack mode.
const CALL_STACK: u32 = 1 << 2;
/// Leaf 0x80000022 EAX: LBRv2.
const LBR_V2: u32 = 1 << 1;

pub(super) fn read(registers: &mut dyn Registers, seen: &Capabilities) -> LbrKind {
    if !seen.is_intel() {
        return amd(registers);
    }
    let has = |registers: &dyn Registers, leaf| has_leaf(&leaves(registers), leaf);
    if has(registers, 7) && registers.cpuid(7, 0).edx & ARCH_LBR != 0 && has(registers, 0x1c) {
        let leaf = registers.cpuid(0x1c, 0);
        let highest = (leaf.eax & 0xff).checked_ilog2();
        return highest.map_or(LbrKind::None, |bit| LbrKind::Architectural {
            depth: 8 * (bit as u8 + 1),
            mispredict: leaf.ecx & 1 != 0,
            filter: leaf.ebx & 2 != 0,
        });
    }
    legacy(registers, seen)
}

/// Whether calls can push and returns pop: LBR_SELECT\[9\] from Haswell on, whose format came with it (SDM vol. 3, 18.11), and
/// what leaf 0x1C EBX says of architectural records.
pub(super) fn have_call_stacks(registers: &dyn Registers, kind: LbrKind) -> bool {
    match kind {
        LbrKind::Legacy { format, filter, .. } => filter && matches!(format, 4..=7),
        LbrKind::Architectural { .. } => registers.cpuid(0x1c, 0).ebx & CALL_STACK != 0,
        LbrKind::None | LbrKind::AmdV2 { .. } | LbrKind::Single => false,
    }
}

/// The number of legacy entries is not enumerated; the registers are there or raise #GP.
fn legacy(registers: &mut dyn Registers, seen: &Capabilities) -> LbrKind {
    if !seen.pdcm || registers.rdmsr(numbers::LBR_TOS).is_err() {
        return LbrKind::None;
    }
    let mut largest = |first: u32, sizes: &[u8]| {
        let exists = |&size: &u8| registers.rdmsr(Msr(first + u32::from(size) - 1)).is_ok();
        sizes.iter().copied().find(exists)
    };
    let new = largest(numbers::LBR_FROM, &[32, 16, 8]);
    let Some(entries) = new.or_else(|| largest(numbers::LBR_CORE_FROM, &[8, 4])) else {
        return LbrKind::None;
    };
    // Knights Landing and Knights Mill say 1, and have the flag of format 3 (Linux, `intel_pmu_lbr_init_knl`).
    const KNIGHTS: [u32; 2] = [0x57, 0x85];
    let identity = Identity::read(&leaves(registers));
    let format = match seen.perf.lbr_format() {
        1 if identity.family == 6 && KNIGHTS.contains(&identity.model) => 3,
        format => format,
    };
    LbrKind::Legacy {
        entries,
        format,
        old_place: new.is_none(),
        filter: registers.rdmsr(numbers::LBR_SELECT).is_ok(),
    }
}

fn amd(registers: &mut dyn Registers) -> LbrKind {
    if has_leaf(&leaves(registers), 0x8000_0022) {
        let leaf = registers.cpuid(0x8000_0022, 0);
        if leaf.eax & LBR_V2 != 0 {
            return LbrKind::AmdV2 { entries: (leaf.ebx >> 4 & 0x3f) as u8 };
        }
    }
    match registers.rdmsr(numbers::LAST_BRANCH_FROM) {
        Ok(_) => LbrKind::Single,
        Err(_) => LbrKind::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 2, CPUID, leaf 7; APM vol. 3, appendix E, function 8000_0022.
    #[test]
    fn the_bits_are_where_the_manuals_have_them() {
        assert_eq!((ARCH_LBR, LBR_V2), (0x8_0000, 2));
    }
}
