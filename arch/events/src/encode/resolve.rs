//! From a name to what it means on this processor.

use super::draft::Draft;
use super::masks;
use super::{Note, Refusal};
use crate::architectural;
use crate::cpu::Vendor;
use crate::energy;
use crate::generic::{Generic, Meaning};
use crate::parse::{attribute, is_modifier};
use crate::perf_metrics;
use crate::processor::Processor;
use crate::request::{Attributes, NamePart};
use crate::tables::{Core, fold};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Names that Intel gives the architectural events in nearly all tables, for processors without
/// one: the name, its bit in CPUID.0AH:EBX, and whether it is the fixed counter's.
const INTEL_NAMES: [(&str, usize, bool); 11] = [
    ("CPU_CLK_UNHALTED.THREAD", 0, true),
    ("CPU_CLK_UNHALTED.CORE", 0, true),
    ("CPU_CLK_UNHALTED.THREAD_P", 0, false),
    ("INST_RETIRED.ANY", 1, true),
    ("INST_RETIRED.ANY_P", 1, false),
    ("CPU_CLK_UNHALTED.REF_TSC", 2, true),
    ("LONGEST_LAT_CACHE.REFERENCE", 3, false),
    ("LONGEST_LAT_CACHE.MISS", 4, false),
    ("BR_INST_RETIRED.ALL_BRANCHES", 5, false),
    ("BR_MISP_RETIRED.ALL_BRANCHES", 6, false),
    ("TOPDOWN.SLOTS", 7, true),
];

/// How many other names a refusal offers.
const SUGGESTIONS: usize = 3;

/// A refusal, and the byte of the list where it starts.
pub(super) type Refused = (usize, Refusal);

/// Finds what the pieces of a name mean. The last pieces are modifiers as far as the rest still is
/// a name; of several readings the one with the most modifiers wins, so that `inst_retired.any:p`
/// is the precise event and not `INST_RETIRED.ANY_P`. Modifiers go to `attributes`. One that could
/// have been meant as a unit mask, `any`, is noted.
pub(super) fn name(
    pieces: &[NamePart],
    attributes: &mut Attributes,
    processor: &Processor,
    core: Option<&Core<'_>>,
    notes: &mut Vec<Note>,
) -> Result<Draft, Refused> {
    let modifiers =
        pieces.iter().skip(1).rev().take_while(|piece| is_modifier(&piece.text)).count();
    // The table's own names come first: `uops_issued:any` is UOPS_ISSUED.ANY, not the generic event
    // `uops-issued` with a modifier.
    for of_table in [true, false] {
        for peeled in (0..=modifiers).rev() {
            let (base, behind) = pieces.split_at(pieces.len() - peeled);
            let draft = match core.filter(|_| of_table) {
                Some(core) => in_table(base, core)?,
                None => of_any_processor(base, processor, core)?,
            };
            let Some(draft) = draft else { continue };
            for piece in behind {
                if of_table && core.is_some() && piece.text.eq_ignore_ascii_case("any") {
                    notes.push(Note::AnyThread);
                }
                attribute::apply(attributes, &piece.text)
                    .map_err(|kind| (piece.at, Refusal::Modifier(kind)))?;
            }
            return Ok(draft);
        }
    }
    Err(unknown(pieces, processor, core))
}

fn joined(pieces: &[NamePart]) -> String {
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    texts.join(":")
}

/// An event of the table, or one with several unit masks.
fn in_table(pieces: &[NamePart], core: &Core<'_>) -> Result<Option<Draft>, Refused> {
    match core.find(&joined(pieces)) {
        Some(event) => Ok(Some(Draft::event(&event))),
        None => masks::join(pieces, core),
    }
}

/// A generic event, or without a table one of Intel's names for architectural events.
fn of_any_processor(
    pieces: &[NamePart],
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<Option<Draft>, Refused> {
    if let [only] = pieces
        && let Some(generic) = generic(&only.text)
    {
        let (name, fixed) = (generic.name(), generic.is_fixed());
        return match generic.meaning(processor, core) {
            Meaning::Event(event) => Ok(Some(Draft::event(&event))),
            Meaning::Architectural(event) => {
                Ok(Some(Draft::architectural(&event, name, fixed, processor)))
            }
            Meaning::None => Err((only.at, Refusal::NoCounterpart(name.to_string()))),
        };
    }
    if let [only] = pieces
        && processor.vendor == Vendor::Intel
        && let Some(field) = perf_metrics::by_name(&only.text)
    {
        return Ok(Some(Draft::metric(field)));
    }
    Ok(match core {
        Some(_) => None,
        None => well_known(&joined(pieces), processor),
    })
}

/// A generic event by name, or by number as `generic7`.
fn generic(text: &str) -> Option<Generic> {
    let number = fold::strip_prefix(text, "generic").and_then(|rest| rest.parse().ok());
    number.and_then(Generic::from_number).or_else(|| Generic::from_name(text))
}

fn well_known(name: &str, processor: &Processor) -> Option<Draft> {
    if processor.vendor != Vendor::Intel {
        return None;
    }
    let (name, bit, fixed) =
        INTEL_NAMES.iter().find(|(known, _, _)| fold::same(known, name)).copied()?;
    Some(Draft::architectural(&architectural::ALL[bit], name, fixed, processor))
}

/// Says which of the pieces is wrong, and what may have been meant.
fn unknown(pieces: &[NamePart], processor: &Processor, core: Option<&Core<'_>>) -> Refused {
    let at = pieces.first().map_or(0, |piece| piece.at);
    if let Some(domain) = pieces.first().and_then(|piece| energy::by_name(&piece.text)) {
        return (at, Refusal::Energy(energy::name(domain)));
    }
    let Some(core) = core else {
        let name = pieces.first().map(|piece| piece.text.clone()).unwrap_or_default();
        return match (well_known(&name, processor), pieces.get(1)) {
            (Some(draft), Some(piece)) => (piece.at, no_mask(draft.name, piece, Vec::new())),
            _ => (at, Refusal::NoTable(name)),
        };
    };
    let owned = |names: Vec<&str>| names.into_iter().map(ToString::to_string).collect();
    // The longest beginning that is a name, or that names of the table start with.
    for end in (1..pieces.len()).rev() {
        let beginning = joined(&pieces[..end]);
        let known = matches!(in_table(&pieces[..end], core), Ok(Some(_)))
            || matches!(of_any_processor(&pieces[..end], processor, Some(core)), Ok(Some(_)));
        let mut unit_masks: Vec<&str> = core
            .with_prefix(&beginning)
            .filter_map(|event| fold::strip_prefix(event.name, &beginning))
            .map(|mask| mask.trim_start_matches(['.', '_', ':', '-']))
            .filter(|mask| !mask.is_empty())
            .collect();
        if known || !unit_masks.is_empty() {
            unit_masks.sort_unstable();
            let wrong = &pieces[end];
            let near = crate::tables::nearest(unit_masks.into_iter(), &wrong.text, SUGGESTIONS);
            return (wrong.at, no_mask(beginning, wrong, owned(near)));
        }
    }
    let name = joined(pieces);
    let refusal = Refusal::UnknownEvent {
        nearest: owned(core.suggest(&name, SUGGESTIONS)),
        name,
        place: core.name().to_string(),
    };
    (at, refusal)
}

fn no_mask(event: String, piece: &NamePart, nearest: Vec<String>) -> Refusal {
    Refusal::UnknownUnitMask { event, mask: piece.text.clone(), nearest }
}
