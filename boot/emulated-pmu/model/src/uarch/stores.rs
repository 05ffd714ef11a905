//! The store buffer, by parameters.
//!
//! A cycle passes with each access, and those that one waits. A store is written after the one before it, in the cycles of the level that
//! has its line; while as many as the buffer has entries are not written, the next store waits. A load that reads bytes of one of the
//! last [`KEPT`] stores takes further cycles, by the newest of those: [`Forward`]. CLFLUSH and WBINVD wait for all stores, at no cost,
//! and then none is there to be forwarded.

use super::cache::Access;
use super::forward::Forward;
use alloc::collections::VecDeque;

/// Stores whose bytes loads may find.
pub const KEPT: usize = 8;

/// The buffer.
#[derive(Clone, Debug)]
pub(super) struct StoreBuffer {
    forward: Forward,
    /// Entries; 0: any number.
    entries: usize,
    line: u64,
    now: u64,
    /// When the stores will be written that are not.
    written: VecDeque<u64>,
    /// The last stores, the newest last: address and bytes.
    recent: VecDeque<(u64, u64)>,
}

impl StoreBuffer {
    pub fn new(forward: Forward, entries: u32, line: u32) -> Self {
        let (written, recent) = (VecDeque::new(), VecDeque::new());
        Self { forward, entries: entries as usize, line: line.into(), now: 0, written, recent }
    }

    /// A load comes: the cycles that it waits for stores.
    pub fn load(&mut self, access: &Access) -> u32 {
        let load = (access.linear, u64::from(access.bytes.max(1)));
        let overlaps = |one: (u64, u64), other: (u64, u64), mask: u64| {
            other.0.wrapping_sub(one.0) & mask < one.1
                || one.0.wrapping_sub(other.0) & mask < other.1
        };
        let newest = |mask| self.recent.iter().rev().find(|store| overlaps(**store, load, mask));
        if let Some(store) = newest(u64::MAX) {
            return self.forward.cycles(*store, load, self.line).into();
        }
        newest(super::PAGE_BYTES - 1).map_or(0, |_| self.forward.alias.into())
    }

    /// A store comes whose line takes so many cycles; those that it waits for an entry.
    pub fn store(&mut self, access: &Access, cycles: u32) -> u32 {
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((access.linear, access.bytes.max(1).into()));
        if self.entries == 0 {
            return 0;
        }
        while self.written.front().is_some_and(|at| *at <= self.now) {
            self.written.pop_front();
        }
        let mut waits = 0;
        if self.written.len() >= self.entries {
            let first = self.written.pop_front().unwrap_or(self.now);
            waits = first - self.now;
            self.now = first;
        }
        let before = self.written.back().copied().unwrap_or(self.now);
        self.written.push_back(before.max(self.now) + u64::from(cycles));
        waits.try_into().unwrap_or(u32::MAX)
    }

    /// Cycles that have passed.
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Time passes.
    pub const fn pass(&mut self, cycles: u32) {
        self.now += cycles as u64;
    }

    /// All stores are written.
    pub fn drain(&mut self) {
        self.now = self.written.back().copied().unwrap_or(0).max(self.now);
        self.written.clear();
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uarch::AccessKind;

    fn at(address: u64, bytes: u32) -> Access {
        Access::identity(address, bytes, AccessKind::Load)
    }

    #[test]
    fn d1_a_load_takes_what_the_newest_store_of_its_bytes_says() {
        let mut buffer = StoreBuffer::new(Forward::of([1, 2, 3, 4, 5, 6]), 0, 64);
        buffer.store(&at(0x1000, 8), 1);
        let mut of = |address, bytes| buffer.load(&at(address, bytes));
        assert_eq!([of(0x1000, 8), of(0x1000, 4), of(0x1004, 4), of(0x1007, 1)], [1, 2, 3, 3]);
        assert_eq!([of(0x1000, 16), of(0x1004, 8), of(0xffc, 8), of(0xff8, 16)], [4; 4]);
        assert_eq!([of(0x5000, 8), of(0x4ffc, 8), of(0x2007, 1)], [6; 3]);
        assert_eq!([of(0x1008, 8), of(0xff8, 8), of(0x2008, 4)], [0; 3]);
        buffer.store(&at(0x103c, 8), 1);
        assert_eq!([buffer.load(&at(0x103c, 8)), buffer.load(&at(0x1040, 4))], [5, 5]);
        assert_eq!(buffer.load(&at(0x1038, 8)), 4);
        // The newest counts.
        buffer.store(&at(0x1000, 4), 1);
        assert_eq!(buffer.load(&at(0x1000, 4)), 1);
        for other in 0..KEPT as u64 {
            buffer.store(&at(0x8800 + other * 8, 8), 1);
        }
        assert_eq!(buffer.load(&at(0x1000, 4)), 0, "eight are kept");
        buffer.drain();
        assert_eq!(buffer.load(&at(0x8800, 8)), 0);
    }

    #[test]
    fn d1_a_full_store_buffer_makes_the_next_store_wait() {
        let mut buffer = StoreBuffer::new(Forward::default(), 3, 64);
        let store = |buffer: &mut StoreBuffer| {
            buffer.pass(1);
            buffer.store(&at(0, 8), 100)
        };
        // Written at 101, 201, 301; the fourth comes at 4.
        let waits: [u32; 5] = core::array::from_fn(|_| store(&mut buffer));
        assert_eq!(waits, [0, 0, 0, 97, 99]);
        buffer.drain();
        let waits: [u32; 4] = core::array::from_fn(|_| store(&mut buffer));
        assert_eq!(waits, [0, 0, 0, 97]);
        buffer.pass(1000);
        assert_eq!(store(&mut buffer), 0);
    }
}
