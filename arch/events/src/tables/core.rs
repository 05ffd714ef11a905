//! The table of one core microarchitecture.

use super::layout::{
    DOUBTFUL, ENCODING_BYTES, MSR_BYTES, NONE_8, NONE_16, NONE_32, ROW_BYTES, TABLE_BYTES,
    WAY_BYTES, flag,
};
use super::read::{u8_at, u16_at, u32_at, u64_at};
use super::{ProcessorEntry, Tables, fold, suggest};
use crate::cpu::Vendor;
use crate::event::{Event, MAX_WAYS, Precise, Way};
use crate::generic::Generic;
use crate::msr::ExtraMsr;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

/// One table. Copying it copies a few references.
#[derive(Clone, Copy, Debug)]
pub struct Core<'a> {
    tables: Tables<'a>,
    index: usize,
}

/// What looking a name up found, and how many names it was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The event.
    pub event: Option<Event<'a>>,
    /// String comparisons made.
    pub comparisons: u32,
}

impl<'a> Core<'a> {
    pub(super) fn new(tables: Tables<'a>, index: usize) -> Self {
        Self { tables, index }
    }

    fn record(&self) -> &'a [u8] {
        let at = self.index * TABLE_BYTES;
        self.tables.tables.get(at..at + TABLE_BYTES).unwrap_or(&[])
    }

    fn text(&self, at: usize) -> &'a str {
        self.tables.texts.get(usize::from(u16_at(self.record(), at)))
    }

    /// Its name, such as `skylakex`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.text(0)
    }

    /// Where its facts come from, such as `perfmon:SKX/events/skylakex_core.json`.
    #[must_use]
    pub fn source(&self) -> &'a str {
        self.text(2)
    }

    /// The source's version.
    #[must_use]
    pub fn version(&self) -> &'a str {
        self.text(4)
    }

    /// Whose processors it is for.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        super::lookup::vendor(u16_at(self.record(), 6))
    }

    /// The processors that it is for.
    pub fn processors(&self) -> impl Iterator<Item = ProcessorEntry<'a>> + use<'a> {
        let index = self.index;
        self.tables.processors().filter(move |p| p.table == index)
    }

    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        u32_at(self.record(), 12) as usize
    }

    /// Whether it has no event at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn row(&self, index: usize) -> &'a [u8] {
        let at = (u32_at(self.record(), 8) as usize + index) * ROW_BYTES;
        self.tables.rows.get(at..at + ROW_BYTES).unwrap_or(&[])
    }

    /// The name of one row.
    pub(crate) fn name_at(&self, index: usize) -> &'a str {
        self.tables.names.get(usize::from(u16_at(self.row(index), 0)))
    }

    /// The event with this number, in the order of the table (by folded name).
    #[must_use]
    pub fn event(&self, index: usize) -> Option<Event<'a>> {
        (index < self.len()).then(|| {
            let encoding = usize::from(u16_at(self.row(index), 2));
            self.decode(self.name_at(index), encoding)
        })
    }

    fn decode(&self, name: &'a str, encoding: usize) -> Event<'a> {
        let at = encoding * ENCODING_BYTES;
        let entry = self.tables.encodings.get(at..at + ENCODING_BYTES).unwrap_or(&[]);
        let (event, umask, flags) = (u16_at(entry, 0), u16_at(entry, 2), u8_at(entry, 5));
        let way_count = (u8_at(entry, 7) & !DOUBTFUL).clamp(1, MAX_WAYS as u8);
        let mut way_slots = [Way::default(); MAX_WAYS];
        let ways = way_slots.iter_mut().take(way_count.into());
        for (index, way) in (usize::from(u16_at(entry, 8))..).zip(ways) {
            let at = index * WAY_BYTES;
            let or = |value: u16, default| if value == NONE_16 { default } else { value };
            let msr = u32_at(self.tables.ways, at + 4);
            *way = Way {
                event: or(u16_at(self.tables.ways, at), event),
                umask: or(u16_at(self.tables.ways, at + 2), umask),
                msr: (msr != NONE_32).then_some(msr),
            };
        }
        let fixed = u8_at(entry, 6);
        Event {
            name,
            way_slots,
            way_count,
            cmask: u8_at(entry, 4),
            invert: flags & flag::INVERT != 0,
            edge: flags & flag::EDGE != 0,
            any_thread: flags & flag::ANY_THREAD != 0,
            counters: u32_at(entry, 12),
            fixed: (fixed != NONE_8).then_some(fixed),
            msr_value: u64_at(entry, 16),
            precise: match flags >> flag::PRECISE_AT {
                0 => Precise::No,
                1 => Precise::Capable,
                _ => Precise::Only,
            },
            data_address: flags & flag::DATA_ADDRESS != 0,
            taken_alone: flags & flag::TAKEN_ALONE != 0,
            deprecated: flags & flag::DEPRECATED != 0,
            errata: self.tables.texts.get(usize::from(u16_at(entry, 10))),
            doubtful: u8_at(entry, 7) & DOUBTFUL != 0,
        }
    }

    /// All events, sorted by folded name.
    #[must_use]
    pub fn events(&self) -> EventIter<'a> {
        self.range(0..self.len())
    }

    /// All events that can be programmed with this event code, whatever their unit mask. Only those
    /// are unpacked; a fixed counter's event has no code.
    pub fn with_code(&self, code: u16) -> impl Iterator<Item = Event<'a>> + use<'a> {
        self.with_code_if(code, |_| true)
    }

    /// The same, without those whose value for the extra MSR (0: none) `keep` does not want.
    pub(crate) fn with_code_if<K: Fn(u64) -> bool>(
        &self,
        code: u16,
        keep: K,
    ) -> impl Iterator<Item = Event<'a>> + use<'a, K> {
        let core = *self;
        (0..self.len())
            .filter(move |index| core.may_have_code(*index, code, &keep))
            .filter_map(move |index| core.event(index))
            .filter(move |event| {
                event.fixed.is_none() && event.ways().iter().any(|way| way.event == code)
            })
    }

    /// A quick look at a row: `false` means that none of its ways has this code.
    fn may_have_code(&self, index: usize, code: u16, keep: impl Fn(u64) -> bool) -> bool {
        let at = usize::from(u16_at(self.row(index), 2)) * ENCODING_BYTES;
        let several_ways = u8_at(self.tables.encodings, at + 7) & !DOUBTFUL > 1;
        (several_ways || u16_at(self.tables.encodings, at) == code)
            && keep(u64_at(self.tables.encodings, at + 16))
    }

    fn range(&self, rows: Range<usize>) -> EventIter<'a> {
        EventIter { core: *self, rows }
    }

    /// The first row that `order` does not place before what is looked for, and the comparisons
    /// made.
    fn lower_bound(&self, order: impl Fn(&str) -> Ordering) -> (usize, u32) {
        let (mut low, mut high, mut comparisons) = (0, self.len(), 0);
        while low < high {
            let middle = low + (high - low) / 2;
            comparisons += 1;
            if order(self.name_at(middle)) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, comparisons)
    }

    /// The event with this name. Case and the separators `.`, `_`, `:` and `-` do not matter,
    /// unless two names of the table differ in nothing else: then the one that is spelled like
    /// `name` comes before the others, and a name in use before a deprecated one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Event<'a>> {
        self.find_counted(name).event
    }

    /// As [`Self::find`], and tells the cost: a binary search, so at most log2(events) + 1
    /// comparisons, and one or two more for the names that remain. That is 14 in the largest table,
    /// which has 2,344 events.
    #[must_use]
    pub fn find_counted(&self, name: &str) -> Found<'a> {
        let (first, mut comparisons) = self.lower_bound(|row| fold::compare(row, name));
        let mut best: Option<(u8, usize)> = None;
        for index in first..self.len() {
            comparisons += 1;
            let row = self.name_at(index);
            if !fold::same(row, name) {
                break;
            }
            let deprecated = self.event(index).is_some_and(|event| event.deprecated);
            let rank = if row.eq_ignore_ascii_case(name) { 0 } else { 1 + u8::from(deprecated) };
            if best.is_none_or(|(lowest, _)| rank < lowest) {
                best = Some((rank, index));
            }
        }
        Found { event: best.and_then(|(_, index)| self.event(index)), comparisons }
    }

    /// All events whose name starts with `prefix`, spelling forgiven: the unit masks of an event.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> EventIter<'a> {
        let (first, _) = self.lower_bound(|row| fold::compare_prefix(row, prefix));
        let mut last = first;
        while last < self.len()
            && fold::compare_prefix(self.name_at(last), prefix) == Ordering::Equal
        {
            last += 1;
        }
        self.range(first..last)
    }

    /// Up to `most` names that a misspelled `name` may have meant, the likeliest first.
    #[must_use]
    pub fn suggest(&self, name: &str, most: usize) -> Vec<&'a str> {
        suggest::nearest((0..self.len()).map(|index| self.name_at(index)), name, most)
    }

    /// What a generic name means here; `None`: this table has no such event.
    #[must_use]
    pub fn generic(&self, generic: Generic) -> Option<Event<'a>> {
        let column = generic.table_column()?;
        let cell = self.index * self.tables.generic_names + column;
        let row = u16_at(self.tables.generics, 2 * cell);
        (row != NONE_16).then(|| self.event(row.into())).flatten()
    }

    /// The extra MSRs that its events use, and what may be written to them.
    #[must_use]
    pub fn extra_msrs(&self) -> Vec<ExtraMsr> {
        let (first, count) = (u16_at(self.record(), 16), u16_at(self.record(), 18));
        (usize::from(first)..usize::from(first) + usize::from(count))
            .map(|index| ExtraMsr {
                address: u32_at(self.tables.msrs, index * MSR_BYTES),
                valid_bits: u64_at(self.tables.msrs, index * MSR_BYTES + 4),
            })
            .collect()
    }
}

/// Events in the order of their table.
#[derive(Clone, Debug)]
pub struct EventIter<'a> {
    core: Core<'a>,
    rows: Range<usize>,
}

impl<'a> Iterator for EventIter<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        self.rows.next().and_then(|index| self.core.event(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for EventIter<'_> {}
