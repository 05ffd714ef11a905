//! Which accelerator to use, and why.

use crate::cli::Accel;
use std::fs::OpenOptions;

/// What this host offers; read once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// `/dev/kvm` can be opened, or the reason why not.
    pub kvm: Result<(), String>,
    /// KVM gives guests a PMU, or the reason why not.
    pub vpmu: Result<(), String>,
}

/// The decision, and the line that explains it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Choice {
    /// The host's processor; else QEMU's translator.
    pub kvm: bool,
    /// Why.
    pub reason: String,
}

impl Host {
    /// Looks at this host.
    #[must_use]
    pub fn read() -> Self {
        let kvm = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        let module = std::fs::read_to_string("/sys/module/kvm/parameters/enable_pmu");
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            kvm: kvm.map(|_| ()).map_err(|error| format!("/dev/kvm cannot be opened: {error}")),
            vpmu: vpmu(module.ok().as_deref(), &flags),
        }
    }
}

/// KVM hands a PMU on if its module was not told otherwise and the host has one that the kernel's flags
/// show: `arch_perfmon` on Intel; AMD's counters since K7 have no flag, those since family 15h have.
fn vpmu(enable_pmu: Option<&str>, cpuinfo: &str) -> Result<(), String> {
    match enable_pmu.map(str::trim) {
        Some("Y" | "1") => {}
        Some(_) => return Err("the kvm module has enable_pmu=N".to_string()),
        // Older kernels have no such parameter and always offer it.
        None => {}
    }
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    if has("arch_perfmon") || has("perfctr_core") || has("perfmon_v2") {
        return Ok(());
    }
    Err("this host has no PMU of its own (no arch_perfmon, perfctr_core or perfmon_v2)".to_string())
}

/// Decides.
///
/// # Errors
/// KVM was asked for and is not to be had.
pub fn choose(asked: Accel, host: &Host) -> Result<Choice, String> {
    let choice = |kvm, reason: &str| Ok(Choice { kvm, reason: reason.to_string() });
    match (asked, &host.kvm, &host.vpmu) {
        (Accel::Kvm, Err(reason), _) => Err(reason.clone()),
        (Accel::Kvm, Ok(()), Ok(())) => choice(true, "KVM, as asked"),
        (Accel::Kvm, Ok(()), Err(reason)) => {
            choice(true, &format!("KVM, as asked, without a PMU: {reason}"))
        }
        (Accel::Tcg, ..) => choice(false, "TCG, as asked"),
        (Accel::Auto, Ok(()), Ok(())) => choice(true, "KVM with the host's PMU"),
        (Accel::Auto, Ok(()), Err(reason)) => {
            choice(false, &format!("TCG, because under KVM there would be no PMU either: {reason}"))
        }
        (Accel::Auto, Err(reason), _) => choice(false, &format!("TCG, because {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: &str = "processor\t: 0\nflags\t\t: fpu vme arch_perfmon pebs\n";
    const CLOUD: &str = "processor\t: 0\nflags\t\t: fpu vme hypervisor\n";

    #[test]
    fn a_vpmu_takes_the_module_and_the_host() {
        assert_eq!(vpmu(Some("Y\n"), INTEL), Ok(()));
        assert_eq!(vpmu(None, INTEL), Ok(()));
        assert_eq!(vpmu(Some("Y\n"), "flags : perfctr_core"), Ok(()));
        assert!(vpmu(Some("N\n"), INTEL).unwrap_err().contains("enable_pmu=N"));
        assert!(vpmu(Some("Y\n"), CLOUD).unwrap_err().contains("no PMU"));
        assert!(vpmu(Some("Y\n"), "flags : not_arch_perfmon").is_err());
    }

    #[test]
    fn auto_takes_kvm_only_with_a_pmu() {
        let no = |text: &str| Err(text.to_string());
        let host = |kvm, vpmu| Host { kvm, vpmu };
        assert!(choose(Accel::Auto, &host(Ok(()), Ok(()))).unwrap().kvm);
        let without = host(Ok(()), no("no PMU"));
        assert!(!choose(Accel::Auto, &without).unwrap().kvm);
        assert!(choose(Accel::Kvm, &without).unwrap().kvm);
        assert!(choose(Accel::Kvm, &without).unwrap().reason.contains("no PMU"));
        let bare = host(no("no device"), no("x"));
        assert!(!choose(Accel::Auto, &bare).unwrap().kvm);
        assert_eq!(choose(Accel::Kvm, &bare), Err("no device".to_string()));
    }
}
