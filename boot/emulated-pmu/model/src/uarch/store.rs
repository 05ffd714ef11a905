//! Tags in sets, with a replacement policy.

use super::parameters::TlbShape;
use super::replacement::{Dice, Policy, Set};
use alloc::vec;
use alloc::vec::Vec;

/// Sets of tags.
#[derive(Clone, Debug)]
pub(super) struct Store {
    tags: Vec<u64>,
    state: Vec<u8>,
    sets: u64,
    ways: usize,
    policy: Policy,
}

impl Store {
    pub fn new(sets: u64, ways: u32, policy: Policy) -> Self {
        let places = sets as usize * ways as usize;
        Self { tags: vec![0; places], state: vec![0; places], sets, ways: ways as usize, policy }
    }

    pub fn of_tlb(shape: TlbShape) -> Self {
        Self::new(shape.sets().into(), shape.ways, Policy::Lru)
    }

    pub fn set(&mut self, key: u64) -> Set<'_> {
        let first = (key % self.sets) as usize * self.ways;
        let places = first..first + self.ways;
        Set { tags: &mut self.tags[places.clone()], state: &mut self.state[places] }
    }

    pub fn touch(&mut self, key: u64, tag: u64, dice: &mut Dice) -> bool {
        let policy = self.policy;
        self.set(key).touch(tag.wrapping_add(1), policy, dice)
    }

    /// Whether it is there; nothing is changed.
    pub fn has(&self, key: u64, tag: u64) -> bool {
        let first = (key % self.sets) as usize * self.ways;
        self.tags[first..first + self.ways].contains(&tag.wrapping_add(1))
    }

    pub fn remove(&mut self, key: u64, tag: u64) {
        let policy = self.policy;
        self.set(key).remove(tag.wrapping_add(1), policy);
    }

    pub fn clear(&mut self) {
        self.tags.fill(0);
        self.state.fill(0);
    }
}
