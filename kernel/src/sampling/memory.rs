//! Loads and stores as events of one word, and what samples tell of their data: `mem-loads`, with a threshold of latency, and
//! `mem-stores`.
//!
//! On Intel both are precise events: of loads whose latency exceeds MSR_PEBS_LD_LAT_THRESHOLD, and of stores, with their source
//! and latency where the processor samples those, else with their address. On AMD an instruction-based sample is looked at
//! for what it is.

use super::ibs::IbsEvent;
use super::{Armed, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::data_source::{Datum, Encoding, PRECISE_STORE, Told};
use arch::pmu::pebs::{Format, Groups};
use arch::pmu::pmi::{Access, Accesses, ControlBlock, Filter, Outcome, Table};
use arch::pmu::{Capabilities, Counter, PmuError, Selection, numbers};
use protocol::hex::Hex;
use protocol::record::{DataCount, OutcomeCount, SourceCount};

/// The threshold if a request has none: the least that the facility takes (SDM vol. 3, 20.3.1.1.2; Linux, `mem-loads`).
const LEAST_THRESHOLD: u32 = 3;
/// Sources and classes of latency that are told apart.
const CLASSES: usize = 512;
/// The event that Golden Cove counts beside load latency, and the counters that it can be on.
const AUXILIARY: Selection = Selection::of(0x03, 0x82);
const AUXILIARY_COUNTERS: u8 = 4;

/// What a request of one word comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Requested {
    /// An event of the processor, as text.
    Event(String),
    /// Instruction-based samples, of which some are kept.
    Ibs(IbsEvent),
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Loads,
    Stores,
}

/// A request, taken apart: the kind, the threshold, and the modifiers of ring and counter.
struct Parts<'a> {
    kind: Kind,
    threshold: Option<u32>,
    modifiers: Vec<&'a str>,
}

/// Whether `text` is one of the two words.
fn parts(text: &str) -> Option<Result<Parts<'_>, String>> {
    let mut words = text.trim().split([':', ',']).map(str::trim);
    let kind = match words.next()? {
        "mem-loads" => Kind::Loads,
        "mem-stores" => Kind::Stores,
        _ => return None,
    };
    let mut parts = Parts { kind, threshold: None, modifiers: Vec::new() };
    for word in words {
        let number = word.strip_prefix("ldlat=").map(str::parse);
        match (word, number) {
            ("u" | "k", _) => parts.modifiers.push(word),
            _ if word.starts_with("counter=") => parts.modifiers.push(word),
            // They are precise in any case.
            ("p" | "pp" | "ppp", _) => {}
            (_, Some(Ok(cycles))) if kind == Kind::Loads && cycles <= 0xffff => {
                parts.threshold = Some(cycles);
            }
            (_, Some(_)) if kind == Kind::Loads => {
                return Some(Err(format!(
                    "{word}: a latency is a number of cycles from 3 to 65535"
                )));
            }
            _ => return Some(Err(format!("`{word}` is nothing that {text} can have"))),
        }
    }
    Some(Ok(parts))
}

/// The event or the samples that a request of one word asks for; nothing if it is none.
///
/// # Errors
/// The processor has no such event: what comes nearest.
pub(super) fn requested(text: &str, has: &Capabilities) -> Option<Result<Requested, String>> {
    let parts = match parts(text)? {
        Ok(parts) => parts,
        Err(reason) => return Some(Err(reason)),
    };
    Some(if has.is_intel() { intel(&parts, has) } else { amd(&parts, has) })
}

fn intel(parts: &Parts, has: &Capabilities) -> Result<Requested, String> {
    let word = match parts.kind {
        Kind::Loads => "mem-loads",
        Kind::Stores => "mem-stores",
    };
    let Some(format) = has.pebs_format() else {
        return Err(format!(
            "{word} needs PEBS, which cannot be used here; the nearest is to count `{}`",
            word.trim_start_matches("mem-")
        ));
    };
    if format.has_groups() && !has.record_groups().contains(Groups::MEMORY) {
        return Err(format!(
            "{word}: this processor's PEBS records have no data (CPUID leaf 0x23.4 EBX[30]); the nearest is the event `{}` with precise = true",
            word.trim_start_matches("mem-")
        ));
    }
    let threshold = parts.threshold.unwrap_or(LEAST_THRESHOLD);
    let (event, umask) = match parts.kind {
        Kind::Loads if threshold < LEAST_THRESHOLD => {
            return Err(format!(
                "a latency of {threshold} cycles is too short: the least is {LEAST_THRESHOLD}"
            ));
        }
        Kind::Loads if !has.extra.contains(&numbers::LOAD_LATENCY) => {
            return Err("this processor has no event of load latency (it came with Nehalem); the nearest is MEM_LOAD_RETIRED.L1D_MISS (`r01cb`) with precise = true, without latency and address".to_string());
        }
        Kind::Loads => match (has.memory.encoding, has.memory.stores) {
            (Encoding::Nehalem, _) => (0x0b, 0x10),
            // Gracemont and its successors.
            (_, Some((0xd0, _))) => (0xd0, 0x05),
            _ => (0xcd, 0x01),
        },
        Kind::Stores => match (has.memory.stores, format) {
            (Some(stores), _) => stores,
            (None, _) if has.memory.precise_stores => PRECISE_STORE,
            (None, Format::Core | Format::Nehalem) => {
                return Err("records of stores have no address here (that came with Sandy Bridge); the nearest is the event `stores` with precise = true, whose records name the instruction".to_string());
            }
            (None, _) => (0xd0, 0x82),
        },
    };
    let precise = if format.is_exact() { "pp" } else { "p" };
    let mut text = format!("r{:x}:{precise}", umask << 8 | event);
    if parts.kind == Kind::Loads {
        text += &format!(":ldlat={threshold}");
    }
    let chosen = parts.modifiers.iter().any(|word| word.starts_with("counter="));
    if has.memory.precise_stores && parts.kind == Kind::Stores && !chosen {
        text += ":counter=3";
    }
    for modifier in &parts.modifiers {
        text += &format!(":{modifier}");
    }
    Ok(Requested::Event(text))
}

fn amd(parts: &Parts, has: &Capabilities) -> Result<Requested, String> {
    if !parts.modifiers.is_empty() {
        return Err("IBS counts in every ring, by no counter: it cannot be told one".to_string());
    }
    let filter = match parts.kind {
        Kind::Loads => Filter::Loads { beyond: parts.threshold.unwrap_or(0) },
        Kind::Stores => Filter::Stores,
    };
    match IbsEvent::of_operations(filter, has) {
        Some(event) => Ok(Requested::Ibs(event)),
        None => Err("this processor has no instruction-based sampling (CPUID 0x80000001 ECX[10]); the nearest is to count `loads` and `stores`".to_string()),
    }
}

/// Whether records of an event need the auxiliary one beside it.
pub(super) fn needs_auxiliary(one: &Armed, has: &Capabilities) -> bool {
    has.memory.auxiliary && super::precise::is_latency(&one.selection)
}

/// A counter for the auxiliary event of each event that needs it.
///
/// # Errors
/// There is none that is free: of which event.
pub(super) fn auxiliary(armed: &mut [Armed], has: &Capabilities) -> Result<(), String> {
    let used: Vec<Counter> = armed.iter().map(|one| one.counter).collect();
    let mut free = has.generals().filter(|counter| {
        matches!(counter, Counter::General(n) if *n < AUXILIARY_COUNTERS) && !used.contains(counter)
    });
    for one in armed.iter_mut().filter(|one| needs_auxiliary(one, has)) {
        let Some(counter) = free.next() else {
            return Err(format!(
                "{}: event 0x03/0x82 has to be counted beside it on one of the first {AUXILIARY_COUNTERS} counters, and none of them is free",
                one.event
            ));
        };
        let rings = one.selection.rings;
        one.auxiliary = Some((counter, AUXILIARY.in_rings(rings)));
        one.remarks.push(format!(
            "event 0x03/0x82 is counted beside it on {counter}, as this processor needs it"
        ));
    }
    Ok(())
}

/// Memory for what samples tell of data.
#[derive(Debug, Default)]
pub(super) struct Places {
    sources: Vec<Access>,
    addresses: Vec<Access>,
    outcomes: Vec<Outcome>,
}

/// Lets the handler count what samples of `events` tell, if they tell anything; `capacity` addresses at most.
pub(super) fn count(
    places: &mut Places,
    events: &[Armed],
    has: &Capabilities,
    capacity: usize,
    block: &mut ControlBlock,
) {
    let told = |one: &Armed| {
        let data = has.pebs_format().is_some_and(Format::is_exact);
        let told = has.memory.told(&one.selection, data);
        if one.selection.precise { told } else { Told::Nothing }
    };
    let ibs = events.iter().any(|one| one.ibs.is_some());
    if !ibs && events.iter().all(|one| told(one) == Told::Nothing) {
        return;
    }
    places.sources = alloc::vec![Access::default(); CLASSES];
    places.addresses = alloc::vec![Access::default(); capacity.next_power_of_two()];
    let accesses = Accesses::new(has.memory, &mut places.sources, &mut places.addresses);
    if let Some(mut accesses) = accesses {
        for one in events {
            accesses = accesses.telling(one.counter.bit(), told(one));
        }
        block.count_accesses(accesses);
    }
    if ibs {
        places.outcomes = alloc::vec![Outcome::default(); capacity.next_power_of_two()];
        block.count_outcomes(&mut places.outcomes);
    }
}

/// What the cycles of the processor's records and samples are: those to the data, and the others.
pub(super) fn latencies(has: &Capabilities) -> [String; 2] {
    let [data, other] = match (has.is_intel(), has.memory.splits) {
        (false, _) => [
            "from the miss of the first level to the data",
            "to the translation, where the first TLB missed",
        ],
        (true, true) => {
            ["of the access to caches and memory", "from dispatch to completion of the instruction"]
        }
        (true, false) => ["from dispatch to the data", ""],
    };
    [data.to_string(), other.to_string()]
}

/// The event's number that a counter's bit stands for.
fn number(session: &Session, bit: u8) -> Option<u32> {
    let place = session.events.iter().position(|one| one.counter.index() == usize::from(bit));
    place.map(|place| place as u32)
}

/// The sources for the report, most often first, and how many found no place.
pub(super) fn sources(session: &Session, block: &ControlBlock) -> (Vec<SourceCount>, u64) {
    let Some(accesses) = block.accesses() else { return (Vec::new(), 0) };
    let mut rows = Vec::new();
    for row in accesses.sources().used() {
        let (Some(event), Some(source)) =
            (number(session, row.bit), accesses.words().source(&row.datum))
        else {
            continue;
        };
        rows.push(SourceCount {
            event,
            task: row.task,
            source: source.to_string(),
            store: source.store,
            tlb_miss: source.tlb_miss,
            locked: source.locked,
            least: least(&row.datum),
            count: row.count,
            latency: row.latency,
            longest: row.longest,
            other: row.other,
        });
    }
    (rows, accesses.sources().elsewhere)
}

/// The least latency of a datum's class.
fn least(datum: &Datum) -> u32 {
    match datum.class() {
        0 => 0,
        class => 1 << (class - 1),
    }
}

/// The source of a datum in words.
pub(super) fn source(block: &ControlBlock, datum: &Datum) -> Option<String> {
    Some(block.accesses()?.words().source(datum)?.to_string())
}

/// Adds what is told of each address to the rows of addresses.
pub(super) fn with_latencies(rows: &mut [DataCount], session: &Session, block: &ControlBlock) {
    let Some(accesses) = block.accesses() else { return };
    for row in accesses.addresses().used().filter(|row| row.latency > 0) {
        let event = number(session, row.bit);
        let same = |one: &&mut DataCount| {
            (one.address.0, Some(one.event), one.task) == (row.datum.address, event, row.task)
        };
        if let Some(one) = rows.iter_mut().find(same) {
            one.latency = Some(one.latency.unwrap_or(0) + row.latency);
            one.longest = one.longest.max(Some(row.longest));
            one.timed = Some(row.timed).filter(|&timed| timed < one.count);
        }
    }
}

/// What became of sampled branches, most often first, and how many found no place.
pub(super) fn outcomes(block: &ControlBlock) -> (Vec<OutcomeCount>, u64) {
    let Some(table) = block.outcomes() else { return (Vec::new(), 0) };
    let row = |one: &Outcome| OutcomeCount {
        address: Hex(one.address),
        task: one.task,
        count: one.count,
        taken: one.taken,
        mispredicted: one.mispredicted,
        returns: one.returns,
    };
    (table.used().map(row).collect(), elsewhere(table))
}

fn elsewhere<R>(table: &Table<R>) -> u64 {
    table.elsewhere
}

/// Programs the auxiliary counter of an event, if it has one.
///
/// # Errors
/// The PMU refuses.
pub(super) fn program(
    registers: &mut dyn arch::pmu::Registers,
    driver: &mut arch::pmu::Driver,
    one: &Armed,
) -> Result<(), PmuError> {
    match &one.auxiliary {
        Some((counter, selection)) => driver.program(registers, *counter, selection),
        None => Ok(()),
    }
}
