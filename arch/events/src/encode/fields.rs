//! Whether a processor's event select register has the fields that a request requests.

use super::Refusal;
use super::draft::Draft;
use crate::cpu::Vendor;
use crate::event::Way;
use crate::processor::Processor;
use crate::register::EventSelect;
use crate::request::Attributes;

/// Puts the request's own settings over the event's.
pub(super) fn apply(
    draft: &mut Draft,
    attributes: &Attributes,
    vendor: Vendor,
) -> Result<(), Refusal> {
    if let Some(value) = attributes.umask {
        let most = if vendor == Vendor::Intel { 0xffff } else { 0xff };
        let umask = u16::try_from(value)
            .ok()
            .filter(|umask| u64::from(*umask) <= most)
            .ok_or(Refusal::Range { field: "umask", value, most, vendor })?;
        draft.ways.truncate(1);
        draft.ways[0].umask = umask;
    }
    draft.cmask = attributes.cmask.unwrap_or(draft.cmask);
    draft.invert = attributes.invert.unwrap_or(draft.invert);
    draft.edge = attributes.edge.unwrap_or(draft.edge);
    draft.any_thread = attributes.any_thread.unwrap_or(draft.any_thread);
    draft.equal = attributes.equal.unwrap_or(draft.equal);
    draft.pin_control = attributes.pin_control.unwrap_or(draft.pin_control);
    draft.in_tx = attributes.in_tx.unwrap_or(draft.in_tx);
    draft.in_tx_checkpointed = attributes.in_tx_checkpointed.unwrap_or(draft.in_tx_checkpointed);
    draft.taken_alone = attributes.taken_alone.unwrap_or(draft.taken_alone);
    Ok(())
}

/// User and kernel. Neither given: both. One given: that one, or the other if it was switched off.
pub(super) fn modes(attributes: &Attributes) -> Result<(bool, bool), Refusal> {
    let modes = match (attributes.user, attributes.kernel) {
        (None, None) => (true, true),
        (Some(user), None) => (user, !user),
        (None, Some(kernel)) => (!kernel, kernel),
        (Some(user), Some(kernel)) => (user, kernel),
    };
    if modes == (false, false) {
        return Err(Refusal::NoMode);
    }
    Ok(modes)
}

/// The register for one way of counting, with EN set.
pub(super) fn select(
    draft: &Draft,
    way: &Way,
    (user, kernel): (bool, bool),
    vendor: Vendor,
) -> Result<EventSelect, Refusal> {
    let range = |field, value: u64, most: u64| {
        if value > most {
            return Err(Refusal::Range { field, value, most, vendor });
        }
        Ok(())
    };
    let (most_event, most_umask) = match vendor {
        Vendor::Intel => (0xff, 0xffff),
        Vendor::Amd => (0xfff, 0xff),
    };
    range("event", way.event.into(), most_event)?;
    range("umask", way.umask.into(), most_umask)?;
    range("cmask", draft.cmask, 0xff)?;
    Ok(EventSelect {
        event: way.event,
        umask: way.umask as u8,
        umask2: (way.umask >> 8) as u8,
        user,
        kernel,
        edge: draft.edge,
        pin_control: draft.pin_control,
        any_thread: draft.any_thread,
        enable: true,
        invert: draft.invert,
        cmask: draft.cmask as u8,
        in_tx: draft.in_tx,
        in_tx_checkpointed: draft.in_tx_checkpointed,
        equal: draft.equal,
        ..EventSelect::default()
    })
}

/// What AnyThread is called in refusals.
pub(super) const ANY_THREAD: &str = "any (counting both hyper-threads)";

/// Why a processor that does not have AnyThread does not.
pub(super) fn why_not_any(processor: &Processor) -> &'static str {
    match (processor.vendor, processor.version) {
        (Vendor::Amd, _) => "AMD processors count one hyper-thread at a time",
        (Vendor::Intel, _) if processor.described => {
            "no event of its table uses it, so its processors may not have it"
        }
        (Vendor::Intel, 0..=2) => "the PMU has version 2 or older",
        (Vendor::Intel, _) => "CPUID.0AH:EDX[15] marks AnyThread as deprecated",
    }
}

/// Refuses fields that this processor does not have.
pub(super) fn check(select: &EventSelect, processor: &Processor) -> Result<(), Refusal> {
    let intel = processor.vendor == Vendor::Intel;
    // What a table does not show is not what CPUID denies.
    let by_table = |told, shown| if processor.described { shown } else { told };
    let no_tsx = match intel {
        true => by_table(
            "CPUID.07H:EBX[4] and [11] say that the processor has no transactional memory",
            "no event of its table uses transactional memory",
        ),
        false => "AMD processors have no transactional memory",
    };
    let adaptive = processor.pebs.is_some_and(|pebs| pebs.format >= 4);
    for (asked, there, what, why) in [
        (select.any_thread, intel && processor.any_thread, ANY_THREAD, why_not_any(processor)),
        (
            select.umask2 != 0,
            processor.umask2,
            "a unit mask above 0xff",
            by_table(
                "the processor has no UMASK2",
                "no event of its table has one (it needs UMASK2 of version 6 of the PMU)",
            ),
        ),
        (
            select.equal,
            processor.equal,
            "eq",
            by_table(
                "the processor compares only with >= and <",
                "it needs version 6 of the PMU, and no event of its table uses that version",
            ),
        ),
        (select.in_tx, intel && processor.tsx, "intx", no_tsx),
        (select.in_tx_checkpointed, intel && processor.tsx, "intxcp", no_tsx),
        (select.pin_control, intel, "pc", "AMD processors have no pin control"),
        (select.adaptive_record, adaptive, "bit 34", "the processor has no adaptive PEBS records"),
        (
            select.log_in_branches,
            intel && processor.version >= 6,
            "bit 35",
            "events are not logged with branches",
        ),
        (
            select.rdpmc_user_disable,
            processor.rdpmc_user_disable,
            "bit 37",
            "the processor has no RDPMC_USR_DISABLE",
        ),
    ] {
        if asked && !there {
            return Err(Refusal::Absent { what, why });
        }
    }
    Ok(())
}
