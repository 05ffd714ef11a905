//! The real machine as the runner of snippets.

use super::boot::Handed;
use super::crash;
use super::output::Line;
use super::probe::Machine;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use arch::call::{Function, Trap};
use arch::cpu::{self, extended};
use arch::memory::arena::{self, Arena};
use arch::memory::{Frames, Space};
use arch::time::tsc;
use kernel::report::Report;
use kernel::run;
use kernel::screen::{Header, Status};
use kernel::snippet::{Emitted, Place, Runner, emit, fault};
use protocol::job::{Job, Snippet};
use protocol::ramdisk::RamdiskError;
use protocol::record::{End, ErrorCode, ErrorRecord, Fault, Outcome, Record};

/// Where snippets run: see `arch::memory::arena`.
const PLACE: Place = Place {
    code: arena::CODE_AT,
    data: arena::DATA_AT,
    pointers: [
        arena::area_middle(0),
        arena::area_middle(1),
        arena::area_middle(2),
        arena::area_middle(3),
        arena::area_middle(4),
    ],
};

struct Target<'a> {
    machine: &'a Machine,
    space: Space,
    arena: Arena,
    emitted: Option<Emitted>,
    /// The loaded snippet may leave something in the extended state.
    resets_extended: bool,
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
    let arena = map_arena(&mut space, &mut handed.frames);
    let mut target = Target { machine, space, arena, emitted: None, resets_extended: false };
    run::run(job, &mut target, report)
}

fn map_arena(space: &mut Space, frames: &mut Frames) -> Arena {
    Arena::map(space, frames).unwrap_or_else(|error| panic!("no memory for snippets: {error}"))
}

fn header(machine: &Machine, job: &str) {
    if let Some(display) = &machine.display {
        let title = concat!("barecount ", env!("CARGO_PKG_VERSION"));
        display.lock().header(&Header { title, job, machine: &machine.lines });
    }
}

/// Reports that there is nothing to run.
pub fn no_job(error: Option<&RamdiskError>, machine: &Machine, report: &mut Report<Line>) -> End {
    let (code, text) = match error {
        None => (ErrorCode::NoJob, "no job: the boot loader handed over no ramdisk".to_string()),
        Some(error) => (ErrorCode::BadJob, format!("the job cannot be used: {error}")),
    };
    header(machine, "none");
    if let Some(display) = &machine.display {
        let (outcome, last_error) = (Some(Outcome::BadJob), Some(text.clone()));
        display.lock().status(&Status { outcome, last_error, ..Status::default() });
    }
    report.send(&Record::Error(ErrorRecord { code, item: None, name: None, text, fault: None }));
    End::without_items(Outcome::BadJob)
}

impl Runner for Target<'_> {
    fn load(&mut self, snippet: &Snippet, copies: u64) {
        let emitted = emit::emit(self.arena.code_mut(), &PLACE, snippet, copies);
        self.emitted = Some(emitted);
        self.resets_extended = snippet.extended_state;
        // The code was written through another address than it runs at: a serialising instruction has to
        // stand between (SDM vol. 3, 8.1.3).
        cpu::serialise();
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        let emitted = self.emitted.as_ref().expect("loaded before");
        let function = Function { entry: emitted.function.start, exit: emitted.exit };
        // SAFETY: the firmware keeps nothing in the extended state; the function was emitted with its exit,
        // its code is mapped executable, interrupts are off, and this is the only processor. What the
        // snippet itself writes to is its author's business: ring 0 is what it was asked to run in.
        unsafe {
            if self.resets_extended {
                extended::reset(self.machine.extended);
            }
            function.run()?;
            let data = &*(PLACE.data as *const emit::Data);
            Ok(data.stop.wrapping_sub(data.start))
        }
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        fault::explain(trap, self.emitted.as_ref().expect("it ran"), snippet)
    }
}

impl run::Machine for Target<'_> {
    fn now(&self) -> u64 {
        tsc::now()
    }

    fn progress_ticks(&self) -> u64 {
        self.machine.clock.hz
    }

    fn next_item(&mut self, index: u32) {
        crash::at_item(index);
        self.arena.reset(&mut self.space);
    }

    fn show(&mut self, status: &Status) {
        if let Some(display) = &self.machine.display {
            display.lock().status(status);
        }
    }
}
