//! Which hypervisor is beneath, by its signature in CPUID.

use super::Cpuid;

/// A hypervisor, as far as it matters to whoever counts on its virtual PMU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hypervisor {
    /// Linux's KVM. Amazon's and Google's machines say so too.
    Kvm,
    /// Microsoft's Hyper-V, Azure's among them.
    HyperV,
    /// VMware's.
    Vmware,
    /// Xen.
    Xen,
    /// QEMU's translator, which executes the instructions itself.
    Tcg,
    /// Oracle's VirtualBox.
    VirtualBox,
    /// The BSDs' bhyve.
    Bhyve,
    /// Parallels.
    Parallels,
    /// ACRN.
    Acrn,
    /// One that nobody here knows.
    Other,
}

/// EBX, ECX and EDX of the first leaf: Linux, `arch/x86/include/asm/kvm_para.h`, `hyperv.h`, `arch/x86/kernel/cpu/vmware.c`,
/// `arch/x86/include/asm/xen/cpuid.h`, `acrn.h`; QEMU, `target/i386/tcg`; VirtualBox, `GIMR3.cpp`; bhyve, `x86.c`; systemd's
/// `detect-virt` for Parallels.
const SIGNATURES: [(&[u8; 12], Hypervisor); 11] = [
    (b"KVMKVMKVM\0\0\0", Hypervisor::Kvm),
    // KVM's own name for its copy of Hyper-V's interface, without QEMU.
    (b"Linux KVM Hv", Hypervisor::Kvm),
    (b"Microsoft Hv", Hypervisor::HyperV),
    (b"VMwareVMware", Hypervisor::Vmware),
    (b"XenVMMXenVMM", Hypervisor::Xen),
    (b"TCGTCGTCGTCG", Hypervisor::Tcg),
    (b"VBoxVBoxVBox", Hypervisor::VirtualBox),
    (b"bhyve bhyve ", Hypervisor::Bhyve),
    (b" lrpepyh  vr", Hypervisor::Parallels),
    (b"prl hyperv  ", Hypervisor::Parallels),
    (b"ACRNACRNACRN", Hypervisor::Acrn),
];

/// Interfaces lie 0x100 leaves apart from here on, and Linux looks no further than 0x4001_0000.
const FIRST: u32 = 0x4000_0000;
const APART: usize = 0x100;
const LAST: u32 = 0x4000_ff00;

impl Hypervisor {
    /// Asks CPUID. `None` on bare metal. One that copies Hyper-V's interface, so that Windows feels at home, has its own after
    /// that.
    #[must_use]
    pub fn detect(cpuid: &impl Cpuid) -> Option<Self> {
        const PRESENT: u32 = 1 << 31;
        if cpuid.cpuid1(1).ecx & PRESENT == 0 {
            return None;
        }
        let first = at(cpuid, FIRST);
        if first != Some(Self::HyperV) {
            return Some(first.unwrap_or(Self::Other));
        }
        let mut behind = (FIRST..=LAST).step_by(APART).skip(1);
        behind.find_map(|leaf| at(cpuid, leaf).filter(|found| *found != Self::HyperV)).or(first)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::HyperV => "Hyper-V",
            Self::Vmware => "VMware",
            Self::Xen => "Xen",
            Self::Tcg => "QEMU's translator",
            Self::VirtualBox => "VirtualBox",
            Self::Bhyve => "bhyve",
            Self::Parallels => "Parallels",
            Self::Acrn => "ACRN",
            Self::Other => "an unknown hypervisor",
        }
    }
}

fn at(cpuid: &impl Cpuid, leaf: u32) -> Option<Hypervisor> {
    let leaf = cpuid.cpuid1(leaf);
    let words = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes);
    let found = SIGNATURES.iter().find(|(signature, _)| *signature == words.as_flattened());
    found.map(|&(_, hypervisor)| hypervisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raw_cpuid::CpuIdResult;

    /// A processor with these interfaces, the first at 0x4000_0000.
    fn with(interfaces: &'static [&'static [u8; 12]]) -> impl Cpuid {
        move |leaf: u32, _| {
            let zero = CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
            if leaf == 1 {
                let ecx = u32::from(!interfaces.is_empty()) << 31;
                return CpuIdResult { ecx, ..zero };
            }
            let index = leaf.wrapping_sub(FIRST) / 0x100;
            let Some(name) = interfaces.get(index as usize) else { return zero };
            let word = |at: usize| u32::from_le_bytes(name[at..at + 4].try_into().unwrap());
            CpuIdResult { eax: leaf + 1, ebx: word(0), ecx: word(4), edx: word(8) }
        }
    }

    fn named(interfaces: &'static [&'static [u8; 12]]) -> Option<Hypervisor> {
        Hypervisor::detect(&with(interfaces))
    }

    #[test]
    fn x12_each_hypervisor_is_told_by_its_signature() {
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[b"KVMKVMKVM\0\0\0"]), Some(Hypervisor::Kvm));
        assert_eq!(named(&[b"Microsoft Hv"]), Some(Hypervisor::HyperV));
        assert_eq!(named(&[b"VMwareVMware"]), Some(Hypervisor::Vmware));
        assert_eq!(named(&[b"XenVMMXenVMM"]), Some(Hypervisor::Xen));
        assert_eq!(named(&[b"NobodyNobody"]), Some(Hypervisor::Other));
    }

    #[test]
    fn behind_a_copy_of_hyper_vs_interface_the_hypervisor_has_its_own() {
        assert_eq!(named(&[b"Microsoft Hv", b"KVMKVMKVM\0\0\0"]), Some(Hypervisor::Kvm));
        assert_eq!(named(&[b"Microsoft Hv", b"XenVMMXenVMM"]), Some(Hypervisor::Xen));
        // QEMU's translator with the emulated PMU after it.
        assert_eq!(named(&[b"TCGTCGTCGTCG", b"barecountPMU"]), Some(Hypervisor::Tcg));
    }

    #[test]
    fn names_are_told_apart() {
        for (index, (_, one)) in SIGNATURES.iter().enumerate() {
            let others = SIGNATURES[index + 1..].iter().filter(|(_, other)| other != one);
            assert!(others.into_iter().all(|(_, other)| other.name() != one.name()));
        }
    }
}
