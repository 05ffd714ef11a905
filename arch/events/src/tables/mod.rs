//! The event tables of all processors, read in place out of one block of bytes.
//!
//! [`Tables::open`] checks the block once: magic, version, length, checksum, and that every index
//! in it points somewhere. After that nothing is copied or unpacked; names are `&str` into the
//! block. [`layout`] says what stands where. A damaged block is refused with a [`TableError`]; raw
//! events, fixed counters and architectural events work without any table.

mod check;
mod core;
mod error;
pub mod fold;
pub mod layout;
mod lookup;
mod read;
mod suggest;

pub use self::core::{Core, EventIter, Found};
pub use self::error::{NoCore, TableError};
pub use self::lookup::ProcessorEntry;
pub use self::suggest::nearest;

use self::layout::{
    COUNTS_AT, CRC_AT, Counts, ENCODING_BYTES, HEADER_BYTES, LENGTH_AT, MAGIC, MSR_BYTES,
    PROCESSOR_BYTES, ROW_BYTES, TABLE_BYTES, VERSION, VERSION_AT, WAY_BYTES,
};
use self::read::{Strings, u16_at, u32_at};
use crate::checksum::crc32;

/// An event table file that has passed all checks. Copying it copies a few references.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    names: Strings<'a>,
    texts: Strings<'a>,
    encodings: &'a [u8],
    ways: &'a [u8],
    rows: &'a [u8],
    tables: &'a [u8],
    generics: &'a [u8],
    generic_names: usize,
    processors: &'a [u8],
    msrs: &'a [u8],
}

impl<'a> Tables<'a> {
    /// Checks a block of bytes and makes it readable. Bytes after the table are ignored: boot
    /// loaders round lengths up.
    ///
    /// # Errors
    /// Says which check failed, in the order magic, version, length, checksum, content.
    pub fn open(bytes: &'a [u8]) -> Result<Self, TableError> {
        if bytes.len() < HEADER_BYTES {
            return Err(TableError::NoHeader(bytes.len()));
        }
        if bytes[..MAGIC.len()] != MAGIC {
            let mut found = [0; MAGIC.len()];
            found.copy_from_slice(&bytes[..MAGIC.len()]);
            return Err(TableError::Magic(found));
        }
        let version = u16_at(bytes, VERSION_AT);
        if version != VERSION {
            return Err(TableError::Version { found: version });
        }
        let announced = u32_at(bytes, LENGTH_AT) as usize;
        if announced > bytes.len() || announced < HEADER_BYTES {
            return Err(TableError::Truncated { announced, present: bytes.len() });
        }
        let bytes = &bytes[..announced];
        let announced = u32_at(bytes, CRC_AT);
        let found = crc32(&bytes[..CRC_AT], &bytes[CRC_AT + 4..]);
        if announced != found {
            return Err(TableError::Checksum { announced, found });
        }
        let tables = Self::sections(bytes)?;
        check::check(&tables)?;
        Ok(tables)
    }

    fn sections(bytes: &'a [u8]) -> Result<Self, TableError> {
        let mut counts = [0; 11];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = u32_at(bytes, COUNTS_AT + 4 * index);
        }
        let counts = Counts::from_array(counts);
        let mut rest = &bytes[HEADER_BYTES..];
        let mut take = |section: &'static str, entries: u64, size: usize| {
            usize::try_from(entries)
                .ok()
                .and_then(|entries| entries.checked_mul(size))
                .and_then(|length| rest.split_at_checked(length))
                .map(|(section, behind)| {
                    rest = behind;
                    section
                })
                .ok_or(inconsistent(section, 0, "it is longer than the file"))
        };
        let strings = |section, offsets, text| {
            Strings::new(offsets, text).ok_or(inconsistent(section, 0, "its offsets are wrong"))
        };
        let name_offsets = take("names", u64::from(counts.names) + 1, 4)?;
        let name_text = take("names", counts.name_bytes.into(), 1)?;
        let text_offsets = take("texts", u64::from(counts.texts) + 1, 4)?;
        let text_text = take("texts", counts.text_bytes.into(), 1)?;
        let cells = u64::from(counts.tables) * u64::from(counts.generics);
        let tables = Self {
            names: strings("names", name_offsets, name_text)?,
            texts: strings("texts", text_offsets, text_text)?,
            encodings: take("encodings", counts.encodings.into(), ENCODING_BYTES)?,
            ways: take("ways", counts.ways.into(), WAY_BYTES)?,
            rows: take("rows", counts.rows.into(), ROW_BYTES)?,
            tables: take("tables", counts.tables.into(), TABLE_BYTES)?,
            generics: take("generics", cells, 2)?,
            generic_names: counts.generics as usize,
            processors: take("processors", counts.processors.into(), PROCESSOR_BYTES)?,
            msrs: take("MSRs", counts.msrs.into(), MSR_BYTES)?,
        };
        if !rest.is_empty() {
            return Err(inconsistent("file", 0, "bytes are left over"));
        }
        Ok(tables)
    }

    /// The tables, one for each core microarchitecture.
    pub fn cores(&self) -> impl Iterator<Item = Core<'a>> + use<'a> {
        let tables = *self;
        (0..tables.tables.len() / TABLE_BYTES).map(move |index| Core::new(tables, index))
    }

    /// The table with this name, such as `skylakex`; spelling is forgiving.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Core<'a>> {
        self.cores().find(|core| fold::same(core.name(), name))
    }
}

fn inconsistent(section: &'static str, index: usize, what: &'static str) -> TableError {
    TableError::Inconsistent { section, index, what }
}

#[cfg(all(test, feature = "pack"))]
mod tests;
