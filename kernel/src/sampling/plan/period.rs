//! The period that makes a rate, by a counting run.

use super::possible::limit;
use super::witnesses::plain;
use super::{Armed, MIN_PERIOD};
use crate::sampling::parts::on;
use crate::sampling::{Sampler, ibs, memory};
use crate::snippet::measure::Unmeasured;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use arch::pmu::pmi::{ControlBlock, Delivery};
use protocol::job::sampling::{Rate, Sampling};
use protocol::record::Uncounted;

/// Runs the tasks once and counts, so that periods can be chosen that make the rates.
pub(super) fn count(
    machine: &mut impl Sampler,
    item: &Sampling,
    armed: &mut Vec<Armed>,
    rates: &[Rate],
    left_out: &mut Vec<Uncounted>,
) -> Result<(), Unmeasured> {
    let cpus = item.workload.cpus();
    let mut blocks = Vec::with_capacity(cpus.len());
    for &cpu in &cpus {
        blocks.push(on(machine, cpu, |registers, driver| {
            driver.reset(registers)?;
            for one in armed.iter() {
                memory::program(registers, driver, one)?;
                driver.program(registers, one.counter, &plain(&one.selection))?;
                driver.write(registers, one.counter, 0)?;
            }
            Ok((Box::new(ControlBlock::of(driver)), driver.gate()))
        })?);
    }
    let ticks = match (item.is_scheduled(), &item.workload.tasks[..], &blocks[..]) {
        (false, [task], [(_, gate)]) => {
            machine.load_task(task, gate);
            machine.run_task(task, false)?
        }
        _ => {
            // No counter interrupts; the scheduler opens the block's gate.
            for (&cpu, (block, _)) in cpus.iter().zip(&blocks) {
                machine.deliver(cpu, block, Delivery::Fixed, None);
            }
            let ran = machine.run_tasks(item, None);
            for (&cpu, (block, _)) in cpus.iter().zip(&mut blocks) {
                machine.withdraw(cpu, block);
            }
            ran.map_err(Unmeasured::Refused)?.ticks
        }
    };
    let ([hz, _], emulated) = (machine.clocks(), machine.has_emulated_pmu());
    // The rate is that of all processors together, as is the period.
    let mut sums = alloc::vec![0_u64; armed.len()];
    for &cpu in &cpus {
        on(machine, cpu, |registers, driver| {
            driver.stop(registers)?;
            for (sum, one) in sums.iter_mut().zip(armed.iter()) {
                *sum = sum.saturating_add(driver.read(registers, one.counter)?);
            }
            Ok(())
        })?;
    }
    let has = machine.pmu().map_err(Unmeasured::Refused)?.driver.capabilities().clone();
    let mut chosen = Vec::with_capacity(armed.len());
    for ((mut one, rate), counted) in armed.drain(..).zip(rates).zip(sums) {
        one.period = match *rate {
            Rate::Period(period) => period,
            Rate::PerSecond(per_second) => {
                if counted == 0 {
                    let reason = "it did not occur in the run that looks for a period".to_string();
                    left_out.push(Uncounted { event: one.event, reason });
                    continue;
                }
                let period = period_for(counted, ticks, hz, per_second);
                if period < MIN_PERIOD {
                    one.remarks.push(format!(
                        "{per_second} samples a second would take a period of {period}; {MIN_PERIOD} is the shortest"
                    ));
                }
                let period = period.max(MIN_PERIOD);
                if one.ibs.is_some() { ibs::nearest(period) } else { period }
            }
        };
        if let (Rate::PerSecond(_), false, Some((_, limit))) = (*rate, emulated, limit(&has, &one))
        {
            one.period = limit.nearest(one.distance()) + u64::from(one.selection.precise);
        }
        chosen.push(one);
    }
    *armed = chosen;
    Ok(())
}

/// The period that makes `per_second` samples of an event that came `counted` times in `ticks` of a TSC of `hz`.
pub(super) fn period_for(counted: u64, ticks: u64, hz: u64, per_second: u32) -> u64 {
    let events_a_second = u128::from(counted) * u128::from(hz) / u128::from(ticks.max(1));
    let period = events_a_second / u128::from(per_second.max(1));
    u64::try_from(period).unwrap_or(u64::MAX).max(1)
}
