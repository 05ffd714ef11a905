//! What is remembered of the machine from boot to boot, in a variable of its own.

use super::found::{Found, Place};
use alloc::vec::Vec;
use stick::variables::{NOTE, VENDOR};
use uefi::runtime::{self, VariableAttributes, VariableVendor};
use uefi::{CString16, Guid, println};

const MAGIC: [u8; 8] = *b"BCNOTE01";

/// The note.
#[derive(Clone, Copy, Debug, Default)]
pub struct Note {
    /// Where the region was: address and bytes.
    pub region: Option<(u64, u64)>,
    /// A report has survived a reset in memory.
    pub keeps_memory: bool,
    /// Runs that were started since the last report.
    pub silent: u32,
    /// Reports that were sent to a server.
    pub sent: u32,
    /// What has been done with the report that is still there.
    pub done: Option<Done>,
}

/// What has been done with a report. It is noted before the report is forgotten: a power cut between the two makes nobody save or
/// send it twice.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// CRC-32 of the report.
    pub report: u32,
    /// It is on the stick.
    pub saved: bool,
    /// It is on the server.
    pub sent: bool,
}

impl Done {
    const SAVED: u64 = 1 << 32;
    const SENT: u64 = 1 << 33;

    /// Nothing yet.
    pub fn nothing(report: u32) -> Self {
        Self { report, saved: false, sent: false }
    }

    fn word(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        u64::from(self.report) | bit(self.saved, Self::SAVED) | bit(self.sent, Self::SENT)
    }

    /// `None`: nothing has been done with any.
    fn of(word: u64) -> Option<Self> {
        let (saved, sent) = (word & Self::SAVED != 0, word & Self::SENT != 0);
        (saved || sent).then_some(Self { report: word as u32, saved, sent })
    }
}

/// Whose the variables are.
pub fn vendor() -> VariableVendor {
    VariableVendor(Guid::from_bytes(VENDOR))
}

/// A variable's content; `None` without it.
pub fn variable(name: &str) -> Option<Vec<u8>> {
    let name = CString16::try_from(name).ok()?;
    runtime::get_variable_boxed(&name, &vendor()).ok().map(|(content, _)| content.into_vec())
}

/// Deletes a variable, if it is there.
pub fn delete(name: &str) {
    if let Ok(name) = CString16::try_from(name) {
        // That it is not there is as well.
        let _ = runtime::delete_variable(&name, &vendor());
    }
}

impl Note {
    /// That of the boot before; an empty one without it.
    pub fn read() -> Self {
        let read = || {
            let content = variable(NOTE)?;
            let words = content.strip_prefix(&MAGIC)?;
            let word = |index: usize| {
                let word = words.get(8 * index..8 * index + 8)?;
                Some(u64::from_le_bytes(word.try_into().ok()?))
            };
            let region = (word(0)?, word(1)?);
            Some(Self {
                region: Some(region).filter(|region| region.1 != 0),
                keeps_memory: word(2)? != 0,
                silent: word(3)? as u32,
                // Notes of earlier versions end here.
                sent: word(4).unwrap_or(0) as u32,
                done: word(5).and_then(Done::of),
            })
        };
        read().unwrap_or_default()
    }

    /// Keeps it.
    pub fn write(&self) {
        let (address, bytes) = self.region.unwrap_or_default();
        let done = self.done.map_or(0, Done::word);
        let (keeps, silent, sent) =
            (self.keeps_memory.into(), self.silent.into(), self.sent.into());
        let words = [address, bytes, keeps, silent, sent, done];
        let mut content = MAGIC.to_vec();
        content.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let attributes = VariableAttributes::NON_VOLATILE
            | VariableAttributes::BOOTSERVICE_ACCESS
            | VariableAttributes::RUNTIME_ACCESS;
        let name = CString16::try_from(NOTE).expect("a plain name");
        if let Err(error) = runtime::set_variable(&name, &vendor(), attributes, &content) {
            println!("barecount: the next boot will not find a report in memory: {error}");
        }
    }

    /// What a report reports the machine.
    pub fn learn(&mut self, found: &Found) {
        self.keeps_memory = found.place == Place::Memory;
    }
}
