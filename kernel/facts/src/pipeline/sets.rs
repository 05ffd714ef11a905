//! The sets of a table that pieces of code fill, by their addresses.
//!
//! Pieces lie a power of two bytes apart. Of the distances at which the table's sets repeat as many of them fit as there are ways, and
//! no more; then one piece more lies beside that distance, and fits as soon as its set is another one.

use alloc::vec::Vec;
use protocol::record::Fit;

/// Most pieces that are tried.
pub const MOST: u32 = 64;

/// What a try took, and whether all of its pieces fit.
pub struct Try {
    pub cycles: u64,
    pub fits: bool,
    /// Nearer to the line between both than to what it should be.
    pub doubtful: bool,
}

/// A search. `attempt` has the bytes between pieces, how many there are, and by how much the last one lies beside its place.
pub struct Search<'a> {
    /// Bytes that there are for pieces.
    pub bytes: u32,
    /// The least distance, which is at least what a piece takes.
    pub least: u32,
    pub attempt: &'a mut dyn FnMut(u32, u32, u32) -> Try,
    pub evidence: Vec<Fit>,
    pub doubtful: u32,
}

/// What was found.
pub struct Shape {
    pub ways: u32,
    pub sets: u32,
    /// Bytes that share a set; `None`: there is one set.
    pub granule: Option<u32>,
    /// Bytes after which sets repeat.
    pub stride: u32,
}

/// Why nothing was found.
pub enum Untold {
    /// As many as were tried fit at every distance.
    NoLimit,
    /// How many fit settles at no distance.
    Uneven,
}

impl Search<'_> {
    /// Searches.
    pub fn shape(&mut self) -> Result<Shape, Untold> {
        let (bytes, least) = (self.bytes, self.least);
        let strides = (0..).map(|step| least << step).take_while(|stride| bytes / stride >= 8);
        let limits: Vec<(u32, Option<u32>)> =
            strides.map(|stride| (stride, self.most(stride))).collect();
        let ways = limits.iter().filter_map(|(_, most)| *most).min().ok_or(Untold::NoLimit)?;
        let settled: Vec<_> = limits.iter().skip_while(|(_, most)| *most != Some(ways)).collect();
        let mut then_free = settled.iter().skip_while(|(_, most)| most.is_some());
        // At the least distances more fit than are tried, and at the greatest there is room for fewer than ways.
        let limited = limits.iter().skip_while(|(_, most)| most.is_none()).map(|(_, most)| *most);
        let falls = limited.is_sorted_by(|near, far| far.is_none() || near >= far);
        // A cache has as many ways at every distance at which its sets repeat: what falls again is another table's.
        let known: Vec<u32> = limits.iter().filter_map(|(_, most)| *most).collect();
        let falls_again = known.windows(3).any(|all| all[0] == all[1] && all[2] < all[1]);
        if ways == 0 || !falls || falls_again || then_free.any(|(_, most)| most.is_some()) {
            return Err(Untold::Uneven);
        }
        let stride = settled.first().map_or(least, |(stride, _)| *stride);
        let (granule, repeat) = self.beside(stride, ways);
        let sets = granule.map_or(1, |granule| repeat / granule);
        Ok(Shape { ways, sets, granule, stride })
    }

    fn fits(&mut self, stride: u32, count: u32, beside: u32) -> bool {
        let Try { cycles, fits, doubtful } = (self.attempt)(stride, count, beside);
        self.doubtful += u32::from(doubtful);
        let stride = u64::from(stride + beside);
        self.evidence.push(Fit { stride, places: count, cycles, fits });
        fits
    }

    /// The most pieces that fit; `None`: as many as are tried.
    fn most(&mut self, stride: u32) -> Option<u32> {
        let room = (self.bytes / stride - 2).min(MOST);
        let (mut fit, mut next) = (0, 1);
        while self.fits(stride, next, 0) {
            if next == room {
                return None;
            }
            (fit, next) = (next, (next * 2).min(room));
        }
        while next - fit > 1 {
            let middle = u32::midpoint(fit, next);
            match self.fits(stride, middle, 0) {
                true => fit = middle,
                false => next = middle,
            }
        }
        Some(fit)
    }

    /// The least distance beside `stride` at which a piece is of another set, and the next one at which it is of the same again. A
    /// piece more than there are ways tells. `None`: there is one set.
    fn beside(&mut self, stride: u32, ways: u32) -> (Option<u32>, u32) {
        let mut granule = None;
        let distances = (0..).map(|step| 1 << step).take_while(|beside| *beside < stride);
        for beside in distances {
            match (self.fits(stride, ways + 1, beside), granule) {
                (true, None) => granule = Some(beside),
                (false, Some(_)) => return (granule, beside),
                _ => {}
            }
        }
        (granule, stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is determined of a table of which so many pieces fit at each distance, from 64 bytes on.
    fn shape(limits: &[u32]) -> Option<(u32, u32)> {
        let mut attempt = |stride: u32, count: u32, _: u32| {
            let limit = limits[(stride / 64).ilog2() as usize];
            Try { cycles: 0, fits: count <= limit, doubtful: false }
        };
        // As many distances as there are limits.
        let bytes = 64 << (limits.len() + 2);
        let (evidence, doubtful) = (Vec::new(), 0);
        let mut search = Search { bytes, least: 64, attempt: &mut attempt, evidence, doubtful };
        search.shape().ok().map(|shape| (shape.ways, shape.stride))
    }

    #[test]
    fn d1_what_falls_again_is_of_another_table() {
        assert_eq!(shape(&[32, 16, 8, 8, 8, 8]), Some((8, 256)));
        // A table of targets with fewer ways at the greater distances.
        assert_eq!(shape(&[32, 16, 8, 8, 4, 4]), None);
        assert_eq!(shape(&[32, 16, 8, 8, 8, 4]), None);
    }
}
