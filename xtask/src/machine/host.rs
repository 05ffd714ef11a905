//! What this host offers to guests.

use raw_cpuid::{CpuId, CpuIdReader};
use std::fs::{self, OpenOptions};

/// What this host offers; read once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// `/dev/kvm` can be opened, or the reason why not.
    pub kvm: Result<(), String>,
    /// KVM gives guests a PMU, or the reason why not.
    pub vpmu: Result<(), String>,
}

/// Parameters of KVM's modules that withhold the PMU: `kvm` has the one for both makers since Linux 5.18;
/// before, each maker's module had its own. Kernels without any of them always offer it.
const PARAMETERS: [(&str, &str); 4] = [
    ("kvm", "enable_pmu"),
    ("kvm_intel", "enable_pmu"),
    ("kvm_amd", "enable_pmu"),
    ("kvm_amd", "pmu"),
];

impl Host {
    /// Looks at this host.
    #[must_use]
    pub fn read() -> Self {
        let kvm = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        let parameter = |module: &str, name: &str| {
            fs::read_to_string(format!("/sys/module/{module}/parameters/{name}")).ok()
        };
        Self {
            kvm: kvm.map(|_| ()).map_err(|error| format!("/dev/kvm cannot be opened: {error}")),
            vpmu: vpmu(parameter, &CpuId::new()),
        }
    }
}

/// KVM hands a PMU on if none of its modules was told otherwise and the host has one.
fn vpmu<R: CpuIdReader>(
    parameter: impl Fn(&str, &str) -> Option<String>,
    cpuid: &CpuId<R>,
) -> Result<(), String> {
    for (module, name) in PARAMETERS {
        if let Some(value) = parameter(module, name).map(|text| text.trim().to_string())
            && !matches!(value.as_str(), "Y" | "1")
        {
            return Err(format!("the {module} module has {name}={value}"));
        }
    }
    // Intel: leaf 0xA, which a cloud's hypervisor empties. AMD: the four legacy counters have no flag, so that a
    // hypervisor cannot show their absence; the extended ones (leaf 0x80000001 ECX bit 23) have.
    let intel = cpuid.get_performance_monitoring_info();
    let amd = cpuid.get_extended_processor_and_feature_identifiers();
    if intel.is_some_and(|leaf| leaf.version_id() > 0 && leaf.number_of_counters() > 0)
        || amd.is_some_and(|leaf| leaf.has_perf_cntr_extensions())
    {
        return Ok(());
    }
    Err("this host's CPUID shows no PMU (leaf 0xA, or 0x80000001 ECX bit 23)".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raw_cpuid::CpuIdResult;

    const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
    const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65];

    /// A processor with leaf 0xA's EAX and 0x80000001's ECX.
    fn cpu(maker: [u32; 3], leaf_a: u32, extended: u32) -> CpuId<impl CpuIdReader> {
        let [ebx, ecx, edx] = maker;
        CpuId::with_cpuid_reader(move |leaf, _| match leaf {
            0 => CpuIdResult { eax: 0x16, ebx, ecx, edx },
            0xa => CpuIdResult { eax: leaf_a, ebx: 0, ecx: 0, edx: 0 },
            0x8000_0000 => CpuIdResult { eax: 0x8000_001f, ebx, ecx, edx },
            0x8000_0001 => CpuIdResult { eax: 0, ebx: 0, ecx: extended, edx: 0 },
            _ => CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 },
        })
    }

    fn says(value: &'static str) -> impl Fn(&str, &str) -> Option<String> {
        move |module, name| (module == "kvm" && name == "enable_pmu").then(|| value.to_string())
    }

    #[test]
    fn a_vpmu_takes_the_modules_and_the_processor() {
        let skylake = cpu(INTEL, 0x0730_0404, 0);
        assert_eq!(vpmu(says("Y\n"), &skylake), Ok(()));
        assert_eq!(vpmu(|_, _| None, &skylake), Ok(()));
        let refused = vpmu(says("N\n"), &skylake).unwrap_err();
        assert_eq!(refused, "the kvm module has enable_pmu=N");
        let older = |module: &str, _: &str| (module == "kvm_amd").then(|| "0".to_string());
        assert!(vpmu(older, &cpu(AMD, 0, 1 << 23)).unwrap_err().contains("kvm_amd"));
        assert_eq!(vpmu(says("1"), &cpu(AMD, 0, 1 << 23)), Ok(()));
        for cloud in [cpu(INTEL, 0, 0), cpu(INTEL, 0x0730_0000, 0), cpu(INTEL, 0x0730_0400, 0)] {
            assert!(vpmu(says("Y"), &cloud).unwrap_err().contains("no PMU"));
        }
        assert!(vpmu(says("Y"), &cpu(AMD, 0x0730_0404, 0)).is_err(), "AMD has no leaf 0xA");
    }
}
