//! The processor: what it is ([`identity`]), what it can do and what of that is switched on
//! ([`features`]), what lies beneath ([`hypervisor`]), and the state beyond the general registers ([`extended`]).

mod c1e;
pub mod extended;
pub mod features;
pub mod hypervisor;
pub mod identity;
pub mod limit;
pub mod topology;

pub use hypervisor::Hypervisor;
pub use identity::{CoreType, Identity, Vendor};
pub use topology::Topology;

/// CPUID as a closure, so that host tests can bring tables of other processors.
pub trait Cpuid: raw_cpuid::CpuIdReader {}
impl<R: raw_cpuid::CpuIdReader> Cpuid for R {}

/// The running processor's CPUID instruction.
#[must_use]
pub fn native() -> raw_cpuid::CpuIdReaderNative {
    raw_cpuid::CpuIdReaderNative
}

/// Waits until everything before it is complete and forgets what was fetched ahead: CPUID is serialising
/// (SDM vol. 3, 8.3).
pub fn serialise() {
    use raw_cpuid::CpuIdReader as _;
    core::hint::black_box(native().cpuid1(0));
}

/// Highest basic leaf (below 0x4000_0000) or extended leaf (from 0x8000_0000) of the range that `leaf`
/// is in. A leaf above it returns another leaf's content, so ask here first.
pub fn has_leaf(cpuid: &impl Cpuid, leaf: u32) -> bool {
    let range = leaf & 0xc000_0000;
    let highest = cpuid.cpuid1(range).eax;
    // Processors without the extended range answer with a basic leaf.
    highest >= leaf && highest & 0xc000_0000 == range
}

#[cfg(test)]
pub(crate) mod tests {
    use raw_cpuid::CpuIdResult;

    /// A processor given as a list of (leaf, subleaf, registers). Leaves above the highest basic one echo
    /// it, as Intel processors do.
    pub fn table(
        rows: &'static [(u32, u32, [u32; 4])],
    ) -> impl Fn(u32, u32) -> CpuIdResult + Clone {
        move |leaf, subleaf| {
            let find = |l, s| rows.iter().find(|row| row.0 == l && row.1 == s);
            let highest = find(0, 0).map_or(0, |row| row.2[0]);
            let row = find(leaf, subleaf).or_else(|| find(leaf, 0)).or_else(|| find(highest, 0));
            let [eax, ebx, ecx, edx] = row.map_or([0; 4], |row| row.2);
            CpuIdResult { eax, ebx, ecx, edx }
        }
    }

    pub const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];

    #[test]
    fn a_leaf_above_the_highest_is_not_there() {
        let cpu =
            table(&[(0, 0, [4, INTEL[0], INTEL[1], INTEL[2]]), (4, 0, [0x0730_0403, 0, 0, 0])]);
        assert!(super::has_leaf(&cpu, 4));
        assert!(!super::has_leaf(&cpu, 0xa));
        assert!(!super::has_leaf(&cpu, 0x8000_0022));
    }
}
