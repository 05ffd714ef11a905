//! The machine that runs tasks, as the scheduler sees it.

use super::local::{LocalTasks, timer};
use super::moving::{self, Moving};
use super::prepare::VALUE_AREA;
use super::processors::Processors;
use super::together::{Work, at_once};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::smp::{self, Handover};
use arch::task::MovingContexts;
use kernel::snippet::emit;
use kernel::tasks::{self, AssignedProcessor, Emitted, Left};
use protocol::checksum::crc32;
use protocol::job::workload::Workload;
use protocol::record::Together;
use spin::Mutex;

impl tasks::Machine for Processors<'_> {
    fn has(&self, cpu: u16) -> Result<(), String> {
        let number = usize::from(cpu);
        let missing = || smp::CallError::NoProcessor(number, smp::count()).to_string();
        smp::processor(number).map(|_| ()).ok_or_else(missing)
    }

    fn tsc_hz(&self) -> u64 {
        self.machine.clock.hz
    }

    fn load(&mut self, workload: &Workload) -> Result<Vec<Emitted>, String> {
        if timer(self.machine).is_none() {
            return Err("tasks need the local APIC's timer, which does not count here".to_string());
        }
        self.loaded = workload.cpus().into_iter().map(LocalTasks::new).collect();
        self.moving.clear();
        self.emitted.clear();
        for (index, task) in workload.tasks.iter().enumerate() {
            let (context, emitted) = self.prepare(index, task)?;
            self.emitted.push(emitted);
            if workload.moves() {
                self.moving.push(context);
                continue;
            }
            let cpu = workload.cpu_of(index);
            let here = self.loaded.iter_mut().find(|here| here.cpu == cpu);
            here.expect("every task has its processor").push(index as u16, context);
        }
        Ok(self.emitted.clone())
    }

    fn run(&mut self, assigned: &mut [AssignedProcessor]) -> Option<Together> {
        let mut loaded = core::mem::take(&mut self.loaded);
        let mut idle: Vec<LocalTasks> = Vec::new();
        for processor in
            assigned.iter().filter(|processor| !loaded.iter().any(|here| here.cpu == processor.cpu))
        {
            idle.push(LocalTasks::new(processor.cpu));
        }
        loaded.append(&mut idle);
        let work = assigned.iter_mut().map(|processor| {
            let here = loaded.iter().position(|here| here.cpu == processor.cpu);
            let here = loaded.swap_remove(here.expect("made above"));
            Mutex::new(Work { here, scheduler: &mut *processor.scheduler })
        });
        let work: Vec<Mutex<Work>> = work.collect();
        let (machine, sampled) = (self.machine, self.sampled);
        let cpus: Vec<u16> = work.iter().map(|one| one.lock().here.cpu).collect();
        let together = match (&work[..], self.processors) {
            // What each does is counted by a clock of all.
            (several, _) if several.len() == 1 || machine.emulated.is_some() => {
                for (one, &cpu) in several.iter().zip(&cpus) {
                    let whole = || one.lock().whole(machine, sampled);
                    smp::run_on(cpu.into(), whole).expect("the boot processor, and those in use");
                }
                let in_turn = several.len() > 1;
                Together { in_turn, ..Together::default() }
            }
            (several, processors) => at_once(several, &cpus, (machine, sampled), processors),
        };
        self.loaded = work.into_iter().map(|one| one.into_inner().here).collect();
        let processors: Vec<u32> = cpus.iter().map(|&cpu| u32::from(cpu)).collect();
        (processors != [0]).then_some(Together { processors, ..together })
    }

    fn works_in_turn(&self) -> bool {
        self.machine.emulated.is_some()
    }

    fn run_moving(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together> {
        let cpus: Vec<u32> = assigned.iter().map(|one| u32::from(one.cpu)).collect();
        let contexts = MovingContexts::new(core::mem::take(&mut self.moving));
        let (moving, in_turn) = (Moving { contexts: &contexts, handovers }, self.works_in_turn());
        let (together, visited) =
            moving::run(moving, assigned, self.machine, self.processors, in_turn);
        (self.loaded, self.moving) = (visited, contexts.into_inner());
        Some(Together { processors: cpus, ..together })
    }

    fn left(&mut self, task: usize) -> Left {
        let (frame, cr2) = match self.moving.get(task) {
            // It faulted on one of them, if it did.
            Some(context) => {
                let cr2 = self.loaded.iter().filter_map(|here| here.cr2.get(task)).max();
                (*context.frame(), cr2.copied().unwrap_or_default())
            }
            None => {
                let found = self.loaded.iter().find_map(|here| here.left(task as u16));
                found.map(|(context, cr2)| (*context.frame(), cr2)).unwrap_or_default()
            }
        };
        let memory = &mut self.slots.0[task];
        let count = memory.count_mut()[emit::COUNT_AT..][..8].try_into();
        Left {
            frame,
            cr2,
            count: u64::from_le_bytes(count.expect("eight bytes")),
            value: memory.value(VALUE_AREA),
            memory_crc32: crc32(memory.data_mut()),
        }
    }

    fn taken(&self, vector: u8) -> u64 {
        arch::interrupts::taken_by_all(vector)
    }
}
