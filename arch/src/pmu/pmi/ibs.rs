//! Samples of AMD's instruction-based sampling. They come through an interrupt of their own, in addition to that of the counters.

use super::ControlBlock;
use super::accesses::Outcome;
use super::handling::Around;
use super::service::{Interrupted, Raw, note, put_all};
use crate::pmu::data_source::{Datum, ibs_datum};
use crate::pmu::driver::Write;
use crate::pmu::ibs::{OP_DATA_2, OpData, OpData3, Period, Unit};

/// Vector of its interrupt, if it comes as a fixed one.
pub const IBS_VECTOR: u8 = 0xe2;

/// Which operations are kept of those that are sampled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Filter {
    /// Loads that waited longer than this for what the first level did not have; 0: all loads.
    Loads {
        /// Cycles.
        beyond: u32,
    },
    /// Stores.
    Stores,
}

impl Filter {
    fn keeps(self, access: OpData3, datum: &Datum) -> bool {
        match self {
            Self::Loads { beyond } => access.loads() && (beyond == 0 || datum.latency > beyond),
            Self::Stores => access.stores(),
        }
    }
}

/// Periods of random length.
#[derive(Clone, Copy, Debug)]
struct RandomPeriods {
    seed: u32,
    state: u32,
    /// Where the current period started, as bits of the control register, and how long it is.
    start: u64,
    length: u64,
    /// What those that ended come to.
    ended: u64,
}

impl RandomPeriods {
    const fn new(seed: u32, period: &Period) -> Self {
        // Xorshift never leaves 0.
        let seed = if seed == 0 { 1 } else { seed };
        Self { seed, state: seed, start: 0, length: 0, ended: 0 }.next(period)
    }

    /// The next number of a xorshift generator (Marsaglia, "Xorshift RNGs", 13, 17, 5) begins a period.
    const fn next(mut self, period: &Period) -> Self {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        (self.start, self.length) = period.start(self.state);
        self
    }
}

/// A unit that samples.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    period: Period,
    /// Whose samples they are: the slot of a counter that counts too.
    slot: u8,
    /// Entry of the extended local vector table.
    pub(super) entry: u8,
    /// A sample may say that its address is none.
    checks_address: bool,
    /// Family 10h: see [`Period::off_in_two`].
    clears_maximum: bool,
    /// The current count can be written, so that a period continues where it was stopped.
    keeps_count: bool,
    /// The count where the unit was stopped, as bits of the control register.
    stopped_at: u64,
    /// A sample was taken where the unit was stopped, and its interrupt, which waits, will find none.
    awaited: bool,
    /// Which samples are kept; `None`: all.
    filter: Option<Filter>,
    /// Random periods, if they are.
    random: Option<RandomPeriods>,
    /// Samples without an address.
    pub invalid: u64,
    /// Samples that the filter kept out.
    pub filtered: u64,
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
            clears_maximum: false,
            keeps_count: false,
            stopped_at: 0,
            awaited: false,
            filter: None,
            random: None,
            invalid: 0,
            filtered: 0,
        }
    }

    /// Some samples are kept alone.
    #[must_use]
    pub const fn filtered_by(self, filter: Option<Filter>) -> Self {
        Self { filter, ..self }
    }

    /// Its periods, which are random ([`Period::randomised`]), are those of this seed.
    #[must_use]
    pub const fn randomised_from(self, seed: u32) -> Self {
        let random = RandomPeriods::new(seed, &self.period);
        Self { random: Some(random), stopped_at: random.start, ..self }
    }

    /// What all periods that ended come to, if they are random. Unknown where the unit keeps operations away by itself, as it begins
    /// a period then that nobody sees.
    #[must_use]
    pub fn ended(&self) -> Option<u64> {
        self.random.filter(|_| !self.period.is_filtered()).map(|random| random.ended)
    }

    /// A period ended, and the next one begins.
    fn end_period(&mut self) {
        if let Some(random) = &mut self.random {
            random.ended += random.length;
            *random = random.next(&self.period);
        }
        self.stopped_at = self.start();
    }

    /// Where the current period starts, as bits of the control register.
    const fn start(&self) -> u64 {
        match self.random {
            Some(random) => random.start,
            None => 0,
        }
    }

    /// Samples may say that they have no address.
    #[must_use]
    pub const fn checking_address(self, checks_address: bool) -> Self {
        Self { checks_address, ..self }
    }

    /// The unit goes off as family 10h needs it ([`Period::off_in_two`]).
    #[must_use]
    pub const fn clearing_maximum(self, clears_maximum: bool) -> Self {
        Self { clears_maximum, ..self }
    }

    /// Switches the unit off.
    #[inline]
    fn switch_off(&self, raw: &mut impl Raw) {
        let control = self.period.unit().control().0;
        if self.clears_maximum {
            for value in self.period.off_in_two() {
                raw.wrmsr(control, value);
            }
        } else {
            raw.wrmsr(control, self.period.off());
        }
    }

    /// The current count can be written.
    #[must_use]
    pub const fn keeping_count(self, keeps_count: bool) -> Self {
        Self { keeps_count, ..self }
    }

    /// What was counted of the period that was not over when the unit was stopped.
    #[must_use]
    pub const fn rest(&self) -> u64 {
        let unit = self.period.unit();
        unit.count(self.stopped_at).saturating_sub(unit.count(self.start()))
    }

    /// Forgets what was sampled.
    pub(super) fn clear(&mut self) {
        self.random = self.random.map(|random| RandomPeriods::new(random.seed, &self.period));
        (self.stopped_at, self.awaited) = (self.start(), false);
        (self.invalid, self.filtered) = (0, 0);
    }

    /// Lets the unit begin a new period.
    pub(super) const fn begin(&self) -> Write {
        Write::new(self.period.unit().control(), self.period.on() | self.start())
    }
}

impl ControlBlock {
    /// Takes the samples of `sampling` in addition to the overflows of counters.
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
    let (mut kept, mut what) = (true, OpData::default());
    let (invalid, datum) = match unit {
        Unit::Op => {
            what = OpData(raw.rdmsr(OpData::MSR.0));
            let access = OpData3(raw.rdmsr(OpData3::MSR.0));
            let data = if access.has_address() { raw.rdmsr(OpData3::LINEAR.0) } else { 0 };
            let datum = ibs_datum(raw.rdmsr(OP_DATA_2.0), access.0, data).unwrap_or_default();
            kept = ibs.filter.is_none_or(|filter| filter.keeps(access, &datum));
            (ibs.checks_address && what.address_is_invalid(), datum)
        }
        // Erratum 1197: the address may read 0.
        Unit::Fetch => (rip == 0, Datum::default()),
    };
    ibs.switch_off(raw);
    if let Some(ibs) = &mut block.ibs {
        ibs.end_period();
    }
    if invalid {
        if let Some(ibs) = &mut block.ibs {
            ibs.invalid += 1;
        }
        return true;
    }
    if !kept {
        if let Some(ibs) = &mut block.ibs {
            ibs.filtered += 1;
        }
        return true;
    }
    block.slots[usize::from(ibs.slot)].overflows += 1;
    // The sample does not state its ring: that of what ran, but for addresses of the upper half, which is the kernel's.
    let cs = if rip >> 63 == 0 { from.cs } else { 0 };
    let place = Interrupted { rip, cs, registers: from.registers };
    let task = block.task;
    if let Some(outcomes) = block.outcomes.as_mut().filter(|_| what.is_branch()) {
        outcomes.take(&Outcome {
            address: rip,
            task,
            count: 1,
            taken: what.is_taken().into(),
            mispredicted: what.is_mispredicted().into(),
            returns: what.is_return().into(),
        });
    }
    note(block, raw, &place, 1 << ibs.slot, None, datum);
    true
}

/// Stops the unit because other code than what is sampled continues; its period continues with [`resume`].
#[inline]
pub(super) fn pause(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let Some(ibs) = block.ibs else { return };
    let unit = ibs.period.unit();
    let taken = take(block, raw, from);
    let count = if taken {
        block.ibs.map_or(0, |ibs| ibs.start())
    } else {
        let control = raw.rdmsr(unit.control().0);
        ibs.switch_off(raw);
        control & unit.count_bits()
    };
    if let Some(ibs) = &mut block.ibs {
        (ibs.stopped_at, ibs.awaited) = (count, ibs.awaited | taken);
    }
}

/// Lets the unit continue that [`pause`] stopped.
#[inline]
pub(super) fn resume(block: &mut ControlBlock, raw: &mut impl Raw) {
    let Some(ibs) = block.ibs else { return };
    let count = if ibs.keeps_count { ibs.stopped_at } else { ibs.start() };
    raw.wrmsr(ibs.period.unit().control().0, ibs.period.on() | count);
}

/// Handles one interrupt of the unit: stops the counters as the handler of overflows does, takes the sample, and lets all continue.
#[inline]
pub fn sampled(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let mut around = Around::of_sample(block);
    put_all(raw, around.before());
    if handle(block, raw, from) {
        around.begin(block.sampling());
        put_all(raw, around.after());
    }
}

/// The part of [`sampled`] between the writes. Says whether those after it are due.
#[inline]
pub(super) fn handle(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    let found = take(block, raw, from);
    let awaited = block.ibs.as_mut().is_some_and(|ibs| core::mem::take(&mut ibs.awaited));
    if found {
        block.pmis += 1;
    } else if !awaited {
        block.spurious += 1;
        if let Some(ibs) = block.ibs.filter(|_| block.storms()) {
            raw.mask_extended(ibs.entry);
        }
    }
    if block.nmi == 0 {
        raw.end();
    }
    if block.stopped {
        put_all(raw, block.gate.off());
        return false;
    }
    if block.shut != 0 || block.is_closed_at(from.rip) {
        return false;
    }
    if !found {
        // The sample was taken where the unit was stopped, and a new period runs: it is not begun again.
        put_all(raw, Around::of_tick(block).after());
    }
    found
}

#[cfg(test)]
mod tests;
