//! The uncore's counters, as Skylake's clients have them: its clock and its arbiter (SDM volume 4, table of Skylake's MSRs).
//!
//! The clock ticks as the TSC does. The arbiter gets a request for each line that is not found in the last level, and has the answer
//! within a clock: so as many clocks pass with a request outstanding as there are requests. Nothing snoops. The counters are those of the
//! processor that reads them: there is no package.

use super::{Pmu, write};
use crate::delta::Delta;
use crate::error::Fault;
use crate::msr;
use crate::occurrence::Occurrence;
use crate::selection::Selection;

/// Counters of the arbiter.
const COUNTERS: usize = 2;
const ENABLE: u64 = 1 << 22;
/// Enable, and an interrupt at overflow, which is not modelled.
const CLOCK_CONTROL: u64 = ENABLE | 1 << 20;
/// Event, unit mask, edge, that interrupt, enable, invert, threshold.
const SELECT: u64 = 0x1f84_ffff | CLOCK_CONTROL;
/// Slices, enable, wake at an interrupt, freeze at one.
const GLOBAL: u64 = 0x1f | GLOBAL_ENABLE | 3 << 30;
const GLOBAL_ENABLE: u64 = 1 << 29;
const CLOCK_BITS: u64 = (1 << 48) - 1;
const COUNTER_BITS: u64 = (1 << 44) - 1;
/// Requests; the same that are outstanding, only on the first counter.
const REQUESTS: u64 = 0x81;
const OUTSTANDING: u64 = 0x80;

/// The registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uncore {
    global: u64,
    clock_control: u64,
    /// What the clock read at `since`, in ticks of the TSC.
    clock: u64,
    since: u64,
    selects: [u64; COUNTERS],
    counters: [u64; COUNTERS],
}

impl Uncore {
    pub const RESET: Self = Self {
        global: 0,
        clock_control: 0,
        clock: 0,
        since: 0,
        selects: [0; COUNTERS],
        counters: [0; COUNTERS],
    };

    const fn clock_runs(&self) -> bool {
        self.global & GLOBAL_ENABLE != 0 && self.clock_control & ENABLE != 0
    }

    /// What the clock reads at `time`.
    const fn clock_at(&self, time: u64) -> u64 {
        let ticks = if self.clock_runs() { time.wrapping_sub(self.since) } else { 0 };
        self.clock.wrapping_add(ticks) & CLOCK_BITS
    }

    /// What counter `n` of the arbiter counts now.
    fn selection(&self, n: usize) -> Selection {
        let select = self.selects[n];
        let [event, umask, threshold] = [select & 0xff, select >> 8 & 0xff, select >> 24 & 0x1f];
        let runs = self.global & GLOBAL_ENABLE != 0 && select & ENABLE != 0;
        // More than one is never outstanding at the same time.
        let plain = select & (1 << 18 | 1 << 23) == 0 && threshold <= 1;
        let known = event == REQUESTS && threshold == 0 || event == OUTSTANDING && n == 0;
        match umask {
            _ if !runs || !plain || !known => Selection::NOTHING,
            1 => Selection::of(&[Occurrence::LlcMiss]),
            2 => Selection::of(&[Occurrence::LoadLlcMiss]),
            _ => Selection::NOTHING,
        }
    }
}

impl Pmu {
    /// What a register of the uncore reads.
    pub(super) fn read_uncore(&self, number: u32) -> u64 {
        let uncore = &self.uncore;
        match number {
            msr::UNCORE_GLOBAL => uncore.global,
            msr::UNCORE_CLOCK_CTRL => uncore.clock_control,
            msr::UNCORE_CLOCK => uncore.clock_at(self.time),
            msr::UNCORE_ARB_SELECT.. => uncore.selects[(number - msr::UNCORE_ARB_SELECT) as usize],
            counter => uncore.counters[(counter - msr::UNCORE_ARB_CTR) as usize],
        }
    }

    pub(super) fn write_uncore(&mut self, number: u32, value: u64) -> Result<(), Fault> {
        let checked = |valid| write::checked(number, value, valid);
        let mut uncore = self.uncore;
        // The clock goes on from here.
        (uncore.clock, uncore.since) = (uncore.clock_at(self.time), self.time);
        match number {
            msr::UNCORE_GLOBAL => uncore.global = checked(GLOBAL)?,
            msr::UNCORE_CLOCK_CTRL => uncore.clock_control = checked(CLOCK_CONTROL)?,
            msr::UNCORE_CLOCK => uncore.clock = checked(CLOCK_BITS)?,
            msr::UNCORE_ARB_SELECT.. => {
                uncore.selects[(number - msr::UNCORE_ARB_SELECT) as usize] = checked(SELECT)?;
            }
            counter => {
                uncore.counters[(counter - msr::UNCORE_ARB_CTR) as usize] = checked(COUNTER_BITS)?;
            }
        }
        self.uncore = uncore;
        Ok(())
    }

    /// What the arbiter's counters that run count.
    pub(super) fn uncore_selection(&self) -> Selection {
        (0..COUNTERS).fold(Selection::NOTHING, |all, n| all.or(self.uncore.selection(n)))
    }

    pub(super) fn count_uncore(&mut self, delta: &Delta) {
        for n in 0..COUNTERS {
            let selection = self.uncore.selection(n);
            if selection.has_occurrences() {
                let counter = &mut self.uncore.counters[n];
                *counter = counter.wrapping_add(delta.sum(selection)) & COUNTER_BITS;
            }
        }
    }
}
