//! The kind of a processor's core, as it tells by CPUID.

use arch::cpu::{Cpuid, has_leaf};
use protocol::core_kind::CoreKind;

/// Leaf 0x1A EAX\[31:24\] (SDM volume 2, CPUID).
const CORE: u32 = 0x40;
const ATOM: u32 = 0x20;
/// Leaf 4: sub-leaves that a processor can have, more than any has.
const CACHES: u32 = 16;

/// EAX of leaf 0x1A; 0 where there is none.
#[must_use]
pub fn native(cpuid: &impl Cpuid) -> u32 {
    if has_leaf(cpuid, 0x1a) { cpuid.cpuid2(0x1a, 0).eax } else { 0 }
}

/// The kind. An efficient core without a cache of level 3 is one of a low-power island: those of Meteor Lake have the same
/// native model as the others, and differ by that.
#[must_use]
pub fn of(cpuid: &impl Cpuid) -> Option<CoreKind> {
    match native(cpuid) >> 24 {
        CORE => Some(CoreKind::Performance),
        ATOM if has_level_3(cpuid) => Some(CoreKind::Efficient),
        ATOM => Some(CoreKind::LowPower),
        _ => None,
    }
}

/// Leaf 4: EAX\[4:0\] is 0 after the last cache, EAX\[7:5\] the level.
fn has_level_3(cpuid: &impl Cpuid) -> bool {
    let leaves = (0..CACHES).map(|cache| cpuid.cpuid2(4, cache).eax);
    leaves.take_while(|eax| eax & 0x1f != 0).any(|eax| eax >> 5 & 7 == 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recorded::cores;

    #[test]
    fn x13_kinds_of_recorded_cores() {
        let named = |name: &str| {
            let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
            let leaves = &core.leaves;
            of(&|leaf, subleaf| {
                let [eax, ebx, ecx, edx] = leaves.answer(leaf, subleaf);
                raw_cpuid::CpuIdResult { eax, ebx, ecx, edx }
            })
        };
        for (name, kind) in [
            (
                "intel-x86-64-golden-cove-12th-gen-intel-core-i9-12900k-p-core",
                Some(CoreKind::Performance),
            ),
            (
                "intel-x86-64-golden-cove-12th-gen-intel-core-i9-12900k-e-core",
                Some(CoreKind::Efficient),
            ),
            ("intel-x86-64-lion-cove-intel-core-ultra-9-288v-p-core", Some(CoreKind::Performance)),
            // The efficient cores of Lunar Lake are a low-power island.
            ("intel-x86-64-lion-cove-intel-core-ultra-9-288v-e-core", Some(CoreKind::LowPower)),
        ] {
            assert_eq!(named(name), kind, "{name}");
        }
    }
}
