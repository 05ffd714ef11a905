//! Accesses on their way to the caches.

use crate::qemu::{MemInfo, api};
use crate::recent::{Recent, Translations};
use crate::tally::Sums;
use iced_x86::{Instruction, Register};
use pmu_model::Occurrence;
use pmu_model::uarch::{Access, AccessKind, PAGE_BYTES, Sink, StringRun};
use std::collections::HashMap;
use step::{Maintenance, Touch};

/// Kind, LOCK and non-temporal hint of an access as a small number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Way(u8);

/// That of a store with a non-temporal hint.
const NON_TEMPORAL: u8 = 6;

/// Added where the instruction may pass the qualifiers.
const MAY_PASS: u8 = 8;

/// How many there are, and to spare: a power of two takes no check.
const WAYS: usize = 8;

impl Way {
    /// Of an access.
    pub const fn new(kind: AccessKind, locked: bool) -> Self {
        Self(kind as u8 + 3 * locked as u8)
    }

    /// Of one of an instruction's.
    pub const fn of_touch(touch: &Touch) -> Self {
        match touch.non_temporal {
            true => Self(NON_TEMPORAL),
            false => Self::new(touch.kind, touch.locked),
        }
    }

    /// The same of an instruction that may pass the qualifiers, if `may`.
    pub const fn passing(self, may: bool) -> Self {
        Self(self.0 + MAY_PASS * may as u8)
    }

    /// Whether the instruction may pass them.
    #[inline]
    pub const fn may_pass(self) -> bool {
        self.0 >= MAY_PASS
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// By the number.
    pub const fn of(number: u8) -> Self {
        Self(number)
    }

    /// Its place in a list of all.
    #[inline]
    const fn index(self) -> usize {
        (self.0 % MAY_PASS) as usize % WAYS
    }

    /// What the access does.
    pub const fn kind(self) -> AccessKind {
        match self.0 % MAY_PASS {
            0 | 3 => AccessKind::Load,
            2 | 5 => AccessKind::LoadStore,
            // With the hint or without.
            _ => AccessKind::Store,
        }
    }

    /// With LOCK semantics.
    pub const fn locked(self) -> bool {
        matches!(self.0 % MAY_PASS, 3..NON_TEMPORAL)
    }

    /// An access, at the same linear and physical address for now.
    pub const fn access(self, linear: u64, bytes: u32) -> Access {
        let (locked, non_temporal) = (self.locked(), self.non_temporal());
        Access { locked, non_temporal, ..Access::identity(linear, bytes, self.kind()) }
    }

    /// With a non-temporal hint.
    pub const fn non_temporal(self) -> bool {
        self.0 % MAY_PASS == NON_TEMPORAL
    }
}

/// What accesses have done, and those whose instruction is not done.
#[derive(Debug, Default)]
pub struct Memory {
    /// The lines and pages used last.
    pub recent: Recent,
    /// Where pages lie.
    pub translations: Translations,
    /// Bits of the offset in a page, by linear page of 4 KiB; requested where caches are by parameters.
    pub page_sizes: HashMap<u64, u8>,
    /// Accesses to recent lines, by way.
    hits: [u64; WAYS],
    /// Accesses of an instruction that is not done.
    pub pending: Vec<Access>,
    /// Bytes of the first of them that QEMU has accessed.
    pub covered: u32,
    /// Pages that QEMU accessed for it: linear and physical.
    pages: Vec<(u64, u64)>,
    /// What the instruction flushes, and at which address: linear, or physical of a line.
    pub maintenance: Option<(Maintenance, Option<u64>)>,
    /// Source and destination of a repeated string instruction.
    pub runs: [StringRun; 2],
    /// The load of an instruction whose store has not been made. What is left here where that failed is nobody's.
    pub pair: Option<Access>,
    /// The first access of an element whose other access is not done.
    pub half: Option<Access>,
    /// The same where that access touched nothing new: its linear address.
    pub quiet_half: Option<u64>,
    /// The instruction of `pending` may pass the qualifiers.
    pub may_pass: bool,
    /// An access of the instruction passed them; of a repeated string instruction, of an element.
    pub touched: bool,
    /// The same of the elements before it.
    pub string_touched: bool,
    /// Accesses are those of a repeated string instruction.
    pub in_string: bool,
}

impl Memory {
    /// The instruction that made them is not done.
    pub fn drop_pending(&mut self) {
        self.pending.clear();
        self.pages.clear();
        self.maintenance = None;
        self.half = None;
        self.quiet_half = None;
        self.may_pass = false;
    }

    /// Whether every instruction that accessed something is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.pending.is_empty() && self.maintenance.is_none()
    }

    /// The same for an instruction that flushes nothing.
    #[inline]
    pub fn has_no_access(&self) -> bool {
        self.pending.is_empty()
    }

    /// The guest continues, perhaps with the very instruction at which it left.
    pub fn enter(&mut self, resumes: bool) {
        if !resumes {
            self.runs = [StringRun::NEW; 2];
            self.string_touched = false;
        }
    }

    /// Where linear pages lie is no longer known.
    pub fn forget_translations(&mut self) {
        self.recent.clear();
        self.translations.clear();
        self.page_sizes.clear();
    }

    /// A repeated string instruction ended.
    pub fn end_string(&mut self) {
        self.runs = [StringRun::NEW; 2];
        self.string_touched = false;
        self.half = None;
        self.quiet_half = None;
    }

    /// An access to a recent line.
    #[inline]
    pub fn hit(&mut self, way: Way) {
        self.hits[way.index()] += 1;
    }

    /// Adds the accesses to recent lines to the sums.
    pub fn collect(&mut self, sums: &mut Sums) {
        use Occurrence::*;
        for (number, hits) in self.hits.iter_mut().enumerate().filter(|(_, hits)| **hits > 0) {
            let (way, hits) = (Way::of(number as u8), core::mem::take(hits));
            let (direction, found) = match way.kind() {
                AccessKind::Load => (Load, [Some(LoadL1Hit), None]),
                AccessKind::Store => (Store, [None, Some(StoreL1Hit)]),
                AccessKind::LoadStore => (LoadStore, [Some(LoadL1Hit), Some(StoreL1Hit)]),
            };
            Sink::add(sums, direction, hits);
            found.into_iter().flatten().for_each(|found| Sink::add(sums, found, hits));
            if way.locked() {
                Sink::add(sums, Locked, hits);
            }
        }
    }

    /// An access that QEMU has just made, with its physical addresses.
    pub fn placed(&self, info: MemInfo, access: Access) -> Access {
        let find = |at| self.translations.find(at).or_else(|| physical(info, at));
        let Access { linear, bytes, .. } = access;
        let own = find(linear).unwrap_or(linear);
        let next = (linear & !(PAGE_BYTES - 1)).wrapping_add(PAGE_BYTES);
        let crosses = linear % PAGE_BYTES + u64::from(bytes) > PAGE_BYTES;
        let other = if crosses { find(next) } else { None };
        Access { physical: own, physical_next_page: other.unwrap_or(own), ..access }
    }

    /// QEMU accessed a page for the instruction that is not done.
    pub fn note_page(&mut self, linear: u64, physical: u64) {
        let (linear, physical) = (linear / PAGE_BYTES, physical / PAGE_BYTES);
        if !self.pages.iter().any(|(other, _)| *other == linear) {
            self.pages.push((linear, physical));
        }
    }

    /// The pages of the accesses that are not done, by their linear addresses.
    pub fn pending_pages(&self) -> Vec<u64> {
        let pages = |access: &Access| {
            let last = access.linear.wrapping_add(u64::from(access.bytes.max(1)) - 1);
            [access.linear, last].map(|at| at & !(PAGE_BYTES - 1))
        };
        let mut all: Vec<u64> = self.pending.iter().flat_map(pages).collect();
        all.dedup();
        all
    }

    /// The accesses of an instruction that is done, with their physical addresses, and whether these are known.
    pub fn take_pending(&mut self) -> Vec<(Access, bool)> {
        let list = core::mem::take(&mut self.pending);
        let placed = list.into_iter().map(|access| self.place(access)).collect();
        self.pages.clear();
        placed
    }

    /// Where an access lies. It is where its linear address says if nothing is there, as may be where a mask leaves a part out.
    fn place(&self, mut access: Access) -> (Access, bool) {
        let find = |linear: u64| {
            let page = |(own, _): &&(u64, u64)| *own == linear / PAGE_BYTES;
            let seen = self.pages.iter().find(page).map(|(_, physical)| physical * PAGE_BYTES);
            seen.map(|physical| physical + linear % PAGE_BYTES)
        };
        let found = |linear: u64| find(linear).or_else(|| self.translations.find(linear));
        let next = (access.linear & !(PAGE_BYTES - 1)).wrapping_add(PAGE_BYTES);
        let crosses = access.linear % PAGE_BYTES + u64::from(access.bytes) > PAGE_BYTES;
        let [own, other] = [access.linear, next].map(found);
        access.physical = own.unwrap_or(access.linear);
        access.physical_next_page = other.unwrap_or(access.physical);
        (access, own.is_some() && (!crosses || other.is_some()))
    }
}

/// The physical address of what QEMU has just accessed.
pub fn physical(info: MemInfo, linear: u64) -> Option<u64> {
    // SAFETY: the callback of this access asks.
    unsafe {
        let found = (api().translation)(info, linear);
        (!found.0.is_null()).then(|| (api().physical)(found))
    }
}

/// Bytes that QEMU has just accessed.
pub fn size(info: MemInfo) -> u32 {
    // SAFETY: the callback of this access asks.
    1 << unsafe { (api().size_shift)(info) }
}

/// What an instruction flushes: nothing, if it loads CR8.
pub fn maintenance(instruction: &Instruction) -> Option<Maintenance> {
    step::maintenance(instruction).filter(|_| instruction.op0_register() != Register::CR8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_a_way_is_what_its_access_is() {
        use AccessKind::{Load, LoadStore, Store};
        let touch =
            |kind, locked, non_temporal| Touch { linear: 0, bytes: 8, kind, locked, non_temporal };
        let mut seen = Vec::new();
        for (kind, locked, hint) in [
            (Load, false, false),
            (Store, false, false),
            (LoadStore, false, false),
            (Load, true, false),
            (Store, true, false),
            (LoadStore, true, false),
            (Store, false, true),
        ] {
            for may in [false, true] {
                let way = Way::of_touch(&touch(kind, locked, hint)).passing(may);
                let way = Way::of(way.number());
                assert_eq!((way.kind(), way.locked(), way.may_pass()), (kind, locked, may));
                assert_eq!(way.non_temporal(), hint);
                assert_eq!(way.access(5, 8).non_temporal, hint);
                seen.push((way.number(), way.index()));
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 14);
        assert!(seen.iter().all(|(_, index)| *index < WAYS));
    }
}
