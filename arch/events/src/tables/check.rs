//! Whether a table's records hold together, after its checksum was found right. A few compares for
//! each record; the checksum before it costs more.

use super::layout::{
    DOUBTFUL, ENCODING_BYTES, NONE_16, PROCESSOR_BYTES, ROW_BYTES, TABLE_BYTES, WAY_BYTES,
};
use super::read::{u8_at, u16_at, u32_at};
use super::{TableError, Tables, fold, inconsistent};
use crate::event::MAX_WAYS;
use crate::generic;
use core::cmp::Ordering;

pub(super) fn check(tables: &Tables<'_>) -> Result<(), TableError> {
    names(tables)?;
    encodings(tables)?;
    table_records(tables)?;
    rows(tables)?;
    processors(tables)
}

fn names(tables: &Tables<'_>) -> Result<(), TableError> {
    let mut before = tables.names.get(0);
    for index in 1..tables.names.len() {
        let name = tables.names.get(index);
        let order = fold::compare(before, name).then_with(|| before.cmp(name));
        if order != Ordering::Less {
            return Err(inconsistent("names", index, "it is out of order"));
        }
        before = name;
    }
    Ok(())
}

fn encodings(tables: &Tables<'_>) -> Result<(), TableError> {
    let ways = tables.ways.len() / WAY_BYTES;
    for (index, entry) in tables.encodings.chunks_exact(ENCODING_BYTES).enumerate() {
        let (count, first) =
            (usize::from(u8_at(entry, 7) & !DOUBTFUL), usize::from(u16_at(entry, 8)));
        if count == 0 || count > MAX_WAYS || first + count > ways {
            return Err(inconsistent("encodings", index, "its ways do not exist"));
        }
        if usize::from(u16_at(entry, 10)) >= tables.texts.len() {
            return Err(inconsistent("encodings", index, "its errata do not exist"));
        }
        if u8_at(entry, 5) >> super::layout::flag::PRECISE_AT > 2 {
            return Err(inconsistent("encodings", index, "its precision is unknown"));
        }
    }
    Ok(())
}

fn table_records(tables: &Tables<'_>) -> Result<(), TableError> {
    if tables.generic_names != generic::TABLE_NAMES {
        return Err(inconsistent("generics", 0, "the number of names differs"));
    }
    let (rows, msrs) =
        (tables.rows.len() / ROW_BYTES, tables.msrs.len() / super::layout::MSR_BYTES);
    for (index, record) in tables.tables.chunks_exact(TABLE_BYTES).enumerate() {
        let wrong = |what| Err(inconsistent("tables", index, what));
        if (0..6).step_by(2).any(|at| usize::from(u16_at(record, at)) >= tables.texts.len()) {
            return wrong("a text does not exist");
        }
        if u16_at(record, 6) > 1 {
            return wrong("its vendor is unknown");
        }
        let (first, count) = (u32_at(record, 8) as usize, u32_at(record, 12) as usize);
        if first.checked_add(count).is_none_or(|end| end > rows) {
            return wrong("its rows do not exist");
        }
        if usize::from(u16_at(record, 16)) + usize::from(u16_at(record, 18)) > msrs {
            return wrong("its MSRs do not exist");
        }
        for generic in 0..tables.generic_names {
            let cell = u16_at(tables.generics, 2 * (index * tables.generic_names + generic));
            if cell != NONE_16 && usize::from(cell) >= count {
                return wrong("a generic name refers to a row that does not exist");
            }
        }
    }
    Ok(())
}

fn rows(tables: &Tables<'_>) -> Result<(), TableError> {
    let (names, encodings) = (tables.names.len(), tables.encodings.len() / ENCODING_BYTES);
    for (index, row) in tables.rows.chunks_exact(ROW_BYTES).enumerate() {
        if usize::from(u16_at(row, 0)) >= names || usize::from(u16_at(row, 2)) >= encodings {
            return Err(inconsistent("rows", index, "its name or encoding does not exist"));
        }
    }
    for record in tables.tables.chunks_exact(TABLE_BYTES) {
        let (first, count) = (u32_at(record, 8) as usize, u32_at(record, 12) as usize);
        for row in first + 1..first.saturating_add(count) {
            let name = |row: usize| u16_at(tables.rows, ROW_BYTES * row);
            if name(row - 1) >= name(row) {
                return Err(inconsistent("rows", row, "it is out of order"));
            }
        }
    }
    Ok(())
}

fn processors(tables: &Tables<'_>) -> Result<(), TableError> {
    let count = tables.tables.len() / TABLE_BYTES;
    for (index, entry) in tables.processors.chunks_exact(PROCESSOR_BYTES).enumerate() {
        if usize::from(u16_at(entry, 12)) >= count {
            return Err(inconsistent("processors", index, "its table does not exist"));
        }
        if usize::from(u16_at(entry, 14)) >= tables.texts.len() || u8_at(entry, 0) > 1 {
            return Err(inconsistent("processors", index, "its vendor or role is unknown"));
        }
    }
    Ok(())
}
