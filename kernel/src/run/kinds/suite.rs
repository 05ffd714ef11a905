//! The conformance suite, alone and as a part of a bring-up.

use super::{Failure, Machine, Run};
use protocol::job::Conformance;
use protocol::record::{Check, Record};

pub(super) fn run(item: &Conformance, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let each = &mut |check: &Check| (run.report)(&Record::Check(check.clone()));
    Ok(Record::Suite(run.machine.conformance(item, run.index, each)))
}

pub(super) fn bring_up(item: &Conformance, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let each = &mut |record| (run.report)(&record);
    Ok(Record::Suite(run.machine.bring_up(item, run.index, each)))
}
