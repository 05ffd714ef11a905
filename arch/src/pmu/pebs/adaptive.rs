//! Adaptive records: a basic group, and after it the groups that its first word states, in the order of their bits.
//!
//! The layout is that of the SDM, vol. 3, 20.9.2.2 and the tables there; that of the counters' group is Linux's
//! (`struct pebs_cntr_header` and `setup_pebs_adaptive_sample_data`).

use super::config::{
    BASIC_WORDS, BRANCH_WORDS, COUNTER_HEADER_WORDS, GENERAL_WORDS, MEMORY_WORDS, METRICS_WORDS,
    VECTOR_WORDS,
};
use super::record::{Access, Malformed, REGISTERS, Record};
use super::{Format, Groups};

/// First word: contents in bits 31:0, retire latency in 47:32, size in bytes in 63:48.
const BRANCHES_AT: u32 = 24;
const LATENCY_AT: u32 = 32;
const SIZE_AT: u32 = 48;
/// Bits 31:24 of the contents: branch records, less one.
const BRANCHES: u32 = 0xff << BRANCHES_AT;
/// The metrics' mask in the header of the counters' group, where there are any.
const METRICS: u32 = 3;

/// General-purpose registers' group.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct General {
    /// RFLAGS.
    pub flags: u64,
    /// Address of the instruction after.
    pub next: u64,
    /// The registers after the instruction, in the order of their encoding.
    pub registers: [u64; REGISTERS],
}

/// A branch record, as the LBR registers of the processor have it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BranchRecord {
    /// FROM_IP.
    pub from: u64,
    /// TO_IP.
    pub to: u64,
    /// INFO.
    pub info: u64,
}

/// Values of counters at the time of the record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot<'a> {
    /// The general-purpose counters that are in it, as a bitmap.
    pub general: u32,
    /// The fixed counters that are in it, as a bitmap.
    pub fixed: u32,
    /// Their values, in the order of the bits, general-purpose ones first.
    pub values: &'a [u64],
    /// Slots and PERF_METRICS, if they are in it.
    pub metrics: Option<[u64; METRICS_WORDS]>,
}

/// An adaptive record, group by group.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Adaptive<'a> {
    /// Linear address of the instruction.
    pub ip: u64,
    /// The counters whose record it is, as bits of the global status.
    pub counters: u64,
    /// The TSC.
    pub tsc: u64,
    /// Core cycles from the retirement before to this one, where PERF_CAPABILITIES\[17\] says that there are any; `None`: an
    /// architectural record says that they are not valid.
    pub retire_latency: Option<u16>,
    /// The memory group.
    pub access: Option<Access>,
    /// The registers' group.
    pub general: Option<General>,
    /// XMM0 to XMM15, two words each, the lower one first.
    pub vectors: Option<&'a [u64; VECTOR_WORDS]>,
    /// Branch records, the newest first, three words each; empty if there are none.
    pub branches: &'a [[u64; BRANCH_WORDS]],
    /// The counters' group.
    pub snapshot: Option<Snapshot<'a>>,
}

/// Words that are taken from the front.
pub(super) struct Words<'a>(pub(super) &'a [u64]);

impl<'a> Words<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<&'a [u64; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn several(&mut self, count: usize) -> Option<&'a [u64]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Adaptive<'a> {
    /// The first record in `words`, of this format, and how many words it has.
    ///
    /// # Errors
    /// There is no record: too few words, a size that is none, a group that the format does not have, or groups that do
    /// not make up the size.
    pub fn decode(format: Format, words: &'a [u64]) -> Result<(Self, usize), Malformed> {
        let short =
            |needed| Malformed::Short { format: format.number(), needed, there: words.len() };
        let &[head, ip, counters, tsc, ..] = words else { return Err(short(BASIC_WORDS)) };
        let (bytes, contents) = (head >> SIZE_AT, head as u32);
        let size = bytes as usize / 8;
        if !bytes.is_multiple_of(8) || size < BASIC_WORDS {
            return Err(Malformed::Size { bytes });
        }
        let unknown = contents & !BRANCHES & !format.groups().bits();
        if unknown != 0 {
            return Err(Malformed::Unknown { format: format.number(), unknown });
        }
        let groups = Groups::from_bits_truncate(contents);
        let record = words.get(..size).ok_or_else(|| short(size))?;
        let mut rest = Words(&record[BASIC_WORDS..]);
        let branches = (contents >> BRANCHES_AT) as usize + 1;
        let missing = Malformed::Groups { contents, there: size };
        let mut seen = Self {
            ip,
            counters,
            tsc,
            retire_latency: Some((head >> LATENCY_AT) as u16),
            ..Self::default()
        };
        if groups.contains(Groups::MEMORY) {
            let &[address, source, latency, transaction] =
                rest.take::<MEMORY_WORDS>().ok_or(missing)?;
            seen.access = Some(Access { address, source, latency, transaction });
        }
        if groups.contains(Groups::GENERAL) {
            let &[flags, next, ref registers @ ..] = rest.take::<GENERAL_WORDS>().ok_or(missing)?;
            seen.general = Some(General { flags, next, registers: *registers });
        }
        if groups.contains(Groups::VECTORS) {
            seen.vectors = Some(rest.take().ok_or(missing)?);
        }
        if groups.contains(Groups::BRANCHES) {
            let all = rest.several(BRANCH_WORDS * branches).ok_or(missing)?;
            seen.branches = all.as_chunks().0;
        }
        if groups.intersects(Groups::COUNTERS | Groups::METRICS) {
            seen.snapshot = snapshot(&mut rest).ok_or(missing)?;
        }
        if !rest.0.is_empty() {
            return Err(missing);
        }
        Ok((seen, size))
    }

    /// The branch records, the newest first.
    pub fn branch_records(&self) -> impl ExactSizeIterator<Item = BranchRecord> + use<'a> {
        self.branches.iter().map(|&[from, to, info]| BranchRecord { from, to, info })
    }

    /// What every format has of it.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            ip: self.ip,
            counters: self.counters,
            registers: self.general.map(|general| general.registers),
            access: self.access,
            tsc: Some(self.tsc),
        }
    }
}

/// The group, if the words suffice; inside, nothing if its header names nothing.
pub(super) fn snapshot<'a>(rest: &mut Words<'a>) -> Option<Option<Snapshot<'a>>> {
    let &[masks, metrics] = rest.take::<COUNTER_HEADER_WORDS>()?;
    let (general, fixed) = (masks as u32, (masks >> 32) as u32);
    let values = rest.several((general.count_ones() + fixed.count_ones()) as usize)?;
    let metrics = match metrics as u32 {
        METRICS => Some(*rest.take()?),
        _ => None,
    };
    let is_empty = values.is_empty() && metrics.is_none();
    Some((!is_empty).then_some(Snapshot { general, fixed, values, metrics }))
}

impl<'a> Adaptive<'a> {
    /// The groups that it has.
    #[must_use]
    pub fn groups(&self) -> Groups {
        let mut groups = Groups::empty();
        groups.set(Groups::MEMORY, self.access.is_some());
        groups.set(Groups::GENERAL, self.general.is_some());
        groups.set(Groups::VECTORS, self.vectors.is_some());
        groups.set(Groups::BRANCHES, !self.branches.is_empty());
        if let Some(snapshot) = &self.snapshot {
            groups.set(Groups::COUNTERS, snapshot.general | snapshot.fixed != 0);
            groups.set(Groups::METRICS, snapshot.metrics.is_some());
        }
        groups
    }

    /// The record's words, as a processor writes them. At most 256 branch records.
    #[must_use]
    pub fn encode(&self) -> alloc::vec::Vec<u64> {
        let mut words = alloc::vec![0, self.ip, self.counters, self.tsc];
        if let Some(Access { address, source, latency, transaction }) = self.access {
            words.extend([address, source, latency, transaction]);
        }
        if let Some(General { flags, next, registers }) = self.general {
            words.extend([flags, next]);
            words.extend(registers);
        }
        words.extend(self.vectors.into_iter().flatten());
        words.extend(self.branches.iter().flatten());
        if let Some(snapshot) = self.snapshot {
            let masks = u64::from(snapshot.fixed) << 32 | u64::from(snapshot.general);
            words.extend([masks, if snapshot.metrics.is_some() { METRICS.into() } else { 0 }]);
            words.extend(snapshot.values);
            words.extend(snapshot.metrics.into_iter().flatten());
        }
        let entries = (self.branches.len() as u64).saturating_sub(1) << BRANCHES_AT;
        let latency = u64::from(self.retire_latency.unwrap_or(0)) << LATENCY_AT;
        let size = 8 * words.len() as u64;
        words[0] = u64::from(self.groups().bits()) | entries | latency | size << SIZE_AT;
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 3, 20.9.2.2: bits 31:24 of the first word.
    #[test]
    fn the_branches_are_where_the_manual_has_them() {
        assert_eq!(BRANCHES, 0xff00_0000);
    }
}
