//! Reading the guest's page tables: Intel SDM vol. 3, 4.5.

/// The registers that decide how addresses are translated.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Paging {
    /// CR0.
    pub cr0: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER.
    pub efer: u64,
}

const CR0_PG: u64 = 1 << 31;
const CR4_LA57: u64 = 1 << 12;
const CR4_SMAP: u64 = 1 << 21;
const EFER_LMA: u64 = 1 << 10;
const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
/// Bits of an entry that hold an address; processors have at most 52 address bits.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

impl Paging {
    /// The physical address of `linear`, or `None` if nothing is mapped there. `read` reads 8 bytes of
    /// physical memory at an aligned address. Without paging the two are the same; 32-bit paging is not
    /// read.
    pub fn translate(&self, linear: u64, read: impl FnMut(u64) -> u64) -> Option<u64> {
        self.page(linear, read).map(|(physical, _)| physical)
    }

    /// The same, and how many bits of the address are the offset in its page: 12, 21 or 30; 12 without paging.
    pub fn page(&self, linear: u64, read: impl FnMut(u64) -> u64) -> Option<(u64, u32)> {
        self.walk(linear, read, |_, _| true)
    }

    /// The same of a page that ring 0 may write to, and that has been written to: nothing in the page tables would change.
    pub fn written(&self, linear: u64, read: impl FnMut(u64) -> u64) -> Option<u64> {
        // A page of ring 3's is closed to ring 0 with SMAP, whatever it looks like without.
        let mut is_supervisors = self.cr4 & CR4_SMAP == 0;
        let physical = self.walk(linear, read, |entry, is_page| {
            is_supervisors |= entry & USER == 0;
            let wanted = WRITABLE | ACCESSED | if is_page { DIRTY } else { 0 };
            entry & wanted == wanted
        });
        physical.filter(|_| is_supervisors).map(|(physical, _)| physical)
    }

    /// The same by nested tables, whose walks count as user accesses (AMD APM vol. 2, 15.25.5).
    pub fn written_by_any(&self, address: u64, read: impl FnMut(u64) -> u64) -> Option<u64> {
        self.walk(address, read, |entry, is_page| {
            let wanted = WRITABLE | USER | ACCESSED | if is_page { DIRTY } else { 0 };
            entry & wanted == wanted
        })
        .map(|(physical, _)| physical)
    }

    /// As above, through entries that are `wanted`: each, and whether it is the page's.
    fn walk(
        &self,
        linear: u64,
        mut read: impl FnMut(u64) -> u64,
        mut wanted: impl FnMut(u64, bool) -> bool,
    ) -> Option<(u64, u32)> {
        if self.cr0 & CR0_PG == 0 {
            return Some((linear, 12));
        }
        if self.efer & EFER_LMA == 0 {
            return None;
        }
        let levels = if self.cr4 & CR4_LA57 != 0 { 5 } else { 4 };
        let mut table = self.cr3 & ADDRESS;
        for level in (1..=levels).rev() {
            let shift = 12 + 9 * (level - 1);
            let entry = read(table + 8 * (linear >> shift & 0x1ff));
            // A page of 1 GiB or 2 MiB; at the lowest level the bit is the PAT's.
            let is_page = level == 1 || (level <= 3 && entry & LARGE != 0);
            if entry & PRESENT == 0 || !wanted(entry, is_page) {
                return None;
            }
            if is_page {
                let offset = (1 << shift) - 1;
                return Some((entry & ADDRESS & !offset | linear & offset, shift));
            }
            table = entry & ADDRESS;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const LONG: Paging = Paging { cr0: CR0_PG, cr3: 0x1000, cr4: 0, efer: EFER_LMA };

    fn memory() -> HashMap<u64, u64> {
        HashMap::from([
            // Entry 256 of level 4, 0 of level 3, then a table, a 2 MiB page and a hole.
            (0x1000 + 8 * 256, 0x2000 | 3),
            (0x2000, 0x3000 | 3),
            (0x2000 + 8, 0x4000_0000 | 0x83),
            (0x3000, 0x4000 | 3),
            (0x3000 + 8, 0x0060_0000 | 0x83),
            // NX and PAT set: neither is part of the address.
            (0x4000 + 8 * 5, 1 << 63 | 0x0012_3000 | 0x83),
            // For five levels.
            (0x5000 + 8 * 0x1ff, 0x1000 | 3),
        ])
    }

    fn translate(paging: &Paging, linear: u64) -> Option<u64> {
        let memory = memory();
        paging.translate(linear, |at| memory.get(&at).copied().unwrap_or(0))
    }

    #[test]
    fn pages_of_each_size_are_found() {
        let base = 0xffff_8000_0000_0000;
        assert_eq!(translate(&LONG, base + 0x5678), Some(0x0012_3678));
        assert_eq!(translate(&LONG, base + 0x20_1234), Some(0x60_1234));
        assert_eq!(translate(&LONG, base + 0x4000_0042), Some(0x4000_0042));
        assert_eq!(translate(&LONG, base + 0x6000), None);
        assert_eq!(translate(&LONG, 0), None);
    }

    #[test]
    fn only_what_ring_0_has_written_to_is_found_so() {
        const ALL: u64 = PRESENT | WRITABLE | ACCESSED | DIRTY;
        let find = |paging: Paging, tables: u64, page: u64| {
            let memory = HashMap::from([(0x1000, 0x2000 | tables), (0x2000, LARGE | page)]);
            paging.written(0x1234, |at| memory.get(&at).copied().unwrap_or(0))
        };
        assert_eq!(find(LONG, ALL & !DIRTY, ALL), Some(0x1234));
        for missing in [PRESENT, WRITABLE, ACCESSED] {
            assert_eq!(find(LONG, ALL & !missing, ALL), None, "{missing:#x}");
            assert_eq!(find(LONG, ALL, ALL & !missing), None, "{missing:#x}");
        }
        assert_eq!(find(LONG, ALL, ALL & !DIRTY), None);
        let smap = Paging { cr4: CR4_SMAP, ..LONG };
        assert_eq!(find(smap, ALL | USER, ALL | USER), None);
        assert_eq!(find(smap, ALL | USER, ALL), Some(0x1234));
        assert_eq!(find(LONG, ALL | USER, ALL | USER), Some(0x1234));
    }

    #[test]
    fn five_levels_and_no_paging() {
        let five = Paging { cr3: 0x5000, cr4: CR4_LA57, ..LONG };
        assert_eq!(translate(&five, 0xffff_8000_0000_5678), Some(0x0012_3678));
        assert_eq!(translate(&Paging::default(), 0x1234), Some(0x1234));
        let legacy = Paging { efer: 0, ..LONG };
        assert_eq!(translate(&legacy, 0x1234), None);
    }
}
