//! The machine record of a report as a recording. It tells less than CPUID does: what had to be inferred is listed.

use crate::Leaves;
use protocol::record::{CoreType, Machine, Pmu, PmuArchitecture};
use thiserror::Error;

/// Why a machine record is none of a processor.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum MachineError {
    /// The maker's name.
    #[error("the vendor is {0:?}; CPUID has exactly 12 characters for it")]
    Vendor(String),
    /// A number too large for its bits in CPUID.
    #[error("the {what} is {value}; CPUID allows 0 to {most}")]
    Number { what: &'static str, value: u32, most: u32 },
}

/// Leaf 1 ECX: IA32_PERF_CAPABILITIES exists.
const PDCM: u32 = 1 << 15;
/// Leaf 1 EDX: several logical processors.
const HTT: u32 = 1 << 28;
/// Leaf 7 EDX: architectural branch records.
const ARCH_LBR: u32 = 1 << 19;
/// Leaf 0xA EDX: AnyThread is deprecated.
const NO_ANY_THREAD: u32 = 1 << 15;
/// Leaf 7.1 EAX: leaf 0x23 exists.
const LEAF_23: u32 = 1 << 8;
/// Leaf 0x80000001 ECX: PerfCtrExtCore.
const EXTENDED_COUNTERS: u32 = 1 << 23;
/// Leaf 0x80000001 EDX: long mode.
const LONG_MODE: u32 = 1 << 29;

/// The leaves that a machine record reports, and what of them was inferred, in words.
///
/// # Errors
/// It says something that no processor's CPUID could.
pub fn leaves(machine: &Machine) -> Result<(Leaves, Vec<String>), MachineError> {
    let mut leaves = Leaves::new();
    let mut inferred = vec!["CPUID from the machine record; every other leaf is 0".to_string()];
    let vendor: [u8; 12] = machine
        .vendor
        .as_bytes()
        .try_into()
        .map_err(|_| MachineError::Vendor(machine.vendor.clone()))?;
    let intel = machine.pmu.as_ref().filter(|pmu| pmu.architecture == PmuArchitecture::Intel);
    let amd = machine.pmu.as_ref().filter(|pmu| pmu.architecture == PmuArchitecture::Amd);
    let has = |feature: &str| {
        machine.pmu.as_ref().is_some_and(|pmu| pmu.features.iter().any(|one| one == feature))
    };
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| vendor[at + byte]));
    leaves.set(0, 0, [0x23, word(0), word(8), word(4)]);
    let threads = fits("number of threads", machine.topology.threads_per_package, 0xff)?;
    leaves.set(
        1,
        0,
        [
            signature(machine)?,
            (machine.topology.apic_id & 0xff) << 24 | threads << 16,
            if intel.is_some() { PDCM } else { 0 },
            if threads > 1 { HTT } else { 0 },
        ],
    );
    let records = if has("architectural LBR") { ARCH_LBR } else { 0 };
    let version_6 = intel.is_some_and(|pmu| pmu.version >= 6);
    leaves.set(7, 0, [1, 0, 0, records]);
    leaves.set(7, 1, [if version_6 { LEAF_23 } else { 0 }, 0, 0, 0]);
    if let Some(kind) = machine.core_type {
        let kind = match kind {
            CoreType::Core => 0x40,
            CoreType::Atom => 0x20,
            CoreType::Other => 0,
        };
        inferred.push("the native model of the core (leaf 0x1A): not stated, 0".to_string());
        leaves.set(0x1a, 0, [kind << 24, 0, 0, 0]);
    }
    if records != 0 {
        inferred.push("the depth of the branch records (leaf 0x1C): 32".to_string());
        leaves.set(0x1c, 0, [0x4000_000b, 7, 7, 0]);
    }
    if let Some(pmu) = intel {
        intel_leaves(&mut leaves, pmu, has("AnyThread"), &mut inferred)?;
    }
    extended(&mut leaves, machine, amd, has("instructions-retired counter"), &mut inferred)?;
    Ok((leaves, inferred))
}

fn fits(what: &'static str, value: u32, most: u32) -> Result<u32, MachineError> {
    if value <= most { Ok(value) } else { Err(MachineError::Number { what, value, most }) }
}

/// Leaf 1 EAX. The extended family is added to 15 alone; the extended model counts with families 6 and 15 on
/// (SDM vol. 2, CPUID).
fn signature(machine: &Machine) -> Result<u32, MachineError> {
    let family = fits("family", machine.family, 0xf + 0xff)?;
    let widest = if family == 6 || family >= 0xf { 0xff } else { 0xf };
    let model = fits("model", machine.model, widest)?;
    let stepping = fits("stepping", machine.stepping, 0xf)?;
    let extended = family.saturating_sub(0xf);
    Ok(extended << 20 | model >> 4 << 16 | family.min(0xf) << 8 | (model & 0xf) << 4 | stepping)
}

fn intel_leaves(
    leaves: &mut Leaves,
    pmu: &Pmu,
    any_thread: bool,
    inferred: &mut Vec<String>,
) -> Result<(), MachineError> {
    let version = fits("PMU's version", pmu.version, 0xff)?;
    let counters = fits("number of counters", pmu.counters, 32)?;
    let bits = fits("width of the counters", pmu.counter_bits, 0xff)?;
    let fixed = fits("number of fixed counters", pmu.fixed_counters, 16)?;
    let fixed_bits = fits("width of the fixed counters", pmu.fixed_counter_bits, 0xff)?;
    let events = if fixed > 3 { 8 } else { 7 };
    inferred.push(format!("the architectural events: all {events} of leaf 0xA"));
    inferred.push("which counters there are, by number: the lowest ones".to_string());
    let any = if any_thread || version < 3 { 0 } else { NO_ANY_THREAD };
    let low = |count: u32| u32::try_from((1_u64 << count) - 1).unwrap_or(u32::MAX);
    let ecx = if version >= 5 { low(fixed) } else { 0 };
    let eax = version | counters << 8 | bits << 16 | events << 24;
    leaves.set(0xa, 0, [eax, 0, ecx, fixed | fixed_bits << 5 | any]);
    if version >= 6 {
        inferred.push("unit masks of 16 bits and EQ (leaf 0x23): as the features say".to_string());
        let has = |name: &str| u32::from(pmu.features.iter().any(|one| one == name));
        leaves.set(0x23, 0, [0b1011, has("UMASK2") | has("EQ") << 1, 0, 0]);
        leaves.set(0x23, 1, [low(counters), low(fixed), 0, 0]);
        leaves.set(0x23, 3, [low(events), 0, 0, 0]);
    }
    Ok(())
}

fn extended(
    leaves: &mut Leaves,
    machine: &Machine,
    amd: Option<&Pmu>,
    irperf: bool,
    inferred: &mut Vec<String>,
) -> Result<(), MachineError> {
    let v2 = amd.filter(|pmu| pmu.version >= 2);
    leaves.set(0x8000_0000, 0, [if v2.is_some() { 0x8000_0022 } else { 0x8000_0008 }, 0, 0, 0]);
    let extended = amd.is_some_and(|pmu| pmu.version >= 1);
    let counters = if extended { EXTENDED_COUNTERS } else { 0 };
    leaves.set(0x8000_0001, 0, [0, 0, counters, LONG_MODE]);
    let brand: Vec<u8> = machine.brand.bytes().chain([0; 48]).take(48).collect();
    for (leaf, bytes) in (0x8000_0002..).zip(brand.chunks_exact(16)) {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at * 4 + byte]));
        leaves.set(leaf, 0, [word(0), word(1), word(2), word(3)]);
    }
    leaves.set(0x8000_0008, 0, [0, u32::from(irperf) << 1, 0, 0]);
    if let Some(pmu) = v2 {
        let counters = fits("number of counters", pmu.counters, 15)?;
        let has = |name: &str| pmu.features.iter().any(|one| one == name);
        let records = has("LBRv2");
        if records {
            inferred.push("the number of branch records (leaf 0x80000022): 16".to_string());
        }
        let freeze = has("freeze on PMI (streamlined)");
        let eax = 1 | u32::from(records) << 1 | u32::from(freeze) << 2;
        leaves.set(0x8000_0022, 0, [eax, counters | if records { 16 << 4 } else { 0 }, 0, 0]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::{Apic, ApicMode, Topology, Tsc, TscSource};

    fn machine(vendor: &str, [family, model, stepping]: [u32; 3], pmu: Option<Pmu>) -> Machine {
        Machine {
            vendor: vendor.to_string(),
            brand: "Test @ 3 GHz".to_string(),
            family,
            model,
            stepping,
            microcode: None,
            hypervisor: None,
            topology: Topology { apic_id: 2, threads_per_core: 2, threads_per_package: 8 },
            core_type: None,
            pmu,
            pmu_absent: None,
            energy: vec![],
            energy_absent: None,
            watchdog: None,
            watchdog_absent: None,
            watchdog_resets: None,
            virtual_pmu: None,
            emulated_pmu: None,
            event_tables: None,
            tsc: Tsc { hz: 1, source: TscSource::Cpuid, invariant: true, told_hz: None },
            apic: Apic { mode: ApicMode::XApic, timer_hz: 1 },
            processors: vec![],
            kinds: vec![],
            memory_bytes: 0,
            memory_uncached_bytes: 0,
            memory_domains: None,
            serial: vec![],
            screen: None,
        }
    }

    fn pmu(architecture: PmuArchitecture, version: u32, counters: u32, fixed: u32) -> Pmu {
        Pmu {
            architecture,
            version,
            counters,
            counter_bits: 48,
            fixed_counters: fixed,
            fixed_counter_bits: 48,
            features: vec![],
            errata: vec![],
            conflicts: vec![],
            faults: vec![],
            trial_ticks: 0,
        }
    }

    #[test]
    fn an_intel_machine_is_told_by_its_leaves() {
        let record =
            machine("GenuineIntel", [6, 0x5e, 3], Some(pmu(PmuArchitecture::Intel, 4, 8, 3)));
        let (leaves, inferred) = leaves(&record).unwrap();
        assert_eq!(leaves.answer(0, 0)[1..], [0x756e_6547, 0x6c65_746e, 0x4965_6e69]);
        assert_eq!(leaves.answer(1, 0)[0], 0x0005_06e3);
        assert_eq!(leaves.answer(0xa, 0), [0x0730_0804, 0, 0, 0x8603]);
        assert_eq!(leaves.answer(0x8000_0002, 0)[0].to_le_bytes(), *b"Test");
        assert!(inferred.iter().any(|line| line.contains("all 7 of leaf 0xA")), "{inferred:?}");
    }

    #[test]
    fn an_amd_machine_is_told_by_its_leaves() {
        let mut zen4 = pmu(PmuArchitecture::Amd, 2, 6, 0);
        zen4.features = vec!["LBRv2".to_string(), "freeze on PMI (streamlined)".to_string()];
        let record = machine("AuthenticAMD", [0x19, 0x61, 2], Some(zen4));
        let (leaves, _) = leaves(&record).unwrap();
        assert_eq!(leaves.answer(1, 0)[0], 0x00a6_0f12);
        assert_eq!(leaves.answer(0x8000_0022, 0), [7, 0x106, 0, 0]);
        assert_ne!(leaves.answer(0x8000_0001, 0)[2] & EXTENDED_COUNTERS, 0);
    }

    #[test]
    fn what_no_processor_could_say_is_refused() {
        let intel = |version, counters| Some(pmu(PmuArchitecture::Intel, version, counters, 3));
        let cases = [
            (machine("Genuine", [6, 1, 1], None), "the vendor is \"Genuine\""),
            (machine("GenuineIntel", [271, 1, 1], None), "the family is 271; CPUID allows"),
            (machine("GenuineIntel", [5, 0x10, 1], None), "the model is 16; CPUID allows"),
            (machine("GenuineIntel", [6, 1, 16], None), "the stepping is 16"),
            (machine("GenuineIntel", [6, 1, 1], intel(4, 33)), "the number of counters is 33"),
            (machine("GenuineIntel", [6, 1, 1], intel(256, 4)), "the PMU's version is 256"),
        ];
        for (record, part) in cases {
            let error = leaves(&record).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
