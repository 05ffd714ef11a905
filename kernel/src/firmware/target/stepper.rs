//! The processor as one that steps through snippets, for exact mode.

use super::Target;
use crate::firmware::control::PLACE;
use crate::firmware::programs::Owner;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arch::cpu::{self, extended};
use arch::pmu::{Capabilities, Gate};
use arch::step;
use arch::time::tsc;
use iced_x86::Register;
use kernel::exact::{Processor as Segments, Qualifier, Stepper, Tally, Tracker, Unstepped};
use kernel::snippet::Runner;
use protocol::job::exact::Filter;
use protocol::job::{Control, Setup, Snippet};
use protocol::record::{Unit, Within};
use raw_cpuid::{CpuIdReader, CpuIdResult};
use x86_64::registers::model_specific::{FsBase, GsBase};

/// Steps from one look at the clock to the next.
const BEAT_STEPS: u64 = 256;

/// The processor as exact mode sees it.
struct Stepped;

impl Segments for Stepped {
    fn base(&self, segment: Register) -> u64 {
        match segment {
            Register::FS => FsBase::read().as_u64(),
            _ => GsBase::read().as_u64(),
        }
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        let CpuIdResult { eax, ebx, ecx, edx } = cpu::native().cpuid2(leaf, subleaf);
        [eax, ebx, ecx, edx]
    }

    fn clear_pushed_trap_flag(&mut self, stack: u64) {
        // SAFETY: the instruction before this trap has pushed at least two bytes there.
        unsafe {
            let flags = (stack as *mut u16).read_unaligned();
            (stack as *mut u16).write_unaligned(flags & !(step::TRAP_FLAG as u16));
        }
    }
}

impl Stepper for Target<'_> {
    fn step(
        &mut self,
        snippet: &Snippet,
        copies: u64,
        filter: &Filter,
        limit: u64,
    ) -> Result<Tally, Unstepped> {
        let qualifier = Qualifier::new(filter, PLACE.pointers).map_err(Unstepped::Refused)?;
        // Counters are not involved.
        self.counting.own.gate = Gate::EMPTY;
        let setup = Setup { control: Control::default(), ..snippet.setup.clone() };
        self.load(&Snippet { setup, ..snippet.clone() }, copies);
        let emitted = self.loaded.emitted();
        let bytes = (emitted.function.end - emitted.function.start) as usize;
        // SAFETY: the emitted code, which nothing writes to while it runs.
        let code =
            unsafe { core::slice::from_raw_parts(emitted.function.start as *const u8, bytes) };
        let program = match snippet.setup.call {
            Some(_) => self.programs.code(),
            None => Vec::new(),
        };
        let mut tracker = Tracker::new(emitted, code, &qualifier, limit).calling(program);
        let heart = self.heart;
        let function = self.loaded.function();
        // SAFETY: as in `run`. The tracker allocates in the exception's handler: what it interrupts is the emitted
        // code alone, which does not.
        let ended = unsafe {
            if self.loaded.resets_extended {
                extended::reset(self.machine.extended);
            }
            step::run(&function, &mut |frame| {
                let done = tracker.steps();
                if done.is_multiple_of(BEAT_STEPS) {
                    heart.beat(tsc::now(), Within { unit: Unit::Steps, done, total: limit });
                }
                tracker.trap(frame, &mut Stepped)
            })
        };
        let (tally, refusal) = (tracker.tally, tracker.refusal);
        if let Err(trap) = ended {
            return Err(Unstepped::Fault(Box::new(self.explain(&trap, snippet))));
        }
        refusal.map_or(Ok(tally), |refusal| Err(Unstepped::Refused(refusal)))
    }

    fn code(&self, address: u64, count: u64) -> Vec<u8> {
        self.programs.read(Owner::Processor(0), address, count).unwrap_or_default().to_vec()
    }

    fn branches(&self) -> &'static str {
        // Intel: BR_INST_RETIRED.ALL_BRANCHES, architectural (SDM vol. 3, table 20-1). AMD: retired branch
        // instructions, PMCx0C2.
        let is_intel = self.machine.pmu.as_ref().is_ok_and(Capabilities::is_intel);
        if is_intel { "r00c4" } else { "r00c2" }
    }
}
