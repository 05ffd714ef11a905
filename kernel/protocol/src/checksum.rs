//! The one checksum of both wire forms.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// CRC-32/ISO-HDLC, as in Ethernet and gzip. A 16-entry slice table would save time but not matter
/// beside a UART; the byte table keeps the firmware image small.
const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The CRC-32 of `bytes`.
///
/// ```
/// // The catalogue's check value.
/// assert_eq!(protocol::checksum::crc32(b"123456789"), 0xcbf4_3926);
/// ```
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32_parts(&[bytes])
}

/// The CRC-32 of several pieces, as if they stood in one.
#[must_use]
pub fn crc32_parts(parts: &[&[u8]]) -> u32 {
    let mut digest = CRC.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}
