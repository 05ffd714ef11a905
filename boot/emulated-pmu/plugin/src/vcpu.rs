//! What is kept of a vCPU.

use crate::cells::{Cells, OPEN, SINGLE_INSTRUCTIONS, SPENT, WHAT};
use crate::facts::{Branch, OFFSET};
use crate::limit::Limits;
use crate::memory::{self, Memory};
use crate::opened::{NOTHING, Opened};
use crate::qemu::{MemInfo, Reader};
use crate::records::Recorder;
use crate::registers::Handles;
use crate::state::state;
use crate::tally::{self, Sums};
use plugin_channel::{Flush, Mailbox, Parts, Record};
use pmu_model::uarch::{Access, Core, Llc, PAGE_BYTES, Resolved};
use pmu_model::{BranchKind, Occurrence};
use step::Maintenance;

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
    reader: Reader,
    handles: Handles,
    /// The caches see what runs.
    pub traces: bool,
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
            block_start: 0,
            limits: Limits::default(),
            core: Core::default(),
            llc: Box::default(),
            memory: Memory::default(),
            recorder: Recorder::default(),
            reader: Reader::new(),
            handles,
            traces: false,
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
        self.memory.collect(&mut lost);
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
        self.memory.collect(&mut self.sums);
    }

    /// RIP, where a block begins. In a callback that was asked for as one that reads registers.
    pub fn rip(&mut self) -> u64 {
        self.handles.rip.map_or(0, |register| self.reader.read(register))
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
        self.parts = parts;
        self.traces = parts.contains(Parts::MEMORY);
    }

    #[inline]
    fn model_parts(&self) -> pmu_model::uarch::Parts {
        let predictor = self.parts.intersects(Parts::PREDICTOR | Parts::RECORDS);
        pmu_model::uarch::Parts { memory: self.traces, predictor }
    }

    /// An access of an instruction that is done.
    pub fn access(&mut self, access: &Access) {
        let parts = self.model_parts();
        self.core.access(access, &mut self.llc, parts, &mut self.sums);
        if self.traces {
            self.memory.recent.note(access);
            self.memory.translations.note(access.linear, access.physical);
        }
    }

    /// QEMU accesses something for an instruction that is not done.
    pub fn note(&mut self, info: MemInfo, linear: u64) {
        if self.traces
            && let Some(physical) = memory::physical(info, linear)
        {
            self.memory.note_page(linear, physical);
            self.note_next(info, linear);
        }
    }

    /// The same for the page behind, if the access goes on there.
    fn note_next(&mut self, info: MemInfo, linear: u64) {
        let end = linear.wrapping_add(u64::from(memory::size(info)) - 1);
        if end / PAGE_BYTES != linear / PAGE_BYTES
            && let Some(physical) = memory::physical(info, end & !(PAGE_BYTES - 1))
        {
            self.memory.note_page(end, physical);
        }
    }

    /// The instruction whose accesses were noted is done.
    pub fn commit(&mut self) {
        if self.memory.is_done() {
            return;
        }
        for access in self.memory.take_pending() {
            self.access(&access);
        }
        if let Some((maintenance, linear)) = self.memory.maintenance.take()
            && self.traces
        {
            self.flush(maintenance, linear);
        }
    }

    /// An element of a repeated string instruction is done.
    pub fn element(&mut self, source: Option<Access>, destination: Option<Access>) {
        for (place, whole) in [source, destination].into_iter().enumerate() {
            let Some(whole) = whole else { continue };
            for piece in self.memory.runs[place].element(whole.linear, whole.bytes) {
                let mut access = Access { linear: piece.linear, bytes: piece.bytes, ..whole };
                access.physical = if piece.linear / PAGE_BYTES == whole.linear / PAGE_BYTES {
                    whole.physical.wrapping_add(piece.linear.wrapping_sub(whole.linear))
                } else {
                    whole.physical_next_page & !(PAGE_BYTES - 1) | piece.linear % PAGE_BYTES
                };
                self.access(&access);
            }
        }
    }

    /// An instruction flushed something.
    fn flush(&mut self, maintenance: Maintenance, linear: Option<u64>) {
        match (maintenance, linear) {
            (Maintenance::FlushLine { evicts: true }, Some(linear)) => {
                let found = self.memory.translations.find(linear);
                found.into_iter().for_each(|physical| self.flush_line(physical));
            }
            (Maintenance::FlushPage, Some(linear)) => self.flush_page(linear),
            (Maintenance::FlushCaches, _) => self.flush_caches(),
            (Maintenance::FlushTranslations, _) => self.flush_translations(),
            (Maintenance::FlushLine { .. } | Maintenance::FlushPage, _) => {}
        }
    }

    fn flush_line(&mut self, physical: u64) {
        self.core.clflush(physical, &mut self.llc, None);
        self.memory.recent.clear();
    }

    fn flush_page(&mut self, linear: u64) {
        self.core.invlpg(linear);
        self.memory.recent.clear();
        self.memory.translations.forget(linear);
    }

    fn flush_caches(&mut self) {
        self.core.flush_caches(&mut self.llc);
        self.memory.recent.clear();
    }

    fn flush_translations(&mut self) {
        self.core.flush_tlb();
        self.memory.recent.clear();
        self.memory.translations.clear();
    }

    /// The hypervisor flushed something.
    pub fn maintain(&mut self, mailbox: &Mailbox) {
        const TRANSLATIONS: u64 = Flush::Translations as u64;
        const PAGE: u64 = Flush::Page as u64;
        const CACHES: u64 = Flush::Caches as u64;
        const LINE: u64 = Flush::Line as u64;
        match mailbox.maintenance {
            TRANSLATIONS => self.flush_translations(),
            PAGE => self.flush_page(mailbox.address),
            CACHES => self.flush_caches(),
            LINE => self.flush_line(mailbox.address),
            _ => {}
        }
    }

    /// Whether nothing has to be known of a branch but the offset at which the guest goes on.
    #[inline]
    pub fn is_plain(&self, branch: &Branch) -> bool {
        !branch.ambiguous && !self.parts.contains(Parts::RECORDS) && self.memory.is_done()
    }

    /// A conditional jump that was counted as one that was taken has fallen through.
    #[inline]
    pub fn fell(&mut self, branch: &Branch) {
        let taken = Occurrence::of(branch.kind, true, branch.backward, false);
        let sums = &mut self.sums.0;
        sums[taken as usize] = sums[taken as usize].wrapping_sub(1);
        let fell = &mut sums[Occurrence::JccNotTaken as usize];
        *fell = fell.wrapping_add(1);
    }

    /// A branch is done that was taken, or not, and went to an offset, if that is known. True if it was mispredicted.
    #[inline]
    pub fn predict(&mut self, branch: &Branch, taken: bool, to: Option<u16>) -> bool {
        let conditional = branch.kind == BranchKind::Conditional;
        let target = to.filter(|_| !conditional).unwrap_or(branch.target);
        let addresses = (branch.from.into(), target.into(), branch.next.into());
        let resolved = Resolved::new(addresses, branch.kind, taken, branch.backward);
        let parts = self.model_parts();
        self.core.branch(&resolved, parts, &mut self.sums)
    }

    /// A branch was taken, to the linear address `to`.
    pub fn record(&mut self, branch: &Branch, bytes: u16, to: u64, missed: bool) {
        if !self.parts.contains(Parts::RECORDS) || !self.recorder.wants(branch.kind) {
            return;
        }
        let length = branch.next.wrapping_sub(branch.from) & OFFSET as u16;
        let from = self.block_start.wrapping_add(bytes.into()).wrapping_sub(length.into());
        let kind = branch.kind as u32;
        let record = Record { from, to, kind, mispredicted: missed.into(), instructions: 0 };
        let done = self.instructions();
        self.recorder.record(record, done);
    }

    /// Instructions done since the last exit, in a mode with records.
    fn instructions(&mut self) -> u64 {
        let counted = *self.word(SINGLE_INSTRUCTIONS);
        let collected = self.sums.0[tally::INSTRUCTIONS];
        counted.wrapping_add(collected).wrapping_add(self.string_ends)
    }
}
