//! How many passes the counters alone allow: requests flow to units, each unit takes one a pass.
//!
//! Requests with the same units are interchangeable here, so the flow is kept by class: a handful
//! of classes and a few dozen units, however many requests there are.

use alloc::vec;
use alloc::vec::Vec;

/// Bits 0 to 63: units as in [`crate::assign::demand`], in ordinary passes. Bits 64 to 79: fixed
/// counters in passes whose general-purpose counters one request has for itself.
pub(super) type Units = u128;
/// Where the second kind starts: fixed counter 0.
pub(super) const BESIDE_ALONE: u32 = 64;
const UNITS: usize = 80;

/// Requests spread over units that can take several, one a pass.
pub(super) struct Flow {
    capacity: [u32; UNITS],
    load: [u32; UNITS],
    /// Units of each class.
    classes: Vec<Units>,
    /// For each class, how many of it are on each unit.
    placed: Vec<[u32; UNITS]>,
}

impl Flow {
    pub fn new() -> Self {
        Self { capacity: [0; UNITS], load: [0; UNITS], classes: Vec::new(), placed: Vec::new() }
    }

    /// Gives each of these units room for so many.
    pub fn set_capacity(&mut self, units: Units, capacity: u32) {
        for unit in bits(units) {
            self.capacity[unit] = capacity;
        }
    }

    /// The class of requests that can go to these units.
    pub fn class(&mut self, units: Units) -> usize {
        if let Some(class) = self.classes.iter().position(|known| *known == units) {
            return class;
        }
        self.classes.push(units);
        self.placed.push([0; UNITS]);
        self.classes.len() - 1
    }

    /// Places one more of a class, moving others if need be. `false`: there is no room, whatever is
    /// moved, and nothing has changed.
    pub fn add(&mut self, class: usize) -> bool {
        // Breadth first over units; a step is one request moving from a unit to another.
        let mut came_from: [Option<(usize, usize)>; UNITS] = [None; UNITS];
        let mut seen = self.classes[class];
        let mut queue: Vec<usize> = bits(seen).collect();
        let mut at = 0;
        while at < queue.len() {
            let unit = queue[at];
            at += 1;
            if self.load[unit] < self.capacity[unit] {
                self.shift(class, unit, &came_from);
                return true;
            }
            for other in 0..self.classes.len() {
                let new = self.classes[other] & !seen;
                if self.placed[other][unit] == 0 || new == 0 {
                    continue;
                }
                seen |= new;
                for next in bits(new) {
                    came_from[next] = Some((unit, other));
                    queue.push(next);
                }
            }
        }
        false
    }

    /// Moves one request along each step back from `unit`, and puts the new one where the first
    /// left.
    fn shift(
        &mut self,
        class: usize,
        mut unit: usize,
        came_from: &[Option<(usize, usize)>; UNITS],
    ) {
        self.load[unit] += 1;
        while let Some((before, moved)) = came_from[unit] {
            self.placed[moved][unit] += 1;
            self.placed[moved][before] -= 1;
            unit = before;
        }
        self.placed[class][unit] += 1;
    }

    /// How many of a class are on each unit it uses.
    pub fn of_class(&self, class: usize) -> Vec<(usize, u32)> {
        bits(self.classes[class])
            .map(|unit| (unit, self.placed[class][unit]))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// The numbers of the bits that are set.
pub(super) fn bits(mut units: Units) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let unit = units.trailing_zeros();
        (units != 0).then(|| {
            units &= units - 1;
            unit as usize
        })
    })
}

/// A flow that grows: capacities rise until everything has a place.
pub(super) struct Growing {
    flow: Flow,
    /// Units that take one request in each ordinary pass.
    ordinary: Units,
    /// Ordinary passes so far.
    pub passes: u32,
    /// Classes that need a place in every ordinary pass.
    everywhere: Vec<usize>,
}

impl Growing {
    /// No request yet. `beside`: units of passes that one request has for itself, `alone` of them.
    pub fn new(ordinary: Units, beside: Units, alone: u32, at_least: u32) -> Self {
        let mut flow = Flow::new();
        flow.set_capacity(beside, alone);
        flow.set_capacity(ordinary, at_least);
        Self { flow, ordinary, passes: at_least, everywhere: vec![] }
    }

    /// Adds a request that is counted in every ordinary pass.
    pub fn add_everywhere(&mut self, units: Units) -> usize {
        let class = self.flow.class(units);
        self.everywhere.push(class);
        for _ in 0..self.passes {
            self.add_class(class);
        }
        class
    }

    /// Adds a request that is counted once.
    pub fn add(&mut self, units: Units) -> usize {
        let class = self.flow.class(units);
        self.add_class(class);
        class
    }

    fn add_class(&mut self, class: usize) {
        while !self.flow.add(class) {
            self.passes += 1;
            self.flow.set_capacity(self.ordinary, self.passes);
            // One more pass wants one more of each of these. They fit into it: the caller has made
            // sure that all of them fit into one pass.
            for index in 0..self.everywhere.len() {
                let other = self.everywhere[index];
                if !self.flow.add(other) {
                    return;
                }
            }
        }
    }

    /// The flow reached.
    pub fn into_flow(self) -> Flow {
        self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n2_requests_move_to_make_room() {
        let mut flow = Flow::new();
        flow.set_capacity(0b11, 1);
        let (both, first) = (flow.class(0b11), flow.class(0b01));
        assert!(flow.add(both));
        assert!(flow.add(first));
        assert_eq!(flow.of_class(both), [(1, 1)]);
        assert_eq!(flow.of_class(first), [(0, 1)]);
        assert!(!flow.add(both));
        flow.set_capacity(0b11, 2);
        assert!(flow.add(both) && flow.add(both) && !flow.add(first));
    }

    #[test]
    fn n2_capacities_grow_to_the_fewest_passes() {
        let mut growing = Growing::new(0b111, 0, 0, 1);
        growing.add_everywhere(0b100);
        for _ in 0..7 {
            growing.add(0b011);
        }
        growing.add(0b110);
        // Unit 2 is taken in every pass; eight requests on two units need four.
        assert_eq!(growing.passes, 4);
    }
}
