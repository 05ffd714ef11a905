//! Maximum bipartite matching between requests and units, by augmenting paths (Kuhn's algorithm).
//! Units are the bits of a `u64`, so a step along a path is a few instructions.

use super::demand::FIXED_UNITS;
use alloc::vec;
use alloc::vec::Vec;

const FREE: u8 = u8::MAX;

/// Requests placed on units so far.
#[derive(Clone, Debug)]
pub(crate) struct Matching {
    /// Which request has a unit.
    owners: [u8; 64],
    taken: u64,
}

impl Matching {
    /// No request; `blocked` units stay empty.
    pub fn new(blocked: u64) -> Self {
        Self { owners: [FREE; 64], taken: blocked }
    }

    /// Places request `index`, moving others if need be. `masks` says for each request which units
    /// it can have. `false`: there is no way, and nothing has changed.
    pub fn add(&mut self, masks: &[u64], index: usize) -> bool {
        let mut seen = 0;
        self.augment(masks, index, &mut seen)
    }

    fn augment(&mut self, masks: &[u64], index: usize, seen: &mut u64) -> bool {
        let free = masks[index] & !self.taken & !*seen;
        if free != 0 {
            // Fixed counters first: others may need the general-purpose ones.
            let best = if free & FIXED_UNITS != 0 { free & FIXED_UNITS } else { free };
            let unit = best.trailing_zeros();
            self.owners[unit as usize] = index as u8;
            self.taken |= 1 << unit;
            return true;
        }
        let mut candidates = masks[index] & !*seen;
        while candidates != 0 {
            let unit = candidates.trailing_zeros();
            *seen |= 1 << unit;
            let owner = self.owners[unit as usize];
            if owner != FREE && self.augment(masks, owner.into(), seen) {
                self.owners[unit as usize] = index as u8;
                return true;
            }
            candidates &= !*seen;
        }
        false
    }

    /// The unit of each of `count` requests.
    pub fn units(&self, count: usize) -> Vec<u8> {
        let mut units = vec![FREE; count];
        for (unit, owner) in (0..).zip(self.owners) {
            if let Some(slot) = units.get_mut(usize::from(owner)) {
                *slot = unit;
            }
        }
        units
    }
}

/// Places all requests, or says that it cannot be done. At most 64 fit.
pub(crate) fn place_all(masks: &[u64], blocked: u64) -> Option<Vec<u8>> {
    if masks.len() > 64 {
        return None;
    }
    let mut matching = Matching::new(blocked);
    (0..masks.len()).all(|index| matching.add(masks, index)).then(|| matching.units(masks.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every unit for every request.
    fn brute_force(masks: &[u64], taken: u64) -> bool {
        let Some((first, rest)) = masks.split_first() else {
            return true;
        };
        (0..64).any(|unit| {
            let bit = 1 << unit;
            first & bit & !taken != 0 && brute_force(rest, taken | bit)
        })
    }

    #[test]
    fn c2_matching_is_found_whenever_there_is_one_four_on_four_in_all_cases() {
        // All 15^4 non-empty sets for four requests on four counters, and all 7^5 for five on
        // three.
        for (requests, counters) in [(4, 4), (5, 3)] {
            let sets = (1_u64 << counters) - 1;
            for case in 0..sets.pow(requests) {
                let masks: Vec<u64> =
                    (0..requests).map(|i| case / sets.pow(i) % sets + 1).collect();
                let found = place_all(&masks, 0);
                assert_eq!(found.is_some(), brute_force(&masks, 0), "{masks:?}");
                for (mask, unit) in masks.iter().zip(found.unwrap_or_default()) {
                    assert_ne!(mask >> unit & 1, 0);
                }
            }
        }
    }

    #[test]
    fn fixed_counters_are_taken_first_and_left_when_needed() {
        let fixed = 1 << 48;
        assert_eq!(place_all(&[0xf | fixed, 0xf], 0), Some(vec![48, 0]));
        assert_eq!(place_all(&[0xf | fixed, fixed], 0), Some(vec![0, 48]));
        assert_eq!(place_all(&[0b1, 0b1], 0), None);
        assert_eq!(place_all(&[0b11, 0b1], 0b10), None);
        assert_eq!(place_all(&[1; 65], 0), None);
    }
}
