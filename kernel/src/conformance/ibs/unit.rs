//! A unit of instruction-based sampling, run for a piece of code.

use super::DATA_2;
use super::period::OPERATIONS;
use crate::conformance::context::Context;
use crate::conformance::machine::Work;
use arch::pmu::PmuError;
use arch::pmu::ibs::{Features, OpData, OpData3, Period, Unit};

/// What a unit holds.
pub(super) struct Seen {
    pub(super) control: u64,
    pub(super) rip: u64,
    pub(super) what: u64,
    pub(super) data_2: u64,
    pub(super) access: OpData3,
    pub(super) linear: u64,
    pub(super) physical: u64,
}

pub(super) fn get(context: &mut Context, msr: arch::msr::Msr) -> Result<u64, PmuError> {
    context.registers().rdmsr(msr).map_err(|_| PmuError::Unsupported("register of IBS"))
}

pub(super) fn set(context: &mut Context, msr: arch::msr::Msr, value: u64) -> Result<(), PmuError> {
    context.registers().wrmsr(msr, value).map_err(|_| PmuError::Unsupported("register of IBS"))
}

/// A period of an operation, in operations where they can be counted.
pub(super) fn of_ops(has: Features, length: u64) -> Option<Period> {
    Period::new(Unit::Op, has.contains(Features::COUNTS_OPS), length, has).ok()
}

/// Lets the unit run for `work`, with `start` counted already, and looks at it then. It is still on.
pub(super) fn look(
    context: &mut Context,
    period: Period,
    start: u64,
    work: Work,
) -> Result<Seen, PmuError> {
    let unit = period.unit();
    if context.driver.programmed() == 0 {
        // A gate without a counter is not opened, and nothing runs.
        let counter = context.first();
        context.program(counter, &OPERATIONS)?;
    }
    set(context, unit.control(), period.off())?;
    set(context, unit.control(), period.on() | start << 32)?;
    context.run(work);
    seen(context, unit)
}

pub(super) fn seen(context: &mut Context, unit: Unit) -> Result<Seen, PmuError> {
    Ok(Seen {
        control: get(context, unit.control())?,
        rip: get(context, unit.address())?,
        what: get(context, OpData::MSR)?,
        data_2: get(context, DATA_2)?,
        access: OpData3(get(context, OpData3::MSR)?),
        linear: get(context, OpData3::LINEAR)?,
        physical: get(context, OpData3::PHYSICAL)?,
    })
}

/// The same, and switches the unit off.
pub(super) fn tag(
    context: &mut Context,
    period: Period,
    start: u64,
    work: Work,
) -> Result<Seen, PmuError> {
    let seen = look(context, period, start, work);
    off(context, period)?;
    seen
}

/// Switches the unit off, as family 10h needs it ([`Period::off_in_two`]).
pub(super) fn off(context: &mut Context, period: Period) -> Result<(), PmuError> {
    let control = period.unit().control();
    let [first, last] = period.off_in_two();
    if context.has().ibs_erratum_420 {
        set(context, control, first)?;
    }
    set(context, control, last)
}
