//! The counters on which a request can be counted: general-purpose ones, and the fixed one that
//! counts the same.

use super::draft::Draft;
use super::{Choice, Counters, Refusal, fields};
use crate::architectural::{self, Architectural};
use crate::attributes::NO_RETIREMENT;
use crate::cpu::Vendor;
use crate::errata;
use crate::event::{AMD_LARGE_INCREMENT_EVENT, Precise, Way};
use crate::msr::MsrValue;
use crate::processor::{Pebs, Processor};
use crate::register::{EventSelect, FixedControl};
use crate::request::Attributes;
use crate::tables::{Core, fold};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// All ways to count the draft, the fixed counter first.
pub(super) fn choices(
    draft: &Draft,
    attributes: &Attributes,
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<Vec<Choice>, Refusal> {
    let modes = fields::modes(attributes)?;
    if let Some(field) = draft.metric {
        return metric(field, draft, attributes, modes, processor).map(|choice| [choice].into());
    }
    let pebs = pebs(draft, attributes, processor)?;
    if let (true, Some(index), Some(what)) = (draft.only_fixed, draft.fixed, draft.beyond_fixed()) {
        return Err(Refusal::FixedHasNo { index, what });
    }
    if let (Some(index), Some(_)) = (draft.fixed, attributes.umask) {
        let what = "unit mask";
        return Err(Refusal::FixedHasNo { index, what });
    }
    let mut choices = Vec::new();
    let mut refusal = None;
    match fixed(draft, attributes, modes, processor, core, pebs) {
        Ok(choice) => choices.extend(choice),
        Err(why) => refusal = Some(why),
    }
    for way in general_ways(draft, processor, core) {
        match general(draft, &way, attributes, modes, processor, pebs) {
            Ok(choice) => choices.push(choice),
            // What keeps the event itself from being counted says more than the fixed counter's
            // trouble.
            Err(why) => refusal = Some(why),
        }
    }
    let general = |choice: &Choice| matches!(choice.counters, Counters::General { .. });
    if draft.taken_alone && choices.iter().any(general) {
        choices.retain(general);
    }
    if choices.is_empty() {
        return Err(refusal.unwrap_or(Refusal::NoFixed(draft.fixed.unwrap_or(0))));
    }
    Ok(choices)
}

/// What PEBS needs for the level requested.
fn pebs(
    draft: &Draft,
    attributes: &Attributes,
    processor: &Processor,
) -> Result<Option<(u64, u32)>, Refusal> {
    let level = attributes.precise.unwrap_or(0);
    if level == 0 {
        return Ok(None);
    }
    let absent = |why| Refusal::Absent { what: "precise counting", why };
    if processor.vendor == Vendor::Amd {
        return Err(absent("AMD has instruction-based sampling instead, with events of its own"));
    }
    let Some(Pebs {
        gp_counters,
        fixed_counters,
        format,
        distribution_gp,
        distribution_fixed,
        states_retirement,
    }) = processor.pebs
    else {
        return Err(absent(if processor.described {
            "no event of its table can be counted with PEBS"
        } else {
            "the processor has no PEBS with records of formats 0 to 6"
        }));
    };
    // No skid needs the address of the instruction itself, which records have from format 2 on.
    if level >= 2 && format < 2 {
        return Err(absent("without skid (pp) needs PEBS records of format 2 or newer"));
    }
    if attributes.retire_latency.is_some() && !states_retirement {
        return Err(Refusal::Absent { what: "the retire latency", why: NO_RETIREMENT });
    }
    if draft.precise_known && draft.precise == Precise::No {
        return Err(Refusal::NotPrecise(""));
    }
    Ok(Some(if level == 3 {
        (gp_counters & distribution_gp, fixed_counters & distribution_fixed)
    } else {
        (gp_counters, fixed_counters)
    }))
}

/// The architectural event that a draft is, by its code.
fn architectural(draft: &Draft, processor: &Processor) -> Option<&'static Architectural> {
    let way = draft.ways.first().filter(|_| processor.vendor == Vendor::Intel)?;
    match draft.fixed {
        Some(fixed) => architectural::by_fixed(fixed),
        None => of_code(way.event, way.umask, processor),
    }
}

/// The architectural event that this code is on this processor.
pub(super) fn of_code(
    event: u16,
    umask: u16,
    processor: &Processor,
) -> Option<&'static Architectural> {
    architectural::by_code(event, umask).filter(|event| event.is_coded(processor))
}

/// Whether CPUID denies the event. Bit 7 is younger than the list: where it is beyond the list's
/// length, the fixed counter says whether there are slots.
pub(super) fn denied(event: &Architectural, processor: &Processor) -> bool {
    event.index < 7 && !event.is_available(processor)
}

/// The fixed counter that counts the same, if there is one.
fn fixed_alternative(draft: &Draft, processor: &Processor, core: Option<&Core<'_>>) -> Option<u8> {
    if draft.fixed.is_some() {
        return draft.fixed;
    }
    if let Some(event) = architectural(draft, processor)
        && event.same_on_both
    {
        return event.fixed;
    }
    // Where it is not an architectural event, Intel's names tell: X_P is the programmable form of X.
    let name = draft.from_table.then_some(&draft.name)?;
    let fixed_name = name.strip_suffix("_P").or_else(|| name.strip_suffix("_p"))?;
    let other = core?.find(fixed_name)?;
    fold::same(other.name, fixed_name).then_some(other.fixed).flatten()
}

/// Fixed counter 3, of which MSR_PERF_METRICS tells shares.
const SLOTS: u8 = 3;

/// A field of MSR_PERF_METRICS.
fn metric(
    field: u8,
    draft: &Draft,
    attributes: &Attributes,
    (user, kernel): (bool, bool),
    processor: &Processor,
) -> Result<Choice, Refusal> {
    let absent = |why| Err(Refusal::Absent { what: "this field of PERF_METRICS", why });
    match processor.metric_fields {
        0 => {
            return absent(
                "the processor has no PERF_METRICS; use the events frontend-bound-slots and backend-bound-slots",
            );
        }
        4 if field >= 4 => {
            return absent("its PERF_METRICS has only the four fields of the first level");
        }
        _ => {}
    }
    let other = attributes.counter.is_some() || attributes.umask.is_some();
    let other = other.then_some("selectable event number or unit mask");
    let precise = attributes.precise.is_some_and(|level| level > 0);
    let precise = precise.then_some("precise level: PERF_METRICS is read with it");
    let any = draft.any_thread.then_some("count of both hyper-threads in PERF_METRICS");
    if let Some(what) = draft.beyond_fixed().or(other).or(precise).or(any) {
        return Err(Refusal::FixedHasNo { index: SLOTS, what });
    }
    if processor.fixed_counters >> SLOTS & 1 == 0 {
        return Err(Refusal::NoFixed(SLOTS));
    }
    let control = FixedControl { kernel, user, any_thread: false, interrupt: false };
    Ok(Choice { counters: Counters::Metric { field, control }, msr: None })
}

fn fixed(
    draft: &Draft,
    attributes: &Attributes,
    (user, kernel): (bool, bool),
    processor: &Processor,
    core: Option<&Core<'_>>,
    pebs: Option<(u64, u32)>,
) -> Result<Option<Choice>, Refusal> {
    let Some(index) = fixed_alternative(draft, processor, core) else {
        return Ok(None);
    };
    if let Some(what) = draft.beyond_fixed() {
        return Err(Refusal::FixedHasNo { index, what });
    }
    if attributes.counter.is_some() || attributes.umask.is_some() {
        let what = "selectable event number or unit mask";
        return Err(Refusal::FixedHasNo { index, what });
    }
    if processor.fixed_counters.checked_shr(index.into()).unwrap_or(0) & 1 == 0 {
        return Err(Refusal::NoFixed(index));
    }
    if let Some(event) = architectural::by_fixed(index).filter(|event| denied(event, processor)) {
        return Err(not_available(event));
    }
    if draft.any_thread && !processor.any_thread {
        let why = fields::why_not_any(processor);
        return Err(Refusal::Absent { what: fields::ANY_THREAD, why });
    }
    if let Some((_, fixed)) = pebs
        && fixed >> index & 1 == 0
    {
        return Err(Refusal::NotPrecise(" on a fixed counter of this processor"));
    }
    let control = FixedControl { kernel, user, any_thread: draft.any_thread, interrupt: false };
    Ok(Some(Choice { counters: Counters::Fixed { index, control }, msr: None }))
}

pub(super) fn not_available(event: &Architectural) -> Refusal {
    Refusal::NotAvailable { bit: event.index, event: event.name }
}

/// The codes for general-purpose counters: the draft's own, or for a fixed counter's event the code
/// of the same event.
fn general_ways(draft: &Draft, processor: &Processor, core: Option<&Core<'_>>) -> Vec<(Way, u64)> {
    let Some(index) = draft.fixed else {
        return draft.ways.iter().map(|way| (*way, draft.counters)).collect();
    };
    if draft.only_fixed || processor.vendor != Vendor::Intel {
        return Vec::new();
    }
    let in_table = core.filter(|_| draft.from_table).and_then(|core| {
        let name = format!("{}_P", draft.name);
        core.find(&name).filter(|event| event.fixed.is_none())
    });
    if let Some(event) = in_table {
        return event.ways().iter().map(|way| (*way, event.counters.into())).collect();
    }
    // PREC_DIST is on fixed counter 0 too, but is not what event C0H/00H counts.
    let other_event = draft.from_table && draft.name.to_ascii_uppercase().contains("PREC_DIST");
    architectural::by_fixed(index)
        .filter(|event| event.same_on_both && event.is_coded(processor) && !other_event)
        .map(|event| (event.way(Vendor::Intel), u64::MAX))
        .into_iter()
        .collect()
}

fn general(
    draft: &Draft,
    (way, counters): &(Way, u64),
    attributes: &Attributes,
    modes: (bool, bool),
    processor: &Processor,
    pebs: Option<(u64, u32)>,
) -> Result<Choice, Refusal> {
    let event = of_code(way.event, way.umask, processor);
    if let Some(event) = event.filter(|event| denied(event, processor)) {
        return Err(not_available(event));
    }
    let select = fields::select(draft, way, modes, processor.vendor)?;
    fields::check(&select, processor)?;
    let pebs = pebs.map_or(u64::MAX, |(gp, _)| gp);
    let (allowed, merge) = general_counters((*counters, pebs), &select, attributes, processor)?;
    let msr = way.msr.zip(draft.msr_value).map(|(address, value)| MsrValue { address, value });
    Ok(Choice { counters: Counters::General { counters: allowed, select, merge }, msr })
}

/// The general-purpose counters, of those that the event has and PEBS leaves, that take a register's value, and whether the next one
/// takes the merge event.
pub(super) fn general_counters(
    (counters, pebs): (u64, u64),
    select: &EventSelect,
    attributes: &Attributes,
    processor: &Processor,
) -> Result<(u64, bool), Refusal> {
    let usable = processor.usable_counters();
    let mut allowed = counters & pebs & usable;
    if select.in_tx_checkpointed {
        allowed &= errata::CHECKPOINTED_COUNTERS;
    }
    if let Some(counter) = attributes.counter {
        let bit = u32::try_from(counter).ok().and_then(|counter| 1_u64.checked_shl(counter));
        let bit = bit.filter(|bit| usable & bit != 0).ok_or(Refusal::NoCounter(counter))?;
        allowed &= bit;
    }
    // The odd neighbour takes what the even counter cannot: both must be there.
    let merge = processor.vendor == Vendor::Amd
        && select.event == AMD_LARGE_INCREMENT_EVENT
        && processor.large_increments;
    if merge {
        allowed &= usable >> 1 & EVEN;
    }
    if allowed == 0 {
        return Err(Refusal::NoCounterLeft {
            wanted: counter_names(counters, merge),
            there: counter_names(usable, false),
        });
    }
    Ok((allowed, merge))
}

/// Counters with an even number.
const EVEN: u64 = 0x5555_5555_5555_5555;

fn counter_names(mask: u64, pair: bool) -> String {
    let mut text = String::new();
    if mask == u64::MAX {
        text.push_str("any counter");
    } else {
        for counter in (0..64).filter(|counter| mask >> counter & 1 == 1) {
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&format!("{counter}"));
        }
        if text.is_empty() {
            text.push_str("none");
        }
    }
    if pair {
        text.push_str(" (even, together with the next odd one)");
    }
    text
}
