//! A report in EFI variables, for a machine that clears its memory when it is reset.
//!
//! Firmware has little room for variables: often 64 KiB for all of them, and at most a few KiB for one. So the report is
//! compressed, in pieces (LZ4 blocks) that need little memory, and cut into parts. An [`Index`] states how many parts there are
//! and what they come to. It is written last: parts without one are half-written.

use crate::region::After;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::checksum::crc32;
use thiserror::Error;

/// Vendor of the variables: made by chance for barecount.
pub const VENDOR: [u8; 16] = [
    0x9e, 0x51, 0x6c, 0x0b, 0x27, 0xd4, 0x4e, 0x4c, 0x9b, 0x1f, 0x6a, 0x83, 0xc7, 0x5d, 0x2e, 0x90,
];
/// Non-volatile, and within reach before and after the boot loader (UEFI specification 8.2.1).
pub const ATTRIBUTES: u32 = 7;
/// Name of the index.
pub const INDEX: &str = "BarecountReport";
/// Name of what the application remembers of the machine.
pub const NOTE: &str = "BarecountNote";
/// Most parts: more than any firmware has room for.
pub const MAX_PARTS: usize = 256;
/// Bytes of a part, if the firmware takes so many in one variable.
pub const PART_BYTES: usize = 4096;
/// What firmware stores in addition to a variable's content: its header and its name, at most.
pub const OVERHEAD_BYTES: usize = 128;
/// What is compressed at once: LZ4 looks back so far.
const PIECE_BYTES: usize = 64 << 10;
/// Larger reports do not get into variables.
const MAX_BYTES: u64 = 64 << 20;
const MAGIC: [u8; 8] = *b"BCINDEX1";
const INDEX_BYTES: usize = 8 + 8 * 4 + 4;

/// What the parts come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Index {
    /// CRC-32 of the image's ramdisk that made the report.
    pub image: u32,
    /// How many parts there are.
    pub parts: u32,
    /// Their bytes in all.
    pub packed: u32,
    /// CRC-32 of these.
    pub packed_crc: u32,
    /// Bytes of the report.
    pub bytes: u32,
    /// CRC-32 of the report.
    pub crc: u32,
    /// What the machine is to do then.
    pub after: After,
}

/// Why variables give no report.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum VariablesError {
    /// The index is damaged, or of another version.
    #[error("the variable {INDEX} is not an index of this version")]
    Index,
    /// A part is missing or has another size.
    #[error("the parts have {found} bytes in total, the index states {announced}")]
    Parts { found: usize, announced: u32 },
    /// Something has changed.
    #[error("the checksum is {found:08x}, the index says {announced:08x}")]
    Checksum { found: u32, announced: u32 },
    /// What was compressed cannot be unpacked.
    #[error("they cannot be unpacked")]
    Packed,
}

/// Name of a part.
#[must_use]
pub fn part(number: usize) -> String {
    format!("{INDEX}{number:03}")
}

/// The numbers of the parts that there are, in the order in which they are deleted: the highest first. They are looked for from 0
/// on, so what a power cut leaves of them is found and deleted at the next boot.
pub fn to_delete(is_there: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
    let count = (0..MAX_PARTS).take_while(|number| is_there(*number)).count();
    (0..count).rev()
}

/// The report, compressed.
#[must_use]
pub fn pack(report: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    for piece in report.chunks(PIECE_BYTES) {
        let block = lz4_flex::block::compress(piece);
        packed.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        packed.extend_from_slice(&(block.len() as u32).to_le_bytes());
        packed.extend_from_slice(&block);
    }
    packed
}

fn unpack(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut report = Vec::new();
    while !packed.is_empty() {
        let (head, rest) = packed.split_at_checked(8)?;
        let word = |at: usize| Some(u32::from_le_bytes(head[at..at + 4].try_into().ok()?) as usize);
        let (bytes, block) = (word(0)?, word(4)?);
        let (block, rest) = rest.split_at_checked(block)?;
        (bytes <= PIECE_BYTES).then_some(())?;
        report.extend(lz4_flex::block::decompress(block, bytes).ok()?);
        packed = rest;
    }
    Some(report)
}

impl Index {
    /// That of `report`, whose compressed form is cut into parts of `part_bytes`. `None`: it is too long.
    #[must_use]
    pub fn new(
        image: u32,
        report: &[u8],
        packed: &[u8],
        part_bytes: usize,
        after: After,
    ) -> Option<Self> {
        let parts = packed.len().div_ceil(part_bytes);
        (parts <= MAX_PARTS && report.len() as u64 <= MAX_BYTES).then_some(())?;
        Some(Self {
            image,
            parts: parts as u32,
            packed: packed.len() as u32,
            packed_crc: crc32(packed),
            bytes: report.len() as u32,
            crc: crc32(report),
            after,
        })
    }

    /// As it is in its variable.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let after = match self.after {
            After::Show => 0,
            After::Leave => 1,
            After::PowerOff => 2,
        };
        let words = [
            self.image,
            self.parts,
            self.packed,
            self.packed_crc,
            self.bytes,
            self.crc,
            after,
            0_u32,
        ];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let crc = crc32(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Self, VariablesError> {
        let fields: &[u8; INDEX_BYTES] = bytes.try_into().map_err(|_| VariablesError::Index)?;
        let word = |index: usize| {
            let at = 8 + 4 * index;
            u32::from_le_bytes(fields[at..at + 4].try_into().expect("four bytes"))
        };
        let after = [After::Show, After::Leave, After::PowerOff].get(word(6) as usize).copied();
        let is_right = fields[..8] == MAGIC && word(8) == crc32(&fields[..INDEX_BYTES - 4]);
        let after = after.filter(|_| is_right && word(1) as usize <= MAX_PARTS);
        let after = after.ok_or(VariablesError::Index)?;
        let (image, parts, packed) = (word(0), word(1), word(2));
        Ok(Self { image, parts, packed, packed_crc: word(3), bytes: word(4), crc: word(5), after })
    }

    /// The report that `packed`, the parts one after the other, holds.
    ///
    /// # Errors
    /// They are not those of this index, or not whole.
    pub fn open(&self, packed: &[u8]) -> Result<Vec<u8>, VariablesError> {
        if packed.len() != self.packed as usize {
            let (found, announced) = (packed.len(), self.packed);
            return Err(VariablesError::Parts { found, announced });
        }
        let same = |found: u32, announced: u32| {
            if found == announced {
                Ok(())
            } else {
                Err(VariablesError::Checksum { found, announced })
            }
        };
        same(crc32(packed), self.packed_crc)?;
        let report = unpack(packed).ok_or(VariablesError::Packed)?;
        same(crc32(&report), self.crc)?;
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report() -> Vec<u8> {
        let line = |n: u32| {
            format!("{{\"seq\":{n},\"type\":\"result\",\"name\":\"add {n}\",\"crc\":\"0\"}}\r\n")
        };
        (0..4000).flat_map(|n| line(n).into_bytes()).collect()
    }

    #[test]
    fn a_report_of_several_pieces_comes_back_and_is_a_third_as_long_between() {
        let report = report();
        let packed = pack(&report);
        assert!(
            report.len() > 3 * PIECE_BYTES && packed.len() < report.len() / 3,
            "{}",
            packed.len()
        );
        let index = Index::new(7, &report, &packed, PART_BYTES, After::PowerOff).unwrap();
        assert_eq!(index.parts as usize, packed.chunks(PART_BYTES).count());
        let read = Index::read(&index.to_bytes()).unwrap();
        assert_eq!(read, index);
        assert_eq!(read.open(&packed), Ok(report));
    }

    #[test]
    fn parts_of_two_reports_are_never_mixed() {
        let (one, other) = (report(), report()[..200_000].to_vec());
        let (first, second) = (pack(&one), pack(&other));
        let index = Index::new(7, &one, &first, PART_BYTES, After::Show).unwrap();
        let mut mixed = first.clone();
        mixed[..PART_BYTES].copy_from_slice(&second[second.len() - PART_BYTES..]);
        assert!(matches!(index.open(&mixed), Err(VariablesError::Checksum { .. })));
        assert!(matches!(index.open(&first[..PART_BYTES]), Err(VariablesError::Parts { .. })));
    }

    #[test]
    fn parts_that_a_power_cut_left_while_they_were_deleted_are_deleted_later() {
        for count in [0, 1, 7, MAX_PARTS] {
            for cut in 0..=count {
                let mut there = vec![true; count];
                for most in [cut, MAX_PARTS] {
                    let before = there.clone();
                    let is_there = |number: usize| before.get(number).is_some_and(|one| *one);
                    to_delete(is_there).take(most).for_each(|number| there[number] = false);
                }
                assert!(!there.contains(&true), "cut after {cut} of {count}: {there:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at in 0..INDEX_BYTES, to: u8, part: prop::sample::Index) {
            let report = report();
            let packed = pack(&report);
            let index = Index::new(7, &report, &packed, PART_BYTES, After::Show).unwrap();
            let mut bytes = index.to_bytes();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            prop_assert_eq!(Index::read(&bytes), Err(VariablesError::Index));
            let mut changed = packed.clone();
            let at = part.index(changed.len());
            changed[at] ^= 1;
            prop_assert!(index.open(&changed).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes);
            let _ = Index::read(&bytes);
        }
    }
}
