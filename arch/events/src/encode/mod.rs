//! From a request to the registers that count it on one processor.
//!
//! A request becomes [`Encoded`]: one or more [`Choice`]s, each a set of counters with the value of
//! the event select register or the control of a fixed counter, and the extra MSR that the event
//! looks at. Which choice and which counter is taken is the business of [`crate::assign`].

mod choices;
mod draft;
mod error;
mod fields;
mod masks;
mod msrs;
mod note;
mod resolve;

pub use error::{EncodeError, Refusal};
pub use note::Note;

use crate::cpu::Vendor;
use crate::errata;
use crate::event::{Precise, Way};
use crate::hybrid;
use crate::msr::MsrValue;
use crate::processor::Processor;
use crate::register::{EventSelect, FixedControl};
use crate::request::{Attributes, Base, Request};
use crate::tables::Core;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use draft::Draft;
use resolve::Refused;

/// A request that this processor can count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The event's name as its table spells it; for raw codes, the code.
    pub name: String,
    /// What the result is to be called, if the request says so.
    pub label: Option<String>,
    /// The request as written.
    pub text: String,
    /// Where it is in its list, in bytes.
    pub at: usize,
    /// The ways to count it, the preferred one first; at least one.
    pub choices: Vec<Choice>,
    /// 0: not precise; 1 to 3: the level requested. Then PEBS must be switched on for the
    /// counter.
    pub precise: u8,
    /// What the records state of retirement is requested instead of the count: one record for so many events, 0 if that is left
    /// to whoever samples.
    pub retire_latency: Option<u64>,
    /// No other general-purpose counter may count meanwhile.
    pub taken_alone: bool,
    /// Errata known for this event here, joined by bars.
    pub errata: String,
    /// What else to know.
    pub notes: Vec<Note>,
}

/// One way to count a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Counters and their register.
    pub counters: Counters,
    /// The extra MSR that the event looks at.
    pub msr: Option<MsrValue>,
}

/// Counters that can count a request, and what to write to their control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// Any one general-purpose counter of a set.
    General {
        /// Bit mask of the counters, never 0.
        counters: u64,
        /// Event select, with EN set and the interrupt left to whoever samples.
        select: EventSelect,
        /// AMD: the next counter must take the merge event, [`merge_select`].
        merge: bool,
    },
    /// One fixed counter.
    Fixed {
        /// Its number.
        index: u8,
        /// Its field in IA32_FIXED_CTR_CTRL.
        control: FixedControl,
    },
    /// A field of MSR_PERF_METRICS, which counts together with fixed counter 3.
    Metric {
        /// Its number.
        field: u8,
        /// The field of fixed counter 3 in IA32_FIXED_CTR_CTRL.
        control: FixedControl,
    },
}

/// What the odd counter of a pair is programmed with on AMD, when the even one counts large
/// increments.
#[must_use]
pub fn merge_select() -> EventSelect {
    EventSelect { event: crate::msr::AMD_MERGE_EVENT, enable: true, ..EventSelect::default() }
}

/// Finds out how a request can be counted on this processor. `core` is the processor's table, if
/// there is one.
///
/// # Errors
/// [`EncodeError`] with the reason. It concerns this request alone.
pub fn encode(
    request: &Request,
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<Encoded, EncodeError> {
    encode_placed(request, processor, core).map_err(|(at, reason)| EncodeError {
        request: request.text.clone(),
        at,
        reason,
    })
}

fn encode_placed(
    request: &Request,
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<Encoded, Refused> {
    if let Some(pmu) = &request.pmu
        && !hybrid::fits(&pmu.name, core)
    {
        let here = core.map_or("no table", |core| core.name()).to_string();
        let wanted = pmu.name.clone();
        return Err((pmu.at, Refusal::OtherCore { wanted, here }));
    }
    let at = request.at;
    let placed = |refusal| (at, refusal);
    let mut attributes = Attributes::default();
    let mut notes = Vec::new();
    let mut draft = match &request.base {
        Base::Name(pieces) => resolve::name(pieces, &mut attributes, processor, core, &mut notes)?,
        Base::Code { event, umask } => code(*event, *umask, processor.vendor).map_err(placed)?,
        Base::Raw(value) => raw(*value, processor.vendor, &mut notes).map_err(placed)?,
        Base::Fixed(index) => Draft::fixed(*index),
        Base::Word(value) => return word(request, *value, processor).map_err(placed),
    };
    attributes.inherit(&request.attributes);
    if attributes.retire_latency.is_some() {
        // Of the event's own instruction.
        attributes.precise = attributes.precise.max(Some(2));
    }
    fields::apply(&mut draft, &attributes, processor.vendor).map_err(placed)?;
    if let Some(core) = core.filter(|_| !draft.from_table && draft.fixed.is_none()) {
        draft.learn(core);
    }
    // The request's own word on being alone comes before what a code has learned.
    draft.taken_alone = attributes.taken_alone.unwrap_or(draft.taken_alone);
    msrs::resolve_msrs(&mut draft, &attributes, processor, core).map_err(placed)?;
    let choices = choices::choices(&draft, &attributes, processor, core).map_err(placed)?;
    let precise = attributes.precise.unwrap_or(0);
    remarks(&draft, precise, processor, core, &mut notes);
    let general = choices.iter().any(|c| matches!(c.counters, Counters::General { .. }));
    Ok(Encoded {
        name: draft.name,
        label: attributes.label,
        text: request.text.clone(),
        at,
        choices,
        precise,
        retire_latency: attributes.retire_latency,
        taken_alone: draft.taken_alone && general,
        errata: draft.errata,
        notes,
    })
}

/// Why this processor does not have a field that is set here, if it does not.
pub(crate) fn absent_field(select: &EventSelect, processor: &Processor) -> Option<Refusal> {
    fields::check(select, processor).err()
}

/// `cpu/event=…,umask=…/`. Numbers that no register could take are refused here, others later.
fn code(event: u64, umask: u64, vendor: Vendor) -> Result<Draft, Refusal> {
    let fits = |field, value: u64, most| {
        u16::try_from(value).map_err(|_| Refusal::Range { field, value, most, vendor })
    };
    let (most_event, most_umask) = match vendor {
        Vendor::Intel => (0xff, 0xffff),
        Vendor::Amd => (0xfff, 0xff),
    };
    let (event, umask) = (fits("event", event, most_event)?, fits("umask", umask, most_umask)?);
    let name = format!("event={event:#x},umask={umask:#x}");
    Ok(Draft::code(name, event, umask))
}

/// perf's raw form. As there, modes, interrupt and enable in it are left out: they have modifiers.
fn raw(value: u64, vendor: Vendor, notes: &mut Vec<Note>) -> Result<Draft, Refusal> {
    let mut select = EventSelect::from_bits(vendor, value)?;
    (select.user, select.kernel, select.interrupt, select.enable) = (false, false, false, false);
    (select.pin_control, select.adaptive_record, select.log_in_branches) = (false, false, false);
    (select.rdpmc_user_disable, select.guest_only, select.host_only) = (false, false, false);
    let kept = select.to_bits(vendor);
    if kept != value {
        notes.push(Note::IgnoredBits(value & !kept));
    }
    Ok(Draft::raw(format!("r{kept:x}"), &select))
}

/// Why a function word has no modifiers. They come with a group's braces, or from whoever samples.
const WHOLE: &str =
    "it is the register's whole value; write the event as a raw code, such as r00c0";

/// A function word goes into the register as it is, into any general-purpose counter. Of modifiers it takes those that are not of the
/// register: which counter, whether alone, and the name.
fn word(request: &Request, value: u64, processor: &Processor) -> Result<Encoded, Refusal> {
    let Attributes { counter, taken_alone, ref label, .. } = request.attributes;
    let own = Attributes { counter, taken_alone, label: label.clone(), ..Attributes::default() };
    if request.attributes != own {
        let what = match request.attributes.precise {
            Some(_) => "precise counting of a function word",
            None => "a modifier of a function word",
        };
        return Err(Refusal::Absent { what, why: WHOLE });
    }
    let select = EventSelect::from_bits(processor.vendor, value)?;
    fields::check(&select, processor)?;
    if !select.user && !select.kernel {
        return Err(Refusal::NoMode);
    }
    let event = choices::of_code(select.event, select.wide_umask(), processor)
        .filter(|event| choices::denied(event, processor));
    if let Some(event) = event {
        return Err(choices::not_available(event));
    }
    let any = (u64::MAX, u64::MAX);
    let (counters, merge) = choices::general_counters(any, &select, &own, processor)?;
    let notes = if select.enable { Vec::new() } else { vec![Note::NotEnabled] };
    Ok(Encoded {
        name: format!("{value:#x}"),
        label: own.label,
        text: request.text.clone(),
        at: request.at,
        choices: vec![Choice {
            counters: Counters::General { counters, select, merge },
            msr: None,
        }],
        precise: 0,
        retire_latency: None,
        taken_alone: taken_alone.unwrap_or(false),
        errata: String::new(),
        notes,
    })
}

fn remarks(
    draft: &Draft,
    precise: u8,
    processor: &Processor,
    core: Option<&Core<'_>>,
    notes: &mut Vec<Note>,
) {
    let way = draft.ways.first().copied().unwrap_or(Way::default());
    for (so, note) in [
        (draft.deprecated, Note::Deprecated),
        (draft.doubtful, Note::Doubtful),
        (draft.precise == Precise::Only && precise == 0, Note::OnlyPrecise),
        ((draft.invert || draft.edge) && draft.cmask == 0, Note::NoCounterMask),
        (precise > 0 && !draft.precise_known, Note::PrecisionUnknown),
        (
            processor.sibling_active && errata::corrupts_sibling(core, way.event),
            Note::CorruptsSibling,
        ),
        (errata::needs_auxiliary(core, way.event, way.umask), Note::NeedsAuxiliary),
    ] {
        if so {
            notes.push(note);
        }
    }
}

#[cfg(all(test, feature = "pack"))]
mod tests;
