//! The registers of architectural PEBS that name its buffer.

use crate::memory::layout;

/// Bits 11:5 of the base are reserved, so that its size is in bits 4:0 (Linux ORs both into one value).
const SIZE: u64 = 0x1f;
/// Bytes of the smallest buffer.
const PAGE: u64 = 4096;
/// The greatest size that the index reaches: 23 bits, in units of 16 bytes.
const MOST: u64 = 1 << (INDEX_BITS + UNIT_BITS);
const INDEX_BITS: u32 = 23;
const UNIT_BITS: u32 = 4;
/// Bits of the index: where the next record goes, in 26:4; full, 31; on, 32; threshold, 58:36 (Linux, `union arch_pebs_index`).
const WRITTEN: u64 = ((1 << INDEX_BITS) - 1) << UNIT_BITS;
const FULL: u64 = 1 << 31;
const ON: u64 = 1 << 32;
const THRESHOLD_AT: u32 = 36;

/// IA32_PEBS_BASE: the buffer's physical address, and its size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferBase(u64);

impl BufferBase {
    /// Bytes of the smallest buffer that has room for `bytes`: 4 KiB times a power of two. `None` if there is none.
    #[must_use]
    pub const fn size_for(bytes: u64) -> Option<u64> {
        match bytes {
            ..=PAGE => Some(PAGE),
            _ if bytes <= MOST => Some(bytes.next_power_of_two()),
            _ => None,
        }
    }

    /// The buffer at a physical address, of a size as [`Self::size_for`] has them. `None` if the address is not that of a page,
    /// or the size is not one of these.
    #[must_use]
    pub const fn of(physical: u64, bytes: u64) -> Option<Self> {
        let good = physical.is_multiple_of(PAGE)
            && bytes.is_power_of_two()
            && bytes >= PAGE
            && bytes <= MOST;
        if !good {
            return None;
        }
        Some(Self(physical | (bytes / PAGE).trailing_zeros() as u64))
    }

    /// The register's value.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Bytes of the buffer.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        PAGE << (self.0 & SIZE)
    }

    /// The physical address of `linear`, an address of the heap. It is in the window of all physical memory, as one piece; in
    /// host tests the model's physical addresses are those of the process.
    #[must_use]
    pub const fn physical(linear: u64) -> u64 {
        if linear >= layout::PHYSICAL { linear - layout::PHYSICAL } else { linear }
    }
}

/// IA32_PEBS_INDEX.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferIndex(pub u64);

impl BufferIndex {
    /// An empty buffer that is on, and interrupts when as many bytes as `threshold` have been written. A threshold below 16
    /// bytes would be none; the first record passes it in any case.
    #[must_use]
    pub const fn empty(threshold: u64) -> Self {
        let units = threshold >> UNIT_BITS;
        let units = if units == 0 { 1 } else { units };
        Self(ON | (units & ((1 << INDEX_BITS) - 1)) << THRESHOLD_AT)
    }

    /// The same buffer, empty and on.
    #[must_use]
    pub const fn emptied(self) -> Self {
        Self(self.0 & !(WRITTEN | FULL) | ON)
    }

    /// Bytes that have been written.
    #[must_use]
    pub const fn written(self) -> u64 {
        self.0 & WRITTEN
    }

    /// Whether the processor found no room for a record.
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.0 & FULL != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, `union arch_pebs_index`, and `virt_to_phys(...) | PEBS_BUFFER_SHIFT` in `init_arch_pebs_on_cpu`.
    #[test]
    fn s1_the_fields_of_base_and_index_are_where_linux_has_them() {
        assert_eq!(BufferBase::of(0x12_3000, 65_536).map(BufferBase::bits), Some(0x12_3004));
        assert_eq!(BufferBase::of(0x12_3000, 4096).map(BufferBase::bits), Some(0x12_3000));
        assert_eq!(BufferBase::of(0x12_3000, 65_536).map(BufferBase::bytes), Some(65_536));
        for (address, bytes) in
            [(0x12_3800, 4096), (0x1000, 2048), (0x1000, 12_288), (0x1000, 1 << 28)]
        {
            assert_eq!(BufferBase::of(address, bytes), None, "{address:#x} {bytes}");
        }
        assert_eq!(BufferIndex::empty(0xf000).0, 0xf00 << 36 | 1 << 32);
        assert_eq!(BufferIndex::empty(0).0, 1 << 36 | 1 << 32);
        let seen = BufferIndex(0xf00 << 36 | 1 << 31 | 0x1230);
        assert_eq!((seen.written(), seen.is_full()), (0x1230, true));
        assert_eq!(seen.emptied(), BufferIndex::empty(0xf000));
        assert_eq!(seen.emptied().emptied(), BufferIndex::empty(0xf000), "it stays on");
        assert!(!BufferIndex(0x1230).is_full());
        assert_eq!(BufferIndex(u64::MAX).written(), 0x7ff_fff0, "bits 26:4");
    }

    #[test]
    fn s1_a_buffer_has_any_size_that_the_register_can_say() {
        let sizes = [0, 1, 4096, 4097, 65_536, 65_537, (1 << 27), (1 << 27) + 1];
        let expected = [4096, 4096, 4096, 8192, 65_536, 131_072, 1 << 27, 0]
            .map(|size| (size > 0).then_some(size));
        assert_eq!(sizes.map(BufferBase::size_for), expected);
        for shift in 0..=15 {
            let base = BufferBase::of(0x1000, 4096 << shift).unwrap();
            assert_eq!((base.bits() & 0x1f, base.bytes()), (shift, 4096 << shift));
        }
        assert_eq!(BufferBase::of(0x1000, 4096 << 16), None);
    }

    #[test]
    fn s1_the_heap_is_one_piece_of_physical_memory() {
        assert_eq!(BufferBase::physical(0xffff_8000_0012_3000), 0x12_3000);
        assert_eq!(BufferBase::physical(0x7f00_0012_3000), 0x7f00_0012_3000);
    }
}
