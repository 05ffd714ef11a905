//! What the firmware makes of a recorded processor.

use crate::registers::Recorded;
use arch::cpu::Identity;
use arch::pmu::{
    Capabilities, Counter, Driver, FreezeKind, Missing, Registers as _, Selection, find, leaves,
};
use events::cpu::Vendor;
use events::encode::encode;
use events::generic::NAMES;
use events::pack::Sources;
use events::parse::parse_event;
use events::tables::Core;
use kernel::events::{Known, open};
use kernel::snippet::events::plan;
use protocol::job::{Job, OnEnd};
use protocol::ramdisk::{SectionKind, pack_with};
use protocol::record::EventTables;
use recorded::Leaves;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What came of one.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Who it is.
    pub identity: Identity,
    /// Its PMU, or why there is none.
    pub pmu: Result<Pmu, String>,
}

/// A PMU.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pmu {
    /// Whether it is of Intel's kind.
    pub intel: bool,
    /// Its version.
    pub version: u32,
    /// General-purpose counters.
    pub counters: u32,
    /// Their width.
    pub bits: u32,
    /// Fixed counters.
    pub fixed: u32,
    /// Their width.
    pub fixed_bits: u32,
    /// How a PMI freezes.
    pub freeze: FreezeKind,
    /// The event table, or why there is none.
    pub table: Result<String, String>,
    /// Events of the table.
    pub events: usize,
    /// Architectural events that it counts.
    pub architectural: usize,
    /// Generic events that it counts, of [`NAMES`].
    pub generic: usize,
    /// Passes in which all of these are counted.
    pub passes: usize,
}

/// A job with the event tables, as an image has it.
fn ramdisk() -> &'static [u8] {
    static RAMDISK: OnceLock<Vec<u8>> = OnceLock::new();
    RAMDISK.get_or_init(|| {
        let job = Job {
            name: Cow::Borrowed("test"),
            baud: 115_200,
            on_end: OnEnd::Halt,
            exit_port: None,
            self_test: None,
            requires: vec![],
            items: vec![],
            criteria: vec![],
            memory: vec![],
        };
        let tables = Sources::embedded().unwrap().pack().unwrap();
        pack_with(&job, &[(SectionKind::EventTables, &tables)]).unwrap()
    })
}

impl Outcome {
    /// Takes a processor through all that the firmware does before it counts the generic events.
    pub fn of(recorded: &Leaves) -> Self {
        Self::with(recorded, &NAMES)
    }

    /// The same with these events.
    pub fn with(recorded: &Leaves, events: &[&str]) -> Self {
        let mut registers = Recorded::new(recorded);
        let identity = Identity::read(&leaves(&registers));
        let found = find(&mut registers);
        // A processor whose registers all fault has no PMU that could be used, and says so.
        let closed = find(&mut Recorded::without_registers(recorded));
        assert!(matches!(closed, Err(Missing::Faults(_) | Missing::NotAnnounced)), "{closed:?}");
        let pmu = match found {
            Ok(has) => Ok(pmu(&mut registers, &identity, &has, events)),
            Err(missing) => Err(missing.to_string()),
        };
        Self { identity, pmu }
    }
}

/// What names are looked up in, once for each processor: the checksum of the tables takes its time.
fn names(identity: &Identity, registers: &Recorded) -> (Option<Core<'static>>, EventTables) {
    type Opened = BTreeMap<String, (Option<Core<'static>>, EventTables)>;
    static OPENED: Mutex<Opened> = Mutex::new(BTreeMap::new());
    let asked = [0, 7, 0x1a].map(|leaf| registers.cpuid(leaf, 0));
    let key = format!("{identity:?} {asked:?}");
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = opened.entry(key).or_insert_with(|| {
        let names = open(ramdisk(), identity, &leaves(registers)).expect("the tables came along");
        assert!(names.error.is_none(), "{:?}", names.error);
        (names.core, names.record)
    });
    found.clone()
}

fn pmu(registers: &mut Recorded, identity: &Identity, has: &Capabilities, events: &[&str]) -> Pmu {
    let (core, record) = names(identity, registers);
    let known = Known::new(has, core, registers);
    let architectural =
        events::architectural::ALL.iter().filter(|event| event.is_available(&known.processor));
    let countable = |name: &&&str| {
        let request = parse_event(name).expect("a name");
        encode(&request, &known.processor, known.core.as_ref()).is_ok()
    };
    let generic: Vec<Cow<str>> =
        events.iter().filter(countable).map(|name| Cow::Borrowed(*name)).collect();
    let planned = plan(&generic, &known);
    assert!(planned.uncounted.is_empty(), "{planned:?}");
    let counted: usize = planned.passes.iter().map(Vec::len).sum();
    assert_eq!(counted, generic.len());
    program(registers, has, &planned.passes);
    Pmu {
        intel: known.processor.vendor == Vendor::Intel,
        version: has.version,
        counters: has.general.count_ones(),
        bits: has.general_bits,
        fixed: has.fixed.count_ones(),
        fixed_bits: has.fixed_bits,
        freeze: has.freeze,
        table: record.table.ok_or_else(|| record.absent.unwrap_or_default()),
        events: record.events as usize,
        architectural: architectural.count(),
        generic: generic.len(),
        passes: planned.passes.len(),
    }
}

/// Programs every pass as it was planned.
fn program(
    registers: &mut Recorded,
    has: &Capabilities,
    passes: &[Vec<kernel::snippet::events::Counted>],
) {
    for pass in passes {
        let mut driver = Driver::new(has.clone());
        let programs: Vec<(Counter, Selection)> =
            pass.iter().flat_map(kernel::snippet::events::Counted::programs).collect();
        for (counter, selection) in programs {
            driver.program(registers, counter, &selection).unwrap_or_else(|error| {
                panic!("{counter}: {error}: {has:?}");
            });
        }
    }
}
