//! The events that each model knows, and what they count.
//!
//! A selector is looked up by event code and unit mask. If the pair is listed, that is its meaning.
//! If not, and every bit of the unit mask is listed on its own, the event counts what any of the
//! bits counts. Anything else is unknown: it counts nothing, and [`crate::Pmu::unknown_events`]
//! names it, as it does an event that the model knows but that its machine never does ([`Selection::NOTHING`]).
//!
//! Names and codes are those of the public tables (Intel's perfmon, AMD's in the Linux kernel); the
//! test `events_match_the_public_tables` holds them against copies of the lines. Core 2 and family
//! 10h have no such table; see [`crate::choices`].

mod amd;
mod architectural;
mod core2;
mod cougar_cove;
mod golden_cove;
mod gracemont;
mod groups;
mod haswell;
mod icelake;
mod join;
mod lion_cove;
mod meaning;
mod nehalem;
mod sandy_bridge;
mod sapphire_rapids;
mod skylake;

use crate::model::{Model, PmuKind, Spec};
use crate::selection::Selection;
use crate::selector::Selector;

pub(crate) use amd::{EVERY_AMD, K10, ZEN2, ZEN4};
pub(crate) use core2::CORE2;
pub(crate) use cougar_cove::COUGAR_COVE;
pub(crate) use golden_cove::GOLDEN_COVE;
pub(crate) use gracemont::GRACEMONT;
pub(crate) use haswell::HASWELL;
pub(crate) use icelake::ICE_LAKE;
use join::joined;
pub(crate) use lion_cove::LION_COVE;
pub(crate) use nehalem::NEHALEM;
pub(crate) use sandy_bridge::SANDY_BRIDGE;
pub(crate) use sapphire_rapids::SAPPHIRE_RAPIDS;
pub(crate) use skylake::SKYLAKE;

/// An event of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The vendor's name.
    pub name: &'static str,
    /// Event code; 12 bits on AMD.
    pub code: u16,
    /// Unit mask; UMASK2 in bits 15:8.
    pub umask: u16,
    /// Counter mask that belongs to the name.
    pub cmask: u8,
    /// INV that belongs to the name.
    pub invert: bool,
    /// EDGE that belongs to the name.
    pub edge: bool,
    /// Bitmap of the counters that can count it.
    pub counters: u16,
    /// What it counts.
    pub selection: Selection,
}

impl Event {
    /// An event that every counter can count.
    const fn new(name: &'static str, code: u16, umask: u16, selection: Selection) -> Self {
        Self {
            name,
            code,
            umask,
            cmask: 0,
            invert: false,
            edge: false,
            counters: u16::MAX,
            selection,
        }
    }

    /// The same, on the counters of a bitmap only.
    const fn on(mut self, counters: u16) -> Self {
        self.counters = counters;
        self
    }

    /// The same, with a counter mask.
    const fn cmask(mut self, cmask: u8) -> Self {
        self.cmask = cmask;
        self
    }

    /// The same, inverted.
    const fn inverted(mut self) -> Self {
        self.invert = true;
        self
    }

    /// The same, counting edges.
    const fn edges(mut self) -> Self {
        self.edge = true;
        self
    }
}

/// What a selector means on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The selector is 0 or names nothing that could be looked up: an unused counter.
    Unused,
    /// It counts this.
    Known(Selection),
    /// The event exists, but this counter cannot count it.
    WrongCounter,
    /// The model does not know it.
    Unknown,
}

impl Meaning {
    /// What is counted: nothing, unless the event is known.
    #[must_use]
    pub const fn selection(self) -> Selection {
        match self {
            Self::Known(selection) => selection,
            Self::Unused | Self::WrongCounter | Self::Unknown => Selection::NOTHING,
        }
    }
}

/// All events that a model knows by name: its own, then the architectural ones that its table does
/// not have under a name of its own.
pub fn all(model: Model) -> impl Iterator<Item = &'static Event> {
    all_of(model.spec())
}

/// The same of a processor.
pub fn all_of(spec: &Spec) -> impl Iterator<Item = &'static Event> {
    let list = spec.events;
    let available = spec.intel().map_or(0, crate::model::Intel::architectural_events);
    let own = move |event: &Event| {
        list.iter().any(|own| (own.code, own.umask) == (event.code, event.umask))
    };
    list.iter().chain(
        architectural::EVENTS
            .iter()
            .enumerate()
            .filter(move |(bit, event)| available & 1 << bit != 0 && !own(event))
            .map(|(_, event)| event),
    )
}

/// Looks a selector's event up for counter `counter`.
#[must_use]
pub fn decode(model: Model, selector: Selector, counter: usize) -> Meaning {
    decode_of(model.spec(), selector, counter)
}

/// The same on a processor.
#[must_use]
pub fn decode_of(spec: &Spec, selector: Selector, counter: usize) -> Meaning {
    let (code, umask) = match spec.pmu {
        PmuKind::Absent => return Meaning::Unused,
        PmuKind::Intel(_) => (selector.intel_code(), selector.intel_umask()),
        PmuKind::Amd(_) => (selector.amd_code(), selector.amd_umask()),
    };
    if code == 0 && umask == 0 {
        return Meaning::Unused;
    }
    let mut exact =
        all_of(spec).filter(|event| event.code == code && event.umask == umask).peekable();
    if exact.peek().is_some() {
        return exact
            .find(|event| event.counters & 1 << counter != 0)
            .map_or(Meaning::WrongCounter, |event| Meaning::Known(event.selection));
    }
    union(spec, code, umask, counter)
}

/// A unit mask whose bits are all listed on their own.
fn union(spec: &Spec, code: u16, umask: u16, counter: usize) -> Meaning {
    let mut selection = Selection::NOTHING;
    let mut left = umask;
    let mut counters = u16::MAX;
    for event in all_of(spec).filter(|event| event.code == code && event.umask.is_power_of_two()) {
        if umask & event.umask != 0 {
            selection = selection.or(event.selection);
            left &= !event.umask;
            counters &= event.counters;
        }
    }
    match (umask, left) {
        (0, _) => Meaning::Unknown,
        (_, 0) if counters & 1 << counter == 0 => Meaning::WrongCounter,
        (_, 0) => Meaning::Known(selection),
        _ => Meaning::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occurrence::Occurrence;

    fn intel(code: u64, umask: u64) -> Selector {
        Selector(code | umask << 8)
    }

    #[test]
    fn exact_pair_wins_over_bits() {
        let Meaning::Known(all) = decode(Model::Skylake, intel(0xC4, 0), 0) else {
            panic!("C4/00 is architectural");
        };
        assert!(all.has(Occurrence::FarBranch) && all.has(Occurrence::JccNotTaken));
    }

    #[test]
    fn bits_of_a_unit_mask_add_up() {
        let Meaning::Known(both) = decode(Model::Skylake, intel(0xC4, 0x48), 0) else {
            panic!("far branches and returns");
        };
        assert!(both.has(Occurrence::FarBranch) && both.has(Occurrence::Return));
        assert!(!both.has(Occurrence::JccNotTaken));
    }

    #[test]
    fn one_unknown_bit_makes_it_unknown() {
        assert_eq!(decode(Model::Skylake, intel(0xC4, 0x80), 0), Meaning::Unknown);
        assert_eq!(decode(Model::Skylake, intel(0xC4, 0x81), 0), Meaning::Unknown);
    }

    #[test]
    fn wrong_counter_is_told_from_unknown() {
        // MEM_INST_RETIRED.ALL_LOADS: counters 0 to 3 only.
        assert!(matches!(decode(Model::Skylake, intel(0xD0, 0x81), 3), Meaning::Known(_)));
        assert_eq!(decode(Model::Skylake, intel(0xD0, 0x81), 4), Meaning::WrongCounter);
    }

    #[test]
    fn umask2_belongs_to_the_unit_mask() {
        let selector = Selector(0x100_0051_11C4);
        assert!(matches!(decode(Model::ArrowLake, selector, 0), Meaning::Known(_)));
    }

    #[test]
    fn enough_events_by_name() {
        for model in Model::ALL {
            let least = match model {
                Model::None => 0,
                Model::Core2 | Model::K10 => 15,
                _ => 20,
            };
            assert!(all(model).count() >= least, "{model:?}");
        }
    }

    #[test]
    fn no_pair_means_two_things() {
        for model in Model::ALL {
            for (index, event) in all(model).enumerate() {
                for other in all(model).skip(index + 1) {
                    let same = (event.code, event.umask) == (other.code, other.umask);
                    let shared = event.counters & other.counters != 0;
                    assert!(
                        !(same && shared) || event.selection == other.selection,
                        "{model:?}: {} and {}",
                        event.name,
                        other.name
                    );
                }
            }
        }
    }
}
