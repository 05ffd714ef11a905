//! Little-endian numbers and string pools out of bytes. Nothing here panics on any input.

/// The `N` bytes at `at`, or zeros beyond the end. [`super::Tables::open`] has checked every index
/// that the file's own records hold, so the zeros are never seen.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    at.checked_add(N)
        .and_then(|end| bytes.get(at..end))
        .and_then(|slice| slice.try_into().ok())
        .unwrap_or([0; N])
}

/// A byte.
pub(super) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Two bytes.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// Four bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// Eight bytes.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// Strings one after the other, and where each starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings<'a> {
    offsets: &'a [u8],
    text: &'a str,
}

impl<'a> Strings<'a> {
    /// Checks that the offsets rise, stay inside and cover `text`, and that `text` is ASCII.
    pub(super) fn new(offsets: &'a [u8], text: &'a [u8]) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let text = core::str::from_utf8(text).ok()?;
        let mut last = 0;
        for at in (0..offsets.len()).step_by(4) {
            let offset = u32_at(offsets, at);
            if offset < last || offset as usize > text.len() {
                return None;
            }
            last = offset;
        }
        (u32_at(offsets, 0) == 0 && last as usize == text.len()).then_some(Self { offsets, text })
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        (self.offsets.len() / 4).saturating_sub(1)
    }

    /// The string with this number; empty beyond the last.
    pub(super) fn get(&self, index: usize) -> &'a str {
        if index >= self.len() {
            return "";
        }
        let from = u32_at(self.offsets, 4 * index) as usize;
        let to = u32_at(self.offsets, 4 * index + 4) as usize;
        self.text.get(from..to).unwrap_or("")
    }
}
