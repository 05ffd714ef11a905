//! Where occurrences are added up.

use crate::delta::Delta;
use crate::occurrence::Occurrence;

/// Takes occurrences.
pub trait Sink {
    /// So many more of an occurrence.
    fn add(&mut self, occurrence: Occurrence, count: u64);
}

impl Sink for Delta {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        Delta::add(self, occurrence, count);
    }
}

/// Both sinks get everything.
#[derive(Debug)]
pub struct Tee<'a, A, B>(pub &'a mut A, pub &'a mut B);

impl<A: Sink, B: Sink> Sink for Tee<'_, A, B> {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        self.0.add(occurrence, count);
        self.1.add(occurrence, count);
    }
}

/// Sums by the occurrence's discriminant, at least [`crate::OCCURRENCES`] of them.
impl Sink for [u64] {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        let slot = &mut self[occurrence as usize];
        *slot = slot.wrapping_add(count);
    }
}

impl<const N: usize> Sink for [u64; N] {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        self.as_mut_slice().add(occurrence, count);
    }
}
