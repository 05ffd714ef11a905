//! The real machine as what runs a job's items.
//!
//! [`loaded`], [`asked`], [`found`] and [`others`] are its parts; what is counted is in [`Counting`]. [`items`] is the loop's
//! machine, [`runner`] that of snippets, [`stepper`] that of exact mode.

mod asked;
mod found;
mod items;
mod loaded;
mod others;
mod qualified;
mod runner;
mod stepper;

pub use loaded::once_alone;

use super::boot::Handed;
use super::control::Controls;
use super::counters::Counters;
use super::energy::EnergyMeters;
use super::heap;
use super::output::Line;
use super::passes::Counting;
use super::probe::Machine;
use super::programs::Programs;
use super::reset::{self, Reloading};
use super::stacks;
use super::tasks::Slots;
use super::uncore::UncoreCounters;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use arch::memory::arena::Arena;
use arch::memory::user::UserPages;
use arch::memory::{Frames, Space};
use arch::pmu::energy::NoEnergy;
use arch::pmu::workload;
use arch::time::tsc;
use asked::Asked;
use found::Found;
use kernel::heartbeat::{Beat, Heartbeat};
use kernel::report::Report;
use kernel::run;
use kernel::screen::{Header, Status};
use loaded::Loaded;
use others::Others;
use protocol::job::Job;
use protocol::ramdisk::RamdiskError;
use protocol::record::{End, ErrorCode, ErrorRecord, Outcome, Record};

/// The machine, as what runs a job's items. Each part has a rule of its own, which its documentation states.
pub(super) struct Target<'a> {
    pub(super) machine: &'a Machine,
    pub(super) space: Space,
    /// What is loaded.
    pub(super) loaded: Loaded,
    /// What is counted.
    pub(super) counting: Counting,
    /// The registers of energy, or why there are none.
    meters: Result<EnergyMeters, NoEnergy>,
    /// Counters of the uncore that run.
    uncore: UncoreCounters,
    /// What the item asks of the machine.
    pub(super) asked: Asked,
    /// What is put back after every item.
    found: Found,
    /// Who else runs.
    pub(super) others: Others,
    /// Code that snippets and tasks call.
    pub(super) programs: Programs,
    /// Memory of tasks.
    pub(super) slots: Slots,
    /// What the conformance suite runs in ring 3.
    user: UserPages,
    /// Where to tell how far an item is.
    pub(super) heart: &'a dyn Beat,
    /// TSC when it was last told by a run.
    told: u64,
    /// The item that runs.
    item: u32,
}

/// Runs the job.
pub fn run(
    job: &Job,
    machine: &Machine,
    mut handed: Handed,
    mut space: Space,
    report: &mut Report<Line>,
) -> End {
    header(machine, &job.name);
    // At most one progress record a second.
    let heart = Heartbeat::new(report, machine.clock.hz, tsc::now(), job.items.len() as u32);
    let reloading = Reloading { heart: &heart, every: machine.clock.hz };
    let mut arena = map_arena(&mut space, &mut handed.frames);
    let user = UserPages::map(&mut space, &mut handed.frames, workload::user_code())
        .unwrap_or_else(|error| panic!("no memory for ring 3: {error}"));
    let counting = Counting {
        // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and arms no interrupt here.
        own: unsafe { Counters::new(machine.pmu.clone().ok()) },
        plan: Default::default(),
        nothing: Default::default(),
        timer: None,
        code_segment: 0,
    };
    // The upper levels of the code area's page tables keep what the first snippet of ring 3 would change.
    arena.set_user_code(&mut space, true);
    arena.set_user_code(&mut space, false);
    // SAFETY: ring 0, interrupt table loaded; the tables are the firmware's, and no foreign code has run yet.
    let found = unsafe { Found::take(&mut space, machine) };
    // SAFETY: as for the counters.
    let controls = unsafe { Controls::new(machine, handed.frames) };
    let mut target = Target {
        machine,
        space,
        loaded: Loaded::new(arena),
        counting,
        meters: EnergyMeters::new(machine),
        uncore: UncoreCounters::default(),
        asked: Asked::new(controls),
        found,
        others: Others::default(),
        programs: Programs::new(handed.ramdisk.unwrap_or_default()),
        slots: Slots::default(),
        user,
        heart: &reloading,
        told: 0,
        item: 0,
    };
    let before = heap::mark();
    let end = run::run(job, &mut target, &heart);
    reset::stop();
    let (heap, stack) = (Some(heap::used_since(before)), Some(stacks::used()));
    let end = End { heap, stack, ..end };
    target.others.release();
    end
}

fn map_arena(space: &mut Space, frames: &mut Frames) -> Arena {
    Arena::map(space, frames).unwrap_or_else(|error| panic!("no memory for snippets: {error}"))
}

fn header(machine: &Machine, job: &str) {
    if let Some(display) = &machine.display {
        display.lock().header(Header {
            title: concat!("barecount ", env!("CARGO_PKG_VERSION")).to_string(),
            job: job.to_string(),
            machine: machine.lines.clone(),
            ways: machine.ways.clone(),
        });
    }
}

/// Reports that the job cannot be run.
pub fn no_job(error: &RamdiskError, machine: &Machine, report: &mut Report<Line>) -> End {
    let (code, text) = (ErrorCode::BadJob, format!("the job cannot be used: {error}"));
    header(machine, "none");
    if let Some(display) = &machine.display {
        let (outcome, last_error) = (Some(Outcome::BadJob), Some(text.clone()));
        display.lock().status(&Status { outcome, last_error, ..Status::default() });
    }
    report.send(&Record::Error(ErrorRecord {
        code,
        item: None,
        name: None,
        text,
        fault: None,
        restored: Vec::new(),
        more: false,
    }));
    End::without_items(Outcome::BadJob)
}
