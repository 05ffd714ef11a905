//! Prefetchers of data, by parameters.
//!
//! Each acts on lines that the first level does not have, and stays in a page of 4 KiB. What it brings takes no time, keeps the way of lines
//! (see [`transfer`](super::transfer)) free, and is no event.
//!
//! | prefetcher | acts on | brings |
//! | --- | --- | --- |
//! | pair | a line that no cache has | the other line of its aligned pair, from the second level on |
//! | next | a line whose predecessor is in the first level | the line after it, into all levels |
//! | stream | the last of so many lines at one distance, in their order | as many more at that distance, from the second level on |
//!
//! Processors have such ones (Intel, "64 and IA-32 Architectures Optimization Reference Manual", data prefetching: spatial prefetcher, DCU
//! prefetcher, streamer). These are simpler.

#[cfg(feature = "hierarchy")]
use super::PAGE_BYTES;
#[cfg(feature = "hierarchy")]
use alloc::vec::Vec;

/// Fewest and most lines after which a stream prefetcher acts.
pub const AFTER: core::ops::RangeInclusive<u16> = 2..=8;
/// Most lines that it brings.
pub const MOST_AHEAD: u16 = 16;
/// Greatest distance that it follows, in lines.
pub const MOST_STRIDE: u16 = 4;
/// Pages that it follows at once.
#[cfg(feature = "hierarchy")]
const PAGES: usize = 16;

/// Which there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetcherShape {
    /// The prefetcher of pairs.
    pub pair: bool,
    /// The one of the next line.
    pub next: bool,
    /// The one of streams.
    pub stream: Option<StreamShape>,
}

/// A prefetcher of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// It acts on this line of a stream, from 1.
    pub after: u16,
    /// Lines that it brings.
    pub ahead: u16,
    /// Greatest distance from one line to the next, in lines, in either direction.
    pub stride: u16,
}

impl PrefetcherShape {
    /// There is none.
    pub const NONE: Self = Self { pair: false, next: false, stream: None };

    /// As a list: pair, next, after, ahead, stride.
    #[must_use]
    pub fn list(self) -> [u16; 5] {
        let stream = self.stream.map_or([0; 3], |one| [one.after, one.ahead, one.stride]);
        [self.pair.into(), self.next.into(), stream[0], stream[1], stream[2]]
    }

    /// From such a list; `None`: there are no such ones.
    #[must_use]
    pub fn of([pair, next, after, ahead, stride]: [u16; 5]) -> Option<Self> {
        let stream = match [after, ahead, stride] {
            [0, 0, 0] => None,
            _ if AFTER.contains(&after)
                && (1..=MOST_AHEAD).contains(&ahead)
                && (1..=MOST_STRIDE).contains(&stride) =>
            {
                Some(StreamShape { after, ahead, stride })
            }
            _ => return None,
        };
        (pair <= 1 && next <= 1).then_some(Self { pair: pair == 1, next: next == 1, stream })
    }
}

/// A page whose lines are followed.
#[cfg(feature = "hierarchy")]
#[derive(Clone, Copy, Debug)]
struct Followed {
    page: u64,
    line: u64,
    distance: i64,
    lines: u16,
}

/// The streams that a prefetcher follows.
#[cfg(feature = "hierarchy")]
#[derive(Clone, Debug)]
pub(super) struct Streams {
    shape: Option<StreamShape>,
    /// The page of the newest line last.
    pages: Vec<Followed>,
}

#[cfg(feature = "hierarchy")]
impl Streams {
    pub const fn new(shape: Option<StreamShape>) -> Self {
        Self { shape, pages: Vec::new() }
    }

    /// The first level does not have a line of so many bytes. The distance at which lines are brought now, and how many.
    pub fn miss(&mut self, line: u64, bytes: u64) -> Option<(i64, u16)> {
        let shape = self.shape?;
        let page = line / (PAGE_BYTES / bytes);
        let known = self.pages.iter().position(|one| one.page == page);
        let mut own = Followed { page, line, distance: 0, lines: 1 };
        match known {
            Some(at) => {
                let before = self.pages.remove(at);
                own.distance = line.wrapping_sub(before.line).cast_signed();
                let follows = (1..=shape.stride.into()).contains(&own.distance.unsigned_abs());
                own.lines = match () {
                    () if !follows => 1,
                    () if own.distance == before.distance => before.lines.saturating_add(1),
                    () => 2,
                };
            }
            None if self.pages.len() == PAGES => {
                self.pages.remove(0);
            }
            None => {}
        }
        self.pages.push(own);
        (own.lines >= shape.after).then_some((own.distance, shape.ahead))
    }
}

#[cfg(all(test, feature = "hierarchy"))]
mod tests {
    use super::*;

    fn streams() -> Streams {
        Streams::new(Some(StreamShape { after: 3, ahead: 5, stride: 2 }))
    }

    #[test]
    fn d1_a_stream_is_followed_from_its_third_line_on_in_both_directions() {
        let mut up = streams();
        let found = [4, 5, 6, 7].map(|line| up.miss(line, 64));
        assert_eq!(found, [None, None, Some((1, 5)), Some((1, 5))]);
        let mut down = streams();
        let found = [60, 58, 56].map(|line| down.miss(line, 64));
        assert_eq!(found, [None, None, Some((-2, 5))]);
    }

    #[test]
    fn d1_another_distance_begins_again_and_a_greater_one_is_no_stream() {
        let mut one = streams();
        // The second distance of 2 makes three lines.
        let found = [1, 2, 4, 6].map(|line| one.miss(line, 64));
        assert_eq!(found, [None, None, None, Some((2, 5))]);
        let mut far = streams();
        assert!([0, 3, 6, 9, 12].iter().all(|line| far.miss(*line, 64).is_none()));
    }

    #[test]
    fn d1_each_page_has_its_own_stream_and_sixteen_are_followed() {
        let mut one = streams();
        // 63 and 64 are of two pages; of 17 pages the oldest is forgotten.
        assert!([62, 63, 64, 65].iter().all(|line| one.miss(*line, 64).is_none()));
        assert!(one.miss(66, 64).is_some());
        let mut many = streams();
        for page in 0..17 {
            assert!([0, 1].iter().all(|line| many.miss(page * 64 + line, 64).is_none()));
        }
        assert_eq!([many.miss(2, 64), many.miss(16 * 64 + 2, 64)], [None, Some((1, 5))]);
    }

    #[test]
    fn d1_lists_of_what_is_no_prefetcher_are_refused() {
        for list in [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 2, 1, 1], [0, 1, 8, 16, 4]] {
            assert_eq!(PrefetcherShape::of(list).map(PrefetcherShape::list), Some(list));
        }
        for list in [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 9, 1, 1]] {
            assert_eq!(PrefetcherShape::of(list), None, "{list:?}");
        }
        for list in [[0, 0, 2, 0, 1], [0, 0, 2, 17, 1], [0, 0, 2, 1, 0], [0, 0, 2, 1, 5]] {
            assert_eq!(PrefetcherShape::of(list), None, "{list:?}");
        }
    }
}
