//! Whether a task is counted, by the addresses that it has come by.

use super::address::Hit;

/// Starts of one task that are still to be stopped, and how many there were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Depth {
    /// Each start is to be stopped; else the next stop is enough.
    nested: bool,
    now: u64,
    deepest: u64,
    /// How often counting started and stopped.
    starts: u64,
    stops: u64,
}

impl Depth {
    /// Nothing has started.
    #[must_use]
    pub const fn new(nested: bool) -> Self {
        Self { nested, now: 0, deepest: 0, starts: 0, stops: 0 }
    }

    /// Whether the task is counted.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.now > 0
    }

    /// The task is at some of its addresses. One instruction that meets both kinds starts first. A stop without a start is none.
    pub fn meet(&mut self, hit: Hit) {
        let before = self.counts();
        self.now = match self.nested {
            true => self.now.saturating_add(hit.starts),
            false => u64::from(before || hit.starts > 0),
        };
        self.deepest = self.deepest.max(self.now);
        self.starts += u64::from(!before && self.counts());
        let between = self.counts();
        self.now = self.now.saturating_sub(hit.stops);
        self.stops += u64::from(between && !self.counts());
    }

    /// How often counting started and stopped, and the depth at most.
    #[must_use]
    pub const fn came_to(&self) -> (u64, u64, Option<u64>) {
        (self.starts, self.stops, if self.nested { Some(self.deepest) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const START: Hit = Hit { starts: 1, stops: 0, before: true };
    const STOP: Hit = Hit { starts: 0, stops: 1, before: true };

    fn after(nested: bool, hits: &[Hit]) -> (bool, (u64, u64, Option<u64>)) {
        let mut depth = Depth::new(nested);
        hits.iter().for_each(|&hit| depth.meet(hit));
        (depth.counts(), depth.came_to())
    }

    #[test]
    fn m14_a_nested_gate_stops_at_the_outermost_stop() {
        let hits = [START, START, STOP, START, STOP, STOP, STOP];
        assert_eq!(after(true, &hits[..5]), (true, (1, 0, Some(2))));
        assert_eq!(after(true, &hits), (false, (1, 1, Some(2))));
        assert_eq!(after(false, &hits), (false, (2, 2, None)));
        // One instruction at both: it starts, and stops.
        let both = Hit { starts: 2, stops: 1, before: false };
        assert_eq!(after(true, &[both]), (true, (1, 0, Some(2))));
        assert_eq!(after(false, &[both]), (false, (1, 1, None)));
    }

    proptest! {
        /// Against the list of all that came: a task is counted while more starts than stops came since it was last not, or
        /// without nesting if the last one was a start.
        #[test]
        fn m14_depth_is_that_of_brackets(starts in prop::collection::vec(any::<bool>(), 0..60), nested: bool) {
            let mut depth = Depth::new(nested);
            let mut open: Vec<usize> = Vec::new();
            let (mut begun, mut ended, mut deepest) = (0, 0, 0);
            for (number, &start) in starts.iter().enumerate() {
                depth.meet(if start { START } else { STOP });
                if start {
                    begun += u64::from(open.is_empty());
                    if nested || open.is_empty() {
                        open.push(number);
                    }
                } else if open.pop().is_some() {
                    ended += u64::from(open.is_empty());
                }
                deepest = deepest.max(open.len() as u64);
                prop_assert_eq!(depth.counts(), !open.is_empty());
            }
            prop_assert_eq!(depth.came_to(), (begun, ended, nested.then_some(deepest)));
        }
    }
}
