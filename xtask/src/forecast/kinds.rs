//! What items of each kind take.

use super::Planned;
use super::slow::{
    STEPPED_A_SECOND, Slow, Steps, TRAPPED_A_SECOND, of_body, of_tasks, sizes, texts,
};
use protocol::job::{
    Conformance, Count, Exact, Facts, History, Processors, Sampling, Snippet, Tasks,
};

impl Planned for Snippet<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        slow.of_runs(self, 1)
    }
}

impl Planned for Exact<'_> {
    fn steps(&self, _slow: &Slow, _cpus: u32) -> Option<Steps> {
        let once = |copies| of_body(&self.snippet, copies).min(self.steps);
        let instructions = sizes(&self.snippet).map(once).iter().sum();
        Some(Steps { instructions, rate: TRAPPED_A_SECOND, why: "exact mode".to_string() })
    }
}

impl Planned for History<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        let snippet = &self.snippet;
        let why = slow.first(texts(snippet).chain([&*self.clock]))?;
        // A row ends the run when the clock has come so far: on average half of the body.
        let runs = self.rows().saturating_mul(snippet.runs.into());
        let body = of_body(snippet, snippet.unroll.into());
        let instructions = runs.saturating_mul(body) / 2;
        Some(Steps { instructions, rate: STEPPED_A_SECOND, why })
    }
}

impl Planned for Count<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        let sets = self.all_sets();
        let events = sets.iter().flat_map(|set| set.requests.iter().map(|one| &*one.event));
        let (instructions, why) = (of_tasks(&self.workload), slow.first(events)?);
        Some(Steps { instructions, rate: STEPPED_A_SECOND, why })
    }
}

impl Planned for Processors<'_> {
    fn steps(&self, slow: &Slow, cpus: u32) -> Option<Steps> {
        slow.of_runs(&self.snippet, if self.cpu.is_some() { 1 } else { cpus.into() })
    }

    fn copies(&self, cpus: u32) -> u32 {
        cpus
    }
}

// Where loads take time, the emulated PMU counts their cycles at full speed.
impl Planned for Facts<'_> {}

impl Planned for Sampling<'_> {
    fn steps(&self, slow: &Slow, _cpus: u32) -> Option<Steps> {
        let why = slow.first(self.events.iter().map(|one| &*one.event))?;
        let instructions = of_tasks(&self.workload);
        Some(Steps { instructions, rate: STEPPED_A_SECOND, why })
    }
}

// Nothing is counted, so nothing is stepped.
impl Planned for Tasks<'_> {}

impl Planned for Conformance<'_> {}
