//! Changes of ACPI's tables. ACPI specification 6.5, 5.2.6: all bytes of a table add up to 0.

/// Where a table's checksum is.
const CHECKSUM: usize = 9;
/// A device in AML is a PNP0103, an HPET: Name(_HID, EISAID("PNP0103")), as compilers write it (20.2.5.1, 19.3.4).
const IS_HPET: &[u8] = b"\x08_HID\x0c\x41\xd0\x01\x03";
/// PNP0C02: what the firmware keeps for itself, with its place.
const IS_RESERVED: &[u8] = b"\x08_HID\x0c\x41\xd0\x0c\x02";

/// Writes `bytes` to `table` at `at`. Nothing where the table is shorter.
pub fn put(table: &mut [u8], at: usize, bytes: &[u8]) {
    let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let Some(place) = table.get_mut(at..at + bytes.len()) else { return };
    let more = sum(bytes).wrapping_sub(sum(place));
    place.copy_from_slice(bytes);
    if let Some(checksum) = table.get_mut(CHECKSUM) {
        *checksum = checksum.wrapping_sub(more);
    }
}

/// Makes memory that is set aside of the HPET that `table`, of AML, describes.
pub fn reserve_hpet(table: &mut [u8]) {
    let found = table.windows(IS_HPET.len()).position(|window| window == IS_HPET);
    if let Some(at) = found {
        put(table, at, IS_RESERVED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_hpet_becomes_reserved_memory() {
        let mut table = [&[0; 50][..], IS_HPET, &[1; 20]].concat();
        let whole = table.clone();
        reserve_hpet(&mut table);
        assert_eq!(table[50..60], *IS_RESERVED);
        assert_eq!((&table[..9], &table[60..]), (&whole[..9], &whole[60..]));
        let again = table.clone();
        reserve_hpet(&mut table);
        assert_eq!(table, again);
    }

    proptest! {
        #[test]
        fn the_sum_stays(
            mut table in prop::collection::vec(any::<u8>(), 36..99), at in 10usize..120, bytes in any::<[u8; 4]>(),
        ) {
            let sum = |table: &[u8]| table.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            let before = sum(&table);
            put(&mut table, at, &bytes);
            prop_assert_eq!(sum(&table), before);
            prop_assert!(at + 4 > table.len() || table[at..at + 4] == bytes);
        }
    }
}
