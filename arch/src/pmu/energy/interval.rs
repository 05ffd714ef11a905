//! The energy between two moments.
//!
//! A register moves about once in a millisecond. So an interval begins where one has just moved, and how much all of them move until
//! the next time is what cannot be told at its end.

use super::{Domain, Energy, Meter, Place, Shared};
use alloc::vec::Vec;
use thiserror::Error;

/// Processors whose registers of energy can be read.
pub trait Source {
    /// What the register of a domain reads there, its lower 32 bits.
    fn read(&mut self, place: Place) -> u32;
    /// The TSC.
    fn now(&mut self) -> u64;
    /// Ticks of the TSC in a second.
    fn hz(&self) -> u64;
    /// What it reports its energy.
    fn energy(&self) -> &Energy;
    /// The registers that count a domain's energy of the processors that are measured; without any, that of the boot processor,
    /// which measures.
    fn shared(&self, domain: Domain) -> Vec<Shared> {
        let _ = domain;
        Vec::from([Shared { reader: 0, processors: Vec::new() }])
    }
}

/// Parts of a second: between two looks at a register that should move, and after which it is given up. It should move within 1 ms.
const LOOKS: u64 = 200_000;
const GIVEN_UP: u64 = 10;

/// No register moved.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the register does not change: it read {reads:#x} for {ms} ms")]
pub struct Still {
    /// What it read.
    pub reads: u32,
    /// For how long.
    pub ms: u64,
}

/// One domain of an interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    /// Whose register it is.
    pub place: Place,
    meter: Meter,
    /// Units that its register moved by from one update to the next, at least 1: so much more or less may have been used.
    pub step: u64,
}

impl Part {
    /// Units in the interval.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.meter.total()
    }
}

/// An interval that has begun.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interval {
    parts: Vec<Part>,
    begin: u64,
    end: u64,
    /// Ticks from one update to the next.
    update: u64,
    /// Ticks after which the registers must be read again.
    gap: u64,
    read: u64,
    late: bool,
}

impl Interval {
    /// Begins where a register has just moved: that with the smallest unit, which the boot processor reads if it reads one. Those of
    /// other packages move at other moments.
    ///
    /// # Errors
    /// It does not move.
    pub fn begin(places: &[Place], source: &mut dyn Source) -> Result<Self, Still> {
        // The finest one: a register in joules moves rarely.
        let unit = |place: &&Place| (source.energy().unit(place.domain), place.processor == 0);
        let Some(&first) = places.iter().max_by_key(unit) else {
            return Ok(Self::default());
        };
        edge(first, source)?;
        let begin = source.now();
        let at = |source: &mut dyn Source| -> Vec<u32> {
            places.iter().map(|&place| source.read(place)).collect()
        };
        let before = at(source);
        edge(first, source)?;
        let (mut now, mut here) = (source.now(), at(source));
        let update = now.wrapping_sub(begin);
        let moved = before.iter().zip(&here).map(|(&before, &here)| here.wrapping_sub(before));
        let mut steps: Vec<u32> = moved.collect();
        // One that moves at other moments, or more rarely, is waited for by itself.
        if steps.contains(&0) {
            for (step, &place) in steps.iter_mut().zip(places).filter(|(step, _)| **step == 0) {
                let before = source.read(place);
                let _ = edge(place, source);
                *step = source.read(place).wrapping_sub(before);
            }
            edge(first, source)?;
            (now, here) = (source.now(), at(source));
        }
        let seconds =
            places.iter().map(|place| Meter::seconds(source.energy().unit(place.domain))).min();
        let part = |(&place, (&step, &here)): (&Place, (&u32, &u32))| Part {
            place,
            meter: Meter::begin(here),
            step: u64::from(step).max(1),
        };
        Ok(Self {
            parts: places.iter().zip(steps.iter().zip(&here)).map(part).collect(),
            begin: now,
            end: now,
            update,
            gap: seconds.unwrap_or_default().saturating_mul(source.hz()) / 2,
            read: now,
            late: false,
        })
    }

    /// Reads the registers, if one could wrap twice before the next call. To be called at least every second.
    pub fn keep(&mut self, source: &mut dyn Source) {
        let now = source.now();
        if now.wrapping_sub(self.read) >= self.gap {
            self.note(source, now);
        }
    }

    /// It ends here.
    pub fn end(&mut self, source: &mut dyn Source) {
        let now = source.now();
        self.note(source, now);
        // An update under load may be more than one before it, when the other processors were halted.
        let (update, ticks) = (u128::from(self.update), u128::from(self.ticks().max(1)));
        for part in &mut self.parts {
            let mean = u64::try_from(u128::from(part.units()) * update / ticks).unwrap_or(u64::MAX);
            // Not for what the moments of reading make of it.
            if mean / 8 * 7 > part.step {
                part.step = mean;
            }
        }
    }

    fn note(&mut self, source: &mut dyn Source, now: u64) {
        for part in &mut self.parts {
            part.meter.note(source.read(part.place));
        }
        self.late |= now.wrapping_sub(self.read) / 2 > self.gap;
        (self.end, self.read) = (now, now);
    }

    /// Whether the registers were read too late, so that one may have wrapped twice meanwhile.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        self.late
    }

    /// Each register, in the order requested.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Ticks of the TSC.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.end.wrapping_sub(self.begin)
    }

    /// Ticks of the TSC from one update of the register to the next.
    #[must_use]
    pub const fn update(&self) -> u64 {
        self.update
    }
}

/// Waits until the register moves.
fn edge(place: Place, source: &mut dyn Source) -> Result<(), Still> {
    let (begin, hz) = (source.now(), source.hz());
    let reads = source.read(place);
    loop {
        let looked = source.now();
        if source.read(place) != reads {
            return Ok(());
        }
        if looked.wrapping_sub(begin) > hz / GIVEN_UP {
            return Err(Still { reads, ms: 1000 / GIVEN_UP });
        }
        while source.now().wrapping_sub(looked) < hz / LOOKS {
            core::hint::spin_loop();
        }
    }
}
