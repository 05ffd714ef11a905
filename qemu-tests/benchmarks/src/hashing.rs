//! Checksums and hashes.

/// Sum modulo 256.
#[must_use]
pub fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// FNV-1a of 32 bits.
#[must_use]
pub fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// FNV-1a of 64 bits.
#[must_use]
pub fn fnv64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// CRC-32 of IEEE 802.3, bit by bit.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// Adler-32.
#[must_use]
pub fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b): (u32, u32), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

/// Pearson's hash with a table that is computed.
#[must_use]
pub fn pearson(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |hash, byte| (hash ^ byte).wrapping_mul(167).wrapping_add(13))
}

/// Longest run of equal bytes.
#[must_use]
pub fn longest_run(bytes: &[u8]) -> usize {
    bytes.chunk_by(|one, other| one == other).map(<[u8]>::len).max().unwrap_or(0)
}
