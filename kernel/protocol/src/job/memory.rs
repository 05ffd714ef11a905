//! Memory of a size, a page size and a content that a job asks for.
//!
//! Where it lies is decided on the host, from sizes and pages alone, so that any machine and any run sees the same addresses:
//! as low as it fits, because what lies below 2 GiB takes the short encodings and below 4 GiB 32-bit code reaches it. In front of
//! each piece and after it at least [`GUARD_BYTES`] are not mapped.

use crate::bits::Bits;
use crate::job::Item;
use crate::job::control::{MemoryType, PageSize, Ring};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// Memory for some of a job's items, made anew for each.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Memory<'a> {
    /// How code and messages call it.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its first byte.
    pub at: u64,
    /// Its bytes, as asked for; whole pages are mapped.
    pub bytes: u64,
    /// Its pages.
    pub page_size: PageSize,
    /// Its memory type.
    pub memory_type: MemoryType,
    /// What it holds at the start of an item.
    #[serde(borrow)]
    pub fill: Fill<'a>,
    /// Items that have it, by their index, in ascending order.
    pub items: Vec<u32>,
}

/// What memory holds at the start of an item. What a fill does not reach is zero.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Fill<'a> {
    /// Zeros.
    #[default]
    Zero,
    /// These bytes over and over; the last time as far as there is room.
    Pattern(#[serde(borrow)] Cow<'a, [u8]>),
    /// These bytes, once.
    Bytes(#[serde(borrow)] Cow<'a, [u8]>),
    /// Pointers to follow.
    Chase(Chase),
}

/// Elements that each hold the address of another, so that all of them are one cycle.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Chase {
    /// Bytes from one element to the next; its first eight are the pointer.
    pub stride: u32,
    /// Which element a pointer leads to.
    pub order: Order,
    /// Seed of the random order.
    pub seed: u64,
}

/// The order in which a chase goes through its elements.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A cycle that is drawn from all cycles evenly, by Sattolo's algorithm.
    #[default]
    Random,
    /// By ascending addresses.
    Forward,
    /// By descending addresses.
    Backward,
}

/// Addresses below 2 GiB.
pub const LOW: Range<u64> = 0x7000_0000..0x8000_0000;
/// Addresses for what does not fit there: what one entry of the top page table maps.
pub const HIGH: Range<u64> = 0x0000_3000_0000_0000..0x0000_3080_0000_0000;
/// Least distance from a piece to the next, or to an end of the range: what a page table maps, so that pieces share none.
pub const GUARD_BYTES: u64 = 2 << 20;

impl PageSize {
    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Small => 4 << 10,
            Self::Large => 2 << 20,
            Self::Giant => 1 << 30,
        }
    }

    /// Its size as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "4 KiB",
            Self::Large => "2 MiB",
            Self::Giant => "1 GiB",
        }
    }
}

impl Memory<'_> {
    /// Whether item `index` has it.
    #[must_use]
    pub fn is_of(&self, index: u32) -> bool {
        self.items.binary_search(&index).is_ok()
    }

    /// The addresses that are mapped: whole pages.
    #[must_use]
    pub fn mapped(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.bytes.saturating_next_multiple_of(self.page_size))
    }
}

/// Rounding up without a panic.
trait Saturating {
    fn saturating_next_multiple_of(self, page: PageSize) -> u64;
}

impl Saturating for u64 {
    fn saturating_next_multiple_of(self, page: PageSize) -> u64 {
        self.checked_next_multiple_of(page.bytes()).unwrap_or(Self::MAX)
    }
}

/// Where the pieces of one item lie, given their sizes and pages, in order. `None` for those that no room is left for.
#[must_use]
pub fn places(pieces: &[(u64, PageSize)]) -> Vec<Option<u64>> {
    let (mut low, mut high) = (LOW.start, HIGH.start);
    let place = |free: &mut u64, end: u64, bytes: u64, page: PageSize| {
        let align = page.bytes().max(GUARD_BYTES);
        let at = free.checked_add(GUARD_BYTES)?.checked_next_multiple_of(align)?;
        let behind = at.checked_add(bytes.checked_next_multiple_of(align)?)?;
        (behind.checked_add(GUARD_BYTES)? <= end).then(|| {
            *free = behind;
            at
        })
    };
    let each = |&(bytes, page): &(u64, PageSize)| {
        place(&mut low, LOW.end, bytes, page).or_else(|| place(&mut high, HIGH.end, bytes, page))
    };
    pieces.iter().map(each).collect()
}

/// What an address that is not mapped has to do with the memory of an item: in which guard it lies. `None`: in none.
#[must_use]
pub fn beyond<'a>(
    address: u64,
    pieces: impl IntoIterator<Item = &'a Memory<'a>>,
) -> Option<String> {
    pieces.into_iter().find_map(|piece| {
        let (name, Range { start, end }) = (&piece.name, piece.mapped());
        if (end..end.saturating_add(GUARD_BYTES)).contains(&address) {
            return Some(format!("{} bytes after the end of memory `{name}`", address - end));
        }
        if (start.saturating_sub(GUARD_BYTES)..start).contains(&address) {
            let before = start - address;
            return Some(format!("{before} bytes before memory `{name}`"));
        }
        None
    })
}

impl Item<'_> {
    /// Ring and width of each of its parts of code.
    fn codes(&self) -> Vec<(Ring, Bits)> {
        let snippet = self.part().snippet();
        let snippet = snippet.map(|one| (one.setup.control.ring, one.setup.bits));
        let tasks = self.part().workload().into_iter().flat_map(|workload| &workload.tasks);
        snippet.into_iter().chain(tasks.map(|task| (task.ring, task.bits))).collect()
    }

    /// Whether some of its code runs in ring 3.
    #[must_use]
    pub fn has_ring_3(&self) -> bool {
        self.codes().iter().any(|(ring, _)| *ring == Ring::User)
    }

    /// Whether some of its code is 32-bit code.
    #[must_use]
    pub fn has_compatibility(&self) -> bool {
        self.codes().iter().any(|(_, bits)| *bits == Bits::Compatibility)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn any_page() -> impl Strategy<Value = PageSize> {
        prop_oneof![Just(PageSize::Small), Just(PageSize::Large), Just(PageSize::Giant)]
    }

    fn any_fill() -> impl Strategy<Value = Fill<'static>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..50).prop_map(Cow::Owned);
        let order = prop_oneof![Just(Order::Random), Just(Order::Forward), Just(Order::Backward)];
        prop_oneof![
            Just(Fill::Zero),
            bytes().prop_map(Fill::Pattern),
            bytes().prop_map(Fill::Bytes),
            (any::<u32>(), order, any::<u64>())
                .prop_map(|(stride, order, seed)| Fill::Chase(Chase { stride, order, seed })),
        ]
    }

    prop_compose! {
        pub fn any_memory()(
            name in ".{0,20}", at: u64, bytes: u64, page_size in any_page(), combining: bool, fill in any_fill(),
            items in prop::collection::vec(any::<u32>(), 0..4),
        ) -> Memory<'static> {
            let memory_type = if combining { MemoryType::WriteCombining } else { MemoryType::WriteBack };
            Memory { name: Cow::Owned(name), at, bytes, page_size, memory_type, fill, items }
        }
    }

    /// A piece that may be used as it stands.
    pub fn piece(name: &'static str, at: u64, bytes: u64) -> Memory<'static> {
        Memory {
            name: Cow::Borrowed(name),
            at,
            bytes,
            page_size: PageSize::Small,
            memory_type: MemoryType::WriteBack,
            fill: Fill::Zero,
            items: alloc::vec![0],
        }
    }

    #[test]
    fn n5_memory_lies_as_low_as_it_fits() {
        let mib = |count: u64| count << 20;
        let all = [
            (mib(64), PageSize::Small),
            (1, PageSize::Large),
            (mib(200), PageSize::Small),
            (mib(100), PageSize::Large),
            (mib(1), PageSize::Giant),
        ];
        let high = HIGH.start;
        let wanted =
            [0x7020_0000, 0x7440_0000, high + mib(2), 0x7480_0000, high + mib(1024)].map(Some);
        assert_eq!(places(&all), wanted);
        assert_eq!(places(&[(252 << 20, PageSize::Small)]), [Some(0x7020_0000)]);
        assert_eq!(places(&[((252 << 20) + 1, PageSize::Small)]), [Some(high + mib(2))]);
        assert_eq!(places(&[(u64::MAX, PageSize::Giant), (1 << 39, PageSize::Small)]), [None; 2]);
    }

    proptest! {
        #[test]
        fn n5_pieces_have_unmapped_memory_on_both_sides(
            sizes in prop::collection::vec((1u64..1 << 33, any_page()), 1..20),
        ) {
            let mut found: Vec<Range<u64>> = Vec::new();
            for (place, (bytes, page)) in places(&sizes).into_iter().zip(&sizes) {
                let Some(at) = place else { continue };
                prop_assert!(at.is_multiple_of(page.bytes().max(GUARD_BYTES)));
                let end = at + bytes.next_multiple_of(page.bytes());
                let inside = |range: &Range<u64>| {
                    range.start + GUARD_BYTES <= at && end + GUARD_BYTES <= range.end
                };
                prop_assert!(inside(&LOW) || inside(&HIGH));
                for other in &found {
                    prop_assert!(end + GUARD_BYTES <= other.start || other.end + GUARD_BYTES <= at);
                }
                found.push(at..end);
            }
        }
    }

    #[test]
    fn n5_an_address_beyond_an_end_names_the_memory() {
        let list = [piece("one", 0x7020_0000, 5000), piece("two", 0x7080_0000, 4096)];
        let said = |address| beyond(address, &list);
        assert_eq!(said(0x7020_2000).unwrap(), "0 bytes after the end of memory `one`");
        assert_eq!(said(0x7020_2008).unwrap(), "8 bytes after the end of memory `one`");
        assert_eq!(said(0x701f_fff8).unwrap(), "8 bytes before memory `one`");
        assert_eq!(said(0x7080_1000).unwrap(), "0 bytes after the end of memory `two`");
        assert_eq!(
            [said(0), said(0x7020_0000), said(0x7050_0000), said(u64::MAX)],
            [const { None }; 4]
        );
        assert_eq!(beyond(u64::MAX, &[piece("x", u64::MAX - 1, u64::MAX)]), None);
        assert_eq!(PageSize::Giant.name().to_string(), "1 GiB");
    }

    /// What one entry of a page directory maps: 2 MiB (SDM vol. 3, 4.5).
    #[test]
    fn pieces_lie_2_mib_apart() {
        assert_eq!(GUARD_BYTES, 2_097_152);
    }
}
