//! The checksum of the binary table.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// CRC-32/ISO-HDLC, as in Ethernet and gzip, with one byte table: 1 KiB in the firmware image.
const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The CRC-32 of two pieces, as if they stood in one.
#[must_use]
pub fn crc32(first: &[u8], second: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(first);
    digest.update(second);
    digest.finalize()
}
