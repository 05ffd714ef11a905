//! The binary table: what stands where. The packer writes it and the reader reads it by these
//! numbers.
//!
//! All numbers are little endian; nothing is aligned. A header, then the sections in this order:
//!
//! | section | an entry is |
//! | --- | --- |
//! | names | `u32` offsets, one more than names, then the bytes. Sorted by folded spelling |
//! | texts | the same, for errata, table names, sources, versions and roles; not sorted |
//! | encodings | [`ENCODING_BYTES`]: event `u16`, umask `u16`, cmask `u8`, flags `u8`, fixed `u8`, ways `u8` with [`DOUBTFUL`], first way `u16`, errata text `u16`, counters `u32`, MSR value `u64` |
//! | ways | [`WAY_BYTES`]: event `u16`, umask `u16`, MSR `u32`; all ones: as in the encoding, no MSR |
//! | rows | [`ROW_BYTES`]: name `u16`, encoding `u16`; sorted by name inside a table |
//! | tables | [`TABLE_BYTES`]: name, source, version texts `u16` each, vendor `u16`, first row and rows `u32`, first MSR and MSRs `u16` |
//! | generics | for each table one `u16` for each generic name: a row of the table, or [`NONE_16`] |
//! | processors | [`PROCESSOR_BYTES`]: vendor `u8`, core type `u8`, family `u16`, models and steppings from and to `u8` each, native model `u32`, table `u16`, role text `u16` |
//! | MSRs | [`MSR_BYTES`]: address `u32`, valid bits `u64` |
//!
//! Rows of different tables share their name and their encoding: 19,830 rows have 6,580 names and
//! 7,193 encodings. That is what makes it small; nothing is compressed, so nothing needs unpacking.

/// First bytes of a table file.
pub const MAGIC: [u8; 8] = *b"BCEVENT\n";
/// Version of this layout. A reader refuses every other.
pub const VERSION: u16 = 2;
/// Where the header's fields stand.
pub const VERSION_AT: usize = 8;
/// Length of the whole file in bytes.
pub const LENGTH_AT: usize = 12;
/// CRC-32 of everything but these four bytes.
pub const CRC_AT: usize = 16;
/// Eleven `u32` counts, see [`Counts`].
pub const COUNTS_AT: usize = 20;
/// The header's length.
pub const HEADER_BYTES: usize = COUNTS_AT + 4 * COUNTS;
const COUNTS: usize = 11;

/// Length of an encoding.
pub const ENCODING_BYTES: usize = 24;
/// Length of a way.
pub const WAY_BYTES: usize = 8;
/// Length of a row.
pub const ROW_BYTES: usize = 4;
/// Length of a table's record.
pub const TABLE_BYTES: usize = 20;
/// Length of a processor's record.
pub const PROCESSOR_BYTES: usize = 16;
/// Length of an MSR's record.
pub const MSR_BYTES: usize = 12;

/// "None" in a `u16`.
pub const NONE_16: u16 = u16::MAX;
/// "None" in a `u32`.
pub const NONE_32: u32 = u32::MAX;
/// "None" in a fixed counter's number.
pub const NONE_8: u8 = u8::MAX;

/// Bits of an encoding's flags; bits 7:6 are the precision.
pub mod flag {
    /// Invert.
    pub const INVERT: u8 = 1 << 0;
    /// Edge.
    pub const EDGE: u8 = 1 << 1;
    /// AnyThread.
    pub const ANY_THREAD: u8 = 1 << 2;
    /// A PEBS record holds the data address.
    pub const DATA_ADDRESS: u8 = 1 << 3;
    /// Taken alone.
    pub const TAKEN_ALONE: u8 = 1 << 4;
    /// Deprecated.
    pub const DEPRECATED: u8 = 1 << 5;
    /// Where the precision starts.
    pub const PRECISE_AT: u32 = 6;
}

/// In an encoding's number of ways: the sources do not agree on it.
pub const DOUBTFUL: u8 = 1 << 7;

/// How many entries each section has, in the order of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Names.
    pub names: u32,
    /// Bytes of all names.
    pub name_bytes: u32,
    /// Texts.
    pub texts: u32,
    /// Bytes of all texts.
    pub text_bytes: u32,
    /// Encodings.
    pub encodings: u32,
    /// Ways.
    pub ways: u32,
    /// Rows of all tables.
    pub rows: u32,
    /// Tables.
    pub tables: u32,
    /// Generic names of a table.
    pub generics: u32,
    /// Processors.
    pub processors: u32,
    /// Extra MSRs of all tables.
    pub msrs: u32,
}

impl Counts {
    /// The header's form.
    #[must_use]
    pub fn to_array(self) -> [u32; COUNTS] {
        [
            self.names,
            self.name_bytes,
            self.texts,
            self.text_bytes,
            self.encodings,
            self.ways,
            self.rows,
            self.tables,
            self.generics,
            self.processors,
            self.msrs,
        ]
    }

    /// Reads the header's form.
    #[must_use]
    pub fn from_array(counts: [u32; COUNTS]) -> Self {
        let [
            names,
            name_bytes,
            texts,
            text_bytes,
            encodings,
            ways,
            rows,
            tables,
            generics,
            processors,
            msrs,
        ] = counts;
        Self {
            names,
            name_bytes,
            texts,
            text_bytes,
            encodings,
            ways,
            rows,
            tables,
            generics,
            processors,
            msrs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table file of another build is read by these: eleven counts of four bytes after byte 20, six flags from bit 0 on.
    #[test]
    fn the_header_and_the_flags_are_those_of_version_2() {
        assert_eq!((VERSION, HEADER_BYTES), (2, 64));
        assert_eq!([flag::INVERT, flag::EDGE, flag::ANY_THREAD], [1, 2, 4]);
        assert_eq!([flag::DATA_ADDRESS, flag::TAKEN_ALONE, flag::DEPRECATED], [8, 16, 32]);
        assert_eq!(DOUBTFUL, 0x80);
    }
}
