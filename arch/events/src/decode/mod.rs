//! From registers back to names: all events that the registers may stand for, the best one first.
//!
//! Every candidate's text is in the syntax of [`crate::parse`] and encodes to the same registers
//! again, but for the bits that it names: no text of an event requests an interrupt, or for a counter
//! that counts in no ring.

mod masks;
mod text;

use crate::architectural;
use crate::cpu::Vendor;
use crate::event::{Event, Precise, Way};
use crate::msr::{LOAD_LATENCY, MsrValue};
use crate::register::{EventSelect, FixedControl, ReservedBits};
use crate::tables::Core;
use alloc::string::String;
use alloc::vec::Vec;

/// USR and OS.
const MODES: u64 = 3 << 16;

/// How near a candidate is to the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// The event as its table has it.
    Exact,
    /// The event with other settings, which the text names.
    Modified,
    /// A load-latency event with another threshold, which the text names.
    OtherThreshold,
    /// The event, if its extra MSR holds the right value, which is not known.
    MsrUnknown,
    /// Several unit masks of one event.
    UnitMasks,
    /// An architectural event, without a table.
    Architectural,
    /// No name: the code itself.
    Raw,
    /// The whole register as it is, as a function word.
    Word,
}

/// One reading of the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'t> {
    /// The event, if it is one of the table. With several unit masks: none.
    pub event: Option<Event<'t>>,
    /// How near it is.
    pub closeness: Closeness,
    /// What to request to get these registers.
    pub text: String,
    /// Bits in which the register that the text gets differs from the one read: what the text
    /// cannot say. See [`EventSelect::fields`]; for a fixed counter, bits of its field.
    pub differs: u64,
}

/// Reads a general-purpose counter's event select register. `msrs`: what the extra MSRs hold, as
/// far as it is known.
///
/// # Errors
/// [`ReservedBits`] if no event select register of this vendor can hold the value.
pub fn general<'t>(
    value: u64,
    msrs: &[MsrValue],
    vendor: Vendor,
    core: Option<&Core<'t>>,
) -> Result<Vec<Candidate<'t>>, ReservedBits> {
    let select = EventSelect::from_bits(vendor, value)?;
    let mut candidates = Vec::new();
    // Offcore events by the thousand differ in nothing but the MSR's value. Thresholds are kept:
    // any of them names the event.
    let any_value = msrs.is_empty() || msrs.iter().any(|msr| msr.address == LOAD_LATENCY);
    let keep = |value| any_value || value == 0 || msrs.iter().any(|msr| msr.value == value);
    let events: Vec<Event<'t>> =
        core.map_or_else(Vec::new, |core| core.with_code_if(select.event, keep).collect());
    let differs = value ^ text::said(&select).to_bits(vendor);
    if core.is_some() {
        let read = |event| candidate(event, &select, msrs, differs);
        candidates.extend(events.iter().filter_map(read));
        // One threshold is as good as another to start from.
        let mut thresholds = 0;
        candidates.retain(|candidate| {
            thresholds += usize::from(candidate.closeness == Closeness::OtherThreshold);
            candidate.closeness != Closeness::OtherThreshold || thresholds == 1
        });
        candidates.extend(masks::candidates(&events, &select, differs));
    }
    if let Some(event) = unnamed(&select, vendor, core, differs) {
        candidates.push(event);
    }
    let raw = text::raw(&select, msrs, vendor, core);
    let neither = !select.user && !select.kernel;
    // A function word can say everything but a register that counts in no ring.
    let unsaid = if neither { MODES } else { 0 };
    let word = (raw.is_none() || differs != unsaid).then(|| Candidate {
        event: None,
        closeness: Closeness::Word,
        text: alloc::format!("{:#x}", value | unsaid),
        differs: unsaid,
    });
    candidates.extend(raw.map(|text| Candidate {
        event: None,
        closeness: Closeness::Raw,
        text,
        differs,
    }));
    candidates.extend(word);
    sort(&mut candidates);
    Ok(candidates)
}

/// Reads a fixed counter's control. `control` with both modes off reads as the event that would be
/// counted.
#[must_use]
pub fn fixed<'t>(index: u8, control: FixedControl, core: Option<&Core<'t>>) -> Vec<Candidate<'t>> {
    let neither = !control.user && !control.kernel;
    let said = FixedControl {
        user: control.user || neither,
        kernel: control.kernel || neither,
        interrupt: false,
        ..control
    };
    let differs = u64::from(said.to_nibble() ^ control.to_nibble());
    let mut candidates: Vec<Candidate<'t>> = core
        .into_iter()
        .flat_map(Core::events)
        .filter(|event| event.fixed == Some(index))
        .map(|event| {
            let exact = event.any_thread == control.any_thread;
            Candidate {
                event: Some(event),
                closeness: if exact { Closeness::Exact } else { Closeness::Modified },
                text: text::fixed(event.name, event.any_thread, control),
                differs,
            }
        })
        .collect();
    candidates.push(Candidate {
        event: None,
        closeness: Closeness::Raw,
        text: text::fixed(&alloc::format!("fixed{index}"), false, control),
        differs,
    });
    sort(&mut candidates);
    candidates
}

/// Best first; among equals names in use before deprecated ones, and plain events before those that
/// need PEBS. The rest stays in the table's order.
fn sort(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by_key(|candidate| {
        let event = candidate.event.as_ref();
        let only_precise = event.is_some_and(|event| event.precise == Precise::Only);
        let deprecated = event.is_some_and(|event| event.deprecated);
        (candidate.closeness, deprecated, only_precise)
    });
}

fn has_code(way: &Way, select: &EventSelect) -> bool {
    way.event == select.event && way.umask == select.wide_umask()
}

fn candidate<'t>(
    event: &Event<'t>,
    select: &EventSelect,
    msrs: &[MsrValue],
    differs: u64,
) -> Option<Candidate<'t>> {
    let way = event.ways().iter().find(|way| has_code(way, select))?;
    let held = way.msr.and_then(|address| msrs.iter().find(|msr| msr.address == address));
    let other = held.filter(|msr| msr.value != event.msr_value);
    let same = (event.cmask, event.invert, event.edge, event.any_thread)
        == (select.cmask, select.invert, select.edge, select.any_thread)
        && !(select.equal || select.in_tx || select.in_tx_checkpointed || select.pin_control)
        && !(select.guest_only || select.host_only);
    let closeness = match (way.msr, other) {
        // Another threshold is the same event; another selection of responses is another event.
        (Some(LOAD_LATENCY), Some(_)) => Closeness::OtherThreshold,
        (Some(_), Some(_)) => return None,
        (Some(_), None) if held.is_none() => Closeness::MsrUnknown,
        // Offcore responses without a value of their own: only the MSR says what is counted.
        (None, _) if event.ways().len() > 1 => return None,
        _ if same => Closeness::Exact,
        _ => Closeness::Modified,
    };
    let text = text::event(event, select, other);
    Some(Candidate { event: Some(*event), closeness, text, differs })
}

/// An architectural event without a table, by its generic name.
fn unnamed<'t>(
    select: &EventSelect,
    vendor: Vendor,
    core: Option<&Core<'t>>,
    differs: u64,
) -> Option<Candidate<'t>> {
    let event = architectural::ALL.iter().find(|event| {
        let known = vendor == Vendor::Intel || event.amd.is_some();
        known && has_code(&event.way(vendor), select)
    });
    let event = event.filter(|_| core.is_none())?;
    let generic = crate::generic::Generic::of_architectural(event.index)?;
    Some(Candidate {
        event: None,
        closeness: Closeness::Architectural,
        text: text::with_settings(generic.name(), &EventSelect::default(), select),
        differs,
    })
}

#[cfg(all(test, feature = "pack"))]
mod tests;
