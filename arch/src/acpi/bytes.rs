//! Little-endian numbers in a table, zero where the table ends; and its entries.

pub(super) fn word(table: &[u8], at: usize) -> u32 {
    table.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("4")))
}

pub(super) fn half(table: &[u8], at: usize) -> u16 {
    table.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes(bytes.try_into().expect("2")))
}

/// The entries from `at` on, each of which begins with its kind and its length, one byte each. It ends before one that is not whole,
/// or so short that it would be met again.
pub(super) fn entries(table: &[u8], at: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = table.get(at..).unwrap_or_default();
    core::iter::from_fn(move || {
        let length = usize::from(*rest.get(1)?);
        let (entry, behind) =
            rest.split_at_checked(length).filter(|(entry, _)| entry.len() >= 2)?;
        rest = behind;
        Some(entry)
    })
}
