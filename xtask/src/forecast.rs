//! What a job will take, before it starts: how long it will step, and the memory of its programs.
//!
//! Exact mode stops behind each instruction, and the emulated PMU looks at each one where it counts what the translator
//! does not tell it. Both take thousands of times longer than running, so a job that would not end in time is better
//! told of than waited for. What is forecast is a lower bound: a loop within a body is taken to run once.
//!
//! - [`slow`]: what is stepped of a piece of code; `kinds`: what items of each kind take.

mod kinds;
pub mod slow;

use crate::job::Packed;
use crate::program::Linked;
use pmu_model::Model;
use protocol::job::{Item, Job};
use slow::{Slow, Steps};
use std::time::Duration;

/// What is known of an item before it runs.
pub trait Planned {
    /// The instructions that it steps, at least, on `cpus` processors; `None`: it runs at full speed.
    fn steps(&self, _slow: &Slow, _cpus: u32) -> Option<Steps> {
        None
    }

    /// Processors of `cpus` that run its code at the same time, each with a copy.
    fn copies(&self, _cpus: u32) -> u32 {
        1
    }
}

macro_rules! of_item {
    (($item:expr)
        items { $($(#[$item_doc:meta])* $name:ident($($part:ident)::+),)* }
        results $results:tt
    ) => {
        match $item {
            $(Item::$name(part) => part,)*
        }
    };
}

/// What is known of an item before it runs.
#[must_use]
pub fn planned<'i>(item: &'i Item) -> &'i dyn Planned {
    protocol::kinds!(of_item!(item))
}

/// An item that steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepping {
    /// Its index.
    pub item: u32,
    /// Its name.
    pub name: String,
    /// Instructions, at least.
    pub instructions: u64,
    /// How many of them a second.
    pub rate: u64,
    /// What it is done for.
    pub why: String,
}

impl Stepping {
    /// How long it takes, at least.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.instructions as f64 / self.rate as f64)
    }
}

/// The items of `job` that step, if its PMU is the emulated one of `model`, on `cpus` processors.
#[must_use]
pub fn forecast(job: &Job, model: Option<Model>, cpus: u32) -> Vec<Stepping> {
    let slow = Slow::of(model);
    let step = |(item, one): (u32, &Item)| {
        let Steps { instructions, rate, why } = planned(one).steps(&slow, cpus)?;
        Some(Stepping { item, name: one.name().to_string(), instructions, rate, why })
    };
    (0..).zip(&job.items).filter_map(step).collect()
}

/// What is to be said if all of it does not fit into `timeout`.
#[must_use]
pub fn warning(steps: &[Stepping], timeout: Duration) -> Option<String> {
    let whole: Duration = steps.iter().map(Stepping::time).sum();
    let most = steps.iter().max_by_key(|step| step.time()).filter(|_| whole > timeout)?;
    let Stepping { item, name, instructions, rate, why } = most;
    let others = match steps.len() - 1 {
        0 => String::new(),
        1 => ", another item as well".to_string(),
        more => format!(", and {more} other items step"),
    };
    Some(format!(
        "this job takes at least {:.0} s, and --timeout ends it after {:.0} s: item {item} ({name}) steps \
         {instructions} instructions for {why}, some {rate} a second{others}; raise --timeout, or let less run",
        whole.as_secs_f64().ceil(),
        timeout.as_secs_f64()
    ))
}

/// MiB that the programs of a job take in the machine: in the ramdisk, and a copy for each processor or task that runs one.
#[must_use]
pub fn program_mib(packed: &Packed) -> u32 {
    let copies = |number: u16| {
        let of = |item: &Item| match item.part().workload() {
            Some(workload) => {
                workload.tasks.iter().filter(|task| task.program == Some(number)).count() as u64
            }
            None => planned(item).copies(packed.cpus).into(),
        };
        packed.job.items.iter().map(of).max().unwrap_or(0) + 1
    };
    let one = |(number, program): (u16, &Linked)| {
        copies(number) * program.memory + program.bytes.len() as u64
    };
    let bytes: u64 = (0..).zip(&packed.programs).map(one).sum();
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Purpose, file, pack};

    fn of(text: &str, model: Option<Model>) -> Vec<Stepping> {
        let packed = pack(&file::parse(text, "x.toml").unwrap(), Purpose::Qemu).unwrap();
        forecast(&packed.job, model, 2)
    }

    fn instructions_of(text: &str) -> Vec<(u64, String)> {
        let steps = of(text, Some(Model::Skylake));
        steps.into_iter().map(|step| (step.instructions, step.why)).collect()
    }

    #[test]
    fn what_the_translator_counts_is_not_stepped_and_the_rest_is() {
        let snippet = |events: &str| {
            instructions_of(&format!(
                "[[snippet]]\nasm = \"nop; nop\"\nunroll = 10\nwarmup = 1\nruns = 3\nevents = [{events}]"
            ))
        };
        for free in ["", "\"instructions\", \"cycles:u\", \"r00c0\"", "\"nosuch\""] {
            assert_eq!(snippet(free), [], "{free}");
        }
        // Two instructions, 10 and 20 copies, four runs.
        assert_eq!(snippet("\"cycles\", \"branches\""), [(240, "branches".to_string())]);
        assert_eq!(snippet("\"{instructions,mem_inst_retired.all_loads}:k\"").len(), 1);
        let branches = "[[snippet]]\nasm = \"nop\"\nevents = [\"branches\"]";
        assert_eq!(of(branches, None), [], "a real PMU counts at full speed");
    }

    #[test]
    fn each_kind_of_item_has_its_number_of_instructions() {
        let exact = "[[snippet]]\nasm = \"nop\"\nunroll = 10\nexact = { steps = 15 }";
        assert_eq!(instructions_of(exact), [(25, "exact mode".to_string())]);
        let task = "name = \"t\"\nasm = \"nop\"\ninit = \"nop; nop\"\nturns = 100\n";
        let count = format!("[[count]]\nevents = [\"branches\"]\n[[count.task]]\n{task}");
        assert_eq!(instructions_of(&count)[0].0, 302);
        let sets = format!(
            "[[count]]\n[[count.set]]\nevents = [\"cycles\"]\n[[count.set]]\nevents = [\"branches\"]\n[[count.task]]\n{task}"
        );
        assert_eq!(instructions_of(&sets)[0].0, 302);
        let sample = "[[sample]]\nasm = \"nop\"\nturns = 9\nevents = [\"branches\"]\nperiod = 99";
        assert_eq!(instructions_of(sample)[0].0, 27);
        let history = "[[snippet]]\nasm = \"nop\"\nruns = 4\nevents = [\"branches\"]\nhistory = 10";
        assert_eq!(instructions_of(history)[0].0, 20);
        let both = "[[processors]]\nasm = \"nop\"\nunroll = 1\nwarmup = 0\nruns = 1\nloop = 5\nevents = [\"branches\"]";
        assert_eq!(instructions_of(both)[0].0, 2 * (5 * 3 + 5 * 4));
        let run = format!("[[run]]\n[[run.task]]\n{task}");
        assert_eq!(instructions_of(&run), []);
    }

    #[test]
    fn a_job_that_does_not_fit_is_told_of_before_it_starts() {
        let task = "name = \"t\"\nasm = \"imul rax, rax\"\nturns = 1_000_000\nring = 3\n";
        let text = format!(
            "[[count]]\nname = \"c\"\nevents = [\"instructions:u\", \"branches\"]\n[[count.task]]\n{task}"
        );
        let steps = of(&text, Some(Model::Skylake));
        let said = warning(&steps, Duration::from_secs(60)).unwrap();
        for part in
            ["at least 96 s", "after 60 s", "item 0 (c) steps 3000000 instructions for branches"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(warning(&steps, Duration::from_secs(100)), None);
        assert_eq!(warning(&[], Duration::ZERO), None);
    }
}
