//! Samples of AMD's instruction-based sampling. They come through an interrupt of their own, beside that of the counters.

use super::ControlBlock;
use super::handling::Around;
use super::service::{Interrupted, Raw, note, put_all};
use crate::pmu::driver::Write;
use crate::pmu::ibs::{OpData, OpData3, Period, Unit};

/// Vector of its interrupt, if it comes as a fixed one.
pub const IBS_VECTOR: u8 = 0xe2;

/// A unit that samples.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    period: Period,
    /// Whose samples they are: the slot of a counter that counts beside.
    slot: u8,
    /// Entry of the extended local vector table.
    pub(super) entry: u8,
    /// A sample may say that its address is none.
    checks_address: bool,
    /// The current count can be written, so that a period goes on where it was stopped.
    keeps_count: bool,
    /// The count where the unit was stopped, as bits of the control register.
    stopped_at: u64,
    /// Samples without an address.
    pub invalid: u64,
}

impl Sampling {
    /// Samples of `period` that are the counter's of number `slot`, by way of `entry`.
    #[must_use]
    pub const fn new(period: Period, slot: u8, entry: u8) -> Self {
        Self {
            period,
            slot: slot & 63,
            entry,
            checks_address: false,
            keeps_count: false,
            stopped_at: 0,
            invalid: 0,
        }
    }

    /// Samples may say that they have no address.
    #[must_use]
    pub const fn checking_address(self, checks_address: bool) -> Self {
        Self { checks_address, ..self }
    }

    /// The current count can be written.
    #[must_use]
    pub const fn keeping_count(self, keeps_count: bool) -> Self {
        Self { keeps_count, ..self }
    }

    /// What was counted of the period that was not over when the unit was stopped.
    #[must_use]
    pub const fn rest(&self) -> u64 {
        self.period.unit().count(self.stopped_at)
    }

    /// Forgets what was sampled.
    pub(super) fn clear(&mut self) {
        (self.stopped_at, self.invalid) = (0, 0);
    }

    /// Lets the unit begin a new period.
    pub(super) const fn begin(&self) -> Write {
        Write::new(self.period.unit().control(), self.period.on())
    }
}

impl ControlBlock {
    /// Takes the samples of `sampling` beside the overflows of counters.
    pub fn sample_by(&mut self, sampling: Sampling) {
        self.ibs = Some(sampling);
    }

    /// The unit that samples, if one does.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.ibs.as_ref()
    }
}

/// Takes the sample out, if there is one, and leaves the unit off. Says whether there was.
fn take(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    let Some(ibs) = block.ibs else { return false };
    let unit = ibs.period.unit();
    let control = raw.rdmsr(unit.control().0);
    if control & unit.valid() == 0 {
        return false;
    }
    let rip = raw.rdmsr(unit.address().0);
    let (invalid, data) = match unit {
        Unit::Op => {
            let what = OpData(raw.rdmsr(OpData::MSR.0));
            let access = OpData3(raw.rdmsr(OpData3::MSR.0));
            let data = if access.has_address() { raw.rdmsr(OpData3::LINEAR.0) } else { 0 };
            (ibs.checks_address && what.address_is_invalid(), data)
        }
        // Erratum 1197: the address may read 0.
        Unit::Fetch => (rip == 0, 0),
    };
    // Erratum 420 of family 10h: the unit goes off in one write, and on with its count in another.
    raw.wrmsr(unit.control().0, ibs.period.off());
    if invalid {
        if let Some(ibs) = &mut block.ibs {
            ibs.invalid += 1;
        }
        return true;
    }
    block.slots[usize::from(ibs.slot)].overflows += 1;
    // The sample does not tell its ring: that of what ran, but for addresses of the upper half, which is the kernel's.
    let cs = if rip >> 63 == 0 { from.cs } else { 0 };
    let place = Interrupted { rip, cs, registers: from.registers };
    note(block, raw, &place, 1 << ibs.slot, None, data);
    true
}

/// Stops the unit because other code than what is sampled goes on; its period goes on with [`resume`].
#[inline]
pub(super) fn pause(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let Some(ibs) = block.ibs else { return };
    let unit = ibs.period.unit();
    let count = if take(block, raw, from) {
        0
    } else {
        let control = raw.rdmsr(unit.control().0);
        raw.wrmsr(unit.control().0, ibs.period.off());
        control & unit.count_bits()
    };
    if let Some(ibs) = &mut block.ibs {
        ibs.stopped_at = count;
    }
}

/// Lets the unit go on that [`pause`] stopped.
#[inline]
pub(super) fn resume(block: &mut ControlBlock, raw: &mut impl Raw) {
    let Some(ibs) = block.ibs else { return };
    let count = if ibs.keeps_count { ibs.stopped_at } else { 0 };
    raw.wrmsr(ibs.period.unit().control().0, ibs.period.on() | count);
}

/// Handles one interrupt of the unit: stops the counters as the handler of overflows does, takes the sample, and lets all go on.
#[inline]
pub fn sampled(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let around = Around::of_sample(block);
    put_all(raw, around.before());
    if handle(block, raw, from) {
        put_all(raw, around.after());
    }
}

/// The part of [`sampled`] between the writes. Says whether those behind it are due.
#[inline]
pub(super) fn handle(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    let found = take(block, raw, from);
    if found {
        block.pmis += 1;
    } else {
        block.spurious += 1;
    }
    if block.nmi == 0 {
        raw.end();
    }
    if block.stopped {
        put_all(raw, block.gate.off());
        return false;
    }
    if block.shut != 0 {
        return false;
    }
    if !found {
        // The sample was taken where the unit was stopped, and a new period runs: it is not begun again.
        put_all(raw, Around::of_tick(block).after());
    }
    found
}
