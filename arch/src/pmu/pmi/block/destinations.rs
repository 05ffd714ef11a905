//! Where samples go: the log, histograms, and what each sample has besides.

use super::sample::Sample;
use super::{ControlBlock, Notify};
use crate::pmu::data_source::Datum;
use crate::pmu::pebs::Drain;
use crate::pmu::pmi::histogram::{Bucket, Histogram};
use crate::pmu::pmi::service::REGISTERS;

impl ControlBlock {
    /// Takes the records of `drain` out at each interrupt of their buffer, and wherever the counters are stopped: each is
    /// an overflow of the counters that it is of, which do not interrupt by themselves. Its store has to outlive the
    /// block's use.
    pub fn take_records(&mut self, drain: Drain) {
        self.mask = self.mask & !drain.counters | drain.status().bits();
        self.records = Some(drain);
    }

    /// What was taken out, if PEBS records are.
    #[must_use]
    pub fn records(&self) -> Option<&Drain> {
        self.records.as_ref()
    }

    /// Counts the data addresses of records in the first 2^n of `buckets`, which have to outlive the block's use.
    pub fn count_data(&mut self, buckets: &mut [Bucket]) {
        self.data = Histogram::new(buckets);
    }

    /// The data addresses, if they are counted.
    #[must_use]
    pub fn data(&self) -> Option<&Histogram> {
        self.data.as_ref()
    }

    /// Keeps the data access of each sample as well. Needs a log that is not longer, and has to outlive
    /// the block's use.
    pub fn data_to(&mut self, accesses: &mut [Datum]) {
        let samples = (self.end - self.start) as usize / size_of::<Sample>();
        if accesses.len() >= samples {
            self.data_log = accesses.as_mut_ptr();
        }
    }

    /// Writes samples to `log` until it is full, and counts what does not fit. The log has to outlive the block's use.
    pub fn log_to(&mut self, log: &mut [Sample]) {
        let range = log.as_mut_ptr_range();
        self.start = range.start as u64;
        self.cursor = self.start;
        self.end = range.end as u64;
    }

    /// Keeps the registers of each sample as well, in the order of their encoding: RAX, RCX, RDX, RBX, RSP, RBP, RSI,
    /// RDI, R8 to R15. Needs a log that is not longer. As for the log, it has to outlive the block's use.
    pub fn registers_to(&mut self, registers: &mut [[u64; REGISTERS]]) {
        let samples = (self.end - self.start) as usize / size_of::<Sample>();
        if registers.len() >= samples {
            self.registers = registers.as_mut_ptr();
        }
    }

    /// A full log stops the counters, instead of dropping what comes after.
    pub fn stop_when_full(&mut self) {
        self.stops_when_full = true;
    }

    /// Counts addresses in `buckets`. They have to outlive the block's use.
    pub fn count_addresses(&mut self, buckets: &mut [Bucket]) {
        self.histogram = Histogram::new(buckets);
    }

    /// What was counted.
    #[must_use]
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_ref()
    }

    /// Calls `notify` at each interrupt.
    pub fn notify(&mut self, notify: Notify) {
        self.notify = Some(notify);
    }

    /// Samples written to a log that began at `start`.
    #[must_use]
    pub fn logged(&self, start: *const Sample) -> usize {
        (self.cursor as usize).saturating_sub(start as usize) / size_of::<Sample>()
    }
}
