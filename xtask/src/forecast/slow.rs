//! What is stepped of a piece of code, and how fast.

use crate::events::encodings::encoded;
use crate::events::{Block, cpu};
use events::parse::parse_list;
use iced_x86::{Decoder, DecoderOptions};
use pmu_model::{Model, Occurrence, Selector, events as model_events};
use protocol::bits::Bits;
use protocol::job::workload::Workload;
use protocol::job::{Difference, Snippet};

/// Instructions that the emulated PMU steps in a second of host time: `cargo xtask bench`, "instructions stepped a second".
pub const STEPPED_A_SECOND: u64 = 31_500;
/// Instructions that exact mode steps over in a second of host time, under QEMU's translator: a trap flag's exception each.
pub const TRAPPED_A_SECOND: u64 = 60_000;

/// What an item steps.
pub struct Steps {
    /// Instructions, at least.
    pub instructions: u64,
    /// How many of them a second.
    pub rate: u64,
    /// What it is done for.
    pub why: String,
}

/// Events that an emulated PMU counts by stepping.
pub struct Slow(Option<Model>);

impl Slow {
    pub(super) fn of(model: Option<Model>) -> Self {
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
    let task = |task: &protocol::job::workload::Task| {
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
