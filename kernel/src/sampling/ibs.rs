//! Sampling with AMD's instruction-based sampling: which requests it can serve, and what its samples come to.
//!
//! A unit counts cycles, dispatched operations or fetches, in every ring, and samples one of each period. It cannot be read
//! like a counter: so one is programmed beside it that counts the same, or what comes nearest, and the samples stand under
//! that counter's number.

use super::{Armed, Pmu, Sampler};
use crate::events::Known;
use alloc::format;
use alloc::string::{String, ToString};
use arch::pmu::ibs::{Features, LvtOffset, Period, PeriodError, Unit};
use arch::pmu::pmi::{ControlBlock, Filter, Sampling};
use arch::pmu::{Capabilities, Driver, PmuError, Registers};
use events::encode::{Counters, encode};
use events::parse::parse_list;
use events::request::{Base, Request};
use protocol::job::sampling::{Delivery, Sampling as Item};

/// Why a second event has none.
pub(super) const ONE: &str = "one instruction-based sample at a time is taken";

/// What one event of a job asks of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IbsEvent {
    /// What is sampled.
    pub unit: Unit,
    /// Operations are counted, not cycles.
    pub operations: bool,
    /// Which samples are kept; `None`: all.
    pub filter: Option<Filter>,
    /// Periods are random, from this seed.
    pub random: Option<u32>,
}

/// Why another event has no random periods.
pub(super) const FIXED: &str = "randomise is for instruction-based sampling (IBS): a counter, and PEBS, start each period from one value";
/// Where random periods start from on an emulated PMU.
pub(super) const SEED: u32 = 0x1b5;

/// Shortest period. An interrupt that finds its sample taken already is counted in full, as is the way from the scheduler to a task:
/// each has more than a hundred instructions, and with a period that fits into it the machine would do nothing else.
pub(super) const MIN_PERIOD: u64 = 256;

/// Cycles not halted, operations and instructions retired: AMD's PMCx076, PMCx0C1 and PMCx0C0 on every processor.
const CYCLES: u16 = 0x76;
const OPERATIONS: u16 = 0xc1;

impl IbsEvent {
    const CYCLES: Self = Self { unit: Unit::Op, operations: false, filter: None, random: None };
    const OPERATIONS: Self = Self { unit: Unit::Op, operations: true, filter: None, random: None };
    const FETCHES: Self = Self { unit: Unit::Fetch, operations: false, filter: None, random: None };

    /// Operations of which some are kept, by operations where those can be counted; `None`: there are none.
    pub(super) fn of_operations(filter: Filter, has: &Capabilities) -> Option<Self> {
        let features = features(has).filter(|has| has.contains(Features::OP))?;
        let operations = features.contains(Features::COUNTS_OPS);
        Some(Self { unit: Unit::Op, operations, filter: Some(filter), random: None })
    }

    /// The control register's part of it.
    fn period(self, length: u64, has: Features) -> Result<Period, PeriodError> {
        let period = Period::new(self.unit, self.operations, length, has)?;
        if self.random.is_some() { period.randomised(has) } else { Ok(period) }
    }

    /// The text of an event that counts the same beside it; of fetches nothing does, and instructions come nearest. Nobody
    /// writes it with so many zeros, so it is told from an event of the job.
    pub(super) const fn beside(self) -> &'static str {
        match (self.unit, self.operations) {
            (Unit::Op, false) => "r000000076",
            (Unit::Op, true) => "r0000000c1",
            (Unit::Fetch, _) => "r0000000c0",
        }
    }

    /// Its name in reports: perf's.
    fn name(self) -> &'static str {
        match (self.unit, self.operations) {
            (Unit::Op, false) => "ibs_op, by cycles",
            (Unit::Op, true) => "ibs_op, by operations",
            (Unit::Fetch, _) => "ibs_fetch",
        }
    }

    /// As perf names them.
    fn named(text: &str) -> Option<Self> {
        match text {
            "ibs_op" => Some(Self::CYCLES),
            "ibs_fetch" => Some(Self::FETCHES),
            _ => None,
        }
    }
}

/// Whether an event is to be sampled this way: it names a unit, or asks for precision on an AMD processor. `precise`: the item
/// asks for it.
///
/// # Errors
/// It asks for it and cannot have it: why.
pub(super) fn requested(
    text: &str,
    precise: bool,
    known: &Known,
    has: &Capabilities,
) -> Option<Result<IbsEvent, String>> {
    let named = IbsEvent::named(text.trim());
    if has.is_intel() {
        let reason = "instruction-based sampling is AMD's; on Intel `precise` samples by PEBS";
        return named.map(|_| Err(reason.to_string()));
    }
    let asked = match named {
        Some(event) => Ok(event),
        None => {
            let requests = parse_list(text).ok()?.into_iter().flat_map(|item| item.requests);
            let mut requests: alloc::vec::Vec<Request> = requests.collect();
            let wants = |one: &Request| {
                precise || one.attributes.precise.unwrap_or(0) > 0 || asks_in_its_name(one)
            };
            if !requests.iter().any(wants) {
                return None;
            }
            match &mut requests[..] {
                [one] => equivalent(one, known),
                _ => Err("instruction-based sampling takes one event of each text".to_string()),
            }
        }
    };
    Some(asked.and_then(|event| offered(event, has)))
}

/// `p` to `ppp`.
fn is_precise(word: &str) -> bool {
    (1..=3).contains(&word.len()) && word.bytes().all(|byte| byte == b'p')
}

/// Whether one of the words after the name asks for precision: only the processor's table could tell them from unit masks.
fn asks_in_its_name(request: &Request) -> bool {
    match &request.base {
        Base::Name(parts) => parts.iter().skip(1).any(|part| is_precise(&part.text)),
        _ => false,
    }
}

/// The unit that counts what an event counts.
fn equivalent(request: &mut Request, known: &Known) -> Result<IbsEvent, String> {
    request.attributes.precise = None;
    if let Base::Name(parts) = &mut request.base {
        parts.retain(|part| !is_precise(&part.text));
    }
    let encoded = encode(request, &known.processor, known.core.as_ref());
    let encoded = encoded.map_err(|error| error.reason.to_string())?;
    let code = encoded.choices.iter().find_map(|choice| match &choice.counters {
        Counters::General { select, .. } if select.cmask == 0 && !select.edge => {
            Some((select.event, select.wide_umask(), select.user && select.kernel))
        }
        _ => None,
    });
    match code {
        Some((CYCLES | OPERATIONS, 0, false)) => {
            Err("IBS counts in every ring: it cannot be told one".to_string())
        }
        Some((CYCLES, 0, _)) => Ok(IbsEvent::CYCLES),
        Some((OPERATIONS, 0, _)) => Ok(IbsEvent::OPERATIONS),
        _ => Err(format!(
            "IBS samples by cycles (`cycles`, event 0x76) or by operations (event 0xc1), not by `{}`",
            request.text
        )),
    }
}

fn offered(event: IbsEvent, has: &Capabilities) -> Result<IbsEvent, String> {
    let Some(features) = features(has) else {
        return Err(
            "this processor has no instruction-based sampling (CPUID 0x80000001 ECX[10])".into()
        );
    };
    // 64 is a period that any unit has.
    let any = Period::new(event.unit, event.operations, 64, features);
    any.map(|_| event).map_err(|error| error.to_string())
}

fn features(has: &Capabilities) -> Option<Features> {
    has.ibs.map(Features::announced)
}

/// Whether it can be sampled so.
///
/// # Errors
/// Why not.
pub(super) fn possible(pmu: &mut Pmu, event: IbsEvent, length: u64) -> Result<u8, String> {
    let has = pmu.driver.capabilities();
    let features = features(has).ok_or("there is no instruction-based sampling")?;
    if length < MIN_PERIOD {
        return Err(format!(
            "a period of {length} is too short: IBS counts ring 0 as well, and interrupts would fill it; at least {MIN_PERIOD} are needed"
        ));
    }
    event.period(length, features).map_err(|error| error.to_string())?;
    let offset = pmu.registers.rdmsr(LvtOffset::MSR).map_err(|_| {
        format!(
            "MSR {:#x}, which names the interrupt's LVT entry, cannot be read",
            LvtOffset::MSR.0
        )
    })?;
    LvtOffset(offset).entry().ok_or_else(|| {
        format!(
            "the machine's firmware has not set IBS up: MSR {:#x} reads {offset:#x}, without a valid LVT entry",
            LvtOffset::MSR.0
        )
    })
}

/// The period nearest to `period` that is taken, from below; at least [`MIN_PERIOD`].
pub(super) const fn nearest(period: u64) -> u64 {
    if period < MIN_PERIOD { MIN_PERIOD } else { period & !15 }
}

/// The block's part: samples by way of `entry`.
///
/// # Errors
/// The period is none of this processor's.
pub(super) fn arm(
    registers: &mut dyn Registers,
    driver: &Driver,
    one: &Armed,
    block: &mut ControlBlock,
) -> Result<(), PmuError> {
    const UNSUPPORTED: PmuError = PmuError::Unsupported("instruction-based sampling");
    let Some(event) = one.ibs else { return Ok(()) };
    let features = features(driver.capabilities()).ok_or(UNSUPPORTED)?;
    let period = event.period(one.period, features).map_err(|_| UNSUPPORTED)?;
    let period = match event.filter {
        // The processor keeps those away that are a step too fast; the handler looks at the rest.
        Some(Filter::Loads { beyond }) => period.of_loads_from(beyond.into(), features),
        Some(Filter::Stores) | None => period,
    };
    let offset = registers.rdmsr(LvtOffset::MSR).map_err(|_| UNSUPPORTED)?;
    let entry = LvtOffset(offset).entry().ok_or(UNSUPPORTED)?;
    let two_writes = driver.capabilities().ibs_erratum_420;
    stop(registers, event.unit, two_writes)?;
    let sampling = Sampling::new(period, one.counter.index() as u8, entry)
        .clearing_maximum(two_writes)
        .checking_address(features.contains(Features::CHECKS_ADDRESS))
        .filtered_by(event.filter)
        .keeping_count(event.unit == Unit::Fetch || features.contains(Features::READ_WRITE_COUNT));
    block.sample_by(match event.random {
        Some(seed) => sampling.randomised_from(seed),
        None => sampling,
    });
    Ok(())
}

/// Switches a unit off. `two_writes`: its maximum count goes first ([`Period::off_in_two`]).
fn stop(registers: &mut dyn Registers, unit: Unit, two_writes: bool) -> Result<(), PmuError> {
    if two_writes && let Ok(control) = registers.rdmsr(unit.control()) {
        let _ = registers.wrmsr(unit.control(), control & unit.enable());
    }
    let off = registers.wrmsr(unit.control(), 0);
    off.map_err(|_| PmuError::Unsupported("instruction-based sampling"))
}

/// Switches the unit of each such event off, as a task that faulted leaves it on.
///
/// # Errors
/// The register refuses.
pub(super) fn disarm(
    registers: &mut dyn Registers,
    has: &Capabilities,
    events: &[Armed],
) -> Result<(), PmuError> {
    let mut units = events.iter().filter_map(|one| one.ibs);
    units.try_for_each(|event| stop(registers, event.unit, has.ibs_erratum_420))
}

/// What the report calls the counter.
pub(super) fn counter(event: IbsEvent) -> String {
    event.name().to_string()
}

/// How far a sample's address is from the instruction that is sampled, in words.
pub(super) fn skid(event: IbsEvent) -> String {
    match event.unit {
        Unit::Op => "0: IBS names the instruction of the operation that was tagged".to_string(),
        Unit::Fetch => "0: IBS names the address of the fetch that was tagged".to_string(),
    }
}

/// Remarks on what its periods are.
pub(super) fn remark(event: IbsEvent) -> String {
    let name = event.name();
    let kept = match event.filter {
        None => String::new(),
        Some(Filter::Loads { beyond: 0 }) => "; samples that are no load are left out".to_string(),
        Some(Filter::Loads { beyond }) => format!(
            "; samples that are no load of more than {beyond} cycles beyond the first level are left out, by software"
        ),
        Some(Filter::Stores) => "; samples that are no store are left out".to_string(),
    };
    let random = match event.random {
        Some(_) => "; its periods are random, each up to 63 longer or shorter",
        None => "",
    };
    format!(
        "{name}: it counts every ring, so each period includes the end of its interrupt's handler{kept}{random}"
    )
}

/// Whether an event of the item can be sampled so.
///
/// # Errors
/// Why not.
pub(super) fn check(item: &Item) -> Result<(), String> {
    if item.limit_per_ms > 0 {
        return Err("limit-per-ms cannot change IBS's periods".to_string());
    }
    if item.delivery == Delivery::Nmi && item.events.len() > 1 {
        return Err("as an NMI it cannot be told from the counters' interrupts".to_string());
    }
    Ok(())
}

/// The machine's APIC has the entry, or the reason why not.
pub(super) fn has_entry(machine: &mut impl Sampler, entry: u8) -> Result<(), String> {
    match machine.has_extended_lvt(entry) {
        true => Ok(()),
        false => Err(format!(
            "the local APIC has no extended LVT entry {entry} (offset {:#x}), through which its interrupt would come",
            0x500 + 0x10 * u32::from(entry)
        )),
    }
}
