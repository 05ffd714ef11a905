//! Where the list of tables is: ACPI specification 6.5, 5.2.5.3.

use super::bytes::word;

/// Bytes of a root pointer, of revision 2 and later.
pub const RSDP_BYTES: usize = 36;
const SIGNATURE: &[u8] = b"RSD PTR ";
/// Offsets in it.
const REVISION: usize = 15;
const RSDT: usize = 16;
const XSDT: usize = 24;

/// The list's physical address, and the revision that tells the width of its entries: 0 for 4 bytes. The XSDT counts from revision 2
/// on, and only if its address is not 0: some firmware leaves that so (ACPICA, `acpi_tb_get_root_table_entry`, `tbutils.c`). `None`: it is
/// no root pointer, or has neither.
#[must_use]
pub fn list(rsdp: &[u8; RSDP_BYTES]) -> Option<(u8, u64)> {
    let revision = rsdp[REVISION];
    let [old, low, high] = [RSDT, XSDT, XSDT + 4].map(|at| u64::from(word(rsdp, at)));
    let list = match high << 32 | low {
        new if revision > 1 && new != 0 => (revision, new),
        _ => (0, old),
    };
    (rsdp.starts_with(SIGNATURE) && list.1 != 0).then_some(list)
}

/// Bytes of the header that all tables begin with (5.2.6).
const HEADER_BYTES: u32 = 36;

/// Whether an entry of the list, and the length in the header that lies there, are those of a table. Some firmware leaves null entries,
/// and what lies at address 0 is no table (ACPICA, `acpi_tb_parse_root_table`, `tbutils.c`).
#[must_use]
pub const fn leads_to_table(entry: usize, length: u32) -> bool {
    entry != 0 && length >= HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rsdp(revision: u8, rsdt: u32, xsdt: u64) -> [u8; RSDP_BYTES] {
        let mut bytes = [0; RSDP_BYTES];
        bytes[..8].copy_from_slice(SIGNATURE);
        bytes[REVISION] = revision;
        bytes[RSDT..RSDT + 4].copy_from_slice(&rsdt.to_le_bytes());
        bytes[XSDT..XSDT + 8].copy_from_slice(&xsdt.to_le_bytes());
        bytes
    }

    #[test]
    fn i7_a_root_pointer_without_an_xsdt_leads_to_the_rsdt() {
        assert_eq!(list(&rsdp(2, 0x7fe0_0000, 0x1_7fe0_1000)), Some((2, 0x1_7fe0_1000)));
        assert_eq!(list(&rsdp(2, 0x7fe0_0000, 0)), Some((0, 0x7fe0_0000)));
        // What follows the 20 bytes of an old one is not its own.
        for old in [0, 1] {
            assert_eq!(list(&rsdp(old, 0x7fe0_0000, 0x1234)), Some((0, 0x7fe0_0000)));
        }
        assert_eq!(list(&rsdp(2, 0, 0)), None);
        let mut other = rsdp(2, 0x7fe0_0000, 0x7fe0_1000);
        other[0] = b'X';
        assert_eq!(list(&other), None);
    }

    #[test]
    fn i7_a_null_entry_is_no_table_whatever_lies_at_address_0() {
        // What a BIOS leaves there: the first vectors of its interrupt table.
        assert!(!leads_to_table(0, 0xf000_ff53));
        let tables = [0x7fe0_1000, 0, 0x7fe0_2000, 0].into_iter();
        let read: Vec<usize> = tables.filter(|&entry| leads_to_table(entry, 244)).collect();
        assert_eq!(read, [0x7fe0_1000, 0x7fe0_2000]);
        assert_eq!([35, 36].map(|length| leads_to_table(0x7fe0_1000, length)), [false, true]);
    }
}
