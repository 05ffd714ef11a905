//! Generic events: one name and one number for each, the same on every processor.
//!
//! Numbers 0 to 37 are the columns of `data/generic.csv`, which says what each is called in each
//! table. Numbers 38 to 45 are Intel's architectural events, in the order of CPUID.0AH:EBX.

use crate::architectural::{self, Architectural};
use crate::cpu::Vendor;
use crate::event::Event;
use crate::processor::Processor;
use crate::tables::{Core, fold};
use core::fmt;

/// All names; a generic event's number is its index here. Never renumbered, only added to.
pub const NAMES: [&str; 46] = [
    "cycles",
    "cycles-fixed",
    "ref-cycles",
    "ref-cycles-fixed",
    "bus-cycles",
    "instructions",
    "instructions-fixed",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "loads",
    "stores",
    "L1-dcache-accesses",
    "L1-dcache-load-misses",
    "L1-icache-loads",
    "L1-icache-load-misses",
    "L2-references",
    "L2-misses",
    "dTLB-l2-hits",
    "dTLB-load-misses",
    "dTLB-store-misses",
    "dTLB-misses-all",
    "iTLB-loads",
    "iTLB-l2-hits",
    "iTLB-load-misses",
    "uops-issued",
    "uops-retired",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "frontend-bound-slots",
    "backend-bound-slots",
    "slots",
    "slots-fixed",
    "load-latency",
    "machine-clears",
    "interrupts",
    "smi",
    "arch-core-cycles",
    "arch-instructions",
    "arch-ref-cycles",
    "arch-llc-references",
    "arch-llc-misses",
    "arch-branches",
    "arch-branch-misses",
    "arch-slots",
];

/// How many names have a column in the tables.
pub const TABLE_NAMES: usize = 38;

/// Other names for the same: perf's four, and barecount's own from before it had tables. Sampling takes more of perf's two of
/// memory than a count can tell.
const ALIASES: [(&str, &str); 5] = [
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("mem-loads", "load-latency"),
    ("mem-stores", "stores"),
    ("reference-cycles", "ref-cycles-fixed"),
];

/// One generic event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generic(u8);

impl Generic {
    /// All, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len() as u8).map(Self)
    }

    /// The one with this number, if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        (usize::from(number) < NAMES.len()).then_some(Self(number))
    }

    /// The one with this name, or with perf's name for it; spelling is forgiving.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = ALIASES
            .iter()
            .find(|(alias, _)| fold::same(alias, name))
            .map_or(name, |(_, name)| name);
        Self::all().find(|generic| fold::same(generic.name(), name))
    }

    /// Its number, the same on every processor.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name, the same on every processor.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// Its column in the tables.
    pub(crate) fn table_column(self) -> Option<usize> {
        (usize::from(self.0) < TABLE_NAMES).then_some(self.0.into())
    }

    /// The architectural event that it is, or that stands in for it where a table has no event.
    #[must_use]
    pub fn architectural(self) -> Option<Architectural> {
        let index = match self.name() {
            "cycles" | "cycles-fixed" => 0,
            "instructions" | "instructions-fixed" => 1,
            "ref-cycles-fixed" => 2,
            "cache-references" => 3,
            "cache-misses" => 4,
            "branches" => 5,
            "branch-misses" => 6,
            "slots" | "slots-fixed" => 7,
            _ => self.0.checked_sub(TABLE_NAMES as u8)?,
        };
        architectural::ALL.get(usize::from(index)).copied()
    }

    /// The generic name of the architectural event with this bit in CPUID.0AH:EBX.
    #[must_use]
    pub fn of_architectural(index: u8) -> Option<Self> {
        Self::from_number(index.checked_add(TABLE_NAMES as u8)?)
    }

    /// Whether it requests the fixed counter.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        self.name().ends_with("-fixed")
    }

    /// What it means on this processor. An event of the table comes first; where the table has
    /// none, or there is no table, an architectural event that the processor announces.
    #[must_use]
    pub fn meaning<'t>(self, processor: &Processor, core: Option<&Core<'t>>) -> Meaning<'t> {
        if let Some(event) = core.and_then(|core| core.generic(self)) {
            return Meaning::Event(event);
        }
        // AMD has no fixed counters, so a name that requests one means nothing there.
        let wanted = processor.vendor == Vendor::Intel || !self.is_fixed();
        match self.architectural().filter(|_| wanted) {
            Some(event) if event.is_available(processor) => Meaning::Architectural(event),
            _ => Meaning::None,
        }
    }
}

impl fmt::Display for Generic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a generic event is on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'t> {
    /// An event of the processor's table.
    Event(Event<'t>),
    /// An event that the vendor promises for all its processors.
    Architectural(Architectural),
    /// This processor cannot count it.
    None,
}

/// What each generic event means on this processor, those included that mean nothing.
pub fn meanings<'t>(
    processor: &Processor,
    core: Option<&Core<'t>>,
) -> impl Iterator<Item = (Generic, Meaning<'t>)> {
    Generic::all().map(move |generic| (generic, generic.meaning(processor, core)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn m2_each_generic_event_has_one_name_and_one_number() {
        for generic in Generic::all() {
            assert_eq!(Generic::from_name(generic.name()), Some(generic));
            assert_eq!(Generic::from_number(generic.number()), Some(generic));
        }
        assert_eq!(Generic::from_name("CPU_CYCLES").unwrap().number(), 0);
        assert_eq!(Generic::from_name("l1_dcache_load_misses").unwrap().number(), 14);
        assert_eq!(Generic::from_number(46), None);
        assert_eq!(Generic::from_name("no-such-event"), None);
    }

    #[test]
    fn m2_architectural_events_work_without_a_table() {
        let intel = Processor::intel(4, 4, 3);
        let known = |name| Generic::from_name(name).unwrap().meaning(&intel, None);
        assert!(matches!(known("instructions"), Meaning::Architectural(a) if a.index == 1));
        assert!(matches!(known("arch-llc-misses"), Meaning::Architectural(a) if a.index == 4));
        assert_eq!(known("dTLB-load-misses"), Meaning::None);
        let none = Processor { architectural_events: 0, ..intel };
        assert_eq!(Generic::from_name("branches").unwrap().meaning(&none, None), Meaning::None);
    }

    #[test]
    fn m2_what_asks_for_a_fixed_counter_means_nothing_on_amd() {
        let amd = Processor::amd(true, true);
        let meaning = |name| Generic::from_name(name).unwrap().meaning(&amd, None);
        for generic in Generic::all().filter(|generic| generic.is_fixed()) {
            assert_eq!(generic.meaning(&amd, None), Meaning::None, "{generic}");
        }
        assert!(matches!(meaning("cycles"), Meaning::Architectural(a) if a.amd == Some(0x76)));
        assert!(matches!(meaning("instructions"), Meaning::Architectural(_)));
    }

    /// Each name's architectural event, by its bit of CPUID.0AH:EBX (SDM vol. 3, table 20-1), and whether it is the fixed
    /// counter's.
    #[test]
    fn m2_names_stand_for_architectural_events() {
        for (name, bit, fixed) in [
            ("cycles", Some(0), false),
            ("cycles-fixed", Some(0), true),
            ("instructions", Some(1), false),
            ("instructions-fixed", Some(1), true),
            ("ref-cycles", None, false),
            ("ref-cycles-fixed", Some(2), true),
            ("cache-references", Some(3), false),
            ("cache-misses", Some(4), false),
            ("branches", Some(5), false),
            ("branch-misses", Some(6), false),
            ("slots", Some(7), false),
            ("slots-fixed", Some(7), true),
            ("smi", None, false),
            ("arch-core-cycles", Some(0), false),
            ("arch-slots", Some(7), false),
        ] {
            let generic = Generic::from_name(name).unwrap();
            assert_eq!(generic.architectural().map(|event| event.index), bit, "{name}");
            assert_eq!((generic.is_fixed(), generic.to_string()), (fixed, name.to_string()));
            let of_table = !name.starts_with("arch-");
            assert_eq!(
                generic.table_column(),
                of_table.then_some(generic.number().into()),
                "{name}"
            );
        }
        let by_fixed = |n| architectural::by_fixed(n).map(|event| event.index);
        assert_eq!([0, 1, 2, 3, 4].map(by_fixed), [Some(1), Some(0), Some(2), Some(7), None]);
    }
}
