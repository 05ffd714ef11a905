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
}
