//! Accesses of a vCPU, to its caches and TLBs.

use super::Vcpu;
use crate::memory::{self, Way};
use crate::qemu::MemInfo;
use crate::recent::Found;
use crate::state::state;
use crate::tally::Passing;
use emulated_pmu::walk::Paging;
use pmu_model::uarch::{Access, PAGE_BYTES};
use step::Maintenance;

impl Vcpu {
    /// An access that QEMU has just made, of so many bytes; with its physical address if the caches see it.
    pub fn accessed(&self, info: MemInfo, linear: u64, bytes: u32, way: Way) -> Access {
        let access = way.access(linear, bytes);
        if self.traces { self.memory.placed(info, access) } else { access }
    }

    /// Whether an access is to a line and page that were used lately, so that it is a hit of the first level. It has moved what
    /// it moves then.
    #[inline]
    pub fn is_recent(&mut self, linear: u64, bytes: u32) -> bool {
        let found = self.memory.recent.find(linear, bytes.into());
        if found == Some(Found::Second) {
            self.core.exchange_recent(linear);
        }
        found.is_some()
    }

    /// An access of an instruction that is done; `may`: the instruction may pass the qualifiers.
    pub fn access(&mut self, access: &Access, may: bool) {
        self.access_at(access, may, true);
    }

    /// The same; `is_known`: where it lies is.
    fn access_at(&mut self, access: &Access, may: bool, is_known: bool) {
        let parts = self.model_parts();
        let passes = self.passes(access, may);
        if self.traces && self.core.is_shaped() {
            let access = Access { page_bits: self.page_bits(access.linear), ..*access };
            self.see_access(&access, parts, passes);
            if is_known {
                self.memory.translations.note(access.linear, access.physical);
            }
            return;
        }
        self.see_access(access, parts, passes);
        if self.traces && is_known {
            self.memory.recent.note(access);
            self.memory.translations.note(access.linear, access.physical);
        }
    }

    fn see_access(&mut self, access: &Access, parts: pmu_model::uarch::Parts, passes: bool) {
        let Self { core, llc, sums, .. } = self;
        match passes {
            false => core.access(access, llc, parts, sums),
            true => core.access(access, llc, parts, &mut Passing(sums)),
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

    /// The same for the page after, if the access continues there.
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
        let may = self.memory.may_pass;
        self.begin_qualified();
        for (access, is_known) in self.memory.take_pending() {
            self.access_at(&access, may, is_known);
        }
        self.end_qualified(may);
        self.memory.may_pass = false;
        match self.memory.maintenance.take() {
            Some((maintenance, address)) if self.traces => self.flush(maintenance, address),
            // The model does not see it, but what is known of linear addresses goes.
            Some(_) => self.memory.forget_translations(),
            None => {}
        }
    }

    /// An element of a repeated string instruction is done, which may pass the qualifiers, if `may`.
    pub fn element(&mut self, source: Option<Access>, destination: Option<Access>, may: bool) {
        self.begin_qualified();
        self.memory.in_string = true;
        for (place, whole) in [source, destination].into_iter().enumerate() {
            let Some(whole) = whole else { continue };
            for piece in self.memory.runs[place].element(whole.linear, whole.bytes) {
                let mut access = Access { linear: piece.linear, bytes: piece.bytes, ..whole };
                access.physical = if piece.linear / PAGE_BYTES == whole.linear / PAGE_BYTES {
                    whole.physical.wrapping_add(piece.linear.wrapping_sub(whole.linear))
                } else {
                    (whole.physical_next_page & !(PAGE_BYTES - 1)) | (piece.linear % PAGE_BYTES)
                };
                self.access(&access, may);
            }
        }
        self.memory.in_string = false;
        self.memory.string_touched |= self.memory.touched;
    }

    /// The physical address of a linear one which QEMU does not access: as it was seen last, or else by the guest's page
    /// tables. In a callback that was requested as one that reads registers.
    pub fn physical(&mut self, linear: u64) -> Option<u64> {
        if let Some(physical) = self.memory.translations.find(linear) {
            return Some(physical);
        }
        let registers = self.handles.paging?;
        let [cr0, cr3, cr4, efer] = registers.map(|register| self.reader.read(register));
        // Without a line nothing is present.
        let read = |at| state().read(at).unwrap_or(0);
        let physical = Paging { cr0, cr3, cr4, efer }.translate(linear, read)?;
        self.memory.translations.note(linear, physical);
        Some(physical)
    }

    /// How many bits of a linear address are the offset in its page: 12 where the page tables do not tell. In a callback that was
    /// requested as one that reads registers.
    fn page_bits(&mut self, linear: u64) -> u8 {
        const SMALL: u8 = 12;
        if let Some(bits) = self.memory.page_sizes.get(&(linear / PAGE_BYTES)) {
            return *bits;
        }
        let Some(registers) = self.handles.paging else { return SMALL };
        let [cr0, cr3, cr4, efer] = registers.map(|register| self.reader.read(register));
        let read = |at| state().read(at).unwrap_or(0);
        let found = Paging { cr0, cr3, cr4, efer }.page(linear, read);
        let bits = found.map_or(SMALL, |(_, bits)| bits as u8);
        self.memory.page_sizes.insert(linear / PAGE_BYTES, bits);
        bits
    }

    /// An instruction flushed something: of a line, at its physical address; of a page, at its linear one.
    fn flush(&mut self, maintenance: Maintenance, address: Option<u64>) {
        match (maintenance, address) {
            (Maintenance::FlushLine { evicts: true }, Some(physical)) => self.flush_line(physical),
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
        // A larger page goes with all its parts.
        self.memory.forget_translations();
    }

    fn flush_caches(&mut self) {
        self.core.flush_caches(&mut self.llc);
        self.memory.recent.clear();
    }

    fn flush_translations(&mut self) {
        self.core.flush_tlb();
        self.memory.recent.clear();
        self.memory.translations.clear();
        self.memory.page_sizes.clear();
    }
}
