//! How addresses are translated with nested paging: APM vol. 2, 15.25. Without it there is one translation.

use crate::walk::Paging;

/// Both translations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Translation {
    /// From linear addresses to physical ones, or to those of the nested guest.
    pub own: Paging,
    /// From those of the nested guest to physical ones.
    pub nested: Option<Paging>,
}

impl Translation {
    /// The physical address of `linear`, or `None` if nothing is mapped there.
    #[must_use]
    pub fn translate(&self, linear: u64, read: impl Fn(u64) -> u64 + Copy) -> Option<u64> {
        let Some(nested) = &self.nested else { return self.own.translate(linear, read) };
        let inner = self.own.translate(linear, |at| through(nested, at, read))?;
        nested.translate(inner, read)
    }

    /// The same, and the bits of the offset in its page, or in the smaller one of both translations.
    #[must_use]
    pub fn page(&self, linear: u64, read: impl Fn(u64) -> u64 + Copy) -> Option<(u64, u32)> {
        let Some(nested) = &self.nested else { return self.own.page(linear, read) };
        let (inner, bits) = self.own.page(linear, |at| through(nested, at, read))?;
        let (physical, other) = nested.page(inner, read)?;
        Some((physical, bits.min(other)))
    }

    /// The same of a page that ring 0 may write to, and that has been written to: nothing in the page tables would change,
    /// and nothing fault.
    #[must_use]
    pub fn written(&self, linear: u64, read: impl Fn(u64) -> u64 + Copy) -> Option<u64> {
        let Some(nested) = &self.nested else { return self.own.written(linear, read) };
        let inner = self.own.written(linear, |at| through(nested, at, read))?;
        nested.written_by_any(inner, read)
    }

    /// The physical address of one of the nested guest's.
    #[must_use]
    pub fn physical(&self, inner: u64, read: impl Fn(u64) -> u64 + Copy) -> Option<u64> {
        self.nested.as_ref().map_or(Some(inner), |nested| nested.translate(inner, read))
    }
}

/// The top table of four levels in nested tables that have five, as a guest's have that runs with five itself: the processor
/// walks them as the hypervisor's own, which have four (APM vol. 2, 15.25.3). What is beyond the lowest entry is out of
/// reach: physical addresses of more than 48 bits. `None` if that entry is not present.
#[must_use]
pub fn top_of_four(nested: &Paging, read: impl FnOnce(u64) -> u64) -> Option<u64> {
    const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
    const LA57: u64 = 1 << 12;
    if nested.cr4 & LA57 == 0 {
        return Some(nested.cr3);
    }
    let entry = read(nested.cr3 & ADDRESS);
    (entry & 1 != 0).then_some(entry & ADDRESS)
}

/// A word of the nested guest's memory; 0, which is not a present entry, where there is none.
fn through(nested: &Paging, at: u64, read: impl Fn(u64) -> u64 + Copy) -> u64 {
    nested.translate(at, read).map_or(0, read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const LONG: Paging = Paging { cr0: 1 << 31, cr3: 0x1000, cr4: 0, efer: 1 << 10 };
    /// Present, writable, user, accessed, dirty; the lowest tables map pages of 2 MiB.
    const ALL: u64 = 0x67;
    const LARGE: u64 = 1 << 7;

    /// The nested guest's addresses from 0 on are at 0x40_0000; its own tables at 0x1000 map 0 to its 0.
    fn memory() -> HashMap<u64, u64> {
        HashMap::from([
            (0x9000, 0xa000 | ALL),
            (0xa000, 0xb000 | ALL),
            (0xb000, 0x40_0000 | LARGE | ALL),
            (0x40_1000, 0x2000 | ALL),
            (0x40_2000, 0x3000 | ALL),
            (0x40_3000, LARGE | ALL),
            (0x40_3008, 0x20_0000 | LARGE | ALL),
        ])
    }

    fn both() -> Translation {
        Translation { own: LONG, nested: Some(Paging { cr3: 0x9000, ..LONG }) }
    }

    #[test]
    fn every_step_goes_through_both() {
        let memory = memory();
        let read = |at: u64| memory.get(&at).copied().unwrap_or(0);
        assert_eq!(both().translate(0x1234, read), Some(0x40_1234));
        assert_eq!(both().written(0x1234, read), Some(0x40_1234));
        assert_eq!(both().physical(0x4321, read), Some(0x40_4321));
        // Mapped by the nested guest, and not by the guest.
        assert_eq!(both().translate(0x20_0000, read), None);
        assert_eq!(both().physical(0x20_0000, read), None);
        // Without paging of its own the address is the nested guest's.
        let flat = Translation { own: Paging::default(), ..both() };
        assert_eq!(flat.translate(0x1234, read), Some(0x40_1234));
    }

    #[test]
    fn what_the_guest_has_write_protected_is_not_written() {
        let mut memory = memory();
        memory.insert(0xb000, 0x40_0000 | LARGE | ALL & !2);
        let read = |at: u64| memory.get(&at).copied().unwrap_or(0);
        assert_eq!(both().written(0x1234, read), None);
        assert_eq!(both().translate(0x1234, read), Some(0x40_1234));
    }

    #[test]
    fn of_five_levels_the_lowest_four_are_walked() {
        let five = Paging { cr4: 1 << 12, cr3: 0x8000, ..LONG };
        assert_eq!(
            top_of_four(&five, |at| if at == 0x8000 { 0x9000 | ALL } else { 0 }),
            Some(0x9000)
        );
        assert_eq!(top_of_four(&five, |_| 0x9000), None);
        assert_eq!(top_of_four(&LONG, |_| panic!("it is the top")), Some(0x1000));
    }

    #[test]
    fn without_nested_paging_there_is_one_translation() {
        let memory = memory();
        let read = |at: u64| memory.get(&at).copied().unwrap_or(0);
        let one = Translation { own: Paging { cr3: 0x9000, ..LONG }, nested: None };
        assert_eq!(one.translate(0x10, read), Some(0x40_0010));
        assert_eq!(one.physical(0x10, read), Some(0x10));
    }
}
