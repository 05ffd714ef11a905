//! The partition table of an MBR disk: four entries of 16 bytes at offset 446 of the first sector.

use crate::SECTOR;

const ENTRIES: usize = 446;
const ENTRY_BYTES: usize = 16;
const ACTIVE: u8 = 0x80;
/// Offset of the first sector's number in an entry.
const FIRST_SECTOR: usize = 8;

/// First sector of the active partition.
#[must_use]
pub fn active(sector: &[u8; SECTOR]) -> Option<u64> {
    let entries = sector[ENTRIES..ENTRIES + 4 * ENTRY_BYTES].chunks_exact(ENTRY_BYTES);
    let mut first = entries.filter(|entry| entry[0] == ACTIVE).map(|entry| {
        u32::from_le_bytes([
            entry[FIRST_SECTOR],
            entry[FIRST_SECTOR + 1],
            entry[FIRST_SECTOR + 2],
            entry[FIRST_SECTOR + 3],
        ])
    });
    first.next().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_partition_is_found_wherever_it_stands() {
        let mut sector = [0; SECTOR];
        assert_eq!(active(&sector), None);
        sector[ENTRIES + 16 + FIRST_SECTOR] = 7;
        assert_eq!(active(&sector), None);
        sector[ENTRIES + 48] = ACTIVE;
        sector[ENTRIES + 48 + FIRST_SECTOR..][..4].copy_from_slice(&2048u32.to_le_bytes());
        assert_eq!(active(&sector), Some(2048));
    }
}
