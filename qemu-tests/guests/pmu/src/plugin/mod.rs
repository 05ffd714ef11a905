//! The plugin in QEMU's translator, below which there is no hypervisor: the guest calls it itself. Every count was worked
//! out by hand.

mod accesses;
mod branches;
mod cost;
mod faults;
mod limits;
mod model;
mod own;
mod places;
mod qualified;
mod strings;

use crate::{case, line};
use plugin_channel::{Limit, Mode, Parts};
use pmu_model::Occurrence;

/// A function, and what it counts: occurrences, repeated string instructions begun and ended, instructions. RET counts.
struct Test {
    name: &'static str,
    function: u64,
    argument: u64,
    counts: &'static [(Occurrence, u64)],
    strings: (u64, u64),
    instructions: u64,
    /// Of the conditional jumps that fell through, those backward.
    fell_back: u64,
}

impl Test {
    const fn new(
        name: &'static str,
        counts: &'static [(Occurrence, u64)],
        instructions: u64,
    ) -> Self {
        Self { name, function: 0, argument: 0, counts, strings: (0, 0), instructions, fell_back: 0 }
    }

    fn at(mut self, function: unsafe extern "C" fn()) -> Self {
        self.function = function as *const () as u64;
        self
    }

    fn with(mut self, argument: u64) -> Self {
        self.argument = argument;
        self
    }

    fn strings(mut self, starts: u64, ends: u64) -> Self {
        self.strings = (starts, ends);
        self
    }

    fn fell_back(mut self, jumps: u64) -> Self {
        self.fell_back = jumps;
        self
    }

    fn run(&self) -> own::Counted {
        self.limited(&[])
    }

    fn limited(&self, limits: &[Limit]) -> own::Counted {
        // SAFETY: one processor.
        let (mode, mask) = unsafe { MODE };
        let mut counted = own::run(self.function, self.argument, limits);
        if mode.intersects(Mode::PREDICTOR | Mode::RECORDS) {
            fold(&mut counted.counts);
        }
        for occurrence in Occurrence::ALL {
            let index = occurrence as usize;
            if mask >> index & 1 == 0 {
                continue;
            }
            let is_this = |(other, _): &&(Occurrence, u64)| *other == occurrence;
            let mut expected = self.counts.iter().find(is_this).map_or(0, |(_, count)| *count);
            if !mode.intersects(Mode::TAKEN | Mode::PREDICTOR | Mode::RECORDS) {
                expected = self.without_taken(occurrence, expected);
            }
            if expected != 0 || counted.counts[index] != 0 {
                line!("case {}.{occurrence:?} {} {expected}", self.name, counted.counts[index]);
            }
        }
        if mode.contains(Mode::STRINGS) {
            line!("case {}.starts {} {}", self.name, counted.starts, self.strings.0);
            line!("case {}.ends {} {}", self.name, counted.ends, self.strings.1);
        }
        if mode.contains(Mode::INSTRUCTIONS) {
            line!("case {}.instructions {} {}", self.name, counted.instructions, self.instructions);
        }
        counted
    }

    /// A conditional jump that fell through counts by its direction.
    fn without_taken(&self, occurrence: Occurrence, expected: u64) -> u64 {
        let is_not_taken = |(other, _): &&(Occurrence, u64)| *other == Occurrence::JccNotTaken;
        let fell = self.counts.iter().find(is_not_taken).map_or(0, |(_, count)| *count);
        match occurrence {
            Occurrence::JccNotTaken => 0,
            Occurrence::JccTakenForward => expected + fell - self.fell_back,
            Occurrence::JccTakenBackward => expected + self.fell_back,
            _ => expected,
        }
    }
}

/// Mispredicted branches as the others.
fn fold(counts: &mut [u64]) {
    use Occurrence::{JccNotTaken, MissedIndirectJump, MissedJccNotTaken};
    for missed in MissedJccNotTaken as usize..=MissedIndirectJump as usize {
        let count = core::mem::take(&mut counts[missed]);
        counts[missed - MissedJccNotTaken as usize + JccNotTaken as usize] += count;
    }
}

/// The mode, and which occurrences are counted in it.
static mut MODE: (Mode, u64) = (Mode::empty(), 0);

const BRANCHES: u64 = (1 << (Occurrence::FarBranch as u64 + 1)) - 1;
const ACCESSES: u64 = 1 << Occurrence::Load as u64
    | 1 << Occurrence::Store as u64
    | 1 << Occurrence::LoadStore as u64
    | 1 << Occurrence::Locked as u64
    | 1 << Occurrence::ClFlush as u64;

fn set(mode: Mode, parts: Parts, mask: u64) {
    // SAFETY: one processor.
    unsafe { MODE = (mode, mask) };
    own::mode(mode, parts);
}

pub fn run(group: &str) {
    let (found, stops) = own::set_up();
    crate::machine::open_to_execution(code(0), 3 * 4096);
    case("plugin", found.into(), 1);
    if group == "stopless" {
        return case("stops", stops.into(), 0);
    }
    case("stops", stops.into(), 1);
    let (mode, parts, mask) = match group {
        "branches" => (Mode::BRANCHES, Parts::empty(), BRANCHES),
        "taken" => (Mode::BRANCHES | Mode::TAKEN, Parts::empty(), BRANCHES),
        "accesses" => (Mode::ACCESSES, Parts::empty(), ACCESSES),
        "strings" => (Mode::STRINGS, Parts::empty(), 0),
        "instructions" => (Mode::INSTRUCTIONS, Parts::empty(), 0),
        "inline" => (
            Mode::BRANCHES | Mode::TAKEN | Mode::ACCESSES | Mode::STRINGS | Mode::INSTRUCTIONS,
            Parts::empty(),
            BRANCHES | ACCESSES,
        ),
        "memory" => (Mode::MEMORY, Parts::empty(), ACCESSES),
        "caches" => (Mode::MEMORY, Parts::MEMORY, ACCESSES),
        "predictor" => (Mode::PREDICTOR, Parts::PREDICTOR, BRANCHES),
        // This guest is in long mode.
        "everything" => (Mode::all(), Parts::all().difference(Parts::LEGACY), BRANCHES | ACCESSES),
        "model" => return model::run(),
        "records" => return model::records(),
        _ if group.starts_with("cost.") => return cost::run(&group[5..]),
        "limits" => return limits::run(),
        "qualified" => return qualified::run(),
        other => return line!("no group {other}"),
    };
    set(mode, parts, mask);
    branches::run();
    accesses::run();
    strings::run();
    faults::run();
    places::run();
}

/// Data, and pages that can be taken away, and pages that can be written and executed.
#[repr(C, align(4096))]
struct Pages<const BYTES: usize>([u8; BYTES]);

static mut AREA: Pages<8192> = Pages([0; 8192]);
static mut PAGES: Pages<{ 4 * 4096 }> = Pages([0; 4 * 4096]);
static mut CODE: Pages<{ 3 * 4096 }> = Pages([0; 3 * 4096]);

fn area(offset: u64) -> u64 {
    (&raw mut AREA) as u64 + offset
}

fn page(number: u64) -> u64 {
    (&raw mut PAGES) as u64 + 4096 * number
}

fn code(number: u64) -> u64 {
    (&raw mut CODE) as u64 + 4096 * number
}
