//! Taking records out.

use super::store::Area;
use super::{Adaptive, Format, Malformed, Record, Store, decode};

/// What finds a record at the front of the words: how many it has.
type Each<'a> = dyn FnMut(&[u64], u64) -> Result<usize, Malformed> + 'a;

/// What a handler empties a [`Store`] with.
#[derive(Clone, Debug)]
pub struct Drain {
    area: *mut Area,
    format: Format,
    /// Words of a record.
    words: usize,
    /// The counters that write records, as bits of the global status.
    pub counters: u64,
    /// Records taken out.
    pub records: u64,
    /// Drains that found the buffer full, so that records may have been lost.
    pub full: u64,
    /// Drains that found something that is no record, and gave the rest of the buffer up.
    pub malformed: u64,
}

impl Drain {
    /// For the records of `counters` (bits of the global status) in `store`, which has to outlive it.
    #[must_use]
    pub fn new(store: &mut Store, counters: u64) -> Self {
        let (format, words, area) = (store.format(), store.record_words(), store.area());
        Self { area, format, words, counters, records: 0, full: 0, malformed: 0 }
    }

    /// What the records are.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Everything counted to 0, the buffer empty.
    pub fn clear(&mut self) {
        (self.records, self.full, self.malformed) = (0, 0, 0);
        self.rewind();
    }

    fn rewind(&mut self) {
        // SAFETY: as in `run`.
        unsafe { (&raw mut (*self.area).index).write_volatile((*self.area).base) };
    }

    /// Takes every record out, in the order in which they were written, with the counters that it is of, and its branch records,
    /// the newest first. Those of formats that do not tell are of all that write any. To be called while counters stand, or an index that moves meanwhile is
    /// lost.
    #[inline]
    pub fn run(&mut self, mut each: impl FnMut(&Record, u64, &[[u64; 3]])) {
        let format = self.format;
        self.take(&mut |words, ours| {
            let (record, count, branches) = match format.is_adaptive() {
                true => {
                    let (seen, count) = Adaptive::decode(format, words)?;
                    (seen.record(), count, seen.branches)
                }
                false => {
                    let (record, count) = decode(format, words)?;
                    (record, count, &[][..])
                }
            };
            let named = record.counters & ours;
            each(&record, if named == 0 { ours } else { named }, branches);
            Ok(count)
        });
    }

    /// As [`Self::run`], with all groups of adaptive records. Other records count as malformed.
    pub fn run_groups(&mut self, each: &mut dyn FnMut(&Adaptive<'_>)) {
        let format = self.format;
        self.take(&mut |words, _| {
            let (record, count) = Adaptive::decode(format, words)?;
            each(&record);
            Ok(count)
        });
    }

    /// Takes records from the front of the words that are there, until none is left or `each` finds none. It says how many
    /// words its record has, and gets the counters that write any.
    fn take(&mut self, each: &mut Each<'_>) {
        // SAFETY: the store outlives this, by `new`; the processor writes to it, so it is read as memory that changes.
        // The index lies between base and maximum.
        let (mut words, full) = unsafe {
            let area = self.area;
            let base = (&raw const (*area).base).read_volatile();
            let index = (&raw const (*area).index).read_volatile();
            let maximum = (&raw const (*area).maximum).read_volatile();
            let end = index.min(maximum).max(base);
            let count = (end - base) as usize / 8;
            let room = (maximum - end) as usize / 8;
            (core::slice::from_raw_parts(base as *const u64, count), room < self.words)
        };
        if words.is_empty() {
            return;
        }
        self.full += u64::from(full);
        while !words.is_empty() {
            let Ok(count) = each(words, self.counters) else {
                self.malformed += 1;
                break;
            };
            self.records += 1;
            words = &words[count..];
        }
        self.rewind();
    }
}
