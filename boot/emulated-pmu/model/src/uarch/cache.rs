//! The data caches.

use super::set_assoc::SetAssoc;
use super::sink::Sink;
use crate::occurrence::Occurrence;

/// Bytes in a cache line.
pub const LINE_BYTES: u64 = 64;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes the same place in one instruction.
    LoadStore,
}

/// A data access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Linear address of the first byte.
    pub linear: u64,
    /// Physical address of the first byte.
    pub physical: u64,
    /// Physical address of the second page, if the access crosses into one.
    pub physical_next_page: u64,
    /// Bytes; 0 counts as 1. Anything longer than a page is cut to one.
    pub bytes: u32,
    /// Load, store or both.
    pub kind: AccessKind,
    /// With LOCK semantics.
    pub locked: bool,
    /// A store that leaves its line in no cache; only with [`super::Parameters`] it is any different from others.
    pub non_temporal: bool,
    /// Bits of the offset in its page: 12, 21 or 30. Asked for with [`super::Parameters`] alone.
    pub page_bits: u8,
}

impl Access {
    /// An access where physical and linear addresses are the same.
    #[must_use]
    pub const fn identity(address: u64, bytes: u32, kind: AccessKind) -> Self {
        Self {
            linear: address,
            physical: address,
            physical_next_page: (address & !(super::PAGE_BYTES - 1))
                .wrapping_add(super::PAGE_BYTES),
            bytes,
            kind,
            locked: false,
            non_temporal: false,
            page_bits: 12,
        }
    }

    /// Last byte, as a distance from the first.
    const fn last(&self) -> u64 {
        let bytes = if self.bytes == 0 { 1 } else { self.bytes };
        let cut = if bytes as u64 > super::PAGE_BYTES { super::PAGE_BYTES } else { bytes as u64 };
        cut - 1
    }

    /// The linear pages touched, first and last.
    pub(super) const fn pages(&self) -> (u64, u64) {
        let last = self.linear.wrapping_add(self.last());
        (self.linear / super::PAGE_BYTES, last / super::PAGE_BYTES)
    }

    /// Whether it touches more than one line.
    #[must_use]
    #[inline]
    pub const fn is_split(&self) -> bool {
        self.linear % LINE_BYTES + self.last() >= LINE_BYTES
    }

    /// The physical line numbers touched.
    fn lines(&self) -> impl Iterator<Item = u64> + use<> {
        let access = *self;
        let offset = access.linear % LINE_BYTES;
        let lines = (offset + access.last()) / LINE_BYTES + 1;
        (0..lines).map(move |line| {
            let first = access.linear - offset;
            let linear = first.wrapping_add(line * LINE_BYTES);
            let page = linear / super::PAGE_BYTES;
            let within = linear % super::PAGE_BYTES;
            let base = if page == access.linear / super::PAGE_BYTES {
                access.physical & !(super::PAGE_BYTES - 1)
            } else {
                access.physical_next_page & !(super::PAGE_BYTES - 1)
            };
            (base + within) / LINE_BYTES
        })
    }
}

/// What the last-level cache fetches in addition to what it is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// Nothing: every line that was not there is a miss.
    #[default]
    None,
    /// The other line of its aligned pair of 128 bytes, on a miss.
    AdjacentLine,
}

/// The last-level cache. It is apart from [`super::Core`], as its tags need 256 KiB, which the
/// caller places; all zeros is the empty cache.
#[derive(Clone, Debug, Default)]
pub struct Llc {
    tags: SetAssoc<2048, 16>,
}

impl Llc {
    /// An empty cache.
    #[must_use]
    pub const fn new() -> Self {
        Self { tags: SetAssoc::new() }
    }

    /// Looks a line up, and brings it in. True if it was there.
    fn touch(&mut self, line: u64, prefetch: Prefetch) -> bool {
        let hit = self.tags.touch(line);
        if !hit && prefetch == Prefetch::AdjacentLine {
            self.tags.touch(line ^ 1);
        }
        hit
    }

    /// CLFLUSH of a physical address, on the last level alone; [`super::Core::clflush`] does both.
    pub fn flush_line(&mut self, physical: u64) {
        self.tags.remove(physical / LINE_BYTES);
    }

    /// WBINVD.
    pub fn flush(&mut self) {
        self.tags.clear();
    }
}

/// The first-level data cache.
#[derive(Clone, Debug, Default)]
pub(super) struct L1d {
    tags: SetAssoc<64, 8>,
}

/// How far an access had to go; the farthest of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Served {
    L1,
    Llc,
    Memory,
}

impl L1d {
    pub(super) const fn new() -> Self {
        Self { tags: SetAssoc::new() }
    }

    /// Sends an access through the caches and notes what happened.
    pub(super) fn access(
        &mut self,
        access: &Access,
        llc: &mut Llc,
        prefetch: Prefetch,
        sink: &mut impl Sink,
    ) {
        let mut served = Served::L1;
        for line in access.lines() {
            if self.tags.touch(line) {
                continue;
            }
            sink.add(Occurrence::L1Fill, 1);
            sink.add(Occurrence::LlcReference, 1);
            if llc.touch(line, prefetch) {
                served = served.max(Served::Llc);
            } else {
                sink.add(Occurrence::LlcMiss, 1);
                served = Served::Memory;
            }
        }
        note_served(access.kind, served, sink);
    }

    /// Whether the line of a physical address is the last one that was requested of its set.
    #[inline]
    pub(super) fn is_newest(&self, physical: u64) -> bool {
        self.tags.is_newest(physical / LINE_BYTES)
    }

    /// An access to the line that was requested last but one of an address's set.
    #[inline]
    pub(super) fn exchange_newest(&mut self, address: u64) {
        self.tags.exchange_newest(address / LINE_BYTES);
    }

    pub(super) fn flush_line(&mut self, physical: u64) {
        self.tags.remove(physical / LINE_BYTES);
    }

    pub(super) fn flush(&mut self) {
        self.tags.clear();
    }
}

/// An access that the first level had.
#[inline]
pub(super) fn note_hit(kind: AccessKind, sink: &mut impl Sink) {
    note_served(kind, Served::L1, sink);
}

/// What does not depend on where the data was: direction, LOCK, and whether it crosses a line.
#[inline]
pub(super) fn note(access: &Access, sink: &mut impl Sink) {
    use Occurrence::*;
    let kind = match access.kind {
        AccessKind::Load => Load,
        AccessKind::Store => Store,
        AccessKind::LoadStore => LoadStore,
    };
    sink.add(kind, 1);
    if access.is_split() {
        if access.kind != AccessKind::Store {
            sink.add(SplitLoad, 1);
        }
        if access.kind != AccessKind::Load {
            sink.add(SplitStore, 1);
        }
    }
    if access.locked {
        sink.add(Locked, 1);
    }
}

fn note_served(kind: AccessKind, served: Served, sink: &mut impl Sink) {
    use Occurrence::*;
    let (by_load, by_store) = match served {
        Served::L1 => (LoadL1Hit, StoreL1Hit),
        Served::Llc => (LoadLlcHit, StoreLlcHit),
        Served::Memory => (LoadLlcMiss, StoreLlcMiss),
    };
    // The load part brings the line in for the store part.
    sink.add(if kind == AccessKind::Store { by_store } else { by_load }, 1);
    if kind == AccessKind::LoadStore {
        sink.add(StoreL1Hit, 1);
    }
}
