//! The processor as one that runs a job's items.

use super::Target;
use super::others::Others;
use crate::firmware::processor_set::SelectedProcessors;
use crate::firmware::programs::Owner;
use crate::firmware::test_machine::Processor;
use crate::firmware::{bring_up, counting, crash, facts, reset, saved, tasks};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::cpu;
use arch::interrupts;
use arch::memory::arena;
use arch::state;
use arch::time::tsc;
use arch::vectors::SNIPPET_VECTORS;
use kernel::conformance::{self, Subject};
use kernel::counting::job::sets::named_cpus;
use kernel::run::silence;
use kernel::screen::Status;
use kernel::snippet::measure::Unmeasured;
use kernel::tasks::Summary;
use kernel::{processors, run};
use protocol::job::{
    Conformance, CoreKind, Count, Facts, Item, Memory, Processors, Requirement, Tasks,
};
use protocol::record::{Applied, Check, CountResult, FactsResult, ProcessorsResult, Record, Suite};
use raw_cpuid::CpuIdReader as _;

impl run::Machine for Target<'_> {
    fn now(&self) -> u64 {
        tsc::now()
    }

    fn progress_ticks(&self) -> u64 {
        self.machine.clock.hz
    }

    fn next_item(&mut self, index: u32, item: &Item) {
        self.item = index;
        let name = item.name();
        crash::at_item(index, name);
        saved::running(index, name);
        reset::begin(silence::of(item));
        // What an item before asked for and did not wait for comes now, not in this one. Every LVT entry is masked.
        x86_64::instructions::interrupts::enable();
        x86_64::instructions::nop();
        x86_64::instructions::nop();
        x86_64::instructions::interrupts::disable();
    }

    fn has(&self, requirement: &Requirement) -> bool {
        let cpuid = cpu::native();
        if !cpu::has_leaf(&cpuid, requirement.leaf) {
            return false;
        }
        let leaf = cpuid.cpuid2(requirement.leaf, requirement.subleaf);
        requirement.holds([leaf.eax, leaf.ebx, leaf.ecx, leaf.edx])
    }

    fn provide(&mut self, asked: &[&Memory], user: bool) -> Result<Vec<Applied>, String> {
        let places = (&mut self.space, &mut self.asked.controls.frames);
        let provided = self.asked.memory.provide(asked, user, places, self.heart);
        self.asked.controls.requested = self.asked.memory.ranges();
        self.found.refresh(&mut self.space);
        provided
    }

    fn restore(&mut self) -> Vec<String> {
        if self.asked.controls.user {
            self.loaded.arena.set_user_code(&mut self.space, false);
            // SAFETY: the interrupt table is loaded.
            SNIPPET_VECTORS
                .into_iter()
                .for_each(|vector| unsafe { interrupts::reset_entry(vector) });
        }
        self.clear_qualifiers();
        self.uncore.release();
        self.others.guard(self.machine, None);
        self.found.restore_tables();
        let frames = &mut self.asked.controls.frames;
        self.asked.memory.release(&mut self.space, frames, self.others.processors.as_ref());
        self.found.refresh(&mut self.space);
        self.loaded.arena.reset(&mut self.space);
        self.asked.controls.restore();
        self.found.restore_registers();
        state::take_restored().into_iter().map(ToString::to_string).collect()
    }

    fn is_changed(&mut self, at_end: bool) -> bool {
        self.found.is_changed(at_end)
    }

    fn conformance(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite {
        let second = self.machine.clock.hz;
        let mut alive = |check: &Check| {
            reset::reload(tsc::now(), second);
            report(check);
        };
        self.checked(|subject, bench| conformance::run(suite, index, subject, bench, &mut alive))
    }

    fn bring_up(
        &mut self,
        item: &Conformance,
        index: u32,
        report: &mut dyn FnMut(Record),
    ) -> Suite {
        let second = self.machine.clock.hz;
        let report: &mut dyn FnMut(Record) = &mut |record| {
            reset::reload(tsc::now(), second);
            report(record);
        };
        bring_up::report(self.machine, index, self.others.processors.is_none(), report);
        let suite = self.checked(|subject, bench| {
            let report = core::cell::RefCell::new(&mut *report);
            let mut measured = |one| {
                (report.borrow_mut())(Record::Measure(kernel::bring_up::measured(index, one)));
            };
            let each = |check: &Check| (report.borrow_mut())(Record::Check(check.clone()));
            conformance::run_measured(item, index, subject, bench, Some(&mut measured), each)
        });
        bring_up::report_costs(self.machine, index, report);
        suite
    }

    fn tasks(&mut self, item: &Tasks) -> Result<Summary, String> {
        self.take_into_use(&item.workload.cpus())?;
        let frames = &mut self.asked.controls.frames;
        let of_tasks = (&mut self.slots, &mut self.programs);
        let processors = self.others.processors.as_ref();
        tasks::run(
            item,
            &mut tasks::Processors::new(self.machine, &self.space, frames, of_tasks, processors)
                .beating(self.heart),
        )
    }

    fn count(&mut self, item: &Count) -> Result<CountResult, String> {
        self.take_into_use(&named_cpus(item, &counting::in_use()))?;
        let frames = &mut self.asked.controls.frames;
        let of_tasks = (&mut self.slots, &mut self.programs);
        let processors = self.others.processors.as_ref();
        let mut processors =
            tasks::Processors::new(self.machine, &self.space, frames, of_tasks, processors)
                .beating(self.heart);
        counting::count(item, self.item, self.machine, &mut processors)
    }

    fn measure_packages_of(&mut self, processors: &[u32]) {
        self.uncore.measure(processors);
        if let Ok(meters) = &mut self.meters {
            meters.measure(processors);
        }
    }

    fn processors_of(&mut self, item: &Count) -> Vec<u32> {
        let in_use: Vec<u16> = self.machine.kinds.iter().map(|(number, _)| *number).collect();
        named_cpus(item, &in_use).into_iter().map(u32::from).collect()
    }

    fn kinds(&mut self) -> Vec<(u16, Option<CoreKind>)> {
        self.machine.kinds.clone()
    }

    fn processors(
        &mut self,
        item: &Processors,
        core: Option<CoreKind>,
        index: u32,
    ) -> Result<ProcessorsResult, processors::Failure> {
        let refuse = |text: String| {
            let why = Unmeasured::Refused(text);
            processors::Failure { processor: None, why }
        };
        self.form_team().map_err(refuse)?;
        let processors = self.others.processors.as_mut().expect("just formed");
        self.asked.memory.share(processors, &mut self.asked.controls.frames).map_err(refuse)?;
        let program = item.snippet.setup.call.as_ref().map(|call| call.program);
        if let Some(number) = program {
            let (programs, frames) = (&mut self.programs, &mut self.asked.controls.frames);
            let own = (Owner::Processor(0), (number, false));
            programs.select(own.0, own.1, &mut self.space, frames).map_err(refuse)?;
            processors.provide(programs, number, frames).map_err(refuse)?;
            self.found.refresh(&mut self.space);
        }
        let (arena, counting) = (&mut self.loaded.arena, &mut self.counting);
        let mut set = SelectedProcessors::new(
            processors,
            arena,
            counting,
            self.machine,
            (item.cpu, core),
            self.heart,
        )
        .map_err(refuse)?;
        let measured = processors::measure_all(&mut set, index, item);
        set.release_uncore();
        measured.map_err(|mut failure| {
            if let (Unmeasured::Fault(fault), Some(_)) = (&mut failure.why, program) {
                let owner = Owner::Processor(
                    processors.place(failure.processor.unwrap_or_default()).unwrap_or_default(),
                );
                self.programs.explain(owner, fault, arena::area(0));
            }
            failure
        })
    }

    fn facts(&mut self, item: &Facts) -> Result<FactsResult, String> {
        let place = facts::Place {
            machine: self.machine,
            ranges: &self.asked.memory.ranges(),
            counts_smis: self.asked.controls.counts_smis(),
            space: &mut self.space,
            frames: &mut self.asked.controls.frames,
            counters: &mut self.counting.own,
            user: &self.user,
        };
        let result = facts::measure(item, place)?;
        self.found.refresh(&mut self.space);
        Ok(result)
    }

    fn take_stray(&mut self) -> Option<String> {
        interrupts::stray::take().map(|stray| stray.to_string())
    }

    fn is_emulated(&self) -> bool {
        self.machine.emulated.is_some()
    }

    fn note(&mut self, record: &Record) {
        if let Some(display) = &self.machine.display {
            display.lock().note(record);
        }
    }

    fn show(&mut self, status: &Status) {
        if let Some(display) = &self.machine.display {
            display.lock().status(status);
        }
    }

    fn announce(&mut self, status: &Status) {
        if let Some(display) = &self.machine.display {
            display.lock().running(status);
        }
    }
}

impl Target<'_> {
    /// Runs the conformance suite.
    fn checked(&mut self, run: impl FnOnce(&Subject, &mut Processor) -> Suite) -> Suite {
        let subject = Subject {
            pmu: self.machine.announced.as_ref().map_err(|missing| *missing),
            tried: self.machine.pmu.as_ref().ok(),
            found: &self.machine.ownership,
            hypervisor: self.machine.hypervisor,
        };
        // SAFETY: the firmware owns the PMU, the handler of its interrupt is the bench's, and the APIC is on.
        let mut bench = unsafe { Processor::new(&self.user) };
        run(&subject, &mut bench)
    }

    /// Takes the other processors into use, if there are others and one of `cpus` is among them.
    pub(in crate::firmware) fn take_into_use(&mut self, cpus: &[u16]) -> Result<(), String> {
        if Others::are_named(cpus) { self.form_team() } else { Ok(()) }
    }

    fn form_team(&mut self) -> Result<(), String> {
        let (arena, frames) = (&mut self.loaded.arena, &mut self.asked.controls.frames);
        if self.others.form(self.machine, arena, &mut self.space, frames)? {
            self.found.refresh(&mut self.space);
        }
        Ok(())
    }
}
