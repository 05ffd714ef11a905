//! The identity of the machine, as far as a number's meaning depends on it.

use super::{EventTables, ListedProcessor};
use crate::core_kind::CoreKind;
use crate::hex::Hex;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What the firmware runs on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// CPUID leaf 0: `GenuineIntel`, `AuthenticAMD`, ...
    pub vendor: String,
    /// CPUID leaves 0x80000002 to 0x80000004.
    pub brand: String,
    /// Family with the extended family added (CPUID leaf 1 EAX).
    pub family: u32,
    /// Model with the extended model in its upper half.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Microcode revision (IA32_BIOS_SIGN_ID on Intel, PATCH_LEVEL on AMD), if it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microcode: Option<Hex>,
    /// Signature of the hypervisor beneath (CPUID leaf 0x40000000); absent on bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// Where this logical processor stands.
    pub topology: Topology,
    /// Kind of core on a hybrid processor (CPUID leaf 0x1A).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_type: Option<CoreType>,
    /// The performance monitoring unit, if there is one that holds a written value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu: Option<Pmu>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu_absent: Option<String>,
    /// The parts of the machine whose energy the processor tells (RAPL).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<EnergyMeter>,
    /// Why it tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_absent: Option<String>,
    /// What ends a snippet that does not end by itself: `counter NMI`, of an unhalted-cycles counter that overflows; `NMI by
    /// another processor`, which ends code that halts with interrupts off as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<String>,
    /// Why there is none; the host then ends the run of such an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog_absent: Option<String>,
    /// What of the machine's own resets it if an item hangs it past that; absent: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog_resets: Option<String>,
    /// Set if the PMU is barecount's emulated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated_pmu: Option<EmulatedPmu>,
    /// Whose virtual PMU it is, by the hypervisor's name; absent if it is the processor's own, or an emulated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_pmu: Option<String>,
    /// The event tables, if some came with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_tables: Option<EventTables>,
    /// The time stamp counter.
    pub tsc: Tsc,
    /// The local APIC.
    pub apic: Apic,
    /// All processors that the machine's tables list, the boot processor first; then those that were started, in the
    /// order of their numbers.
    #[serde(default)]
    pub processors: Vec<ListedProcessor>,
    /// On a hybrid package: each kind of core that there is, with its own PMU and events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindOfCores>,
    /// Usable memory in bytes.
    pub memory_bytes: u64,
    /// Bytes of memory that are not used, because the MTRRs leave them uncached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_uncached_bytes: u64,
    /// Present if ACPI's SRAT table tells of several domains of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_domains: Option<MemoryDomains>,
    /// Serial ports that the report goes to: how each was found, and where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serial: Vec<String>,
    /// Width and height of the screen in pixels, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<[u32; 2]>,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Domains of memory, each of which is near to some processors.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryDomains {
    /// How many there are.
    pub count: u32,
    /// Number of the boot processor's, whose memory is used first.
    pub used: u32,
}

/// A part of the machine whose energy is reported.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergyMeter {
    /// Its name in jobs, as `energy-pkg`.
    pub event: String,
    /// The register.
    pub msr: Hex,
    /// The unit: 14 means 2^-14 J.
    pub unit: u8,
    /// The processor adds random amounts (IA32_MISC_PACKAGE_CTLS\[0\]); absent: it does not, or does not tell.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub filtered: bool,
}

/// One kind of core of a hybrid package.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindOfCores {
    /// Which.
    pub core: CoreKind,
    /// CPUID leaf 0x1A EAX: the core type and the native model's number.
    pub native: Hex,
    /// Numbers of its processors.
    pub processors: Vec<u32>,
    /// The PMU of the first of them; what a trial finds is known of the boot processor's alone at this point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu: Option<Pmu>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu_absent: Option<String>,
    /// The event tables, if some came with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_tables: Option<EventTables>,
}

/// Where the boot processor stands (CPUID leaves 0x1F, 0xB, 0x8000001E or 1).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topology {
    /// Local APIC id.
    pub apic_id: u32,
    /// Logical processors of one core.
    pub threads_per_core: u32,
    /// Logical processors of one package.
    pub threads_per_package: u32,
}

/// Kind of core on a hybrid processor.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CoreType {
    /// Intel Core: a P-core.
    Core,
    /// Intel Atom: an E-core.
    Atom,
    /// A value that this version does not know.
    Other,
}

/// Which programming model a PMU follows.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PmuArchitecture {
    /// Intel architectural performance monitoring.
    Intel,
    /// AMD's legacy, extended or PerfMonV2 counters.
    Amd,
}

/// The performance monitoring unit as enumerated.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pmu {
    /// Whose programming model it follows.
    pub architecture: PmuArchitecture,
    /// Intel: architectural version (CPUID leaf 0xA EAX). AMD: 0 legacy, 1 extended, 2 PerfMonV2.
    pub version: u32,
    /// General-purpose counters of this logical processor.
    pub counters: u32,
    /// Their width in bits.
    pub counter_bits: u32,
    /// Fixed-function counters.
    pub fixed_counters: u32,
    /// Their width in bits.
    pub fixed_counter_bits: u32,
    /// What it offers besides.
    pub features: Vec<String>,
    /// What is known to be wrong with it.
    pub errata: Vec<String>,
    /// Signs that somebody else holds it: the firmware, or a hypervisor.
    pub conflicts: Vec<String>,
    /// What it does otherwise than it announces, as a trial at the start found it: counters that stand still, events that
    /// nothing counts, a freeze that does nothing. None of it is used for measuring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Ticks of the TSC that the trial took.
    #[serde(default)]
    pub trial_ticks: u64,
}

/// What the emulated PMU says of itself (CPUID leaf 0x40000101).
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmulatedPmu {
    /// Number of the processor model that it presents.
    pub model: u32,
    /// The TSC advances by 2 to the power of this with each instruction.
    pub tsc_shift: u32,
    /// Processors that have it: the first ones.
    #[serde(default = "one")]
    pub processors: u32,
    /// Who counts what QEMU's clock does not.
    #[serde(default)]
    pub counted_by: CountedBy,
    /// It presents a recorded processor; the model is the one whose behaviour that has.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub recorded: bool,
}

/// Who counts for the emulated PMU.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The hypervisor, instruction by instruction.
    #[default]
    Stepping,
    /// A plugin in QEMU's translator.
    Plugin,
}

fn one() -> u32 {
    1
}

/// The time stamp counter.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tsc {
    /// Rate in Hz.
    pub hz: u64,
    /// How the rate was found.
    pub source: TscSource,
    /// Whether it ticks at that rate whatever the core clock does (CPUID leaf 0x80000007 EDX bit 8).
    pub invariant: bool,
    /// The rate that CPUID or the hypervisor gives, where a measurement contradicts it; then `hz` is what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_hz: Option<u64>,
}

/// How the rate of the TSC was found.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TscSource {
    /// CPUID leaf 0x15: crystal clock and ratio.
    Cpuid,
    /// CPUID leaf 0x40000010 of the hypervisor.
    Hypervisor,
    /// Measured against the ACPI power management timer.
    AcpiPmTimer,
    /// Measured against the HPET.
    Hpet,
    /// Measured against channel 2 of the 8254.
    Pit,
    /// CPUID leaf 0x16: the base frequency, not measured.
    BaseFrequency,
}

/// The local APIC.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apic {
    /// How its registers are reached.
    pub mode: ApicMode,
    /// Rate of its timer in Hz before the divider, measured against the TSC.
    pub timer_hz: u64,
}

/// How the local APIC's registers are reached.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApicMode {
    /// Through memory.
    XApic,
    /// Through MSRs.
    X2Apic,
}
