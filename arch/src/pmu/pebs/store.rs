//! Where records go: the debug store, or the buffer of architectural PEBS.

use super::{BufferBase, BufferIndex, Contents, DataConfig, Format};
use crate::pmu::capabilities::Counter;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::offset_of;

/// What the buffer of architectural PEBS is aligned to.
const PAGE: u64 = 4096;

/// What the buffer is filled with.
const UNTOUCHED: u64 = 0x5ebb_0ff5_e7ed_5a17;

/// Reset values that the area has room for: of 32 general-purpose counters, then of 16 fixed ones. Before format 5 it is 8
/// and 4, at the front.
const RESETS: usize = 32 + 16;

/// The buffer management area, with the 64-bit fields of DTES64 (SDM vol. 3, figure 18-8; Linux, `struct debug_store`).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Area {
    /// Branch trace store; not used.
    branches: [u64; 4],
    /// Base of the records.
    pub(super) base: u64,
    /// Where the next record goes.
    pub(super) index: u64,
    /// The first byte after the buffer.
    pub(super) maximum: u64,
    /// The record at which an interrupt is requested.
    pub(super) threshold: u64,
    resets: [u64; RESETS],
}

const _: () = assert!(offset_of!(Area, base) == 0x20 && offset_of!(Area, resets) == 0x40);

/// Memory for records, and the area that describes it to the processor. Has to stay where it is while PEBS is on.
///
/// Architectural PEBS has no such area: registers say what is in it here.
#[derive(Debug)]
pub struct Store {
    area: Box<Area>,
    /// Written to by the processor; some records more than it is told of.
    buffer: Vec<u64>,
    format: Format,
    config: DataConfig,
}

impl Store {
    /// Room for `records`, at least 2, of which the interrupt comes at `threshold`: the number of records that are there
    /// when it is requested, between 1 and `records`. What comes while it waits needs room after it.
    #[must_use]
    pub fn new(format: Format, records: usize, threshold: usize) -> Self {
        let config = if format.has_groups() { DataConfig::SAMPLES } else { DataConfig::BASIC };
        Self::sized(format, config, [records, threshold, 1])
    }

    /// The same for records with other groups. Those that the format does not have are left out.
    #[must_use]
    pub fn with_groups(
        format: Format,
        config: DataConfig,
        records: usize,
        threshold: usize,
    ) -> Self {
        Self::with_spare(format, config, records, threshold, 1)
    }

    /// The same with memory for `spare` records, at least 1, after the buffer: so many may a PMU that passes its end write, and change
    /// nothing else.
    #[must_use]
    pub fn with_spare(
        format: Format,
        config: DataConfig,
        records: usize,
        threshold: usize,
        spare: usize,
    ) -> Self {
        let config = match format.has_groups() {
            true => DataConfig { groups: config.groups & format.groups(), ..config },
            false => DataConfig::BASIC,
        };
        Self::sized(format, config, [records, threshold, spare])
    }

    fn sized(format: Format, config: DataConfig, sizes: [usize; 3]) -> Self {
        let [records, threshold, spare] = sizes;
        let words = record_words(format, config);
        let records = records.max(2);
        let threshold = threshold.clamp(1, records);
        let bytes = 8 * (records * words) as u64;
        let (room, align) = match format {
            // No such buffer is larger than any that there is memory for.
            Format::Architectural => (BufferBase::size_for(bytes).unwrap_or(bytes), PAGE),
            _ => (bytes, 8),
        };
        // The spare ones, and what the alignment takes away.
        let buffer = vec![UNTOUCHED; (room + align) as usize / 8 - 1 + spare.max(1) * words];
        let base = (buffer.as_ptr() as u64).next_multiple_of(align);
        let at = |count: usize| base + 8 * (count * words) as u64;
        let area = Area {
            base,
            index: base,
            maximum: base + room,
            threshold: at(threshold),
            branches: [0; 4],
            resets: [0; RESETS],
        };
        Self { area: Box::new(area), buffer, format, config }
    }

    /// The groups of its records, if they have groups.
    #[must_use]
    pub fn config(&self) -> DataConfig {
        self.config
    }

    /// Words of a record.
    #[must_use]
    pub fn record_words(&self) -> usize {
        record_words(self.format, self.config)
    }

    /// Whether something was written after the end that the processor was told of.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        let end = (self.area.maximum - self.buffer.as_ptr() as u64) as usize / 8;
        // SAFETY: words of the buffer, which the processor may have changed.
        self.buffer[end..]
            .iter()
            .any(|word| unsafe { (&raw const *word).read_volatile() } != UNTOUCHED)
    }

    /// What the records are.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The value for IA32_DS_AREA.
    #[must_use]
    pub fn address(&self) -> u64 {
        (&raw const *self.area) as u64
    }

    /// What `counter` starts from after each of its records. Counters that the area has no place for are left out.
    pub fn set_reset(&mut self, counter: Counter, value: u64) {
        let general = self.format.general_resets();
        let fixed = if general == 8 { 4 } else { 16 };
        let index = match counter {
            Counter::General(n) if usize::from(n) < general => usize::from(n),
            Counter::Fixed(n) if usize::from(n) < fixed => general + usize::from(n),
            Counter::General(_) | Counter::Fixed(_) => return,
        };
        self.area.resets[index] = value;
    }

    /// The value for IA32_PEBS_BASE. `None` if the records are not architectural.
    #[must_use]
    pub fn base(&self) -> Option<BufferBase> {
        let Area { base, maximum, .. } = *self.area;
        let place = BufferBase::of(BufferBase::physical(base), maximum - base)?;
        (self.format == Format::Architectural).then_some(place)
    }

    /// The value for IA32_PEBS_INDEX of an empty buffer.
    #[must_use]
    pub fn index(&self) -> BufferIndex {
        BufferIndex::empty(self.area.threshold - self.area.base)
    }

    /// What the CFG_C register of `counter` has to say before PEBS is on for it.
    #[must_use]
    pub fn contents(&self, counter: Counter) -> Contents {
        let reset = match counter {
            Counter::General(n) => self.area.resets.get(usize::from(n)),
            Counter::Fixed(n) => self.area.resets.get(32 + usize::from(n)),
        };
        Contents::of(self.config, counter, reset.copied())
    }

    pub(super) fn area(&mut self) -> *mut Area {
        &raw mut *self.area
    }
}

/// Words of a record.
fn record_words(format: Format, config: DataConfig) -> usize {
    match format {
        Format::Architectural => config.architectural_words(),
        format if format.is_adaptive() => config.words(),
        format => format.words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, `struct debug_store`: eight words, 32 of general-purpose counters and 16 of fixed ones.
    #[test]
    fn the_area_ends_behind_48_reset_values() {
        assert_eq!(RESETS, 48);
        assert_eq!(offset_of!(Area, resets) + 8 * 48, 448);
    }
}
