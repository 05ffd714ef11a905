//! What is kept of a vCPU.

use crate::cells::{Cells, OPEN, SPENT, WHAT};
use crate::limit::Limits;
use crate::memory::Memory;
use crate::opened::{NOTHING, Opened};
use crate::qemu::Reader;
use crate::records::Recorder;
use crate::facts::Branch;
use crate::settle::Where;
use crate::state::state;
use crate::tally::Sums;
use plugin_channel::{Mailbox, Parts};
use pmu_model::uarch::{Core, Llc};

/// A vCPU. Its own thread alone uses it.
#[derive(Debug)]
pub struct Vcpu {
    /// QEMU's number of it.
    pub index: u32,
    /// Its words.
    words: *mut u64,
    /// What was counted since the last exit, but for what the words say.
    pub sums: Sums,
    /// Repeated string instructions that came to their end since then.
    pub string_ends: u64,
    /// The parts that see what runs.
    pub parts: Parts,
    /// Where the block began that has what is open at its end: RIP.
    pub block_start: u64,
    /// The counters that can overflow.
    pub limits: Limits,
    /// Caches, TLBs and predictor.
    pub core: Core,
    /// The last-level cache.
    pub llc: Box<Llc>,
    /// Accesses that are not done.
    pub memory: Memory,
    /// Branch records.
    pub recorder: Recorder,
    /// For its registers.
    pub reader: Reader,
}

impl Vcpu {
    /// As it is at the start.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            words: core::ptr::null_mut(),
            sums: Sums::NONE,
            string_ends: 0,
            parts: Parts::empty(),
            block_start: 0,
            limits: Limits::default(),
            core: Core::default(),
            llc: Box::default(),
            memory: Memory::default(),
            recorder: Recorder::default(),
            reader: Reader::new(),
        }
    }

    /// Its words have moved: QEMU makes the scoreboard longer when it makes a vCPU.
    pub fn find_words(&mut self, cells: &Cells) {
        self.words = cells.of(self.index);
    }

    /// A word.
    #[inline]
    pub fn word(&mut self, index: usize) -> &mut u64 {
        debug_assert!(index < crate::cells::CELLS);
        // SAFETY: QEMU's array of this vCPU, which translated code changes on this very thread, while no callback runs.
        unsafe { &mut *self.words.add(index) }
    }

    /// All of them.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: as for a single one; the scoreboard was made with so many.
        unsafe { core::slice::from_raw_parts_mut(self.words, crate::cells::CELLS) }
    }

    /// What is open.
    #[inline]
    pub fn opened(&mut self) -> Option<&'static Opened> {
        if *self.word(OPEN) == NOTHING {
            return None;
        }
        // SAFETY: whoever opens something writes the address of one that stays ([`crate::opened::Interned`]).
        Some(unsafe { &*(*self.word(WHAT) as *const Opened) })
    }

    /// Opens something.
    #[inline]
    pub fn open(&mut self, what: &'static Opened) {
        *self.word(OPEN) = what.key();
        *self.word(WHAT) = core::ptr::from_ref(what) as u64;
    }

    /// Nothing is open any more.
    #[inline]
    pub fn close(&mut self) {
        *self.word(OPEN) = NOTHING;
    }

    /// Forgets what is open and what has not been reported: the guest's processor was reset, or its hypervisor.
    pub fn clear(&mut self, cells: &Cells) {
        let mut lost = Sums::NONE;
        cells.collect(self.words(), &mut lost);
        self.close();
        *self.word(SPENT) = 0;
        self.sums = Sums::NONE;
        self.string_ends = 0;
        self.limits = Limits::default();
        self.memory.drop_pending();
    }

    /// Adds what the words say to the sums.
    pub fn collect(&mut self) {
        let cells = state().cells();
        // SAFETY: as for `words`; the sums are another part.
        let words = unsafe { core::slice::from_raw_parts_mut(self.words, crate::cells::CELLS) };
        cells.collect(words, &mut self.sums);
    }

    /// RIP, where a block begins. In a callback that was asked for as one that reads registers.
    pub fn rip(&mut self) -> u64 {
        state().register("rip").map_or(0, |register| self.reader.read(register))
    }

    /// The instruction whose accesses were noted is done.
    pub fn commit(&mut self) {}

    /// A branch is done that went `to`.
    pub fn predict(&mut self, _: &Branch, _: bool, _: Where) {}

    /// The hypervisor flushed something.
    pub fn maintain(&mut self, _: &Mailbox) {}
}
