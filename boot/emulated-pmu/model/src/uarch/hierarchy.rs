//! Caches and TLBs by parameters, with the time that loads take.
//!
//! Each level brings in what it did not have, and none looks at what another one holds. A load takes the cycles of the level that
//! served it, a crossing its own, and a translation what it adds; what stores and loads of their bytes take says `StoreBuffer`. Of an access that
//! crosses a line or a page, the slower part counts. With a window loads overlap, see [`window`](super::window). How long lines wait for
//! each other says [`transfer`](super::transfer); which lines come unasked, [`prefetcher`](super::prefetcher).
//!
//! An instruction fetches the lines of its bytes. One that the instruction cache does not hold takes its cycles; data caches have no
//! code, and the TLBs see none. A direct jump or call that the table of these does not hold takes its own, as the front end goes on in the
//! wrong place until it is decoded. What the [front end](super::front_end) takes is among the cycles of the ports.

use super::PAGE_BYTES;
use super::cache::{Access, AccessKind};
use super::delivery::FrontEnd;
use super::flight::Window;
use super::parameters::{CacheShape, LEVELS, Parameters};
use super::prefetcher::Streams;
use super::replacement::Dice;
use super::sink::Sink;
use super::store::Store;
use super::stores::StoreBuffer;
use super::transfer::Way;
use super::window::Step;
use crate::occurrence::Occurrence;
use alloc::vec::Vec;

/// Bits of the offset in a page of 4 KiB.
const SMALL: u8 = 12;
/// Bytes of code that share a set of the table of direct jumps.
const JUMP_GRANULE: u64 = 16;

/// Caches and TLBs of one logical processor.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    parameters: Parameters,
    caches: Vec<Store>,
    dtlb: Store,
    dtlb_large: Store,
    stlb: Option<Store>,
    code: Option<Store>,
    direct: Option<Store>,
    front: FrontEnd,
    buffer: StoreBuffer,
    window: Window,
    way: Way,
    streams: Streams,
    dice: Dice,
}

impl Hierarchy {
    /// Empty ones.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let cache =
            |cache: &CacheShape| Store::new(parameters.sets(cache), cache.ways, cache.policy);
        Self {
            parameters: *parameters,
            caches: parameters.caches.iter().flatten().map(cache).collect(),
            dtlb: Store::of_tlb(parameters.dtlb),
            dtlb_large: Store::of_tlb(parameters.dtlb_large),
            stlb: parameters.stlb.map(Store::of_tlb),
            code: parameters.code.as_ref().map(cache),
            direct: parameters.direct.map(Store::of_tlb),
            front: FrontEnd::new(parameters.front, parameters.ports.map_or(0, |map| map.issue)),
            buffer: StoreBuffer::new(parameters.forward, parameters.stores, parameters.line),
            window: Window::new(parameters.window),
            way: Way::new(parameters.transfer),
            streams: Streams::new(parameters.prefetch.stream),
            dice: Dice::NEW,
        }
    }

    /// An access of an instruction that retires. Notes what happened, and the cycles that it takes beyond those of the instruction.
    pub fn access(&mut self, access: &Access, sink: &mut impl Sink) {
        let line = u64::from(self.parameters.line);
        let first = access.linear;
        let last = first.wrapping_add(u64::from(access.bytes.clamp(1, PAGE_BYTES as u32)) - 1);
        let loads = access.kind != AccessKind::Store;
        let mut waits = 0;
        for page in
            [first, last].into_iter().take(1 + usize::from(first / PAGE_BYTES != last / PAGE_BYTES))
        {
            waits = self.translate(page, access.page_bits, loads, sink).max(waits);
        }
        let streams = access.non_temporal && access.kind == AccessKind::Store;
        // Each line waits for the one before it; the access, for the last one.
        let (mut served, mut queued) = (0, 0);
        let (now, levels) = (self.buffer.now() + 1, self.caches.len());
        let mut at = first & !(line - 1);
        loop {
            let base = match at / PAGE_BYTES == last / PAGE_BYTES
                && first / PAGE_BYTES != last / PAGE_BYTES
            {
                true => access.physical_next_page & !(PAGE_BYTES - 1),
                false => access.physical & !(PAGE_BYTES - 1),
            };
            let own = (base + at % PAGE_BYTES) / line;
            let waits = match streams {
                true => self.stream(own, now),
                false => {
                    let level = self.look_up(own, sink);
                    served = level.max(served);
                    self.prefetch(own, level);
                    self.way.bring(now, level, levels)
                }
            };
            queued = waits.max(queued);
            if last.wrapping_sub(at) < line {
                break;
            }
            at = at.wrapping_add(line);
        }
        if streams {
            self.pass(1, queued, sink);
            return;
        }
        self.note(access.kind, served, sink);
        let caches = self.parameters.caches.iter().flatten();
        let of_level = caches.map(|cache| cache.cycles).nth(served);
        let of_level = of_level.unwrap_or(self.parameters.memory_cycles);
        self.buffer.pass(1);
        waits = match loads {
            true => {
                let crossing = self.crossing(first, last);
                queued + waits + of_level - 1 + crossing + self.buffer.load(access)
            }
            false => 0,
        };
        if loads && self.window.is_there() {
            // Whoever needs it waits.
            self.window.load(waits + 1);
            waits = 0;
        }
        self.buffer.pass(waits);
        if access.kind != AccessKind::Load {
            // A line of the first level is written in a cycle.
            let queued = if loads { 0 } else { queued };
            self.buffer.pass(queued);
            let entry = queued + self.buffer.store(access, if served == 0 { 1 } else { of_level });
            self.window.pass(entry);
            waits += entry;
        }
        if waits > 0 {
            sink.add(Occurrence::MemoryStall, waits.into());
        }
    }

    /// A non-temporal store to a line, which no cache has after it: the cycles that it waits (SDM vol. 1, 10.4.6.2: the processor may
    /// evict a line that caches have).
    fn stream(&mut self, line: u64, now: u64) -> u32 {
        self.caches.iter_mut().for_each(|cache| cache.remove(line, line));
        self.way.stream(now, line)
    }

    /// An access is done that waited, with all behind it.
    fn pass(&mut self, own: u32, waits: u32, sink: &mut impl Sink) {
        self.buffer.pass(own + waits);
        self.window.pass(waits);
        if waits > 0 {
            sink.add(Occurrence::MemoryStall, waits.into());
        }
    }

    /// The cycles of a load that crosses a line or a page.
    const fn crossing(&self, first: u64, last: u64) -> u32 {
        let line = self.parameters.line as u64;
        match (first / PAGE_BYTES != last / PAGE_BYTES, first / line != last / line) {
            (true, _) => self.parameters.cross_cycles,
            (false, true) => self.parameters.split_cycles,
            (false, false) => 0,
        }
    }

    /// An instruction begins, before its accesses.
    pub fn begin(&mut self, step: Step, sink: &mut impl Sink) {
        if !self.window.is_there() {
            return;
        }
        let waits = self.window.begin(step);
        self.buffer.pass(waits);
        if waits > 0 {
            sink.add(Occurrence::MemoryStall, waits.into());
        }
    }

    /// An instruction's fetch of a line of code, which any number that is the line's alone names.
    pub fn fetch(&mut self, line: u64, sink: &mut impl Sink) {
        let Some(code) = &mut self.code else { return };
        if !code.touch(line, line, &mut self.dice) {
            let cycles = self.parameters.code.map_or(0, |code| code.cycles);
            self.window.pass(cycles);
            sink.add(Occurrence::MemoryStall, cycles.into());
        }
    }

    /// An unconditional direct jump or call, at a place which any number names that is its own.
    pub fn jump(&mut self, place: u64, sink: &mut impl Sink) {
        let Some(direct) = &mut self.direct else { return };
        if !direct.touch(place / JUMP_GRANULE, place, &mut self.dice) {
            self.window.pass(self.parameters.direct_cycles);
            sink.add(Occurrence::MemoryStall, self.parameters.direct_cycles.into());
        }
    }

    /// The front end delivers an instruction of so many bytes, at a place which any number names that is its own.
    pub fn deliver(&mut self, place: u64, bytes: u64, sink: &mut impl Sink) {
        if !self.front.is_there() {
            return;
        }
        let cycles = self.front.instruction(place, bytes, &mut self.dice);
        if cycles > 0 {
            sink.add(Occurrence::PortCycle, cycles.into());
        }
    }

    /// The level that had a line, from 0; one more than there are: memory. It is in all of them afterwards.
    fn look_up(&mut self, line: u64, sink: &mut impl Sink) -> usize {
        let levels = self.caches.len();
        for (level, cache) in self.caches.iter_mut().enumerate() {
            if level == 1 {
                sink.add(Occurrence::L1Fill, 1);
            }
            if level > 0 && level + 1 == levels {
                sink.add(Occurrence::LlcReference, 1);
            }
            if cache.touch(line, line, &mut self.dice) {
                return level;
            }
        }
        if levels == 1 {
            sink.add(Occurrence::L1Fill, 1);
            sink.add(Occurrence::LlcReference, 1);
        }
        sink.add(Occurrence::LlcMiss, 1);
        levels
    }

    /// What prefetchers bring after a line that level number `served` had.
    fn prefetch(&mut self, line: u64, served: usize) {
        let (shape, bytes) = (self.parameters.prefetch, u64::from(self.parameters.line));
        if served == 0 {
            return;
        }
        let of_page = PAGE_BYTES / bytes;
        let (at, page) = (line % of_page, line / of_page);
        if shape.pair && served == self.caches.len() {
            self.bring(line ^ 1, 1);
        }
        if shape.next && at > 0 && at + 1 < of_page && self.caches[0].has(line - 1, line - 1) {
            self.bring(line + 1, 0);
        }
        let Some((distance, ahead)) = self.streams.miss(line, bytes) else { return };
        let wanted = (1..=i64::from(ahead)).map(|step| line.wrapping_add_signed(step * distance));
        for one in wanted.take_while(|one| one / of_page == page) {
            self.bring(one, 1);
        }
    }

    /// A line comes into the caches from a level on that do not have it.
    fn bring(&mut self, line: u64, level: usize) {
        for cache in self.caches.iter_mut().skip(level) {
            if !cache.has(line, line) {
                cache.touch(line, line, &mut self.dice);
            }
        }
    }

    fn note(&self, kind: AccessKind, served: usize, sink: &mut impl Sink) {
        use Occurrence::*;
        let levels = self.caches.len();
        const { assert!(LEVELS == 3) };
        let (by_load, by_store) = match served {
            0 => (LoadL1Hit, StoreL1Hit),
            _ if served == levels => (LoadLlcMiss, StoreLlcMiss),
            _ if served + 1 == levels => (LoadLlcHit, StoreLlcHit),
            _ => (LoadL2Hit, StoreL2Hit),
        };
        sink.add(if kind == AccessKind::Store { by_store } else { by_load }, 1);
        if kind == AccessKind::LoadStore {
            sink.add(StoreL1Hit, 1);
        }
    }

    /// Translates; returns the cycles that it takes.
    fn translate(&mut self, linear: u64, bits: u8, loads: bool, sink: &mut impl Sink) -> u32 {
        use Occurrence::*;
        let page = linear >> bits;
        // Pages of both sizes are distinguished where they lie together.
        let tag = page << 1 | u64::from(bits > SMALL);
        let first = if bits > SMALL { &mut self.dtlb_large } else { &mut self.dtlb };
        if first.touch(page, tag, &mut self.dice) {
            return 0;
        }
        if self.stlb.as_mut().is_some_and(|stlb| stlb.touch(page, tag, &mut self.dice)) {
            sink.add(if loads { LoadStlbHit } else { StoreStlbHit }, 1);
            return self.parameters.stlb_cycles;
        }
        sink.add(if loads { LoadWalk } else { StoreWalk }, 1);
        self.parameters.walk_cycles
    }

    /// CLFLUSH of a physical address.
    pub fn flush_line(&mut self, physical: u64) {
        self.buffer.drain();
        let line = physical / u64::from(self.parameters.line);
        self.caches.iter_mut().for_each(|cache| cache.remove(line, line));
    }

    /// WBINVD.
    pub fn flush_caches(&mut self) {
        self.buffer.drain();
        self.caches.iter_mut().chain(&mut self.code).for_each(Store::clear);
    }

    /// INVLPG of a linear address, whatever the size of its page.
    pub fn invlpg(&mut self, linear: u64) {
        for bits in [SMALL, 21, 30] {
            let page = linear >> bits;
            let tag = page << 1 | u64::from(bits > SMALL);
            self.dtlb.remove(page, tag);
            self.dtlb_large.remove(page, tag);
            self.stlb.iter_mut().for_each(|stlb| stlb.remove(page, tag));
        }
    }

    /// All translations go.
    pub fn flush_tlb(&mut self) {
        self.dtlb.clear();
        self.dtlb_large.clear();
        self.stlb.iter_mut().for_each(Store::clear);
    }
}
