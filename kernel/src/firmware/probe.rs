//! Finding out what the machine is.

use super::boot::Handed;
use super::bring_up;
use super::display::Display;
use super::output::Line;
use super::{processors, reset};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::acpi::Platform;
use arch::acpi::processors::State;
use arch::apic::{self, Apic, Mode, Register};
use arch::cpu::{Hypervisor, Identity, Vendor, features, identity, limit, native};
use arch::interrupts;
use arch::memory::Space;
use arch::pci;
use arch::pmu::energy::{Energy, NoEnergy};
use arch::pmu::uncore::Uncore;
use arch::pmu::{self, Capabilities, Driver, Emulated, Missing, Ownership};
use arch::smp;
use arch::time::{Clock, tsc};
use arch::watchdog::Watchdog;
use arch::watchdog::second::Guard;
use kernel::events::{self, Known, Names};
use kernel::machine::{self, Facts};
use kernel::processors::kind;
use kernel::report::Report;
use kernel::screen::Ways;
use protocol::core_kind::CoreKind;
use protocol::record::{ErrorCode, ErrorRecord, MemoryDomains, Record};

/// The machine, made ready.
pub struct Machine {
    /// Rate of the TSC.
    pub clock: Clock,
    /// Rate of the local APIC's timer, in Hz; 0: it does not count.
    pub apic_timer_hz: u64,
    /// ACPI's facts.
    pub platform: Platform,
    /// Each processor in use by its number, and the kind of its core.
    pub kinds: Vec<(u16, Option<CoreKind>)>,
    /// Components of the extended state that are switched on.
    pub extended: u64,
    /// The screen.
    pub display: Option<spin::Mutex<Display>>,
    /// Lines about the machine, for the screen.
    pub lines: Vec<String>,
    /// The PMU as far as it can be relied on, or why there is none.
    pub pmu: Result<Capabilities, Missing>,
    /// The PMU as it is announced: what the conformance suite is about.
    pub announced: Result<Capabilities, Missing>,
    /// What it tells of its energy, or why it tells nothing.
    pub energy: Result<Energy, NoEnergy>,
    /// What events are resolved with, if there is a PMU.
    pub known: Option<Known<'static>>,
    /// What came with the kernel: the other processors' tables of events are looked up in it.
    pub ramdisk: Option<&'static [u8]>,
    /// How the PMU was found.
    pub ownership: Ownership,
    /// What its registers held before anybody wrote to them, if that was asked for.
    pub found: Option<bring_up::Read>,
    /// What the emulated PMU says of itself, if it is one.
    pub emulated: Option<Emulated>,
    /// The hypervisor beneath, if there is one.
    pub hypervisor: Option<Hypervisor>,
    /// The maker.
    pub vendor: Vendor,
    /// What ends snippets that do not end themselves, or why there is nothing.
    pub watchdog: Result<&'static str, &'static str>,
    /// Another processor that does so.
    pub guard: Option<Guard>,
    /// How the report leaves the machine.
    pub ways: Ways,
    /// LVTPC as it was found.
    performance_lvt: Option<u32>,
}

impl Machine {
    /// Whether one processor may run at a time: QEMU's translator does so where its clock counts instructions.
    #[must_use]
    pub fn runs_in_turn(&self) -> bool {
        self.emulated.is_some() || self.hypervisor == Some(Hypervisor::Tcg)
    }

    /// Gives the PMU back as it was found.
    pub fn release(&self) {
        // SAFETY: ring 0, interrupt table loaded; nothing counts any more. A PMI that the firmware of the machine
        // had armed is its own to handle.
        let mut registers = unsafe { pmu::Machine::new() };
        self.ownership.restore(&mut registers);
        if let Some(lvt) = self.performance_lvt {
            apic::write(Register::LvtPmc, lvt);
        }
    }
}

/// Switches the machine's features on, finds out what it is, and reports it.
///
/// `keeps_found`: what the machine's firmware left in the PMU's registers is read first, and kept.
pub fn machine(
    handed: &mut Handed,
    space: &mut Space,
    report: &mut Report<Line>,
    keeps_found: bool,
) -> Machine {
    let cpuid = native();
    // SAFETY: ring 0, interrupt table loaded.
    unsafe { limit::lift() };
    let identity = Identity::read(&cpuid);
    let hypervisor = Hypervisor::detect(&cpuid);
    // SAFETY: ring 0 on the boot processor, interrupt table loaded, nothing measured yet, no page mapped
    // write-through but the screen, whose PAT entry this sets.
    let extended = unsafe { features::enable(&identity) };
    Display::step("reads ACPI's tables");
    // SAFETY: the boot loader found the root pointer; physical memory is mapped.
    let platform = handed.rsdp.map_or(Platform::default(), |rsdp| unsafe { Platform::read(rsdp) });
    Display::step("opens serial lines");
    for refused in report.sink_mut().widen(&platform, &handed.mapped) {
        report.send(&device_error(&refused));
    }
    Display::step("measures the rate of the TSC");
    // SAFETY: ring 0, physical memory is mapped, and the 8254 and the HPET are ours.
    let clock = unsafe { Clock::find(&cpuid, platform.pm_timer, platform.hpet()) };
    let clock = clock.unwrap_or_else(|| panic!("no timer to measure the TSC against"));
    Display::step("enables the local APIC");
    // SAFETY: ring 0, interrupt table loaded, physical memory mapped, interrupts off.
    let apic = unsafe { interrupts::enable_apic(platform.keeps_xapic()) };
    let performance_lvt = apic.as_ref().ok().map(Apic::found_performance_lvt);
    let (apic_mode, apic_timer_hz) = match apic {
        Ok(mut apic) => (apic.mode(), apic::timer_hz(&mut apic, &clock)),
        Err(error) => {
            report.send(&device_error(&error.to_string()));
            (Mode::XApic, 0)
        }
    };
    // SAFETY: interrupt table loaded, ring 0; nobody else uses the PMU.
    let mut registers = unsafe { pmu::Machine::new() };
    if Uncore::find(&registers).is_ok_and(|uncore| uncore.is_in_devices()) {
        open_devices(&platform, handed, space, report);
    }
    Display::step("starts the other processors");
    let mut processors = processors::start(&platform, &identity, &clock, handed, space);
    Display::step("looks for a PMU, and tries it");
    let amd = identity.vendor == Vendor::Amd;
    let found = keeps_found.then(|| bring_up::registers(amd));
    let announced = pmu::find(&mut registers);
    let ownership = announced
        .as_ref()
        .map_or_else(|_| Ownership::default(), |has| Ownership::claim(&mut registers, has));
    let mut emulated = Emulated::detect(&registers).filter(|_| announced.is_ok());
    if let Some(emulated) = &mut emulated {
        processors::under(emulated, &mut processors);
    }
    let energy = Energy::probe(&mut registers);
    let (begin, mut pmu) = (tsc::now(), announced.clone());
    pmu = pmu.and_then(|has| pmu::trial::run(&has, &mut registers));
    let trial_ticks = tsc::now() - begin;
    Display::step("tries the watchdog");
    // The emulated PMU's clock counts the instructions of all processors together.
    // SAFETY: the boot processor, everything is set up, and nobody uses the other processors' timers.
    let guard = emulated.is_none().then(|| unsafe { Guard::find(&clock, apic_timer_hz) }).flatten();
    let watchdog = watchdog(&pmu, &mut registers);
    let watchdog = match (watchdog, guard) {
        (Ok(_), Some(_)) => Ok("counter NMI; NMI by another processor"),
        (Err(_), Some(_)) => Ok("NMI by another processor"),
        (by_counter, None) => by_counter,
    };
    let names = handed.ramdisk.and_then(|ramdisk| events::open(ramdisk, &identity, &cpuid));
    let told = kinds(handed.ramdisk);
    let facts = Facts {
        identity: &identity,
        // SAFETY: interrupt table loaded, ring 0.
        microcode: unsafe { identity::microcode(identity.vendor) },
        pmu: pmu.as_ref().map_err(|missing| *missing),
        trial_ticks,
        energy,
        ownership: &ownership,
        watchdog,
        resets: reset::open(&platform),
        emulated,
        hypervisor,
        event_tables: names.as_ref().map(|names| names.record.clone()),
        clock,
        apic_mode,
        apic_timer_hz,
        processors,
        kinds: machine::kinds(&told),
        memory_bytes: handed.frames.total_bytes(),
        memory_uncached_bytes: handed.uncached_bytes,
        memory_domains: handed
            .near
            .map(|near| MemoryDomains { count: near.domains, used: near.domain }),
        serial: report.sink_mut().names(),
        screen: handed.screen.map(|(_, info)| [info.width as u32, info.height as u32]),
    };
    let record = machine::record(&facts);
    let lines = kernel::machine::lines(&record);
    report.send(&Record::Machine(record));
    if let Some(Names { error: Some(error), .. }) = &names {
        report.send(&Record::Error(error.clone()));
    }
    let core = names.and_then(|names| names.core);
    let known = pmu.as_ref().ok().map(|has| Known::new(has, core, &mut registers));
    let display = Display::open(handed).map(spin::Mutex::new);
    Machine {
        clock,
        apic_timer_hz,
        platform,
        kinds: told
            .iter()
            .map(|(number, own)| (*number as u16, own.as_ref().map(|own| own.core)))
            .collect(),
        extended,
        display,
        lines,
        pmu,
        announced,
        energy,
        known,
        ramdisk: handed.ramdisk,
        ownership,
        found,
        emulated,
        hypervisor,
        vendor: identity.vendor,
        watchdog,
        guard,
        ways: report.sink_mut().ways(),
        performance_lvt,
    }
}

/// Lets a counter overflow, to see whether its NMI comes.
fn watchdog(
    pmu: &Result<Capabilities, Missing>,
    registers: &mut pmu::Machine,
) -> Result<&'static str, &'static str> {
    let mut driver = Driver::new(pmu.as_ref().map_err(|_| "there is no PMU")?.clone());
    driver.reset(registers).map_err(|_| "the PMU's registers refuse to be reset")?;
    let dog = Watchdog::program(&mut driver, registers, 1 << 20);
    let dog = dog.ok_or("no counter can be set to overflow")?;
    // SAFETY: just programmed; ring 0, interrupt table loaded. Without an APIC nothing comes.
    let works = unsafe { dog.works() };
    let _ = driver.reset(registers);
    if works { Ok("counter NMI") } else { Err("the NMI of a counter's overflow did not come") }
}

/// What each processor in use tells of the kind of its core, with its number.
fn kinds(ramdisk: Option<&'static [u8]>) -> Vec<(u32, Option<machine::OwnKind>)> {
    // Of one alone nothing but the kind is wanted.
    let several = smp::count() > 1;
    let own = |_| {
        let cpuid = native();
        let core = kind::of(&cpuid)?;
        // SAFETY: ring 0, interrupt table loaded; nobody else uses the PMU.
        let mut registers = unsafe { pmu::Machine::new() };
        let names = ramdisk
            .filter(|_| several)
            .and_then(|ramdisk| events::open(ramdisk, &Identity::read(&cpuid), &cpuid));
        Some(machine::OwnKind {
            core,
            native: kind::native(&cpuid),
            pmu: if several { pmu::find(&mut registers) } else { Err(Missing::NotAnnounced) },
            event_tables: names.map(|names| names.record),
        })
    };
    let own = smp::on_all(own).unwrap_or_default();
    smp::in_use().map(|one| one.index() as u32).zip(own).collect()
}

/// Makes registers of PCI functions and of memory reachable. Without that what is there is not counted, with the reason.
fn open_devices(
    platform: &Platform,
    handed: &mut Handed,
    space: &mut Space,
    report: &mut Report<Line>,
) {
    let usable = platform.processors.iter().filter(|one| one.state == State::Enabled);
    let apic_ids = usable.map(|one| one.apic_id).collect();
    // SAFETY: ring 0, and the space in use, which stays.
    let opened = unsafe {
        pci::native::open(space, &mut handed.frames, platform.segments.clone(), apic_ids)
    };
    if let Err(error) = opened {
        report.send(&device_error(&format!("PCI functions: {error}")));
    }
}

fn device_error(text: &str) -> Record {
    Record::Error(ErrorRecord {
        code: ErrorCode::Device,
        item: None,
        name: None,
        text: text.into(),
        fault: None,
        restored: Vec::new(),
        more: false,
    })
}
