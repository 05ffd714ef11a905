//! Programmed counters, and the memory that their handler writes to.

use super::Armed;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::pmi::{Bucket, ControlBlock, REGISTERS, Sample, Throttle};
use arch::pmu::{Driver, Freeze, FreezeKind, PmuError, Registers};
use protocol::sampling::{self, Keep, OnFull, Sampling};

/// A set of sampling counters. Holds the log that the block names, so it has to outlive the block's use.
#[derive(Debug)]
pub struct Session {
    /// What is sampled by.
    pub events: Vec<Armed>,
    log: Vec<Sample>,
    registers: Vec<[u64; REGISTERS]>,
    buckets: Vec<Bucket>,
    times: Vec<u64>,
}

/// Ticks of the timer whose times are kept.
const KEPT_TIMES: usize = 256;

impl Session {
    /// Programs the counters of `events`, each at its preset, stopped; and makes the block for the handler.
    /// `tsc_hz` is for the limit of the rate.
    ///
    /// # Errors
    /// The PMU refuses.
    pub fn arm(
        registers: &mut dyn Registers,
        driver: &mut Driver,
        item: &Sampling,
        events: Vec<Armed>,
        tsc_hz: u64,
    ) -> Result<(Self, ControlBlock), PmuError> {
        driver.reset(registers)?;
        for one in &events {
            driver.program(registers, one.counter, &one.selection)?;
            if let Some((witness, selection)) = &one.witness {
                driver.program(registers, *witness, selection)?;
            }
        }
        let mut block = ControlBlock::of(driver);
        let by_processor = driver.capabilities().freeze != FreezeKind::None;
        match item.freeze {
            _ if events.is_empty() => {}
            sampling::Freeze::Auto if by_processor => {
                driver.set_freeze(registers, Freeze::COUNTERS)?;
                block.resume_in_handler(driver);
            }
            sampling::Freeze::Auto | sampling::Freeze::Software => block.stop_in_handler(driver)?,
            sampling::Freeze::Off => {}
        }
        for one in &events {
            block.reload(driver, one.counter, driver.preset(one.counter, one.period)?)?;
        }
        if item.limit_per_ms > 0 {
            block.throttle = Throttle::new((tsc_hz / 1000).max(1), item.limit_per_ms.into());
        }
        let capacity = item.capacity as usize;
        let mut session = Self {
            events,
            log: Vec::new(),
            registers: Vec::new(),
            buckets: Vec::new(),
            times: vec![0; KEPT_TIMES],
        };
        match item.keep {
            Keep::Histogram => {
                session.buckets = vec![Bucket::default(); capacity.next_power_of_two()];
                block.count_addresses(&mut session.buckets);
            }
            Keep::Samples => {
                session.log = vec![Sample::default(); capacity];
                block.log_to(&mut session.log);
                if item.registers != 0 {
                    session.registers = vec![[0; REGISTERS]; capacity];
                    block.registers_to(&mut session.registers);
                }
                if item.on_full == OnFull::Stop {
                    block.stop_when_full();
                }
            }
        }
        session.restart(registers, driver, &mut block)?;
        Ok((session, block))
    }

    /// Begins anew: the counters at their presets, the witnesses at 0, log and counts empty. `block` is one that no
    /// handler uses now.
    ///
    /// # Errors
    /// The PMU refuses.
    pub fn restart(
        &mut self,
        registers: &mut dyn Registers,
        driver: &Driver,
        block: &mut ControlBlock,
    ) -> Result<(), PmuError> {
        driver.stop(registers)?;
        let status = driver.status(registers)?;
        driver.acknowledge(registers, status)?;
        for one in &self.events {
            driver.write(registers, one.counter, driver.preset(one.counter, one.period)?)?;
            if let Some((witness, _)) = one.witness {
                driver.write(registers, witness, 0)?;
            }
        }
        block.clear();
        Ok(())
    }

    /// Room for the times of the timer's first ticks.
    pub(super) fn times(&mut self) -> &mut [u64] {
        &mut self.times
    }

    /// The samples that `block` says are in the log.
    #[must_use]
    pub fn samples(&self, block: &ControlBlock) -> &[Sample] {
        &self.log[..block.logged(self.log.as_ptr()).min(self.log.len())]
    }

    /// The registers of those samples; empty if they were not kept.
    #[must_use]
    pub fn registers(&self) -> &[[u64; REGISTERS]] {
        &self.registers
    }
}
