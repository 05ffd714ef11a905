//! Taking records out.

use super::store::Area;
use super::{
    Adaptive, Architectural, BeyondXmm, BufferIndex, Format, Malformed, Record, Snapshot, Store,
    decode,
};
use crate::pmu::access::Registers;
use crate::pmu::numbers;
use crate::pmu::registers::GlobalStatus;

/// What finds a record at the front of the words: how many it has.
type Each<'a> = dyn FnMut(&[u64], u64) -> Result<usize, Malformed> + 'a;

/// The way to IA32_PEBS_INDEX.
pub trait Port {
    /// RDMSR.
    fn index(&mut self) -> BufferIndex;
    /// WRMSR.
    fn set_index(&mut self, index: BufferIndex);
}

impl Port for &mut dyn Registers {
    fn index(&mut self) -> BufferIndex {
        BufferIndex(self.rdmsr(numbers::PEBS_INDEX).unwrap_or(0))
    }

    fn set_index(&mut self, index: BufferIndex) {
        // The driver has written it before.
        let _ = self.wrmsr(numbers::PEBS_INDEX, index.0);
    }
}

/// A record as it is taken out.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// What every format has.
    pub record: Record,
    /// The counters that it is of, as bits of the global status; those of formats that do not tell are of all that write any.
    pub counters: u64,
    /// Its branch records, the newest first.
    pub branches: &'a [[u64; 3]],
    /// XMM0 to XMM15, two words each, the lower one first.
    pub vectors: Option<&'a [u64; 32]>,
    /// Vector registers beyond those.
    pub beyond: BeyondXmm<'a>,
    /// Values of counters.
    pub snapshot: Option<Snapshot<'a>>,
    /// Cycles from the retirement before to its own, if the record states them.
    pub retire_latency: Option<u16>,
}

impl<'a> Taken<'a> {
    fn of(seen: &Adaptive<'a>) -> Self {
        let record = seen.record();
        let (counters, branches, vectors) = (record.counters, seen.branches, seen.vectors);
        let (snapshot, retire_latency) = (seen.snapshot, seen.retire_latency);
        let beyond = BeyondXmm::default();
        Self { record, counters, branches, vectors, beyond, snapshot, retire_latency }
    }
}

/// What a handler empties a [`Store`] with.
#[derive(Clone, Debug)]
pub struct Drain {
    area: *mut Area,
    format: Format,
    /// Words of a record.
    words: usize,
    /// Bytes of an architectural buffer that have been looked at, and those that [`Self::fetch`] found after them.
    seen: [u64; 2],
    /// The counters that write records, as bits of the global status.
    pub counters: u64,
    /// Records taken out.
    pub records: u64,
    /// Drains that found the buffer full, so that records may have been lost.
    pub full: u64,
    /// Drains that found something that is not a record, and gave the rest of the buffer up. Of architectural records, whose
    /// headers state where the next one begins: how many were none.
    pub malformed: u64,
}

impl Drain {
    /// For the records of `counters` (bits of the global status) in `store`, which has to outlive it.
    #[must_use]
    pub fn new(store: &mut Store, counters: u64) -> Self {
        let (format, words, area) = (store.format(), store.record_words(), store.area());
        Self { area, format, words, seen: [0; 2], counters, records: 0, full: 0, malformed: 0 }
    }

    /// What the records are.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The bit of the global status that says that the threshold was reached.
    #[must_use]
    pub const fn status(&self) -> GlobalStatus {
        match self.format {
            Format::Architectural => GlobalStatus::RECORDS,
            _ => GlobalStatus::BUFFER,
        }
    }

    /// Everything counted to 0, the buffer empty. That of architectural PEBS is emptied by [`crate::pmu::Driver::empty_store`].
    pub fn clear(&mut self) {
        (self.records, self.full, self.malformed) = (0, 0, 0);
        self.seen = [0; 2];
        self.rewind();
    }

    fn rewind(&mut self) {
        // SAFETY: as in `take`.
        unsafe { (&raw mut (*self.area).index).write_volatile((*self.area).base) };
    }

    /// Whether there are records that [`Self::run`] has not taken out; if there are none, the buffer is empty from then on. It
    /// is to be asked until it finds none, so that what comes meanwhile is not lost.
    ///
    /// An index that is full stays so until it is written (Linux writes it whole after every drain).
    pub fn fetch(&mut self, mut port: impl Port) -> bool {
        if self.format != Format::Architectural {
            let (words, _) = self.written();
            return !words.is_empty();
        }
        let index = port.index();
        let [done, _] = self.seen;
        // SAFETY: as in `take`.
        let room = unsafe {
            (&raw const (*self.area).maximum).read() - (&raw const (*self.area).base).read()
        };
        let written = index.written().min(room);
        if written > done {
            self.seen[1] = written;
            return true;
        }
        if done > 0 || index.is_full() {
            self.full += u64::from(index.is_full());
            self.seen = [0; 2];
            port.set_index(index.emptied());
        }
        false
    }

    /// Takes every record out, in the order in which they were written; of architectural ones, those that [`Self::fetch`]
    /// found. To be called while counters stand, or an index that moves meanwhile is lost.
    #[inline]
    pub fn run(&mut self, mut each: impl FnMut(&Taken<'_>)) {
        let format = self.format;
        let mut named = |mut taken: Taken<'_>, ours: u64| {
            let of = taken.counters & ours;
            taken.counters = if of == 0 { ours } else { of };
            each(&taken);
        };
        if format == Format::Architectural {
            let ours = self.counters;
            return self.take_architectural(&mut |seen| {
                named(Taken { beyond: seen.beyond, ..Taken::of(&seen.common) }, ours);
            });
        }
        self.take(&mut |words, ours| {
            if format.is_adaptive() {
                let (seen, count) = Adaptive::decode(format, words)?;
                named(Taken::of(&seen), ours);
                return Ok(count);
            }
            let (record, count) = decode(format, words)?;
            let counters = record.counters;
            let (vectors, snapshot, retire_latency) = (None, None, None);
            let (branches, beyond) = (&[][..], BeyondXmm::default());
            let taken =
                Taken { record, counters, branches, vectors, beyond, snapshot, retire_latency };
            named(taken, ours);
            Ok(count)
        });
    }

    /// As [`Self::run`], with all groups of records that have groups. Other records count as malformed.
    pub fn run_groups(&mut self, each: &mut dyn FnMut(&Adaptive<'_>)) {
        let format = self.format;
        if format == Format::Architectural {
            return self.take_architectural(&mut |seen| each(&seen.common));
        }
        self.take(&mut |words, _| {
            let (record, count) = Adaptive::decode(format, words)?;
            each(&record);
            Ok(count)
        });
    }

    /// Takes architectural records out of what [`Self::fetch`] found. What is none is passed over by its header.
    pub fn take_architectural(&mut self, each: &mut dyn FnMut(&Architectural<'_>)) {
        let [done, end] = self.seen;
        self.seen[0] = end;
        // SAFETY: as in `take`; the bytes are in the buffer, by `fetch`.
        let mut words = unsafe {
            let base = (&raw const (*self.area).base).read();
            core::slice::from_raw_parts((base + done) as *const u64, (end - done) as usize / 8)
        };
        while !words.is_empty() {
            let count = match Architectural::decode(words) {
                Ok((seen, count)) => {
                    if let Some(seen) = seen {
                        self.records += 1;
                        each(&seen);
                    }
                    count
                }
                Err(_) => {
                    self.malformed += 1;
                    Architectural::skip(words)
                }
            };
            words = &words[count..];
        }
    }

    /// The words of the debug store's buffer that are written, and the room after them.
    fn written(&self) -> (&'static [u64], usize) {
        // SAFETY: the store outlives this, by `new`; the processor writes to it, so it is read as memory that changes.
        // The index lies between base and maximum.
        unsafe {
            let area = self.area;
            let base = (&raw const (*area).base).read_volatile();
            let index = (&raw const (*area).index).read_volatile();
            let maximum = (&raw const (*area).maximum).read_volatile();
            let end = index.min(maximum).max(base);
            let count = (end - base) as usize / 8;
            (core::slice::from_raw_parts(base as *const u64, count), (maximum - end) as usize / 8)
        }
    }

    /// Takes records from the front of the words that are there, until none is left or `each` finds none. It says how many
    /// words its record has, and gets the counters that write any.
    fn take(&mut self, each: &mut Each<'_>) {
        let (mut words, room) = self.written();
        if words.is_empty() {
            return;
        }
        self.full += u64::from(room < self.words);
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
