//! The processors as those that run tasks.

mod local;
mod machine;
mod moving;
mod prepare;
mod processors;
mod ring3;
mod together;

pub use prepare::{VALUE_AREA, pointers};
pub use processors::Processors;

use alloc::string::String;
use alloc::vec::Vec;
use arch::task::memory::{self, Memory};
use kernel::tasks::{self, Summary};
use protocol::job::workload::Tasks;
use ring3::UserInstructions;

/// Memory of tasks, kept from one workload for the next.
#[derive(Default)]
pub struct Slots(Vec<Memory>);

impl Slots {
    /// Machine code of a task at `address`, `most` bytes at most; empty if no task's code lies there.
    pub fn code(&mut self, address: u64, most: usize) -> Vec<u8> {
        for (index, memory) in self.0.iter_mut().enumerate() {
            let at = address.wrapping_sub(memory::code(index));
            if at < memory::CODE_BYTES {
                let code = &memory.code_mut()[at as usize..];
                return code[..code.len().min(most)].to_vec();
            }
        }
        Vec::new()
    }
}

/// Runs a workload, and counts each task's instructions in ring 3 if every processor that runs one has a PMU.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run(item: &Tasks, processors: &mut Processors) -> Result<Summary, String> {
    let (workload, limit_us) = (&item.workload, item.limit_us);
    let tasks = workload.tasks.len();
    let counter = |cpu| {
        let has = processors.pmu(cpu).ok()?;
        // One counter for the tasks, one for what is counted through.
        (has.generals().count() > 1).then(|| (cpu, UserInstructions::new(has.clone(), tasks)))
    };
    let counters: Option<Vec<_>> = workload.cpus().into_iter().map(counter).collect();
    let mut counters = counters.unwrap_or_default();
    let heart = processors.heart;
    let mut summary = tasks::run_beating(workload, limit_us, processors, &mut counters, heart)?;
    processors.explain(workload, &mut summary.tasks);
    let through: Option<Vec<u64>> = counters.iter().map(|(_, counter)| counter.through).collect();
    let Some(through) = through.filter(|through| !through.is_empty()) else { return Ok(summary) };
    summary.user_instructions = Some(through.iter().sum());
    let shares = summary.together.iter_mut().flat_map(|together| &mut together.shares);
    shares.zip(&through).for_each(|(share, &through)| share.user_instructions = Some(through));
    for (index, task) in summary.tasks.iter_mut().enumerate() {
        let counts = || counters.iter().map(|(_, counter)| counter.counts[index]);
        task.user_instructions = Some(counts().map(|counts| counts.own).sum());
        task.child_user_instructions = Some(counts().map(|counts| counts.children).sum());
        for share in &mut task.shares {
            let there = counters.iter().find(|(cpu, _)| u32::from(*cpu) == share.processor);
            share.user_instructions = there.map(|(_, counter)| counter.counts[index].own);
        }
    }
    Ok(summary)
}
