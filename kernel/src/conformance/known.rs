//! What hypervisors' virtual PMUs are known to do otherwise than the manuals say. A check that fails in just that way is no
//! failure; one that fails in another way is.

use super::check::Finding;
use alloc::format;
use arch::cpu::Hypervisor;
use protocol::record::CheckVerdict;

/// A known behaviour.
struct Known {
    hypervisor: Hypervisor,
    /// Whether it is of AMD's virtual PMU alone.
    amd: bool,
    /// The check, and what it sees.
    check: &'static str,
    seen: &'static str,
    /// Why.
    why: &'static str,
    /// Where that can be read.
    source: &'static str,
}

const KVM: &[Known] = &[
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: false,
        check: "modifiers.counter_mask",
        seen: "1",
        why: "KVM counts the WRMSR that starts the counter, which it emulates, and ignores the counter mask there",
        source: "Linux, arch/x86/kvm/pmu.c, kvm_pmu_trigger_event",
    },
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: false,
        check: "pmi.latency",
        seen: "-1",
        why: "KVM counts the WRMSR that starts the counter, which it emulates: the overflow comes an instruction early",
        source: "Linux, arch/x86/kvm/pmu.c, kvm_pmu_trigger_event",
    },
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: true,
        check: "rdpmc.fast_mode",
        seen: "ECX = 0x80000000 was accepted",
        why: "KVM ignores the upper two bits of the index",
        source: "Linux, arch/x86/kvm/svm/pmu.c, amd_rdpmc_ecx_to_pmc",
    },
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: true,
        check: "lbr.order",
        seen: "entries: 0, not 1",
        why: "KVM drops writes of DEBUGCTL where it does not virtualise branch records",
        source: "Linux, arch/x86/kvm/svm/svm.c, svm_set_msr",
    },
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: true,
        check: "lbr.mispredicted",
        seen: "no record",
        why: "KVM drops writes of DEBUGCTL where it does not virtualise branch records",
        source: "Linux, arch/x86/kvm/svm/svm.c, svm_set_msr",
    },
    Known {
        hypervisor: Hypervisor::Kvm,
        amd: true,
        check: "status.set",
        seen: "counter 0: 0x0, not 0x1",
        why: "KVM has the register that sets the status only since July 2025",
        source: "Linux, \"KVM: SVM: Emulate PERF_CNTR_GLOBAL_STATUS_SET for PerfMonV2\"",
    },
];

/// A failure that `hypervisor` is known for, as such. `amd`: the virtual PMU is AMD's.
pub fn explain(
    finding: Finding,
    check: &str,
    hypervisor: Option<Hypervisor>,
    amd: bool,
) -> Finding {
    let is_it = |known: &&Known| {
        hypervisor == Some(known.hypervisor)
            && (amd || !known.amd)
            && (known.check, known.seen) == (check, finding.seen.as_str())
    };
    match KVM.iter().find(is_it).filter(|_| finding.verdict == CheckVerdict::Fail) {
        Some(known) => Finding {
            verdict: CheckVerdict::KnownBehaviour,
            seen: format!("{} ({}: {})", finding.seen, known.why, known.source),
            ..finding
        },
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(check: &str, seen: &str, hypervisor: Option<Hypervisor>, amd: bool) -> CheckVerdict {
        explain(Finding::fail("0", seen), check, hypervisor, amd).verdict
    }

    #[test]
    fn x12_what_kvm_is_known_for_is_told_and_no_failure() {
        for known in KVM {
            let finding =
                explain(Finding::fail("0", known.seen), known.check, Some(Hypervisor::Kvm), true);
            assert_eq!(finding.verdict, CheckVerdict::KnownBehaviour, "{}", known.check);
            assert!(finding.seen.contains(known.why) && finding.seen.contains(known.source));
            assert!(super::super::checks().any(|check| check.name == known.check));
        }
    }

    /// With its check and what that sees; the guide has the sign of a minus.
    #[test]
    fn x12_the_guide_lists_what_kvm_is_known_for() {
        let guide = include_str!("../../../docs/guide/virtual-pmus.md").replace('−', "-");
        for known in KVM {
            let row = alloc::format!("\n| `{}` | {} |", known.check, known.seen);
            assert!(guide.contains(&row), "{row}");
        }
    }

    #[test]
    fn x12_what_kvm_is_not_known_for_fails_there_too() {
        let kvm = Some(Hypervisor::Kvm);
        // Another figure, another check, another hypervisor, none, and the other vendor's virtual PMU.
        for (check, seen, hypervisor, amd) in [
            ("modifiers.counter_mask", "2", kvm, true),
            ("modifiers.counter_mask", "0", kvm, true),
            ("pmi.latency", "-2", kvm, true),
            ("pmi.latency", "401", kvm, false),
            ("counting.each_counter", "1", kvm, true),
            ("pmi.latency", "-1", Some(Hypervisor::Xen), true),
            ("pmi.latency", "-1", None, true),
            ("rdpmc.fast_mode", "ECX = 0x80000000 was accepted", kvm, false),
            ("rdpmc.fast_mode", "ECX = 0x80000001 was accepted", kvm, true),
            ("status.set", "counter 0: 0x0, not 0x1", kvm, false),
            ("status.set", "counter 1: 0x1, not 0x3", kvm, true),
        ] {
            assert_eq!(
                verdict(check, seen, hypervisor, amd),
                CheckVerdict::Fail,
                "{check}: {seen}"
            );
        }
        // What passes stays so.
        let passed = explain(Finding::pass("1", "1"), "modifiers.counter_mask", kvm, true);
        assert_eq!(passed.verdict, CheckVerdict::Pass);
    }
}
