//! Who else runs.

use crate::firmware::per_cpu::AllProcessors;
use crate::firmware::probe::Machine;
use alloc::string::{String, ToString};
use arch::memory::arena::Arena;
use arch::memory::{Frames, Space};
use arch::smp;

/// The other processors: those that items take into use, and the one that watches this one's runs.
///
/// They are taken into use once, by the first item that needs them, and stay so until [`release`](Others::release). The one that
/// watches does so from [`guard`](Others::guard) with a limit until one without, which each item ends in.
#[derive(Default)]
pub struct Others {
    pub processors: Option<AllProcessors>,
    /// One watches the runs of this item.
    pub guarded: bool,
}

impl Others {
    /// Has one, if there is one, watch runs that may take `limit` ticks each; `None`: it watches none.
    pub fn guard(&mut self, machine: &Machine, limit: Option<u64>) {
        let Some(guard) = machine.guard.filter(|_| limit.is_some() != self.guarded) else { return };
        match limit {
            Some(limit) => guard.begin(limit),
            None => guard.end(),
        }
        self.guarded = limit.is_some();
    }

    /// Whether one of `cpus` is another processor that is there.
    pub fn are_named(cpus: &[u16]) -> bool {
        cpus.iter().any(|&cpu| cpu != 0 && smp::processor(cpu.into()).is_some())
    }

    /// Takes them into use, if they are not. Returns whether page tables have changed for that.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence.
    pub fn form(
        &mut self,
        machine: &Machine,
        arena: &mut Arena,
        space: &mut Space,
        frames: &mut Frames,
    ) -> Result<bool, String> {
        if self.processors.is_some() {
            return Ok(false);
        }
        let processors = AllProcessors::prepare(machine, arena, space, frames);
        self.processors = Some(processors.map_err(|error| error.to_string())?);
        Ok(true)
    }

    /// Lets them go.
    pub fn release(&self) {
        if let Some(processors) = &self.processors {
            processors.release();
        }
    }
}
