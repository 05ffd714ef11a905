//! Little-endian numbers in a table. Zero where the table ends.

pub(super) fn word(table: &[u8], at: usize) -> u32 {
    table.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("4")))
}

pub(super) fn half(table: &[u8], at: usize) -> u16 {
    table.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes(bytes.try_into().expect("2")))
}
