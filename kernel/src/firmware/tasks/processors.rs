//! The processors with the tasks that they are to run.

use super::Slots;
use super::local::{LocalTasks, Sampled};
use crate::firmware::per_cpu::AllProcessors;
use crate::firmware::probe;
use crate::firmware::programs::{Owner, Programs};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::memory::{Frames, Space};
use arch::pmu::Capabilities;
use arch::task::Context;
use kernel::heartbeat::Beat;
use kernel::tasks::Emitted;
use protocol::job::workload::{Task, Workload};
use protocol::program::{ProgramKey, STACK_BYTES, STACK_END};
use protocol::record::TaskResult;

/// The processors with the tasks that they are to run.
pub struct Processors<'a> {
    pub(super) machine: &'a probe::Machine,
    pub(super) space: &'a Space,
    pub(super) frames: &'a mut Frames,
    pub(super) slots: &'a mut Slots,
    pub(super) programs: &'a mut Programs,
    /// What is known of the others; `None`: the boot processor alone runs tasks.
    pub(super) processors: Option<&'a AllProcessors>,
    /// Tasks that are loaded, by processor.
    pub(super) loaded: Vec<LocalTasks>,
    /// Those that move, in their order.
    pub(super) moving: Vec<Context>,
    /// Where the code of each task lies.
    pub(super) emitted: Vec<Emitted>,
    pub(super) sampled: Option<Sampled>,
    /// Where to tell how far the tasks are.
    pub(super) heart: Option<&'a dyn Beat>,
}

impl<'a> Processors<'a> {
    /// Without tasks, in the address space in use.
    pub fn new(
        machine: &'a probe::Machine,
        space: &'a Space,
        frames: &'a mut Frames,
        (slots, programs): (&'a mut Slots, &'a mut Programs),
        processors: Option<&'a AllProcessors>,
    ) -> Self {
        let (loaded, moving, emitted) = (Vec::new(), Vec::new(), Vec::new());
        let (sampled, heart) = (None, None);
        Self {
            machine,
            space,
            frames,
            slots,
            programs,
            processors,
            loaded,
            moving,
            emitted,
            sampled,
            heart,
        }
    }

    /// Completes the faults of tasks that call functions.
    pub fn explain(&self, workload: &Workload, results: &mut [TaskResult]) {
        for (number, (task, result)) in workload.tasks.iter().zip(results).enumerate() {
            if let (Some(_), Some(fault)) = (task.program, &mut result.fault) {
                self.programs.explain(Owner::Task(number), fault, STACK_END - STACK_BYTES);
            }
        }
    }

    /// What the report calls the program of each task, if it calls a function.
    pub fn called(&self, workload: &Workload) -> Vec<Option<ProgramKey>> {
        let owners = workload.tasks.iter().enumerate();
        let name = |(number, task): (usize, &Task)| {
            task.program.and_then(|_| self.programs.name(Owner::Task(number)))
        };
        owners.map(name).collect()
    }

    /// The same for tasks that are sampled with the blocks that `pmi::install` has taken on their processors. `interval`: TSC ticks
    /// from one sample to the next that the scheduler's timer takes beside its own ticks, if there are such.
    #[must_use]
    pub fn sampled(self, interval: Option<u64>) -> Self {
        Self { sampled: Some(Sampled { interval }), ..self }
    }

    /// The same, which tells at ticks how far the tasks are.
    #[must_use]
    pub fn beating(self, heart: &'a dyn Beat) -> Self {
        Self { heart: Some(heart), ..self }
    }

    /// Where to tell how far the tasks are.
    #[must_use]
    pub fn heart(&self) -> Option<&'a dyn Beat> {
        self.heart
    }

    /// Where the code of each loaded task lies.
    #[must_use]
    pub fn emitted(&self) -> &[Emitted] {
        &self.emitted
    }

    /// What is known of the others.
    #[must_use]
    pub fn processors(&self) -> Option<&'a AllProcessors> {
        self.processors
    }

    /// The PMU of a processor.
    ///
    /// # Errors
    /// Why it has none, in a sentence.
    pub fn pmu(&self, cpu: u16) -> Result<&Capabilities, String> {
        let member = self.processors.map(AllProcessors::members).unwrap_or_default();
        match member.iter().find(|member| member.number == u32::from(cpu)) {
            Some(member) => member.pmu.as_ref().map_err(String::clone),
            None => self.machine.pmu.as_ref().map_err(|why| format!("there is no PMU: {why}")),
        }
    }
}
