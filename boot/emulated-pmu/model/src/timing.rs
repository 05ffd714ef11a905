//! How long things take. No figure here is measured on silicon; they are a deterministic rule.
//!
//! An instruction takes [`Timing::instruction_cycles`] core cycles, by default one, and retires in the last of them. On top
//! come the stalls that it causes:
//!
//! | cause | cycles, by default |
//! | --- | --- |
//! | mispredicted branch | 16 |
//! | load found in the last-level cache | 14 |
//! | load from memory | 200 |
//! | load whose translation came from the second-level TLB | 7 |
//! | load that walked the page tables | 30 |
//!
//! The latency that a PEBS record or a sample of IBS states is always by these figures, of loads and stores, and from
//! dispatch to data it is four cycles more ([`Latency`]). The retire latency of a record is one cycle and the stalls
//! ([`Timing::retire_latency`]).
//!
//! Stores and interrupts stall nothing. Stalls are known while the code is stepped, and at full speed to the plugin; without it
//! cycles are a multiple of instructions at full speed. [`Timing::FLAT`] takes the stalls away, so that cycles do not
//! depend on which events are being counted. Clocks tick at a fixed ratio to core cycles, each
//! counter with a remainder of its own that starts at 0 when the counter or its control is written.

use crate::delta::Delta;
use crate::occurrence::Occurrence;
use crate::selection::Selection;
use crate::uarch::Parameters;
use core::num::{NonZeroU32, NonZeroU64};

/// A clock's rate: so many ticks in so many core cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Ticks of the clock ...
    pub ticks: u32,
    /// ... in this many core cycles.
    pub cycles: NonZeroU32,
}

impl Ratio {
    /// `ticks` ticks in `cycles` core cycles; 0 cycles are taken as 1.
    #[must_use]
    pub const fn new(ticks: u32, cycles: u32) -> Self {
        Self {
            ticks,
            cycles: match NonZeroU32::new(cycles) {
                Some(cycles) => cycles,
                None => NonZeroU32::MIN,
            },
        }
    }

    /// Ticks in `cycles` core cycles after a remainder `phase`, which is brought up to date.
    pub(crate) fn advance(self, phase: &mut u32, cycles: u64) -> u64 {
        let divisor = self.cycles.get();
        // The usual case, as a division of 128 bits is a call into a library.
        if let Some(total) = cycles
            .checked_mul(u64::from(self.ticks))
            .and_then(|ticks| ticks.checked_add(u64::from(*phase)))
        {
            *phase = (total % u64::from(divisor)) as u32;
            return total / u64::from(divisor);
        }
        let total = u128::from(*phase) + u128::from(cycles) * u128::from(self.ticks);
        *phase = (total % u128::from(divisor)) as u32;
        // At most 2^64 cycles times 2^32 ticks; counters wrap at 2^48, so the low 64 bits suffice.
        (total / u128::from(divisor)) as u64
    }

    /// The fewest core cycles after a remainder `phase` that make `ticks` ticks, at least one. `None`:
    /// never.
    pub(crate) fn cycles_until(self, phase: u32, ticks: u64) -> Option<u64> {
        if self.ticks == 0 {
            return None;
        }
        if let Some(needed) = ticks.checked_mul(u64::from(self.cycles.get())) {
            return Some((needed - u64::from(phase)).div_ceil(u64::from(self.ticks)));
        }
        let needed = u128::from(ticks) * u128::from(self.cycles.get()) - u128::from(phase);
        u64::try_from(needed.div_ceil(u128::from(self.ticks))).ok()
    }
}

/// The rule, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Core cycles of an instruction that stalls nowhere. In all but the last of them nothing retires, and the backend is
    /// what holds it up.
    pub instruction_cycles: NonZeroU32,
    /// Rate of the reference clock (fixed counter 2, the TSC).
    pub reference_clock: Ratio,
    /// Rate of the bus or crystal clock (event 3C/01 on most parts).
    pub bus_clock: Ratio,
    /// Cycles lost to a mispredicted branch.
    pub mispredict_cycles: u32,
    /// Cycles a load waits for the last-level cache.
    pub llc_cycles: u32,
    /// Cycles a load waits for memory.
    pub memory_cycles: u32,
    /// Cycles a load waits for the second-level TLB.
    pub stlb_cycles: u32,
    /// Cycles a load waits for a page walk.
    pub walk_cycles: u32,
    /// Loads take the time of the model's parameters, reported as [`Occurrence::MemoryStall`]; so counters of cycles request it.
    pub parameters: bool,
    /// Cycles and micro-operations are those of a port map, reported as [`Occurrence::PortCycle`] and [`Occurrence::PORTS`].
    pub ports: bool,
    /// With parameters, no instruction waits for more cycles.
    pub most_waits: u64,
}

/// Cycles from a load's dispatch to its data, where the first level has it and its translation.
pub const FIRST_LEVEL_CYCLES: u64 = 4;

/// How long an instruction's data access took, as records and samples state it: by the rule of [`Timing::DEFAULT`], whether
/// cycles are counted with their stalls or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Cycles beyond the first level's until the data was there.
    pub miss: u32,
    /// Cycles until the translation was there.
    pub translation: u32,
}

impl Latency {
    /// Of the access that went farthest, of an instruction that retired with this delta.
    #[must_use]
    pub fn of(delta: &Delta) -> Self {
        use Occurrence::*;
        const RULE: Timing = Timing::DEFAULT;
        let any = |list: &[Occurrence]| delta.sum(Selection::of(list)) > 0;
        let miss = if any(&[LoadLlcMiss, StoreLlcMiss]) {
            RULE.memory_cycles
        } else if any(&[LoadLlcHit, StoreLlcHit]) {
            RULE.llc_cycles
        } else {
            0
        };
        let translation = if any(&[LoadWalk, StoreWalk]) {
            RULE.walk_cycles
        } else if any(&[LoadStlbHit, StoreStlbHit]) {
            RULE.stlb_cycles
        } else {
            0
        };
        Self { miss, translation }
    }

    /// From dispatch to data: what a record states, and a threshold is compared with.
    #[must_use]
    pub const fn whole(self) -> u64 {
        FIRST_LEVEL_CYCLES + self.miss as u64 + self.translation as u64
    }
}

/// Cycles in which nothing retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stalls {
    /// Cycles of instructions before the one in which they retire.
    pub execution: u64,
    pub mispredict: u64,
    pub memory: u64,
}

impl Stalls {
    pub(crate) const fn cycles(self) -> u64 {
        self.execution.saturating_add(self.mispredict).saturating_add(self.memory)
    }
}

pub(crate) const MISPREDICTED: Selection = {
    use Occurrence::*;
    Selection::of(&[
        MissedJccNotTaken,
        MissedJccTakenForward,
        MissedJccTakenBackward,
        MissedRelativeCall,
        MissedIndirectCall,
        MissedReturn,
        MissedRelativeJump,
        MissedIndirectJump,
    ])
};

impl Timing {
    /// The rule of the module's table. The reference clock runs at two thirds of the core's, so
    /// that a driver which mixes up two counters shows; the bus clock at a quarter.
    pub const DEFAULT: Self = Self {
        instruction_cycles: NonZeroU32::MIN,
        reference_clock: Ratio::new(2, 3),
        bus_clock: Ratio::new(1, 4),
        mispredict_cycles: 16,
        llc_cycles: 14,
        memory_cycles: 200,
        stlb_cycles: 7,
        walk_cycles: 30,
        parameters: false,
        ports: false,
        most_waits: 0,
    };

    /// The same clocks without any stall.
    pub const FLAT: Self = Self {
        mispredict_cycles: 0,
        llc_cycles: 0,
        memory_cycles: 0,
        stlb_cycles: 0,
        walk_cycles: 0,
        ..Self::DEFAULT
    };

    /// The clocks of a processor whose TSC advances by 2^`shift` with each instruction, none of which stalls: core,
    /// reference clock and TSC tick together, whatever the shift, and the bus clock once in four of their ticks.
    #[must_use]
    pub const fn of_tsc(shift: u8) -> Self {
        let cycles = match 1u32.checked_shl(shift as u32) {
            Some(cycles) => cycles,
            None => u32::MAX,
        };
        Self {
            instruction_cycles: Ratio::new(1, cycles).cycles,
            reference_clock: Ratio::new(1, 1),
            ..Self::FLAT
        }
    }

    /// The same where loads and mispredicted branches take the time of parameters.
    #[must_use]
    pub fn with(self, parameters: &Parameters) -> Self {
        Self {
            mispredict_cycles: parameters.mispredict_cycles,
            llc_cycles: 0,
            memory_cycles: 0,
            stlb_cycles: 0,
            walk_cycles: 0,
            parameters: true,
            ports: parameters.ports.is_some(),
            most_waits: parameters.most_waits(),
            ..self
        }
    }

    /// What must be seen for cycles to be right.
    pub(crate) fn waits(&self) -> Selection {
        match self.parameters {
            true => MISPREDICTED.or(Selection::of(&[Occurrence::MemoryStall])),
            false => Selection::NOTHING,
        }
    }

    /// The same for a counter with this selection.
    pub(crate) fn waits_of(&self, selection: Selection) -> Selection {
        if selection.follows_cycles() { self.waits() } else { Selection::NOTHING }
    }

    /// No instruction takes more cycles, where parameters say how long they take.
    pub(crate) fn most_cycles(&self) -> NonZeroU64 {
        NonZeroU64::from(self.instruction_cycles).saturating_add(self.most_waits)
    }

    pub(crate) fn stalls(&self, delta: &Delta) -> Stalls {
        let each = u64::from(self.instruction_cycles.get()) - 1;
        let execution = delta.instructions.saturating_mul(each);
        if delta.is_bulk() {
            return Stalls { execution, ..Stalls::default() };
        }
        let of =
            |occurrence, cycles: u32| delta.count(occurrence).saturating_mul(u64::from(cycles));
        Stalls {
            execution,
            mispredict: delta.sum(MISPREDICTED).saturating_mul(u64::from(self.mispredict_cycles)),
            memory: of(Occurrence::LoadLlcHit, self.llc_cycles)
                .saturating_add(of(Occurrence::LoadLlcMiss, self.memory_cycles))
                .saturating_add(of(Occurrence::LoadStlbHit, self.stlb_cycles))
                .saturating_add(of(Occurrence::LoadWalk, self.walk_cycles))
                .saturating_add(delta.count(Occurrence::MemoryStall)),
        }
    }

    /// Core cycles from the retirement before to that of an instruction, as records state them: with the stalls of
    /// [`Timing::DEFAULT`], whether cycles are counted with them or not; where loads take the time of parameters, with those. More
    /// than the field holds is the most that it holds.
    #[must_use]
    pub fn retire_latency(&self, delta: &Delta) -> u16 {
        let rule = if self.parameters { self } else { &Self::DEFAULT };
        u16::try_from(rule.cycles(delta)).unwrap_or(u16::MAX)
    }

    /// Core cycles that a delta takes: its instructions and their stalls.
    #[must_use]
    pub fn cycles(&self, delta: &Delta) -> u64 {
        delta.instructions.saturating_add(self.stalls(delta).cycles())
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ring;
    use proptest::prelude::*;

    #[test]
    fn two_ticks_in_three_cycles() {
        let clock = Ratio::new(2, 3);
        let mut phase = 0;
        let ticks: Vec<u64> = (0..6).map(|_| clock.advance(&mut phase, 1)).collect();
        assert_eq!(ticks, [0, 1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_clock_that_stands_never_ticks() {
        assert_eq!(Ratio::new(0, 1).cycles_until(0, 1), None);
    }

    #[test]
    fn stalls_are_those_of_the_table() {
        let delta = Delta::step(Ring::User)
            .with(Occurrence::MissedJccNotTaken, 1)
            .with(Occurrence::LoadLlcMiss, 1)
            .with(Occurrence::LoadWalk, 1)
            .with(Occurrence::StoreLlcMiss, 1);
        let stalls = Timing::DEFAULT.stalls(&delta);
        assert_eq!((stalls.mispredict, stalls.memory), (16, 230));
        assert_eq!(Timing::DEFAULT.cycles(&delta), 247);
        assert_eq!(Timing::FLAT.cycles(&delta), 1);
        // A record states them where cycles go without.
        assert_eq!(Timing::FLAT.retire_latency(&delta), 247);
        assert_eq!(Timing::of_tsc(6).retire_latency(&Delta::step(Ring::User)), 1);
        assert_eq!(
            Timing::DEFAULT.retire_latency(&delta.with(Occurrence::LoadLlcMiss, 1 << 20)),
            u16::MAX
        );
    }

    #[test]
    fn core_reference_clock_and_tsc_tick_together_at_every_shift() {
        for shift in 0..=10 {
            let timing = Timing::of_tsc(shift);
            let delta = Delta::bulk(Ring::User, 1000);
            let tsc = 1000 << shift;
            assert_eq!(timing.cycles(&delta), tsc, "core cycles at shift {shift}");
            let reference = timing.reference_clock.advance(&mut 0, timing.cycles(&delta));
            assert_eq!(reference, tsc, "reference cycles at shift {shift}");
            let bus = timing.bus_clock.advance(&mut 0, timing.cycles(&delta));
            assert_eq!(bus, tsc / 4, "bus cycles at shift {shift}");
        }
    }

    proptest! {
        #[test]
        fn a_clock_adds_up_in_any_parts(
            ticks in 0u32..1000,
            cycles in 1u32..1000,
            parts in proptest::collection::vec(0u64..10_000, 0..20),
        ) {
            let clock = Ratio::new(ticks, cycles);
            let (mut once, mut steps) = (0, 0);
            let total = clock.advance(&mut once, parts.iter().sum());
            let sum: u64 = parts.iter().map(|part| clock.advance(&mut steps, *part)).sum();
            prop_assert_eq!((total, once), (sum, steps));
        }

        #[test]
        fn large_figures_take_the_long_way_to_the_same_result(
            ticks in 1u32.., cycles in 1u32.., many in (1u64 << 60).., wanted in (1u64 << 40)..(1 << 48)
        ) {
            let clock = Ratio::new(ticks, cycles);
            let mut phase = 0;
            let total = u128::from(many) * u128::from(ticks);
            prop_assert_eq!(clock.advance(&mut phase, many), (total / u128::from(cycles)) as u64);
            prop_assert_eq!(u128::from(phase), total % u128::from(cycles));
            let until = (u128::from(wanted) * u128::from(cycles)).div_ceil(u128::from(ticks));
            prop_assert_eq!(clock.cycles_until(0, wanted), u64::try_from(until).ok());
        }

        #[test]
        fn cycles_until_is_the_first_cycle(
            ticks in 1u32..100, cycles in 1u32..100, before in 0u64..100, wanted in 1u64..1000
        ) {
            let clock = Ratio::new(ticks, cycles);
            let mut phase = 0;
            clock.advance(&mut phase, before);
            let until = clock.cycles_until(phase, wanted).unwrap();
            let (mut short, mut exact) = (phase, phase);
            prop_assert!(clock.advance(&mut exact, until) >= wanted);
            prop_assert!(clock.advance(&mut short, until - 1) < wanted);
        }
    }
}
