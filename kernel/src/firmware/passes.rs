//! Which of a snippet's events are counted in which pass.

use super::counters::Counters;
use super::probe::Machine;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pmi::Interval;
use arch::time::tsc;
use kernel::events::Known;
use kernel::snippet::events::{self, Plan};
use protocol::job::Snippet;

/// What measures the current snippet.
pub struct Counting {
    /// The boot processor's counters.
    pub own: Counters,
    /// The last plan, the processor that it is for, and its events: most items of a job ask for the same events.
    pub plan: (usize, Vec<String>, Rc<Plan>),
    /// The plan for no event.
    pub nothing: Rc<Plan>,
    /// Interval of the timer that samples beside the counters.
    pub timer: Option<Interval>,
    /// The code segment of the task that ran alone while it was sampled.
    pub code_segment: u64,
}

impl Counting {
    /// A plan for the snippet's events, the last one if they are the same. `own`: the processor that they are counted on and
    /// what is known of it, if that is something else than of the boot processor.
    pub fn prepare(
        &mut self,
        snippet: &Snippet,
        machine: &Machine,
        own: Option<(usize, &Known<'static>)>,
    ) -> Rc<Plan> {
        let place = own.map_or(0, |(place, _)| place);
        let known = own.map(|(_, known)| known).or(machine.known.as_ref());
        let texts = &snippet.events;
        if texts.is_empty() {
            return self.nothing.clone();
        }
        if self.plan.0 == place && self.plan.1 == *texts {
            return self.plan.2.clone();
        }
        let begin = tsc::now();
        // Of several processors nobody takes records.
        let plan = if own.is_some() { events::plan } else { events::plan_with_latencies };
        let plan = match (known, &machine.pmu) {
            (Some(known), _) if machine.emulated.is_some() => plan(texts, known).with_time_apart(),
            (Some(known), _) => plan(texts, known),
            (_, Err(missing)) => Plan::without_pmu(texts, &format!("there is no PMU: {missing}")),
            (_, Ok(_)) => Plan::without_pmu(texts, "the PMU's events are not known"),
        };
        let ticks = tsc::now().wrapping_sub(begin);
        let texts = texts.iter().map(ToString::to_string).collect();
        // The ticks are those of the item that the plan was made for.
        self.plan = (place, texts, Rc::new(plan.clone()));
        Rc::new(Plan { ticks, ..plan })
    }
}
