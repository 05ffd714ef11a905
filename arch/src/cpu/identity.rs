//! Who the processor is.

use super::{Cpuid, Topology, has_leaf};
use crate::msr;
use alloc::string::{String, ToString};
use raw_cpuid::{CpuId, CpuIdReader as _};

/// The maker, as far as it decides which registers there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`, and `HygonGenuine`, whose processors are Zen.
    Amd,
    /// Anyone else.
    Other,
}

/// CPUID leaf 0x1A, EAX bits 31:24.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CoreType {
    /// 0x40.
    Core,
    /// 0x20.
    Atom,
    /// Anything else.
    Other(u8),
}

/// The identity of the running processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The maker.
    pub vendor: Vendor,
    /// Leaf 0's twelve characters.
    pub vendor_text: String,
    /// Leaves 0x80000002 to 0x80000004.
    pub brand: String,
    /// Family, extended family added.
    pub family: u32,
    /// Model, extended model in the upper half.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Twelve characters of the hypervisor's leaf 0x40000000.
    pub hypervisor: Option<String>,
    /// Kind of core, on processors that have leaf 0x1A.
    pub core_type: Option<CoreType>,
    /// Where this logical processor stands.
    pub topology: Topology,
}

impl Identity {
    /// Reads the identity through `cpuid`.
    pub fn read(cpuid: &impl Cpuid) -> Self {
        let raw = CpuId::with_cpuid_reader(cpuid.clone());
        let vendor_text = raw.get_vendor_info().map_or(String::new(), |v| v.as_str().to_string());
        let vendor = match vendor_text.as_str() {
            "GenuineIntel" => Vendor::Intel,
            "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
            _ => Vendor::Other,
        };
        let feature = raw.get_feature_info();
        let number = |get: fn(&raw_cpuid::FeatureInfo) -> u8| {
            feature.as_ref().map_or(0, |feature| u32::from(get(feature)))
        };
        let brand = raw.get_processor_brand_string();
        Self {
            vendor,
            vendor_text,
            brand: brand.map_or(String::new(), |b| b.as_str().trim().to_string()),
            family: number(raw_cpuid::FeatureInfo::family_id),
            model: number(raw_cpuid::FeatureInfo::model_id),
            stepping: number(raw_cpuid::FeatureInfo::stepping_id),
            hypervisor: hypervisor(cpuid),
            core_type: core_type(cpuid),
            topology: Topology::read(cpuid),
        }
    }
}

/// Leaf 1 ECX bit 31 says that there is a hypervisor; its signature is in leaf 0x40000000.
fn hypervisor(cpuid: &impl Cpuid) -> Option<String> {
    const HYPERVISOR: u32 = 1 << 31;
    if cpuid.cpuid1(1).ecx & HYPERVISOR == 0 {
        return None;
    }
    let leaf = cpuid.cpuid1(0x4000_0000);
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text: String = bytes.iter().filter(|b| b.is_ascii_graphic()).map(|&b| b as char).collect();
    Some(if text.is_empty() { "unknown".to_string() } else { text })
}

fn core_type(cpuid: &impl Cpuid) -> Option<CoreType> {
    if !has_leaf(cpuid, 0x1a) {
        return None;
    }
    // Zero: the leaf exists but says nothing, as on processors with one kind of core.
    match cpuid.cpuid2(0x1a, 0).eax >> 24 {
        0 => None,
        0x40 => Some(CoreType::Core),
        0x20 => Some(CoreType::Atom),
        other => Some(CoreType::Other(other as u8)),
    }
}

/// Revision of the microcode, if the processor has a register for it.
///
/// # Safety
/// The interrupt table must be loaded; ring 0.
#[must_use]
pub unsafe fn microcode(vendor: Vendor) -> Option<u64> {
    // SAFETY: guarded accesses; writing 0 to the register is the documented first step on Intel
    // (SDM vol. 3, 9.11.7.1) and changes nothing else.
    unsafe {
        if vendor == Vendor::Intel {
            msr::try_write(msr::IA32_BIOS_SIGN_ID, 0).ok()?;
            let _ = super::native().cpuid1(1);
            return Some(msr::try_read(msr::IA32_BIOS_SIGN_ID).ok()? >> 32);
        }
        msr::try_read(msr::IA32_BIOS_SIGN_ID).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{INTEL, table};
    use super::*;

    #[test]
    fn a_hybrid_intel_processor_under_kvm_is_recognised() {
        // Alder Lake: signature 0x90672 is family 6, model 0x97, stepping 2.
        let cpu = table(&[
            (0, 0, [0x20, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x0009_0672, 0, 1 << 31, 0]),
            (0x1a, 0, [0x4000_0001, 0, 0, 0]),
            (0x20, 0, [0; 4]),
            (0x4000_0000, 0, [0x4000_0001, 0x4b4d_564b, 0x564b_4d56, 0x4d]),
        ]);
        let identity = Identity::read(&cpu);
        assert_eq!(identity.vendor, Vendor::Intel);
        assert_eq!((identity.family, identity.model, identity.stepping), (6, 0x97, 2));
        assert_eq!(identity.hypervisor.as_deref(), Some("KVMKVMKVM"));
        assert_eq!(identity.core_type, Some(CoreType::Core));
    }

    #[test]
    fn an_old_processor_has_no_core_type_and_no_hypervisor() {
        let cpu = table(&[
            (0, 0, [2, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0x0000_06f6, 0, 0, 0]),
            (2, 0, [0x4002_0101, 0, 0, 0]),
        ]);
        let identity = Identity::read(&cpu);
        assert_eq!((identity.family, identity.model), (6, 15));
        assert_eq!((identity.hypervisor, identity.core_type), (None, None));
    }
}
