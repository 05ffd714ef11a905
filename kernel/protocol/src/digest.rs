//! What a run came to, small enough for some QR codes: the machine, and each item with its figures and what it missed.
//!
//! The firmware draws it as text for cameras, the host reads the text back: [`mod@text`]. Nothing here stands in for the report,
//! which has all runs, counters and errata.

mod item;
#[cfg(test)]
mod tests;
pub mod text;

pub use item::{Item, Standing, excess, item};

use crate::record::{End, Outcome};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the form. A reader refuses all others.
pub const VERSION: u8 = 1;
/// Most bytes that a digest has before it is compressed: a reader takes no more, whatever a picture says.
pub const MAX_BYTES: usize = 1 << 20;
/// How hard is compressed, of 10: beyond 6 it takes longer and gains one byte in a hundred (measured on the tour's digest).
const LEVEL: u8 = 6;

/// The digest of a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Digest {
    /// Version of the firmware.
    pub firmware: String,
    /// Name of the job.
    pub job: String,
    /// What the machine is, in lines for people.
    pub machine: Vec<String>,
    /// How the run went.
    pub outcome: Outcome,
    /// Items that met their expectation.
    pub passed: u32,
    /// Items that missed it or ended in an error.
    pub failed: u32,
    /// Items without an expectation.
    pub measured: u32,
    /// Items, those that missed by the most first.
    pub items: Vec<Item>,
    /// Items that there was no room for.
    pub left_out: u32,
}

/// Why something is no digest.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum DigestError {
    /// Made by another version.
    #[error("the digest has version {found}; this program reads version {VERSION}")]
    Version { found: u8 },
    /// It does not unpack.
    #[error("the digest cannot be unpacked: {0}")]
    Compression(String),
    /// What was unpacked is no digest.
    #[error("the digest cannot be decoded: {0}")]
    Decode(String),
}

impl Digest {
    /// One without items.
    #[must_use]
    pub fn new(job: &str, machine: &[String], end: &End) -> Self {
        Self {
            firmware: env!("CARGO_PKG_VERSION").to_string(),
            job: job.to_string(),
            machine: machine.to_vec(),
            outcome: end.outcome,
            passed: end.passed,
            failed: end.failed,
            measured: end.measured,
            items: Vec::new(),
            left_out: 0,
        }
    }

    /// The digest in compressed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let bytes = postcard::to_allocvec(self).expect("every value has a form in postcard");
        let mut packed = Vec::from([VERSION]);
        packed.extend(miniz_oxide::deflate::compress_to_vec(&bytes, LEVEL));
        packed
    }

    /// The digest in compressed form, with as many of the items as `fits` lets through; the others are counted as left out.
    #[must_use]
    pub fn pack_what_fits(mut self, fits: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        loop {
            let packed = self.pack();
            if fits(&packed) || self.items.is_empty() {
                return packed;
            }
            // In steps of an eighth: a guess from the size would have to be tried as well.
            let kept = self.items.len() - (self.items.len() / 8).max(1);
            self.left_out += (self.items.len() - kept) as u32;
            self.items.truncate(kept);
        }
    }

    /// Reads a digest that [`Digest::pack`] made.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn unpack(packed: &[u8]) -> Result<Self, DigestError> {
        let (&found, compressed) = packed.split_first().unwrap_or((&0, &[]));
        if found != VERSION {
            return Err(DigestError::Version { found });
        }
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(compressed, MAX_BYTES)
            .map_err(|error| DigestError::Compression(format!("{:?}", error.status)))?;
        postcard::from_bytes(&bytes).map_err(|error| DigestError::Decode(error.to_string()))
    }
}
