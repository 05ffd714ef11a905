//! The identity of the machine in the report's form.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::apic::Mode;
use arch::cpu::{self, Hypervisor, Identity};
use arch::pmu::energy::{Energy, NoEnergy};
use arch::pmu::{Architecture, Capabilities, Counter, Emulated, Fault, Missing, Ownership};
use arch::time::{Clock, Source};
use protocol::core_kind::CoreKind;
use protocol::hex::Hex;
use protocol::record::{
    Apic, ApicMode, CoreType, CountedBy, EmulatedPmu, EventTables, KindOfCores, ListedProcessor,
    Machine, MemoryDomains, Pmu, PmuArchitecture, Topology, Tsc, TscSource,
};

/// What the firmware found out about the machine.
pub struct Facts<'a> {
    /// From CPUID.
    pub identity: &'a Identity,
    /// Revision of the microcode.
    pub microcode: Option<u64>,
    /// The PMU, or why there is none.
    pub pmu: Result<&'a Capabilities, Missing>,
    /// Ticks that trying it took.
    pub trial_ticks: u64,
    /// What it tells of its energy, or why it tells nothing.
    pub energy: Result<Energy, NoEnergy>,
    /// How the PMU was found.
    pub ownership: &'a Ownership,
    /// What ends a snippet that does not end by itself, or why there is nothing.
    pub watchdog: Result<&'static str, &'static str>,
    /// What resets the machine if an item hangs it.
    pub resets: Option<&'static str>,
    /// What the emulated PMU says of itself, if it is one.
    pub emulated: Option<Emulated>,
    /// The hypervisor beneath.
    pub hypervisor: Option<Hypervisor>,
    /// The event tables, if some came with the job.
    pub event_tables: Option<EventTables>,
    /// The TSC.
    pub clock: Clock,
    /// Mode of the local APIC.
    pub apic_mode: Mode,
    /// Rate of its timer in Hz.
    pub apic_timer_hz: u64,
    /// All processors, the boot processor first.
    pub processors: Vec<ListedProcessor>,
    /// The kinds of core of a hybrid package.
    pub kinds: Vec<KindOfCores>,
    /// Usable memory in bytes.
    pub memory_bytes: u64,
    /// Memory that is left alone, because it would not be cached.
    pub memory_uncached_bytes: u64,
    /// The domains of memory, if there are several.
    pub memory_domains: Option<MemoryDomains>,
    /// Serial ports that the report goes to.
    pub serial: Vec<String>,
    /// Width and height of the screen in pixels.
    pub screen: Option<[u32; 2]>,
}

/// The machine record.
#[must_use]
pub fn record(facts: &Facts) -> Machine {
    let identity = facts.identity;
    Machine {
        vendor: identity.vendor_text.clone(),
        brand: identity.brand.clone(),
        family: identity.family,
        model: identity.model,
        stepping: identity.stepping,
        microcode: facts.microcode.map(Hex),
        hypervisor: identity.hypervisor.clone(),
        topology: Topology {
            apic_id: identity.topology.apic_id,
            threads_per_core: identity.topology.threads_per_core,
            threads_per_package: identity.topology.threads_per_package,
        },
        core_type: identity.core_type.map(core_type),
        pmu: facts.pmu.ok().map(|has| pmu(has, facts.ownership, facts.trial_ticks)),
        pmu_absent: facts.pmu.err().map(|missing| missing.to_string()),
        energy: facts.energy.as_ref().map_or_else(|_| Vec::new(), crate::energy::meters),
        energy_absent: facts.energy.err().map(|none| none.to_string()),
        watchdog: facts.watchdog.ok().map(ToString::to_string),
        watchdog_absent: facts.watchdog.err().map(ToString::to_string),
        watchdog_resets: facts.resets.map(ToString::to_string),
        emulated_pmu: facts.emulated.map(|seen| EmulatedPmu {
            model: seen.model,
            tsc_shift: seen.tsc_shift,
            processors: seen.processors,
            counted_by: if seen.plugin { CountedBy::Plugin } else { CountedBy::Stepping },
            recorded: seen.recorded,
        }),
        virtual_pmu: virtual_pmu(facts),
        event_tables: facts.event_tables.clone(),
        tsc: Tsc {
            hz: facts.clock.hz,
            source: source(facts.clock.source),
            invariant: facts.clock.invariant,
            told_hz: facts.clock.told_hz,
        },
        apic: Apic {
            mode: match facts.apic_mode {
                Mode::XApic => ApicMode::XApic,
                Mode::X2Apic => ApicMode::X2Apic,
            },
            timer_hz: facts.apic_timer_hz,
        },
        processors: facts.processors.clone(),
        kinds: facts.kinds.clone(),
        memory_bytes: facts.memory_bytes,
        memory_uncached_bytes: facts.memory_uncached_bytes,
        memory_domains: facts.memory_domains,
        serial: facts.serial.clone(),
        screen: facts.screen,
    }
}

/// What a processor tells of the kind of its core.
#[derive(Clone, Debug)]
pub struct OwnKind {
    /// The kind.
    pub core: CoreKind,
    /// Leaf 0x1A EAX.
    pub native: u32,
    /// Its PMU, or why it has none.
    pub pmu: Result<Capabilities, Missing>,
    /// Its event tables.
    pub event_tables: Option<EventTables>,
}

/// The kinds of core, if there are several: each with what the first of its processors tells. `told`: by the processor's number.
#[must_use]
pub fn kinds(told: &[(u32, Option<OwnKind>)]) -> Vec<KindOfCores> {
    let mut all: Vec<KindOfCores> = Vec::new();
    for &(number, ref own) in told {
        let Some(own) = own else { continue };
        if let Some(known) = all.iter_mut().find(|known| known.core == own.core) {
            known.processors.push(number);
            continue;
        }
        let has = own.pmu.as_ref();
        all.push(KindOfCores {
            core: own.core,
            native: Hex(own.native.into()),
            processors: Vec::from([number]),
            pmu: has.ok().map(|has| pmu(has, &Ownership::default(), 0)),
            pmu_absent: has.err().map(ToString::to_string),
            event_tables: own.event_tables.clone(),
        });
    }
    if all.len() < 2 { Vec::new() } else { all }
}

/// Whose virtual PMU it is, if it is one.
fn virtual_pmu(facts: &Facts) -> Option<String> {
    let beneath = facts.hypervisor.filter(|_| facts.pmu.is_ok() && facts.emulated.is_none());
    beneath.map(|hypervisor| hypervisor.name().to_string())
}

/// The machine in a few lines for the screen, the most important ones first.
#[must_use]
pub fn lines(machine: &Machine) -> Vec<String> {
    let below = machine.hypervisor.as_deref().map(|name| format!(", under {name}"));
    let pmu = match (&machine.pmu, &machine.pmu_absent) {
        (Some(pmu), _) => format!(
            "PMU version {}: {} counters of {} bits, {} fixed",
            pmu.version, pmu.counters, pmu.counter_bits, pmu.fixed_counters
        ),
        (None, reason) => format!("no PMU: {}", reason.as_deref().unwrap_or("unknown")),
    };
    let told = machine.tsc.told_hz.map(|hz| format!(" measured (told: {} kHz)", hz / 1000));
    let microcode = machine.microcode.map(|revision| format!(" microcode {revision}"));
    Vec::from([
        format!("{}{}", machine.brand, below.unwrap_or_default()),
        pmu,
        format!("trust: {}", trust(machine)),
        format!(
            "{} family {:#x} model {:#x} stepping {}{}",
            machine.vendor,
            machine.family,
            machine.model,
            machine.stepping,
            microcode.unwrap_or_default()
        ),
        format!(
            "TSC {} kHz{}, {} processors, {} MiB of memory",
            machine.tsc.hz / 1000,
            told.unwrap_or_default(),
            machine.processors.len(),
            machine.memory_bytes >> 20
        ),
    ])
}

/// How far counts can be trusted, in a few words; the report has it in full.
fn trust(machine: &Machine) -> String {
    let Some(pmu) = &machine.pmu else {
        return "TSC ticks alone, no event is counted".to_string();
    };
    let whose = match (&machine.emulated_pmu, &machine.virtual_pmu) {
        (Some(_), _) => "exact counts of an emulated PMU".to_string(),
        (None, Some(whose)) => format!("the virtual PMU of {whose}, which it may interrupt"),
        (None, None) => "this processor's own PMU".to_string(),
    };
    let said = [
        (pmu.faults.len(), "faults avoided"),
        (pmu.errata.len(), "errata"),
        (pmu.conflicts.len(), "signs of another user"),
    ];
    let said = said.iter().filter(|(count, _)| *count > 0);
    said.fold(whose, |text, (count, what)| format!("{text}; {count} {what}"))
}

fn core_type(kind: cpu::CoreType) -> CoreType {
    match kind {
        cpu::CoreType::Core => CoreType::Core,
        cpu::CoreType::Atom => CoreType::Atom,
        cpu::CoreType::Other(_) => CoreType::Other,
    }
}

fn source(source: Source) -> TscSource {
    match source {
        Source::Cpuid => TscSource::Cpuid,
        Source::Hypervisor => TscSource::Hypervisor,
        Source::AcpiPmTimer => TscSource::AcpiPmTimer,
        Source::Hpet => TscSource::Hpet,
        Source::Pit => TscSource::Pit,
        Source::BaseFrequency => TscSource::BaseFrequency,
    }
}

/// `has`: what can be used. The counters are those that were announced, faulty ones included.
fn pmu(has: &Capabilities, ownership: &Ownership, trial_ticks: u64) -> Pmu {
    let given_up = |general: bool| {
        let counter = |fault: &&Fault| match fault {
            Fault::Counter { counter, .. } => matches!(counter, Counter::General(_)) == general,
            _ => false,
        };
        has.faults.iter().filter(counter).count() as u32
    };
    Pmu {
        architecture: match has.architecture {
            Architecture::Intel => PmuArchitecture::Intel,
            Architecture::Amd => PmuArchitecture::Amd,
        },
        version: has.version,
        counters: has.general.count_ones() + given_up(true),
        counter_bits: has.general_bits,
        fixed_counters: has.fixed.count_ones() + given_up(false),
        fixed_counter_bits: has.fixed_bits,
        features: has.features().into_iter().map(ToString::to_string).collect(),
        errata: has.errata.iter().map(|row| alloc::format!("{}: {}", row.id, row.text)).collect(),
        conflicts: ownership.conflicts.iter().map(ToString::to_string).collect(),
        faults: has.faults.iter().map(ToString::to_string).collect(),
        trial_ticks,
    }
}
