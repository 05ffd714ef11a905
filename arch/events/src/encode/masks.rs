//! Several unit masks of one event, joined: `l2_rqsts:demand_data_rd_hit:rfo_hit`.

use super::Refusal;
use super::draft::Draft;
use super::resolve::Refused;
use crate::event::Event;
use crate::request::NamePart;
use crate::tables::Core;
use alloc::format;
use alloc::string::ToString;

/// Joins the unit masks that the pieces after the first one name. The first piece is the event's
/// name without a unit mask, or with one, which then takes part. `None`: no such event.
///
/// # Errors
/// The events differ in more than their unit masks.
pub(super) fn join(pieces: &[NamePart], core: &Core<'_>) -> Result<Option<Draft>, Refused> {
    let [first, masks @ ..] = pieces else {
        return Ok(None);
    };
    if masks.is_empty() {
        return Ok(None);
    }
    let with_mask = core.find(&first.text);
    let base = match &with_mask {
        Some(event) => event.name.split('.').next().unwrap_or(event.name),
        None => &first.text,
    };
    let mut all = with_mask;
    let mut draft: Option<Draft> = with_mask.as_ref().map(Draft::event);
    for mask in masks {
        let Some(event) = core.find(&format!("{base}.{}", mask.text)) else {
            return Ok(None);
        };
        match (&mut draft, &all) {
            (Some(draft), Some(first)) => {
                if let Some(differs) = difference(first, &event) {
                    let refusal = Refusal::NotJoinable {
                        first: first.name.to_string(),
                        second: event.name.to_string(),
                        differs,
                    };
                    return Err((mask.at, refusal));
                }
                add(draft, &event);
            }
            _ => {
                draft = Some(Draft::event(&event));
                all = Some(event);
            }
        }
    }
    Ok(draft)
}

/// What the two events differ in, other than name and unit mask.
fn difference(a: &Event<'_>, b: &Event<'_>) -> Option<&'static str> {
    [
        (a.fixed.is_some() || b.fixed.is_some(), "one is on a fixed counter"),
        (a.ways().len() > 1 || b.ways().len() > 1, "one has several codes"),
        (a.ways()[0].event != b.ways()[0].event, "the event"),
        (a.ways()[0].msr != b.ways()[0].msr || a.msr_value != b.msr_value, "the extra MSR"),
        (a.cmask != b.cmask || a.invert != b.invert, "the counter mask"),
        (a.edge != b.edge, "edge detection"),
        (a.any_thread != b.any_thread, "the hyper-threads counted"),
    ]
    .into_iter()
    .find_map(|(differ, what)| differ.then_some(what))
}

/// Adds another unit mask; what restricts either restricts both.
fn add(draft: &mut Draft, event: &Event<'_>) {
    let mask = event.name.split_once('.').map_or(event.name, |(_, mask)| mask);
    draft.name = format!("{}:{mask}", draft.name);
    draft.ways[0].umask |= event.ways()[0].umask;
    draft.counters &= u64::from(event.counters);
    draft.precise = draft.precise.min(event.precise);
    draft.taken_alone |= event.taken_alone;
    draft.deprecated |= event.deprecated;
    draft.doubtful |= event.doubtful;
    for erratum in event.errata.split('|').filter(|erratum| !erratum.is_empty()) {
        if !draft.errata.split('|').any(|known| known == erratum) {
            if !draft.errata.is_empty() {
                draft.errata.push('|');
            }
            draft.errata.push_str(erratum);
        }
    }
}
