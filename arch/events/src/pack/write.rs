//! The block itself. [`crate::tables::layout`] says what stands where.

use super::{PackError, Row, SourceTable, Sources};
use crate::checksum::crc32;
use crate::cpu::Vendor;
use crate::event::Way;
use crate::generic;
use crate::msr::ExtraMsr;
use crate::tables::fold;
use crate::tables::layout::{
    CRC_AT, Counts, DOUBTFUL, HEADER_BYTES, LENGTH_AT, MAGIC, NONE_8, NONE_16, NONE_32, VERSION,
    flag,
};
use std::collections::{BTreeSet, HashMap};

/// Entries that are stored once and referred to by number.
struct Pool<T> {
    entries: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Pool<T> {
    fn new() -> Self {
        Self { entries: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, entry: T) -> usize {
        *self.numbers.entry(entry).or_insert_with_key(|entry| {
            self.entries.push(entry.clone());
            self.entries.len() - 1
        })
    }
}

pub(super) fn small(what: &'static str, count: usize) -> Result<u16, PackError> {
    match u16::try_from(count) {
        Ok(number) if number != NONE_16 => Ok(number),
        _ => Err(PackError::TooMany { what, count, most: usize::from(NONE_16) - 1 }),
    }
}

fn large(what: &'static str, count: usize) -> Result<u32, PackError> {
    u32::try_from(count).map_err(|_| PackError::TooMany { what, count, most: u32::MAX as usize })
}

#[derive(Default)]
struct Sections {
    encodings: Vec<u8>,
    ways: Vec<u8>,
    rows: Vec<u8>,
    tables: Vec<u8>,
    generics: Vec<u8>,
    processors: Vec<u8>,
    msrs: Vec<u8>,
}

impl Sources {
    /// Makes the block.
    ///
    /// # Errors
    /// [`PackError::TooMany`] if there is more than the layout can number, [`PackError::NoTable`]
    /// and [`PackError::NoEvent`] if something refers to what is not there.
    pub fn pack(&self) -> Result<Vec<u8>, PackError> {
        let names: BTreeSet<&str> =
            self.tables.iter().flat_map(|table| &table.rows).map(|row| row.name.as_str()).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by(|a, b| fold::compare(a, b).then_with(|| a.cmp(b)));
        let numbers: HashMap<&str, usize> =
            names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let mut texts = Pool::new();
        let mut encodings = Pool::new();
        let mut ways = Pool::new();
        let mut sections = Sections::default();
        let (mut first_row, mut first_msr) = (0, 0);
        texts.number(String::new());
        for table in &self.tables {
            let mut rows: Vec<&Row> = table.rows.iter().collect();
            rows.sort_by_key(|row| numbers[row.name.as_str()]);
            for row in &rows {
                let first_way = ways.number(row.ways.clone());
                let encoding = encodings.number(encoding(row, first_way, &mut texts)?);
                push16(&mut sections.rows, small("names", numbers[row.name.as_str()])?);
                push16(&mut sections.rows, small("encodings", encoding)?);
            }
            let msrs = table.all_msrs();
            for msr in &msrs {
                push32(&mut sections.msrs, msr.address);
                sections.msrs.extend_from_slice(&msr.valid_bits.to_le_bytes());
            }
            for text in [&table.name, &table.source, &table.version] {
                push16(&mut sections.tables, small("texts", texts.number(text.clone()))?);
            }
            push16(&mut sections.tables, vendor_code(table.vendor).into());
            push32(&mut sections.tables, large("rows", first_row)?);
            push32(&mut sections.tables, large("rows", rows.len())?);
            push16(&mut sections.tables, small("MSRs", first_msr)?);
            push16(&mut sections.tables, small("MSRs", msrs.len())?);
            generics(&mut sections.generics, table, &rows)?;
            first_row += rows.len();
            first_msr += msrs.len();
        }
        self.processors(&mut sections.processors, &mut texts)?;
        let first_ways = write_ways(&mut sections.ways, &ways.entries)?;
        for mut encoding in encodings.entries {
            let list = u16::from_le_bytes([encoding[8], encoding[9]]);
            let first = small("ways", first_ways[usize::from(list)])?;
            encoding[8..10].copy_from_slice(&first.to_le_bytes());
            sections.encodings.extend_from_slice(&encoding);
        }
        let texts: Vec<&str> = texts.entries.iter().map(String::as_str).collect();
        join(&names, &texts, &sections)
    }

    fn processors(&self, out: &mut Vec<u8>, texts: &mut Pool<String>) -> Result<(), PackError> {
        for (index, range) in self.processors.iter().enumerate() {
            let table = self.tables.iter().position(|table| table.name == range.table);
            let table = table.ok_or_else(|| PackError::NoTable {
                file: "processors".to_string(),
                line: index as u64 + 1,
                table: range.table.clone(),
            })?;
            out.extend_from_slice(&[vendor_code(Some(range.vendor)), range.core_type.unwrap_or(0)]);
            push16(out, range.family);
            out.extend_from_slice(&[*range.models.start(), *range.models.end()]);
            out.extend_from_slice(&[*range.steppings.start(), *range.steppings.end()]);
            push32(out, range.native_model.unwrap_or(NONE_32));
            push16(out, small("tables", table)?);
            push16(out, small("texts", texts.number(range.role.clone()))?);
        }
        Ok(())
    }
}

impl SourceTable {
    /// Extra MSRs that its events use, or that `msr_bits.csv` gives it: an event that leaves the
    /// MSR's value to the user does not name the MSR. Those of unknown bits may hold anything.
    fn all_msrs(&self) -> Vec<ExtraMsr> {
        let used = self.rows.iter().flat_map(|row| &row.ways).filter_map(|way| way.msr);
        let addresses: BTreeSet<u32> =
            used.chain(self.msrs.iter().map(|msr| msr.address)).collect();
        addresses
            .into_iter()
            .map(|address| ExtraMsr {
                address,
                valid_bits: self
                    .msrs
                    .iter()
                    .find(|msr| msr.address == address)
                    .map_or(u64::MAX, |msr| msr.valid_bits),
            })
            .collect()
    }
}

fn vendor_code(vendor: Option<Vendor>) -> u8 {
    u8::from(vendor == Some(Vendor::Amd))
}

fn push16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn push32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// An encoding; `way_list` stands where the number of the first way will go.
fn encoding(row: &Row, way_list: usize, texts: &mut Pool<String>) -> Result<[u8; 24], PackError> {
    let mut flags = (row.precise as u8) << flag::PRECISE_AT;
    for (set, bit) in [
        (row.invert, flag::INVERT),
        (row.edge, flag::EDGE),
        (row.any_thread, flag::ANY_THREAD),
        (row.data_address, flag::DATA_ADDRESS),
        (row.taken_alone, flag::TAKEN_ALONE),
        (row.deprecated, flag::DEPRECATED),
    ] {
        flags |= if set { bit } else { 0 };
    }
    let first = row.ways.first().copied().unwrap_or_default();
    let mut out = Vec::with_capacity(24);
    push16(&mut out, first.event);
    push16(&mut out, first.umask);
    let fixed = row.fixed.unwrap_or(NONE_8);
    let doubtful = if row.doubtful { DOUBTFUL } else { 0 };
    out.extend_from_slice(&[row.cmask, flags, fixed, row.ways.len().max(1) as u8 | doubtful]);
    push16(&mut out, small("way lists", way_list)?);
    push16(&mut out, small("texts", texts.number(row.errata.clone()))?);
    push32(&mut out, row.counters);
    out.extend_from_slice(&row.msr_value.to_le_bytes());
    let mut fixed_size = [0; 24];
    fixed_size.copy_from_slice(&out);
    Ok(fixed_size)
}

/// Writes the lists and says where each starts. A list of one leaves event and unit mask to the
/// encoding, so that all events without an MSR share one list.
fn write_ways(out: &mut Vec<u8>, lists: &[Vec<Way>]) -> Result<Vec<usize>, PackError> {
    let mut written: Pool<Vec<(u16, u16, u32)>> = Pool::new();
    let mut starts: Vec<usize> = Vec::new();
    let mut next = 0;
    let mut firsts = Vec::new();
    for list in lists {
        let single = list.len() <= 1;
        let mut entries: Vec<_> = list
            .iter()
            .map(|way| {
                let code = if single { (NONE_16, NONE_16) } else { (way.event, way.umask) };
                (code.0, code.1, way.msr.unwrap_or(NONE_32))
            })
            .collect();
        if entries.is_empty() {
            entries.push((NONE_16, NONE_16, NONE_32));
        }
        let number = written.number(entries.clone());
        if number == starts.len() {
            starts.push(next);
            next += entries.len();
            for (event, umask, msr) in entries {
                push16(out, event);
                push16(out, umask);
                push32(out, msr);
            }
        }
        firsts.push(starts[number]);
    }
    small("ways", next)?;
    Ok(firsts)
}

fn generics(out: &mut Vec<u8>, table: &SourceTable, rows: &[&Row]) -> Result<(), PackError> {
    for number in 0..generic::TABLE_NAMES {
        let name = table.generics.get(number).and_then(Option::as_deref);
        let row = name.and_then(|name| rows.iter().position(|row| row.name == name));
        push16(out, row.map_or(Ok(NONE_16), |row| small("rows", row))?);
    }
    Ok(())
}

/// Header and sections.
fn join(names: &[&str], texts: &[&str], sections: &Sections) -> Result<Vec<u8>, PackError> {
    use crate::tables::layout as l;
    let bytes = |strings: &[&str]| strings.iter().map(|s| s.len()).sum::<usize>();
    let entries = |section: &[u8], size: usize| large("entries", section.len() / size);
    let tables = entries(&sections.tables, l::TABLE_BYTES)?;
    let counts = Counts {
        names: large("names", names.len())?,
        name_bytes: large("bytes", bytes(names))?,
        texts: large("texts", texts.len())?,
        text_bytes: large("bytes", bytes(texts))?,
        encodings: entries(&sections.encodings, l::ENCODING_BYTES)?,
        ways: entries(&sections.ways, l::WAY_BYTES)?,
        rows: entries(&sections.rows, l::ROW_BYTES)?,
        tables,
        generics: generic::TABLE_NAMES as u32,
        processors: entries(&sections.processors, l::PROCESSOR_BYTES)?,
        msrs: entries(&sections.msrs, l::MSR_BYTES)?,
    };
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    push16(&mut out, VERSION);
    out.resize(l::COUNTS_AT, 0);
    counts.to_array().into_iter().for_each(|count| push32(&mut out, count));
    debug_assert_eq!(out.len(), HEADER_BYTES);
    for strings in [names, texts] {
        let mut offset = 0;
        push32(&mut out, 0);
        for string in strings {
            offset += string.len();
            push32(&mut out, large("bytes", offset)?);
        }
        strings.iter().for_each(|string| out.extend_from_slice(string.as_bytes()));
    }
    for section in [
        &sections.encodings,
        &sections.ways,
        &sections.rows,
        &sections.tables,
        &sections.generics,
        &sections.processors,
        &sections.msrs,
    ] {
        out.extend_from_slice(section);
    }
    let length = large("bytes", out.len())?;
    out[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
    let crc = crc32(&out[..CRC_AT], &out[CRC_AT + 4..]);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    Ok(out)
}
