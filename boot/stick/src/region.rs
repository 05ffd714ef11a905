//! The memory in which the firmware leaves its report.
//!
//! | bytes | what | who writes it |
//! | --- | --- | --- |
//! | 0 to 1023 | [`Terms`]: magic, version, size, whose it is | the application, before the boot loader starts |
//! | 1024 to 2047, 2048 to 3071 | two `Progress`: how long the report is, its checksum, its state | the firmware, in turn |
//! | 3072 to 4095 | the item that runs: its index and name | the firmware, before each |
//! | from 4096 on | the report's lines | the firmware |
//!
//! Each of the three has a checksum of its own. The firmware writes a line, then the older `Progress`: at whatever
//! moment the machine is reset, one of the two is whole and reports lines that are there.

use crate::ALIGN;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::checksum::{Running, crc32};

/// Where the report begins.
pub const HEADER_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"BCREPORT";
const VERSION: u32 = 1;
const PROGRESS_AT: [usize; 2] = [1024, 2048];
const RUNNING_AT: usize = 3072;
/// Bytes of an item's name that are kept.
const NAME_BYTES: usize = 200;

/// What the application says to the firmware.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// CRC-32 of the ramdisk of the image: a report of another one is foreign.
    pub image: u32,
    /// Number of this boot, by chance.
    pub boot: u64,
    /// Bytes of the region.
    pub bytes: u64,
    /// Physical address of the firmware's SetVariable, or 0: the report is left in memory alone.
    pub set_variable: u64,
    /// Physical address of its QueryVariableInfo.
    pub query_variables: u64,
    /// GiB of memory that those functions want mapped one to one.
    pub mapped_gib: u64,
}

/// What the report is like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// The run continues, or was cut off.
    Running,
    /// The run is over: with the number of what the machine is to do then ([`After`]).
    Complete(After),
}

/// What the job wants the machine to do when the report is out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum After {
    /// Show the results.
    #[default]
    Show,
    /// Go on with what the machine boots else.
    Leave,
    /// Switch it off.
    PowerOff,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Progress {
    turn: u64,
    length: u64,
    crc: u32,
    state: State,
    /// Bytes that did not fit.
    lost: u64,
}

/// Little-endian fields with a checksum after them.
struct Fields(Vec<u8>);

impl Fields {
    fn with(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn put(mut self, place: &mut [u8]) {
        let crc = crc32(&self.0);
        self.0.extend_from_slice(&crc.to_le_bytes());
        place[..self.0.len()].copy_from_slice(&self.0);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// `bytes` before a checksum that is right.
fn checked(place: &[u8], bytes: usize) -> Option<&[u8]> {
    let fields = place.get(..bytes)?;
    (u32_at(place, bytes)? == crc32(fields)).then_some(fields)
}

impl Terms {
    const BYTES: usize = 8 + 2 * 4 + 5 * 8;

    fn write(&self, region: &mut [u8]) {
        let fields = Fields(Vec::new()).with(&MAGIC).with(&VERSION.to_le_bytes());
        let fields = fields.with(&self.image.to_le_bytes());
        let rest =
            [self.boot, self.bytes, self.set_variable, self.query_variables, self.mapped_gib];
        rest.iter().fold(fields, |fields, word| fields.with(&word.to_le_bytes())).put(region);
    }

    /// Those of `region`, or of its first page; `None`: it is none.
    #[must_use]
    pub fn read(region: &[u8]) -> Option<Self> {
        let fields = checked(region, Self::BYTES)?;
        (fields[..8] == MAGIC && u32_at(fields, 8)? == VERSION).then_some(())?;
        let word = |index: usize| u64_at(fields, 16 + 8 * index);
        Some(Self {
            image: u32_at(fields, 12)?,
            boot: word(0)?,
            bytes: word(1)?,
            set_variable: word(2)?,
            query_variables: word(3)?,
            mapped_gib: word(4)?,
        })
    }
}

impl State {
    fn number(self) -> u32 {
        match self {
            Self::Running => 0,
            Self::Complete(After::Show) => 1,
            Self::Complete(After::Leave) => 2,
            Self::Complete(After::PowerOff) => 3,
        }
    }

    fn of(number: u32) -> Option<Self> {
        let all = [After::Show, After::Leave, After::PowerOff].map(Self::Complete);
        [Self::Running].into_iter().chain(all).find(|state| state.number() == number)
    }
}

impl Progress {
    const BYTES: usize = 3 * 8 + 2 * 4;

    fn write(&self, place: &mut [u8]) {
        let fields = Fields(Vec::new()).with(&self.turn.to_le_bytes());
        let fields = fields.with(&self.length.to_le_bytes()).with(&self.lost.to_le_bytes());
        fields.with(&self.crc.to_le_bytes()).with(&self.state.number().to_le_bytes()).put(place);
    }

    fn read(place: &[u8]) -> Option<Self> {
        let fields = checked(place, Self::BYTES)?;
        let (turn, length, lost) = (u64_at(fields, 0)?, u64_at(fields, 8)?, u64_at(fields, 16)?);
        let (crc, state) = (u32_at(fields, 24)?, State::of(u32_at(fields, 28)?)?);
        Some(Self { turn, length, crc, state, lost })
    }
}

/// The region that lies in a piece of memory, which may hold other things of the same type: physical address and bytes. `at` is the
/// first page at an address.
pub fn find(
    piece: core::ops::Range<u64>,
    mut at: impl FnMut(u64) -> Option<&'static [u8]>,
) -> Option<(u64, usize)> {
    let mut address = piece.start.checked_next_multiple_of(ALIGN)?;
    while address.checked_add(HEADER_BYTES as u64)? <= piece.end {
        let terms = at(address).and_then(Terms::read);
        if let Some(Terms { bytes, .. }) = terms
            && (HEADER_BYTES as u64..=piece.end - address).contains(&bytes)
        {
            return Some((address, usize::try_from(bytes).ok()?));
        }
        address = address.checked_add(ALIGN)?;
    }
    None
}

/// Makes `region` ready for a report: it has none.
///
/// # Panics
/// If it is smaller than its header.
pub fn prepare(region: &mut [u8], terms: &Terms) {
    clear(region);
    let terms = Terms { bytes: region.len() as u64, ..*terms };
    let progress = Progress { turn: 1, length: 0, crc: 0, state: State::Running, lost: 0 };
    progress.write(&mut region[PROGRESS_AT[0]..]);
    terms.write(region);
}

/// Forgets what is in `region`.
///
/// # Panics
/// If it is smaller than its header.
pub fn clear(region: &mut [u8]) {
    region[..HEADER_BYTES].fill(0);
}

/// The firmware's side.
pub struct Writer<'a> {
    region: &'a mut [u8],
    /// What was promised to it.
    pub terms: Terms,
    progress: Progress,
    crc: Running,
    /// Makes sure that bytes are in memory and not in a cache alone.
    flush: fn(&[u8]),
}

impl<'a> Writer<'a> {
    /// The writer of a region that was [`prepare`]d and that nobody has written to; `None` if `region` is none.
    #[must_use]
    pub fn open(region: &'a mut [u8], flush: fn(&[u8])) -> Option<Self> {
        let terms = Terms::read(region)?;
        let progress = Progress::read(region.get(PROGRESS_AT[0]..)?)?;
        let is_new =
            progress.length == 0 && Progress::read(region.get(PROGRESS_AT[1]..)?).is_none();
        let fits = terms.bytes == region.len() as u64 && region.len() > HEADER_BYTES;
        (is_new && fits).then(|| Self { region, terms, progress, crc: Running::new(), flush })
    }

    /// Adds bytes to the report; those that do not fit are counted. A report begins with a record: line ends before it
    /// are left out.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.progress.length == 0 {
            let first = bytes.iter().position(|byte| !b"\r\n".contains(byte));
            bytes = &bytes[first.unwrap_or(bytes.len())..];
        }
        if bytes.is_empty() {
            return;
        }
        let at = HEADER_BYTES + self.progress.length as usize;
        match self.region.get_mut(at..at + bytes.len()).filter(|_| self.progress.lost == 0) {
            Some(place) => {
                place.copy_from_slice(bytes);
                (self.flush)(place);
                self.crc.update(bytes);
                self.progress.length += bytes.len() as u64;
                self.progress.crc = self.crc.value();
            }
            None => self.progress.lost += bytes.len() as u64,
        }
        self.note();
    }

    /// Notes the item that is about to run.
    pub fn running(&mut self, index: u32, name: &str) {
        let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES)];
        let fields = Fields(Vec::new()).with(&index.to_le_bytes());
        let fields = fields.with(&(name.len() as u32).to_le_bytes()).with(name);
        let bytes = fields.0.len() + 4;
        let place = &mut self.region[RUNNING_AT..RUNNING_AT + bytes];
        fields.put(place);
        (self.flush)(place);
    }

    /// The report is whole.
    pub fn finish(&mut self, after: After) {
        self.progress.state = State::Complete(after);
        self.note();
    }

    /// The report so far.
    #[must_use]
    pub fn report(&self) -> &[u8] {
        &self.region[HEADER_BYTES..][..self.progress.length as usize]
    }

    /// Whether all of it is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.progress.lost == 0
    }

    /// Writes the older one of the two.
    fn note(&mut self) {
        self.progress.turn += 1;
        let at = PROGRESS_AT[usize::from(self.progress.turn.is_multiple_of(2))];
        let place = &mut self.region[at..at + Progress::BYTES + 4];
        self.progress.write(place);
        (self.flush)(place);
    }
}

/// What is in a region.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found<'a> {
    /// No region, or one without a report.
    Nothing,
    /// A report.
    Report {
        /// CRC-32 of the image's ramdisk that made it.
        image: u32,
        /// Its bytes.
        bytes: &'a [u8],
        /// `None`: it is a part, up to the moment when the run was cut off or the memory was full.
        whole: Option<After>,
    },
    /// There was one, and its checksums say that it has changed.
    Damaged {
        /// What stands where it was.
        bytes: &'a [u8],
    },
}

/// Index and name of the item in which the run of the report in `region` was cut off, if it was noted. A run that is over has none,
/// also if its report had no room for its end.
#[must_use]
pub fn running(region: &[u8]) -> Option<(u32, String)> {
    let notes = PROGRESS_AT.into_iter().filter_map(|at| Progress::read(region.get(at..)?));
    if notes.into_iter().any(|note| note.state != State::Running) {
        return None;
    }
    let place = region.get(RUNNING_AT..HEADER_BYTES)?;
    let length = u32_at(place, 4)? as usize;
    let fields = checked(place, 8 + length.min(NAME_BYTES))?;
    let name = core::str::from_utf8(fields.get(8..)?).ok()?;
    Some((u32_at(fields, 0)?, String::from(name)))
}

/// Looks what is in `region`.
#[must_use]
pub fn read(region: &[u8]) -> Found<'_> {
    let Some(terms) = Terms::read(region) else { return Found::Nothing };
    let bytes = usize::try_from(terms.bytes).unwrap_or(usize::MAX).min(region.len());
    let Some(body) = region.get(HEADER_BYTES..bytes) else { return Found::Nothing };
    let mut notes = PROGRESS_AT.map(|at| Progress::read(&region[at..]));
    notes.sort_by_key(|note| core::cmp::Reverse(note.map_or(0, |note| note.turn)));
    let report = |note: &Progress| body.get(..usize::try_from(note.length).ok()?);
    let mut longest: &[u8] = &[];
    for note in notes.into_iter().flatten() {
        let Some(bytes) = report(&note) else { continue };
        if bytes.is_empty() {
            return if longest.is_empty() {
                Found::Nothing
            } else {
                Found::Damaged { bytes: longest }
            };
        }
        if crc32(bytes) == note.crc {
            let whole = match note.state {
                State::Complete(after) if note.lost == 0 => Some(after),
                _ => None,
            };
            return Found::Report { image: terms.image, bytes, whole };
        }
        longest = if bytes.len() > longest.len() { bytes } else { longest };
    }
    if longest.is_empty() { Found::Nothing } else { Found::Damaged { bytes: longest } }
}

#[cfg(test)]
mod tests;
