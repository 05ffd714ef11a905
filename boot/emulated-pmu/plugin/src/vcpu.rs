//! What is kept of a vCPU.

mod accesses;
mod branches;
mod qualified;

pub use qualified::Passes;

use crate::cells::{Cells, OPEN, RETURNED, SPENT, WHAT};
use crate::frame::{FRAME_WORDS, Stack};
use crate::limit::Limits;
use crate::memory::Memory;
use crate::opened::{self, NOTHING, Opened};
use crate::qemu::Reader;
use crate::records::Recorder;
use crate::registers::Handles;
use crate::state::state;
use crate::tally::Sums;
use plugin_channel::{Parts, STACK_WORDS};
use pmu_model::Qualifiers;
use pmu_model::uarch::{Core, Llc};
use step::Behind;

/// A vCPU. Its own thread alone uses it.
#[derive(Debug)]
pub struct Vcpu {
    /// QEMU's number of it.
    pub index: u32,
    /// The words of whoever is in its guest.
    words: *mut u64,
    /// What was counted since the last exit, but for what the words say.
    pub sums: Sums,
    /// Repeated string instructions that came to their end since then.
    pub string_ends: u64,
    /// The parts that see what runs.
    pub parts: Parts,
    /// At an exit: its registers.
    pub behind: Option<Behind>,
    /// RCX before the last element that has two loads.
    pub noted_count: u64,
    /// Where page faults of the guest are handled, linear, if they are to be seen there.
    pub fault_handler: Option<u64>,
    /// Where the block began that has what is open at its end: RIP.
    pub block_start: u64,
    /// The counters that can overflow.
    pub limits: Limits,
    /// Caches, TLBs and predictor.
    pub core: Core,
    /// The last-level cache.
    pub llc: Box<Llc>,
    /// How often the mode had changed at its last entry.
    pub modes: u64,
    /// Accesses that are not done.
    pub memory: Memory,
    /// Branch records.
    pub recorder: Recorder,
    /// For its registers.
    reader: Reader,
    handles: Handles,
    /// The caches see what runs.
    pub traces: bool,
    /// What is counted by itself, if anything is.
    pub qualifiers: Qualifiers,
}

impl Vcpu {
    /// As it is at the start.
    pub fn new(index: u32, handles: Handles, words: *mut u64) -> Self {
        Self {
            index,
            words,
            sums: Sums::NONE,
            string_ends: 0,
            parts: Parts::empty(),
            behind: None,
            noted_count: 0,
            fault_handler: None,
            block_start: 0,
            limits: Limits::default(),
            core: Core::default(),
            llc: Box::default(),
            modes: 0,
            memory: Memory::default(),
            recorder: Recorder::default(),
            reader: Reader::new(),
            handles,
            traces: false,
            qualifiers: Qualifiers::RESET,
        }
    }

    /// A word.
    #[inline]
    pub fn word(&mut self, index: usize) -> &mut u64 {
        debug_assert!(index < crate::cells::CELLS);
        // SAFETY: translated code changes them on this very thread, while no callback runs.
        unsafe { &mut *self.words.add(index) }
    }

    /// All of them.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: as for a single one; there are so many.
        unsafe { core::slice::from_raw_parts_mut(self.words, crate::cells::CELLS) }
    }

    /// What is open.
    #[inline]
    pub fn opened(&mut self) -> Option<&'static Opened> {
        opened::find(*self.word(OPEN), *self.word(WHAT))
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
        self.memory.collect(&mut lost);
        self.reset();
    }

    /// The same where all that was counted has been collected.
    pub fn reset(&mut self) {
        self.close();
        *self.word(SPENT) = 0;
        *self.word(RETURNED) = 0;
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
        self.memory.collect(&mut self.sums);
    }

    /// RIP, where a block begins. In a callback that was requested as one that reads registers.
    pub fn rip(&mut self) -> u64 {
        self.handles.rip.map_or(0, |register| self.reader.read(register))
    }

    /// Whether a block that starts at this offset lets what is open begin once more, unless it has stored. In such a callback, too.
    pub fn restarts(&mut self, opened: &Opened, offset: u16) -> bool {
        opened.restarts_at(offset)
            && opened
                .restart()
                .is_none_or(|at| self.rip() == self.block_start.wrapping_add(at.into()))
    }

    /// The uppermost words of the stack, by RSP in long mode: 0 where there is none.
    pub fn stack(&mut self) -> Stack {
        let rsp = self.register(iced_x86::Register::RSP);
        let mut words = Stack::default();
        // A frame may end where the stack's pages do.
        for count in [STACK_WORDS, FRAME_WORDS] {
            if let Some(found) = self.reader.read_words(rsp, count) {
                words.iter_mut().zip(found).for_each(|(word, found)| *word = found);
                break;
            }
        }
        words
    }

    /// A register, for addresses; a segment register's base.
    pub fn register(&mut self, name: iced_x86::Register) -> u64 {
        let value = self.handles.find(name).map_or(0, |register| self.reader.read(register));
        match name.size() {
            4 => value & 0xffff_ffff,
            // The segment registers' own size is not that of their bases.
            2 if !name.is_segment_register() => value & 0xffff,
            1 => value & 0xff,
            _ => value,
        }
    }

    /// The parts that see what runs from now on.
    pub fn set_parts(&mut self, parts: Parts) {
        let traces = parts.contains(Parts::MEMORY);
        self.parts = parts;
        self.traces = traces;
    }

    #[inline]
    fn model_parts(&self) -> pmu_model::uarch::Parts {
        let predictor = self.parts.intersects(Parts::PREDICTOR | Parts::RECORDS);
        pmu_model::uarch::Parts { memory: self.traces, predictor }
    }
}
