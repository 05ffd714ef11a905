//! Comparing the names in a directory with the one that is sought.
//!
//! A name that is not eight characters, a dot and three more is in entries of 13 characters before the file's own,
//! the last part first; each has the checksum of the short name that it belongs to.

use super::ENTRY_BYTES;

/// Characters of a long name in an entry.
const PART: usize = 13;
/// Where they stand.
const PLACES: [usize; PART] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
/// Attributes of such an entry, and of those that are not files: volume label, folder.
const LONG: u8 = 0x0f;
const NO_FILE: u8 = 0x08 | 0x10;
/// Marks an entry whose file was deleted.
const DELETED: u8 = 0xe5;
/// Marks the first of a long name's entries, its last part.
const LAST: u8 = 0x40;

/// What is sought, and how much of the name that is being read agrees with it.
pub(super) struct Sought<'a> {
    name: &'a str,
    /// Part that has to come next, counted down, and the checksum; 0: all parts came.
    expected: Option<(u8, u8)>,
}

impl<'a> Sought<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Self { name, expected: None }
    }

    /// Takes the next entry of the directory. Whether it is the file's own.
    pub(super) fn is(&mut self, entry: &[u8; ENTRY_BYTES]) -> bool {
        if entry[0] == DELETED {
            self.expected = None;
            return false;
        }
        if entry[11] & 0x3f == LONG {
            self.expected = self.long(entry);
            return false;
        }
        let long = self.expected.take() == Some((0, checksum(entry)));
        entry[11] & NO_FILE == 0 && (long || self.is_short(entry))
    }

    /// What has to follow this part of a long name, if it agrees.
    fn long(&self, entry: &[u8; ENTRY_BYTES]) -> Option<(u8, u8)> {
        let (number, sum) = (entry[0] & 0x3f, entry[13]);
        let parts = self.name.len().div_ceil(PART);
        let is_next = if entry[0] & LAST != 0 {
            usize::from(number) == parts
        } else {
            self.expected == Some((number, sum))
        };
        let at = usize::from(number.checked_sub(1)?) * PART;
        let rest = self.name.as_bytes().get(at..)?;
        // After the name stands 0, then only ones.
        let agrees = PLACES.iter().enumerate().all(|(index, &place)| {
            let found = u16::from_le_bytes([entry[place], entry[place + 1]]);
            match rest.get(index) {
                Some(byte) => u8::try_from(found).is_ok_and(|f| f.eq_ignore_ascii_case(byte)),
                None if index == rest.len() => found == 0,
                None => found == 0xffff,
            }
        });
        (is_next && agrees).then_some((number - 1, sum))
    }

    fn is_short(&self, entry: &[u8; ENTRY_BYTES]) -> bool {
        let (base, extension) = self.name.split_once('.').unwrap_or((self.name, ""));
        let same =
            |field: &[u8], text: &str| field.trim_ascii_end().eq_ignore_ascii_case(text.as_bytes());
        same(&entry[..8], base) && same(&entry[8..11], extension)
    }
}

fn checksum(entry: &[u8; ENTRY_BYTES]) -> u8 {
    entry[..11].iter().fold(0u8, |sum, &byte| sum.rotate_right(1).wrapping_add(byte))
}
