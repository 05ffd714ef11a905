//! A profile.

use super::{Failure, Machine, Run};
use crate::sampling;
use protocol::job::Sampling;
use protocol::record::{Record, SampleResult};

pub(super) fn run(item: &Sampling, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| {
        let each = &mut |samples| (run.report)(&Record::Samples(samples));
        sampling::measure(run.machine, run.index, item, each)
    });
    let result = measured.map_err(Failure::without_limits)?;
    Ok(Record::Sample(SampleResult { tsc, ..result }))
}
