//! The fact sheet: what a processor's caches and TLBs are, measured.

use alloc::borrow::Cow;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// A fact sheet. Its item has one piece of memory, in pages of 2 MiB.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Facts<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Bytes of its memory, physically contiguous: a power of two.
    pub bytes: u64,
}

/// Bytes that the memory can have.
pub const BYTES: Range<u64> = 8 << 20..(1 << 37) + 1;
