//! Keeping the handler's own work out of the counts.

use super::ControlBlock;
use super::assembly::{STOPPED, TAIL, stopped_one_by_one};
use super::carry::Stands;
use super::ibs::Sampling;
use super::serviced::{SERVICED_TAIL, serviced};
use crate::pmu::FreezeKind;
use crate::pmu::capabilities::Capabilities;
use crate::pmu::driver::{Driver, MAX_WRITES, PmuError, Write};
use crate::pmu::registers::GlobalStatus;
use core::fmt;
use core::mem::offset_of;

/// What counters do while an overflow is handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handling {
    /// They continue: those that count ring 0 count the handler.
    Counted,
    /// The processor freezes them.
    Frozen {
        /// Instructions of the handler's end that they see, if they count ring 0.
        seen: u64,
    },
    /// The handler stops them.
    Stopped {
        /// Instructions of the handler that they see, likewise. One that has overflowed and got its preset back sees
        /// those of the handler's end alone.
        seen: u64,
    },
}

impl Handling {
    pub(super) fn of(block: &ControlBlock) -> Self {
        let in_rust = block.needs_service() || (block.status == 0 && !block.stays_unmasked);
        let writes = block.gate.on().len() as u64;
        match (block.stop.msr != 0, block.stops > 0, block.resume.msr != 0) {
            (true, ..) => Self::Stopped { seen: if in_rust { serviced(1) } else { STOPPED } },
            (_, true, _) => Self::Stopped {
                seen: if in_rust { serviced(writes) } else { stopped_one_by_one(writes) },
            },
            (_, _, true) => Self::Frozen { seen: if in_rust { SERVICED_TAIL } else { TAIL } },
            _ => Self::Counted,
        }
    }

    /// Instructions of the handler that a counter of ring 0 sees at each interrupt; `None`: all of them.
    #[must_use]
    pub const fn seen(self) -> Option<u64> {
        match self {
            Self::Counted => None,
            Self::Frozen { seen } | Self::Stopped { seen } => Some(seen),
        }
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted => f.write_str("counters go on, ring 0 counts the handler"),
            Self::Frozen { seen } => {
                write!(f, "frozen by the processor, {seen} instructions of ring 0 counted each")
            }
            Self::Stopped { seen } => {
                write!(f, "stopped by the handler, {seen} instructions of ring 0 counted each")
            }
        }
    }
}

/// The writes around the work of a handler.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Around {
    before: [Write; MAX_WRITES],
    after: [Write; MAX_WRITES],
    /// How many of each.
    pub(super) stops: u32,
    pub(super) resumes: u32,
}

impl Around {
    /// Nothing is written around the handler.
    pub(super) const NOTHING: Self = Self {
        before: [Write::new(crate::msr::Msr(0), 0); MAX_WRITES],
        after: [Write::new(crate::msr::Msr(0), 0); MAX_WRITES],
        stops: 0,
        resumes: 0,
    };

    fn new(before: &[Write], after: &[Write]) -> Self {
        let mut around =
            Self { stops: before.len() as u32, resumes: after.len() as u32, ..Self::NOTHING };
        around.before[..before.len()].copy_from_slice(before);
        around.after[..after.len()].copy_from_slice(after);
        around
    }

    /// Those of the handler of overflows.
    pub(super) fn of_overflow(block: &ControlBlock) -> Self {
        let around = match block.handling() {
            Handling::Counted => Self::NOTHING,
            Handling::Frozen { .. } => Self::new(&[], &[block.resume]),
            Handling::Stopped { .. } if block.stops == 0 => {
                Self::new(&[block.stop], &[block.resume])
            }
            Handling::Stopped { .. } => Self::new(block.gate.off(), block.gate.on()),
        };
        around.stopping_records(block)
    }

    /// Those of the timer's handler: nothing freezes by itself there.
    pub(super) fn of_tick(block: &ControlBlock) -> Self {
        let around = match block.handling() {
            Handling::Counted => Self::NOTHING,
            _ => Self::new(block.gate.off(), block.gate.on()),
        };
        around.stopping_records(block)
    }

    /// The same with branch records that stop after the counters and continue before them: what the counters see of the handler
    /// stays as it is. On a legacy freeze the processor has switched the records off, so they are switched on in any case.
    fn stopping_records(self, block: &ControlBlock) -> Self {
        let Some([on, off]) = block.recording() else { return self };
        let (stops, resumes) = (self.stops as usize, self.resumes as usize);
        if stops.max(resumes) >= MAX_WRITES {
            return self;
        }
        let mut with = self;
        with.before[stops] = off;
        with.after[0] = on;
        with.after[1..=resumes].copy_from_slice(self.after());
        (with.stops, with.resumes) = (self.stops + 1, self.resumes + 1);
        with
    }

    /// Those of the handler of instruction-based samples: the counters as for a tick, and the unit that samples, which is the
    /// last to continue: [`Around::begin`] says from which count.
    pub(super) fn of_sample(block: &ControlBlock) -> Self {
        let mut around = Self::of_tick(block);
        if let (Some(sampling), true) = (block.sampling(), (around.resumes as usize) < MAX_WRITES) {
            around.after[around.resumes as usize] = sampling.begin();
            around.resumes += 1;
        }
        around
    }

    /// The unit begins the period that is the next one now.
    pub(super) fn begin(&mut self, sampling: Option<&Sampling>) {
        let last = (self.resumes as usize).checked_sub(1);
        if let (Some(sampling), Some(last)) = (sampling, last)
            && self.after[last].msr == sampling.begin().msr
        {
            self.after[last] = sampling.begin();
        }
    }

    pub(super) fn before(&self) -> &[Write] {
        &self.before[..self.stops as usize]
    }

    pub(super) fn after(&self) -> &[Write] {
        &self.after[..self.resumes as usize]
    }

    pub(super) const BEFORE: usize = offset_of!(Self, before);
    pub(super) const AFTER: usize = offset_of!(Self, after);
    pub(super) const STOPS: usize = offset_of!(Self, stops);
    pub(super) const RESUMES: usize = offset_of!(Self, resumes);
}

/// The writes around each of a processor's handlers. They stand in its block, so that no other processor's full log stops
/// it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct AroundAll {
    pub(super) overflow: Around,
    pub(super) tick: Around,
    pub(super) sample: Around,
}

impl AroundAll {
    /// Nothing is written.
    pub(super) const NOTHING: Self =
        Self { overflow: Around::NOTHING, tick: Around::NOTHING, sample: Around::NOTHING };

    /// Those of a block that is about to be installed.
    pub(super) fn of(block: &ControlBlock) -> Self {
        Self {
            overflow: Around::of_overflow(block),
            tick: Around::of_tick(block),
            sample: Around::of_sample(block),
        }
    }

    /// If counting has stopped, no handler lets the counters go on any more.
    #[inline]
    pub(super) fn follow(&mut self, stopped: bool) {
        if stopped {
            for around in [&mut self.overflow, &mut self.tick, &mut self.sample] {
                around.resumes = 0;
            }
        }
    }
}

impl ControlBlock {
    /// To go with a freeze: the handler lets the counters continue before it ends. A streamlined freeze ends when its
    /// bits are cleared, a legacy one when the enables are set again.
    pub fn resume_in_handler(&mut self, driver: &Driver) {
        let Some(global) = driver.layout().global else { return };
        self.resume = match driver.capabilities().freeze {
            FreezeKind::Streamlined => Write::new(global.clear, frozen_bits(driver.capabilities())),
            FreezeKind::None | FreezeKind::Legacy => driver.gate().on()[0],
        };
        self.carry_over_frozen(driver);
    }

    /// For processors that cannot freeze: the handler stops the counters as the first thing it does, and lets them
    /// continue as the last. Without a global control it does so one by one.
    ///
    /// # Errors
    /// Nothing is programmed.
    pub fn stop_in_handler(&mut self, driver: &Driver) -> Result<(), PmuError> {
        let gate = driver.gate();
        let (&[on, ..], &[off, ..]) = (gate.on(), gate.off()) else {
            return Err(PmuError::Unsupported("counter that is programmed and could be stopped"));
        };
        self.carry_over(driver, Stands::Stopped);
        if driver.layout().global.is_none() {
            self.gate = gate;
            self.stops = gate.on().len() as u32;
            return Ok(());
        }
        (self.stop, self.resume) = (off, on);
        Ok(())
    }
}

/// The frozen bits, where the status has them.
fn frozen_bits(has: &Capabilities) -> u64 {
    match has.freeze {
        FreezeKind::Streamlined => {
            (GlobalStatus::LBR_FROZEN | GlobalStatus::COUNTERS_FROZEN).bits()
        }
        FreezeKind::None | FreezeKind::Legacy => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::driver::Gate;

    /// What the listings of `assembly` come to: the handler's end is five POPs and IRETQ; a counter that the handler stops
    /// sees the ten instructions in front of it as well, and of several each as much wherever it is in the row.
    #[test]
    fn counters_see_of_a_handler_what_its_listing_shows() {
        assert_eq!([TAIL, STOPPED, stopped_one_by_one(1), stopped_one_by_one(4)], [6, 16, 27, 48]);
        let mut block = ControlBlock::EMPTY;
        block.status = 0x38e;
        let seen = |block: &ControlBlock| (block.handling(), block.handling().seen());
        assert_eq!(seen(&block), (Handling::Counted, None));
        block.resume = Write::new(crate::msr::Msr(0x38f), 1);
        assert_eq!(seen(&block), (Handling::Frozen { seen: 6 }, Some(6)));
        block.stop = Write::new(crate::msr::Msr(0x38f), 0);
        assert_eq!(seen(&block), (Handling::Stopped { seen: 16 }, Some(16)));
        // The part in Rust has an end of its own.
        block.stop_when_full();
        assert_eq!(seen(&block).1, Some(47));
        assert_eq!([serviced(1), serviced(4)], [47, 68]);
        block.stop = Write::new(crate::msr::Msr(0), 0);
        assert_eq!(seen(&block), (Handling::Frozen { seen: 20 }, Some(20)));
    }

    /// Without a status register Intel's handler is the one in Rust, as it has to unmask its interrupt; AMD's assembly looks
    /// at the counters one by one.
    #[test]
    fn without_a_status_register_amds_assembly_is_enough() {
        let mut block = ControlBlock::EMPTY;
        let select = crate::msr::Msr(0xc001_0200);
        block.gate = Gate::EMPTY.with(select, 0x53_00c0, 0x13_00c0);
        block.stops = 1;
        block.stays_unmasked = true;
        assert_eq!(block.handling().seen(), Some(stopped_one_by_one(1)));
        block.stays_unmasked = false;
        assert_eq!(block.handling().seen(), Some(serviced(1)));
    }

    #[test]
    fn a_handler_writes_what_its_way_to_stop_takes() {
        let global = crate::msr::Msr(0x38f);
        let write = |value| Write::new(global, value);
        let around = |block: &ControlBlock| {
            [Around::of_overflow(block), Around::of_tick(block)]
                .map(|one| (one.before().to_vec(), one.after().to_vec()))
        };
        let mut block = ControlBlock::EMPTY;
        block.status = 0x38e;
        block.gate = Gate::EMPTY.with(global, 3, 0);
        let (nothing, both) = ((vec![], vec![]), (vec![write(0)], vec![write(3)]));
        // Counters that continue are written to by neither.
        assert_eq!(around(&block), [nothing.clone(), nothing]);
        // A freeze is ended; a tick, which nothing freezes, stops them itself.
        block.resume = write(7);
        assert_eq!(around(&block), [(vec![], vec![write(7)]), both.clone()]);
        block.stop = write(8);
        assert_eq!(around(&block), [(vec![write(8)], vec![write(7)]), both.clone()]);
        // One by one: the gate's writes.
        (block.stop, block.resume, block.stops) = (Write::default(), Write::default(), 1);
        assert_eq!(around(&block), [both.clone(), both]);
    }

    /// Branch records stop after the counters and continue before them; the switch needs a place on both sides.
    #[test]
    fn s2_branch_records_stop_last_and_continue_first() {
        use crate::pmu::capabilities::LbrKind;
        use crate::pmu::pmi::{Edge, Edges};
        let (global, switch) = (crate::msr::Msr(0x38f), crate::msr::Msr(0x1d9));
        let mut places = [Edge::default(); 1];
        let mut block = ControlBlock::EMPTY;
        block.gate = Gate::EMPTY.with(global, 3, 0);
        (block.stop, block.resume) = (Write::new(global, 0), Write::new(global, 3));
        block.count_edges(Edges::new(LbrKind::Single, (switch, 1, 0), &mut places).unwrap());
        let [on, off] = [1, 0].map(|value| Write::new(switch, value));
        for around in [Around::of_overflow(&block), Around::of_tick(&block)] {
            assert_eq!(around.before(), [block.stop, off]);
            assert_eq!(around.after(), [on, block.resume]);
        }
        // Of counters that are stopped one by one, and of as many as a gate takes.
        (block.stop, block.resume) = (Write::default(), Write::default());
        for (counters, more) in [(MAX_WRITES - 1, 1), (MAX_WRITES, 0)] {
            let select = |n| crate::msr::Msr(0x186 + n as u32);
            block.gate = (0..counters).fold(Gate::EMPTY, |gate, n| gate.with(select(n), 1, 0));
            block.stops = counters as u32;
            let around = Around::of_overflow(&block);
            let writes = [around.before().len(), around.after().len()];
            assert_eq!(writes, [counters + more; 2]);
        }
    }

    /// The unit that samples is the last to continue, where there is a place for its write.
    #[test]
    fn s1_the_unit_that_samples_continues_last() {
        use crate::pmu::ibs::{Features, Period, Unit};
        let period = Period::new(Unit::Op, false, 64, Features::all()).unwrap();
        let sampling = Sampling::new(period, 0, 0);
        for (counters, last) in [(MAX_WRITES - 1, true), (MAX_WRITES, false)] {
            let mut block = ControlBlock::EMPTY;
            let select = |n| crate::msr::Msr(0x186 + n as u32);
            block.gate = (0..counters).fold(Gate::EMPTY, |gate, n| gate.with(select(n), 1, 0));
            block.stops = counters as u32;
            block.sample_by(sampling);
            let around = Around::of_sample(&block);
            assert_eq!(around.after().len(), MAX_WRITES);
            assert_eq!(around.after().last() == Some(&sampling.begin()), last, "{counters}");
        }
    }

    #[test]
    fn no_handler_lets_the_counters_of_a_full_log_go_on() {
        let one = Around::new(&[Write::default()], &[Write::default()]);
        let mut all = AroundAll { overflow: one, tick: one, sample: one };
        let writes = |all: &AroundAll| {
            [&all.overflow, &all.tick, &all.sample]
                .map(|one| (one.before().len(), one.after().len()))
        };
        all.follow(false);
        assert_eq!(writes(&all), [(1, 1); 3]);
        all.follow(true);
        assert_eq!(writes(&all), [(1, 0); 3]);
    }
}
