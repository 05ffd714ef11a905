//! What this processor's PMU can do: one snapshot, read once and asked everywhere else.

mod amd;
mod branches;
mod fault;
mod intel;

pub use branches::LbrKind;
pub use fault::{Fault, STUCK, Unfrozen, Wrong};

use super::access::{Registers, leaves};
use super::data_source::Words;
use super::errata::{self, Effect, Erratum};
use super::pebs::{Format, Groups, Offer, counters_of};
use super::registers::PerfCapabilities;
use crate::cpu::{CoreType, Identity, Vendor};
use crate::msr::{self, Msr};
use alloc::vec::Vec;
use core::fmt;

/// Whose programming model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Architecture {
    /// Architectural performance monitoring: leaf 0xA.
    Intel,
    /// AMD: legacy counters, extended ones, or PerfMonV2.
    Amd,
}

/// How a PMI can stop the counters by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FreezeKind {
    /// Not at all: the handler has to.
    None,
    /// By clearing the global control (Intel versions 2 and 3; SDM vol. 3, 18.4.7).
    Legacy,
    /// By status bits, which software clears (Intel version 4 and later, and AMD's PerfMonV2).
    Streamlined,
}

/// A counter of the PMU.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Counter {
    /// General-purpose counter.
    General(u8),
    /// Fixed-function counter.
    Fixed(u8),
}

impl Counter {
    /// Its bit in the global registers.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.index()
    }

    /// The number of that bit.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::General(n) => n as usize,
            Self::Fixed(n) => 32 + n as usize,
        }
    }

    /// Whether any code can run without its events: slots lost to bad speculation and to the front end, which the fixed
    /// counters 4 and 5 of Skymont have (SDM vol. 3, fixed-function counters).
    #[must_use]
    pub const fn may_stand_still(self) -> bool {
        matches!(self, Self::Fixed(4 | 5))
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::General(n) => write!(f, "counter {n}"),
            Self::Fixed(n) => write!(f, "fixed counter {n}"),
        }
    }
}

/// The snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Capabilities {
    /// Whose programming model.
    pub architecture: Architecture,
    /// Intel: leaf 0xA EAX 7:0. AMD: 0 legacy, 1 extended, 2 PerfMonV2.
    pub version: u32,
    /// General-purpose counters, as a bitmap.
    pub general: u32,
    /// Their width in bits.
    pub general_bits: u32,
    /// General-purpose counters that can count unhalted cycles, as a bitmap: all, but for AMD's family 15h. None on Zhaoxin's and
    /// VIA's processors, whose codes are not Intel's.
    pub cycles: u32,
    /// Fixed-function counters, as a bitmap.
    pub fixed: u32,
    /// Their width in bits.
    pub fixed_bits: u32,
    /// Intel's architectural events that are available, by their bit in leaf 0xA EBX and 0x23.3 EAX.
    pub events: u32,
    /// IA32_PERF_CAPABILITIES; empty where there is none.
    pub perf: PerfCapabilities,
    /// Whether IA32_PERF_CAPABILITIES exists: leaf 1 ECX\[15\].
    pub pdcm: bool,
    /// The AnyThread bits work.
    pub any_thread: bool,
    /// Unit masks have 16 bits (leaf 0x23).
    pub umask2: bool,
    /// Event selects have the EQ bit (leaf 0x23).
    pub equal: bool,
    /// How a PMI stops the counters.
    pub freeze: FreezeKind,
    /// The branch records.
    pub lbr: LbrKind,
    /// MSR_PERF_METRICS exists.
    pub metrics: bool,
    /// Registers in addition to the counters that events read: offcore response, load latency, front end.
    pub extra: Vec<Msr>,
    /// AMD's instructions-retired counter exists (leaf 0x80000008 EBX\[1\]).
    pub irperf: bool,
    /// AMD's instruction-based sampling: leaf 0x8000001B EAX.
    pub ibs: Option<u32>,
    /// IBS goes off in two writes: erratum 420 of family 10h.
    pub ibs_erratum_420: bool,
    /// Intel's PEBS is there: leaf 1 EDX\[21\] and ECX\[2\], not switched off, and no erratum keeps it from being used.
    pub pebs: bool,
    /// General-purpose counters that the processor's model lets write records into the debug store, as a bitmap.
    pub pebs_model: u32,
    /// Architectural PEBS, where leaf 0x23 has its sub-leaves; in place of the debug store.
    pub architectural_pebs: Option<Offer>,
    /// What records and samples say of data accesses, and how.
    pub memory: Words,
    /// Branch records can be kept as a stack of calls.
    pub call_stacks: bool,
    /// Kind of core, on processors that have leaf 0x1A: counters and events differ by it.
    pub core_type: Option<CoreType>,
    /// What is known to be wrong.
    pub errata: Vec<&'static Erratum>,
    /// The global registers are there, if the version has them.
    pub global: bool,
    /// Counters that cannot interrupt at their overflow, as bits of the global registers.
    pub no_overflow: u64,
    /// What was found to be otherwise than announced: registers that are missing, and what a trial found
    /// ([`super::trial`]). What it names is not among the counters and features above.
    pub faults: Vec<Fault>,
}

/// What the microcode's revision says, which a hypervisor makes up. It is in the upper half after a write of 0 and leaf 1 (SDM vol. 3,
/// 10.11.7.1).
fn of_microcode(registers: &mut dyn Registers, identity: &Identity) -> Option<&'static Erratum> {
    const HYPERVISOR: u32 = 1 << 31;
    let _ = registers.wrmsr(msr::IA32_BIOS_SIGN_ID, 0);
    if registers.cpuid(1, 0).ecx & HYPERVISOR != 0 {
        return None;
    }
    let revision = registers.rdmsr(msr::IA32_BIOS_SIGN_ID).ok()?;
    errata::of_microcode(identity, revision >> 32)
}

impl Capabilities {
    /// Reads the snapshot, CPUID first and then what only a look at a register can tell. `None` if no PMU is
    /// announced. Whether the announced one counts is another question: see [`super::find`].
    pub fn read(registers: &mut dyn Registers) -> Option<Self> {
        let identity = Identity::read(&leaves(registers));
        let mut seen = match identity.vendor {
            Vendor::Amd => amd::read(registers, identity.family),
            _ => intel::read(registers),
        }?;
        seen.core_type = identity.core_type;
        if identity.family == 6 {
            seen.pebs_model = counters_of(identity.model);
        }
        seen.memory = match (identity.vendor, identity.family) {
            (Vendor::Amd, family) => Words::of_amd(family, seen.ibs.unwrap_or(0)),
            (_, 6) => Words::of_intel(identity.model, identity.core_type),
            _ => Words::default(),
        };
        seen.lbr = branches::read(registers, &seen);
        seen.call_stacks = branches::have_call_stacks(registers, seen.lbr);
        seen.errata = errata::of(&identity);
        if !errata::has_transactions(registers) {
            seen.errata.retain(|row| !row.is_of_transactions());
        }
        seen.errata.extend(of_microcode(registers, &identity));
        seen.errata.extend(errata::of_settings(registers, &identity));
        seen.pebs &= !seen.errata.iter().any(|row| row.effect == Effect::Precise);
        Some(seen)
    }

    /// A PMU that can do nothing, to be filled in.
    fn nothing(architecture: Architecture, version: u32) -> Self {
        Self {
            architecture,
            version,
            general: 0,
            general_bits: 0,
            cycles: u32::MAX,
            fixed: 0,
            fixed_bits: 0,
            events: 0,
            perf: PerfCapabilities::empty(),
            pdcm: false,
            any_thread: false,
            umask2: false,
            equal: false,
            freeze: FreezeKind::None,
            lbr: LbrKind::None,
            metrics: false,
            extra: Vec::new(),
            irperf: false,
            ibs: None,
            ibs_erratum_420: false,
            pebs: false,
            pebs_model: u32::MAX,
            architectural_pebs: None,
            memory: Words::default(),
            call_stacks: false,
            core_type: None,
            errata: Vec::new(),
            global: true,
            no_overflow: 0,
            faults: Vec::new(),
        }
    }

    /// Whether `msr` can be read. If not, `lost` says what is given up for it.
    fn there(&mut self, registers: &mut dyn Registers, msr: Msr, lost: &'static str) -> bool {
        let there = registers.rdmsr(msr).is_ok();
        if !there {
            self.faults.push(Fault::Register { msr, lost });
        }
        there
    }

    /// Gives up what needs the global registers, if one of them is missing. The counters are then started and stopped one
    /// by one; a fixed counter has no enable of its own that could do so without touching the others.
    fn lose_global(&mut self, registers: &mut dyn Registers, global: [Msr; 2]) {
        if self.version < 2 {
            return;
        }
        let lost = "counters are started one by one, and fixed counters are not used";
        let all = global.into_iter().all(|msr| self.there(registers, msr, lost));
        if !all {
            self.global = false;
            (self.fixed, self.freeze) = (0, FreezeKind::None);
        }
    }

    /// Whether there are a global control and a global status.
    #[must_use]
    pub fn has_global(&self) -> bool {
        self.version >= 2 && self.global
    }

    /// Architectural events of which Intel's codes hold on general-purpose counters, available or not: all on Intel's processors,
    /// and instructions alone on Zhaoxin's and VIA's.
    #[must_use]
    pub fn coded(&self) -> u32 {
        if self.cycles == 0 { intel::INSTRUCTIONS } else { u32::MAX }
    }

    /// Intel's full-width writes.
    #[must_use]
    pub fn full_width(&self) -> bool {
        self.perf.contains(PerfCapabilities::FULL_WIDTH_WRITES)
    }

    /// The format of PEBS records, where there is PEBS that can be used.
    #[must_use]
    pub fn pebs_format(&self) -> Option<Format> {
        match self.architectural_pebs {
            Some(_) => Some(Format::Architectural),
            None => Format::of(self.perf),
        }
        .filter(|_| self.pebs)
    }

    /// Whether PEBS records state the retire latency; architectural ones say it of each.
    #[must_use]
    pub fn states_retirement(&self) -> bool {
        let timing = self.perf.contains(PerfCapabilities::PEBS_TIMING);
        match self.pebs_format() {
            Some(Format::Architectural) => true,
            format => timing && format.is_some_and(Format::is_adaptive),
        }
    }

    /// The general-purpose counters that can write PEBS records, as a bitmap.
    #[must_use]
    pub fn pebs_counters(&self) -> u32 {
        match (self.pebs_format(), self.architectural_pebs) {
            (None, _) => 0,
            (Some(_), Some(offered)) => offered.general & self.general,
            (Some(format), None) => format.counters(self.general) & self.pebs_model,
        }
    }

    /// The fixed counters that can write PEBS records, as a bitmap.
    #[must_use]
    pub fn pebs_fixed(&self) -> u32 {
        match (self.pebs_format(), self.architectural_pebs) {
            (None, _) => 0,
            (Some(_), Some(offered)) => offered.fixed & self.fixed,
            (Some(format), None) => format.fixed_counters(self.fixed),
        }
    }

    /// Whether PEBS records consist of groups that MSR_PEBS_DATA_CFG chooses.
    #[must_use]
    pub fn has_adaptive_records(&self) -> bool {
        self.pebs_format().is_some_and(Format::is_adaptive)
    }

    /// The groups that PEBS records can have in addition to the basic one; none before format 4.
    #[must_use]
    pub fn record_groups(&self) -> Groups {
        match (self.pebs_format(), self.architectural_pebs) {
            (None, _) => Groups::empty(),
            (Some(_), Some(offered)) => offered.groups(),
            (Some(format), None) => format.groups(),
        }
    }

    /// Whether this is Intel's.
    #[must_use]
    pub fn is_intel(&self) -> bool {
        self.architecture == Architecture::Intel
    }

    /// Whether the counter is there.
    #[must_use]
    pub fn has(&self, counter: Counter) -> bool {
        match counter {
            Counter::General(n) => n < 32 && self.general & 1 << n != 0,
            Counter::Fixed(n) => n < 16 && self.fixed & 1 << n != 0,
        }
    }

    /// The general-purpose counters, in order.
    pub fn generals(&self) -> impl Iterator<Item = Counter> + use<> {
        let bitmap = self.general;
        (0..32).filter(move |n| bitmap & 1 << n != 0).map(Counter::General)
    }

    /// The fixed-function counters, in order.
    pub fn fixeds(&self) -> impl Iterator<Item = Counter> + use<> {
        let bitmap = self.fixed;
        (0..16).filter(move |n| bitmap & 1 << n != 0).map(Counter::Fixed)
    }

    /// The fixed-function counters whose events any code raises, in order.
    pub fn certain_fixeds(&self) -> impl Iterator<Item = Counter> + use<> {
        self.fixeds().filter(|counter| !counter.may_stand_still())
    }

    /// All counters.
    pub fn counters(&self) -> impl Iterator<Item = Counter> + use<> {
        self.generals().chain(self.fixeds())
    }

    /// Width of a counter in bits.
    #[must_use]
    pub fn bits(&self, counter: Counter) -> u32 {
        match counter {
            Counter::General(_) => self.general_bits,
            Counter::Fixed(_) => self.fixed_bits,
        }
    }

    /// The greatest value of a counter.
    #[must_use]
    pub fn mask(&self, counter: Counter) -> u64 {
        u64::MAX >> (64 - self.bits(counter).clamp(1, 64))
    }

    /// Whether the counter can interrupt at its overflow.
    #[must_use]
    pub fn overflows(&self, counter: Counter) -> bool {
        self.no_overflow & counter.bit() == 0
    }

    /// Whether bits of the status cannot be cleared: a streamlined freeze would never end.
    #[must_use]
    pub fn has_stuck_status(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Overflow { why: fault::STUCK, .. }))
    }

    /// Why a counter that is announced is not among the counters, if a fault is the reason.
    #[must_use]
    pub fn given_up(&self, counter: Counter) -> Option<&Fault> {
        self.faults
            .iter()
            .find(|fault| matches!(fault, Fault::Counter { counter: one, .. } if *one == counter))
    }

    /// Bits of the global registers that belong to counters.
    #[must_use]
    pub fn counter_bits(&self) -> u64 {
        u64::from(self.fixed) << 32 | u64::from(self.general)
    }

    /// What is offered in addition to counters, in words, for the report.
    #[must_use]
    pub fn features(&self) -> Vec<&'static str> {
        let list = [
            (self.has_global(), "global control"),
            (self.full_width(), "full-width writes"),
            (self.any_thread, "AnyThread"),
            (self.umask2, "UMASK2"),
            (self.equal, "EQ"),
            (self.freeze == FreezeKind::Legacy, "freeze on PMI (legacy)"),
            (self.freeze == FreezeKind::Streamlined, "freeze on PMI (streamlined)"),
            (self.perf.contains(PerfCapabilities::FREEZE_WHILE_SMM), "freeze while in SMM"),
            (self.metrics, "PERF_METRICS"),
            (matches!(self.lbr, LbrKind::Legacy { .. }), "legacy LBR"),
            (matches!(self.lbr, LbrKind::Architectural { .. }), "architectural LBR"),
            (matches!(self.lbr, LbrKind::AmdV2 { .. }), "LBRv2"),
            (self.irperf, "instructions-retired counter"),
            (self.pebs_format().is_some_and(|format| !format.has_groups()), "PEBS"),
            (self.has_adaptive_records(), "PEBS (adaptive)"),
            (self.pebs && self.architectural_pebs.is_some(), "PEBS (architectural)"),
            (self.pebs && self.pebs_format().is_none(), "PEBS (of a format that is not used)"),
            (self.ibs.is_some(), "IBS"),
        ];
        list.iter().filter(|(on, _)| *on).map(|&(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests;
