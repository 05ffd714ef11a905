//! How long a job will step, before it starts.
//!
//! Exact mode stops behind each instruction, and the emulated PMU looks at each one where it counts what the translator
//! does not tell it. Both take thousands of times longer than running, so a job that would not end in time is better
//! told of than waited for. What is forecast is a lower bound: a loop within a body is taken to run once.

use crate::events::encodings::encoded;
use crate::events::{Block, cpu};
use crate::kinds;
use events::parse::parse_list;
use iced_x86::{Decoder, DecoderOptions};
use pmu_model::{Model, Occurrence, Selector, events as model_events};
use protocol::bits::Bits;
use protocol::job::{Difference, Item, Job, Snippet};
use protocol::workload::Workload;
use std::time::Duration;

/// Instructions that the emulated PMU steps in a second of host time: `cargo xtask bench`, "instructions stepped a second".
pub const STEPPED_A_SECOND: u64 = 31_500;
/// Instructions that exact mode steps over in a second of host time, under QEMU's translator: a trap flag's exception each.
pub const TRAPPED_A_SECOND: u64 = 60_000;

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
        let Steps { instructions, rate, why } = kinds::planned(one).steps(&slow, cpus)?;
        Some(Stepping { item, name: one.name().to_string(), instructions, rate, why })
    };
    (0..).zip(&job.items).filter_map(step).collect()
}

/// What an item steps.
pub struct Steps {
    /// Instructions, at least.
    pub instructions: u64,
    /// How many of them a second.
    pub rate: u64,
    /// What it is done for.
    pub why: String,
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

/// Events that an emulated PMU counts by stepping.
pub struct Slow(Option<Model>);

impl Slow {
    fn of(model: Option<Model>) -> Self {
        Self(model)
    }

    /// The first event that has to be stepped.
    pub(crate) fn first<'a>(&self, mut texts: impl Iterator<Item = &'a str>) -> Option<String> {
        let model = self.0?;
        let block = Block::embedded();
        let tables = block.tables();
        let core = tables.core(&cpu::key_of(model)?).ok()?;
        let steps = |text: &str| {
            // What it does not know it does not count.
            let rows = encoded(&core, text).unwrap_or_default();
            rows.iter().all(|row| row.fixed.is_none())
                && rows.iter().any(|row| {
                    let digits = row.control.trim_start_matches("0x");
                    u64::from_str_radix(digits, 16).is_ok_and(|control| is_stepped(model, control))
                })
        };
        texts.find_map(|text| {
            let items = parse_list(text).unwrap_or_default();
            let mut requests = items.into_iter().flat_map(|item| item.requests);
            requests.find(|request| steps(&request.text)).map(|request| request.text)
        })
    }

    /// All runs of a snippet on so many processors.
    pub(crate) fn of_runs(&self, snippet: &Snippet, processors: u64) -> Option<Steps> {
        let event = self.first(texts(snippet))?;
        let runs = u64::from(snippet.warmup) + u64::from(snippet.runs);
        let both: u64 = sizes(snippet).iter().map(|&copies| of_body(snippet, copies)).sum();
        let all = both.saturating_mul(runs).saturating_mul(processors);
        Some(Steps { instructions: all, rate: STEPPED_A_SECOND, why: event })
    }
}

fn is_stepped(model: Model, control: u64) -> bool {
    // A hypervisor intercepts these and has nothing to step for them.
    let is_free = |one| matches!(one, Occurrence::Interrupt | Occurrence::Cpuid);
    let meaning = model_events::decode(model, Selector(control), 0);
    meaning.selection().occurrences().any(|one| !is_free(one))
}

/// The events of a snippet, as written.
pub(crate) fn texts<'a>(snippet: &'a Snippet) -> impl Iterator<Item = &'a str> {
    snippet.events.iter().map(|text| &**text)
}

/// Copies of the body in the two codes that are subtracted from each other.
pub(crate) fn sizes(snippet: &Snippet) -> [u64; 2] {
    let unroll = u64::from(snippet.unroll);
    match snippet.difference {
        Difference::Double => [unroll, 2 * unroll],
        Difference::Empty => [0, unroll],
    }
}

/// Instructions of so many copies of the body, and of the loop around them.
pub(crate) fn of_body(snippet: &Snippet, copies: u64) -> u64 {
    let body = instructions(&snippet.body, snippet.setup.bits);
    let once = copies.saturating_mul(body);
    match snippet.loop_count {
        0 => once,
        // DEC and JNZ.
        turns => turns.saturating_mul(once.saturating_add(2)),
    }
}

/// Instructions of all tasks.
pub(crate) fn of_tasks(workload: &Workload) -> u64 {
    let task = |task: &protocol::workload::Task| {
        let body = instructions(&task.body, task.bits);
        let loops = if task.turns == 0 { 0 } else { 2 };
        let own = instructions(&task.init, task.bits);
        own.saturating_add(task.turns.max(1).saturating_mul(body + loops))
    };
    workload.tasks.iter().map(task).fold(0, u64::saturating_add)
}

fn instructions(code: &[u8], bits: Bits) -> u64 {
    Decoder::new(bits.number().into(), code, DecoderOptions::NONE).into_iter().count() as u64
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
