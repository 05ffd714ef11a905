//! Chains of loads, each place used once.

use crate::probe::{Flush, Probe, Run};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// A chain in the making: a line that is visited again is loaded from at another of its words.
#[derive(Debug, Default)]
pub struct Chain {
    places: Vec<u64>,
    visits: BTreeMap<u64, u64>,
}

impl Chain {
    /// Adds a load from the line at `place`, which has bytes left for it.
    pub fn load(&mut self, place: u64) {
        // The same bytes through other pages are the same bytes.
        let visit = self.visits.entry(place & !crate::LARGE).or_insert(0);
        self.places.push(place + *visit * POINTER);
        *visit += 1;
    }

    /// How often a line has been loaded from.
    #[must_use]
    pub fn visits(&self, place: u64) -> u64 {
        self.visits.get(&(place & !crate::LARGE)).copied().unwrap_or(0)
    }

    /// Its loads so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Cycles of all loads from number `skip` on.
    pub fn cycles(&self, probe: &mut impl Probe, flush: Flush, skip: usize, tries: u32) -> u64 {
        probe.cycles(&Run { flush, places: &self.places, skip, tries })
    }
}
