//! The one checksum of both wire forms.

use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};

/// Sixteen tables, for sixteen bytes at once: a line's checksum is made between two items. They take 16 KiB of the image.
type Tables = Table<16>;

/// CRC-32/ISO-HDLC, as in Ethernet and gzip.
static CRC: Crc<u32, Tables> = Crc::<u32, Tables>::new(&CRC_32_ISO_HDLC);

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

/// The CRC-32 of bytes that come one after the other.
#[derive(Clone)]
pub struct Running(Digest<'static, u32, Tables>);

impl Running {
    /// That of no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self(CRC.digest())
    }

    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    ///
    /// ```
    /// let mut running = protocol::checksum::Running::new();
    /// running.update(b"12345");
    /// running.update(b"6789");
    /// assert_eq!(running.value(), 0xcbf4_3926);
    /// ```
    #[must_use]
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

impl Default for Running {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32/ISO-HDLC (catalogue of parametrised CRC algorithms), in one piece and in several.
    #[test]
    fn a_checksum_of_pieces_is_that_of_the_whole() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut running = Running::default();
        assert_eq!(running.value(), crc32(b""));
        for piece in [&b"1234"[..], b"", b"56789"] {
            running.update(piece);
        }
        assert_eq!(running.value(), 0xcbf4_3926);
    }
}
