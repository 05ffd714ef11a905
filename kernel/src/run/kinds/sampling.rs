//! A profile.

use super::whole::{Asked, Begun, Used};
use super::{Failure, Machine, Run};
use crate::sampling::{self, Around};
use protocol::job::Sampling;
use protocol::record::{Record, SampleResult};

/// What of the whole item is read around its workload: not around a run that only finds periods, which is no part of the item's.
struct Read<'a> {
    asked: Asked<'a>,
    begun: Option<(Begun, u64)>,
    used: Used,
}

impl<M: Machine> Around<M> for Read<'_> {
    fn begin(&mut self, machine: &mut M) {
        let begun = Begun::begin(&self.asked, machine);
        self.begun = Some((begun, machine.now()));
    }

    fn end(&mut self, machine: &mut M) {
        if let Some((begun, start)) = self.begun.take() {
            let ticks = machine.now().wrapping_sub(start);
            self.used = begun.end(machine, ticks);
        }
    }
}

pub(super) fn run(item: &Sampling, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let processors = item.workload.cpus().into_iter().map(u32::from).collect();
    let asked = Asked { energy: &item.energy, uncore: &item.uncore, processors };
    let mut read = Read { asked, begun: None, used: Used::default() };
    let (measured, tsc) = run.timed(|run| {
        let each = &mut |samples| (run.report)(&Record::Samples(samples));
        sampling::measure(run.machine, run.index, item, &mut read, each)
    });
    let result = measured.map_err(Failure::without_limits)?;
    let Used { energy, uncore, uncounted } = read.used;
    Ok(Record::Sample(SampleResult { tsc, energy, uncore, unread: uncounted, ..result }))
}
