//! Records of architectural PEBS: a header that states the groups, and after it the groups. A record may come in fragments,
//! each with a header of its own.
//!
//! The layouts are Linux's (`struct arch_pebs_header` and those after it in `perf_event.h`; their order, also that of the
//! vector registers, in `setup_arch_pebs_sample_data`). How sizes are rounded is not told there: up to 56 bytes after the
//! last group are taken as such.

mod encode;

use super::adaptive::{Adaptive, General, Words, snapshot};
use super::config::{BRANCH_WORDS, GENERAL_WORDS};
use super::record::{Access, Malformed};
use super::{BeyondXmm, Contents, Format, Groups};

/// Words of a header and of each group.
pub(super) const HEADER_WORDS: usize = 2;
pub(super) const BASIC_WORDS: usize = 6;
pub(super) const MEMORY_WORDS: usize = 8;
/// Those of other formats, the shadow stack's pointer, and a reserved one.
pub(super) const REGISTER_WORDS: usize = GENERAL_WORDS + 2;
/// In front of vector registers: XSTATE's components, and a reserved one.
pub(super) const STATE_WORDS: usize = 2;
/// In front of branch records: reserved, IA32_LBR_CTL, IA32_LBR_DEPTH, the last event record.
pub(super) const LAST_BRANCH_WORDS: usize = 6;
const DEPTH: usize = 2;
/// Words after the last group that are not contradiction.
const PADDING: usize = 7;

/// Header: size in bytes, bits 15:0; further fragments follow, 31; groups.
const SIZE: u64 = 0xffff;
const CONTINUED: u64 = 1 << 31;
/// Bits below are the size's and reserved ones. A header without any above is of nothing, and more follows.
const NOTHING_BELOW: u32 = 16;
/// Basic group: the retire latency in bits 15:0 is valid.
const LATENCY_VALID: u64 = 1 << 16;
/// 64BIT_MODE.
const MODE: u64 = 1 << 30;
/// Any of these bits: there is a group of counters, whose own header says of which.
const COUNTERS: u64 = 0x1f << 35;
/// What a header can state. Of another group the size would not be known.
const KNOWN: u64 = Contents::all().bits() | COUNTERS | CONTINUED | MODE | SIZE;

/// A record, its fragments put together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Architectural<'a> {
    /// What other formats have as well.
    pub common: Adaptive<'a>,
    /// The shadow stack's pointer, with the general registers.
    pub shadow_stack: Option<u64>,
    /// Vector registers beyond XMM.
    pub beyond: BeyondXmm<'a>,
    /// Fragments that it came in.
    pub fragments: u32,
}

/// One header.
#[derive(Clone, Copy)]
struct Header(u64);

impl Header {
    /// That at the front of `words`, and the words that it states, itself among them.
    fn read(words: &[u64]) -> Result<(Self, usize), Malformed> {
        let needed = HEADER_WORDS;
        let short = |needed| Malformed::Short {
            format: Format::Architectural.number(),
            needed,
            there: words.len(),
        };
        let &head = words.first().ok_or_else(|| short(needed))?;
        let bytes = head & SIZE;
        let count = bytes as usize / 8;
        if !bytes.is_multiple_of(8) || count < HEADER_WORDS {
            return Err(Malformed::Size { bytes });
        }
        if words.len() < count {
            return Err(short(count));
        }
        Ok((Self(head), count))
    }

    const fn contents(self) -> Contents {
        Contents::from_bits_retain(self.0)
    }

    /// Whether it has no group (Linux, `arch_pebs_record_continued`).
    const fn is_nothing(self) -> bool {
        self.0 >> NOTHING_BELOW == 0
    }

    const fn is_continued(self) -> bool {
        self.0 & CONTINUED != 0 || self.is_nothing()
    }

    const fn has(self, contents: Contents) -> bool {
        self.0 & contents.bits() != 0
    }
}

impl<'a> Architectural<'a> {
    /// The record at the front of `words`, and how many words it has; nothing if it is a header without groups, which is in
    /// front of a record.
    ///
    /// # Errors
    /// Neither. [`Self::skip`] says where the next one begins.
    pub fn decode(words: &'a [u64]) -> Result<(Option<Self>, usize), Malformed> {
        let (header, count) = Header::read(words)?;
        if header.is_nothing() {
            return Ok((None, count));
        }
        if !header.has(Contents::BASIC) {
            return Err(Malformed::Fragment { contents: header.0 });
        }
        let mut seen = Self::default();
        let (mut header, mut count, mut done) = (header, count, 0);
        loop {
            if !header.is_nothing() {
                seen.add(header, &words[done + HEADER_WORDS..done + count])?;
            }
            done += count;
            if !header.is_continued() {
                return Ok((Some(seen), done));
            }
            (header, count) = Header::read(&words[done..])?;
        }
    }

    /// The words that the record or fragment at the front of `words` has, by its header alone, with all of its fragments;
    /// all that are left if no header says where it ends.
    #[must_use]
    pub fn skip(words: &[u64]) -> usize {
        let mut done = 0;
        while let Ok((header, count)) = Header::read(&words[done..]) {
            done += count;
            if !header.is_continued() {
                return done;
            }
        }
        words.len()
    }

    /// Adds the groups of a fragment.
    fn add(&mut self, header: Header, groups: &'a [u64]) -> Result<(), Malformed> {
        let missing = Malformed::Contents { contents: header.0 };
        if header.0 & !KNOWN != 0 {
            return Err(missing);
        }
        let mut rest = Words(groups);
        let seen = &mut self.common;
        self.fragments += 1;
        if header.has(Contents::BASIC) {
            let &[ip, counters, tsc, latency, _, _] = rest.take::<BASIC_WORDS>().ok_or(missing)?;
            (seen.ip, seen.counters, seen.tsc) = (ip, counters, tsc);
            seen.retire_latency = (latency & LATENCY_VALID != 0).then_some(latency as u16);
        }
        if header.has(Contents::MEMORY) {
            let &[address, _, _, _, _, source, latency, transaction] =
                rest.take::<MEMORY_WORDS>().ok_or(missing)?;
            seen.access = Some(Access { address, source, latency, transaction });
        }
        if header.has(Contents::GENERAL) {
            let &[flags, next, ref registers @ .., shadow_stack, _] =
                rest.take::<REGISTER_WORDS>().ok_or(missing)?;
            seen.general = Some(General { flags, next, registers: *registers });
            self.shadow_stack = Some(shadow_stack);
        }
        if header.has(Contents::VECTORS) {
            rest.take::<STATE_WORDS>().ok_or(missing)?;
        }
        if header.has(Contents::XMM) {
            seen.vectors = Some(rest.take().ok_or(missing)?);
        }
        if header.has(Contents::YMM_UPPER) {
            self.beyond.ymm_upper = Some(rest.take().ok_or(missing)?);
        }
        if header.has(Contents::MASKS) {
            self.beyond.masks = Some(rest.take().ok_or(missing)?);
        }
        if header.has(Contents::ZMM_UPPER) {
            self.beyond.zmm_upper = Some(rest.take().ok_or(missing)?);
        }
        if header.has(Contents::ZMM_HIGH) {
            self.beyond.zmm_high = Some(rest.take().ok_or(missing)?);
        }
        if header.has(Contents::BRANCHES) {
            let ahead = rest.take::<LAST_BRANCH_WORDS>().ok_or(missing)?;
            let count = match header.contents().branches() {
                Some(count) => count,
                None => usize::try_from(ahead[DEPTH]).map_err(|_| missing)?,
            };
            let words = count.checked_mul(BRANCH_WORDS).ok_or(missing)?;
            seen.branches = rest.several(words).ok_or(missing)?.as_chunks().0;
        }
        if header.0 & COUNTERS != 0 {
            seen.snapshot = snapshot(&mut rest).ok_or(missing)?;
        }
        if rest.0.len() > PADDING {
            return Err(missing);
        }
        Ok(())
    }

    /// The groups that can be requested by [`super::DataConfig`].
    #[must_use]
    pub fn groups(&self) -> Groups {
        self.common.groups() | self.beyond.groups()
    }
}

#[cfg(test)]
mod tests;
