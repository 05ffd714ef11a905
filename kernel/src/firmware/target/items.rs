//! The processor as one that runs a job's items.

use super::Target;
use crate::firmware::bench::Processor;
use crate::firmware::crew::{Crew, Team};
use crate::firmware::{counting, crash, tasks};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::interrupts;
use arch::ring3::SNIPPET_VECTORS;
use arch::smp;
use arch::state;
use arch::time::tsc;
use kernel::conformance::{self, Subject};
use kernel::counting::job::sets::named_cpus;
use kernel::screen::Status;
use kernel::snippet::measure::Unmeasured;
use kernel::tasks::Summary;
use kernel::{processors, run};
use protocol::job::{Conformance, Count, Processors, Tasks};
use protocol::record::{Check, CountResult, ProcessorsResult, Suite};

impl run::Machine for Target<'_> {
    fn now(&self) -> u64 {
        tsc::now()
    }

    fn next_item(&mut self, index: u32) {
        crash::at_item(index);
        self.arena.reset(&mut self.space);
    }

    fn settle(&mut self) -> Vec<String> {
        if self.controls.user {
            self.arena.set_user_code(&mut self.space, false);
            // SAFETY: the interrupt table is loaded.
            SNIPPET_VECTORS
                .into_iter()
                .for_each(|vector| unsafe { interrupts::reset_entry(vector) });
        }
        self.controls.restore();
        // SAFETY: ring 0, interrupt table loaded, the processor of the job.
        unsafe { self.baseline.restore() };
        state::take_restored().into_iter().map(ToString::to_string).collect()
    }

    fn conformance(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite {
        let subject = Subject {
            pmu: self.machine.pmu.as_ref().map_err(|missing| *missing),
            found: &self.machine.ownership,
            hypervisor: self.machine.hypervisor,
        };
        // SAFETY: the firmware owns the PMU, the handler of its interrupt is the bench's, and the APIC is on.
        let mut bench = unsafe { Processor::new(&self.user) };
        conformance::run(suite, index, &subject, &mut bench, report)
    }

    fn tasks(&mut self, item: &Tasks) -> Result<Summary, String> {
        self.gather(&item.workload.cpus())?;
        let (frames, slots) = (&mut self.controls.frames, &mut self.slots);
        let team = self.team.as_ref();
        tasks::run(
            item,
            &mut tasks::Processors::new(self.machine, &self.space, frames, slots, team)
                .beating(self.heart),
        )
    }

    fn count(&mut self, item: &Count) -> Result<CountResult, String> {
        self.gather(&named_cpus(item, &counting::in_use()))?;
        let (frames, slots) = (&mut self.controls.frames, &mut self.slots);
        let team = self.team.as_ref();
        let mut processors = tasks::Processors::new(self.machine, &self.space, frames, slots, team)
            .beating(self.heart);
        counting::count(item, self.machine, &mut processors)
    }

    fn processors(
        &mut self,
        item: &Processors,
        index: u32,
    ) -> Result<ProcessorsResult, processors::Failure> {
        let refuse = |text: String| {
            let why = Unmeasured::Refused(text);
            processors::Failure { processor: None, why }
        };
        self.form_team().map_err(refuse)?;
        let team = self.team.as_mut().expect("just formed");
        let (arena, counting) = (&mut self.arena, &mut self.counting);
        let mut crew =
            Crew::new(team, arena, counting, self.machine, item.cpu, self.heart).map_err(refuse)?;
        processors::measure_all(&mut crew, index, item)
    }

    fn is_emulated(&self) -> bool {
        self.machine.emulated.is_some()
    }

    fn show(&mut self, status: &Status) {
        if let Some(display) = &self.machine.display {
            display.lock().status(status);
        }
    }
}

impl Target<'_> {
    /// Takes the other processors into use, if there are others and one of `cpus` is among them.
    fn gather(&mut self, cpus: &[u16]) -> Result<(), String> {
        let other = |&cpu: &u16| cpu != 0 && smp::processor(cpu.into()).is_some();
        if cpus.iter().any(other) { self.form_team() } else { Ok(()) }
    }

    fn form_team(&mut self) -> Result<(), String> {
        if self.team.is_none() {
            let frames = &mut self.controls.frames;
            let team = Team::form(self.machine, &mut self.arena, &mut self.space, frames);
            self.team = Some(team.map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}
