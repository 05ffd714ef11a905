//! Where the data of a sampled access came from, and how long it took.
//!
//! A PEBS record has a word for each, a sample of IBS has bits of two registers; what they mean differs from processor to
//! processor. The handler keeps them as they are ([`Datum`]), [`DataSource`] says what they mean.

mod amd;
mod intel;
mod layout;

pub use amd::ibs_datum;
pub use layout::{Encoding, PRECISE_STORE, Told, Words};

use core::fmt;

/// How far away the data was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Level {
    /// The processor does not say.
    #[default]
    Unknown,
    /// First-level cache.
    L1,
    /// Not the first-level cache; more is not said.
    NotL1,
    /// A line that was on its way to the first level: line fill buffer, missed address buffer.
    Lfb,
    /// Second-level cache.
    L2,
    /// A line that was on its way to the second level.
    L2Buffer,
    /// Last-level cache.
    L3,
    /// A cache in front of memory.
    MemorySide,
    /// A cache of another core complex of this socket.
    NearCache,
    /// Memory of this socket.
    Memory,
    /// Persistent memory.
    Persistent,
    /// A cache of another socket.
    RemoteCache,
    /// Memory of another socket.
    RemoteMemory,
    /// Memory after a link: CXL.
    Extension,
    /// Memory of a peer device.
    Peer,
    /// A device.
    Io,
    /// Uncached memory.
    Uncached,
}

impl Level {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::L1 => "L1",
            Self::NotL1 => "not L1",
            Self::Lfb => "LFB",
            Self::L2 => "L2",
            Self::L2Buffer => "L2 buffer",
            Self::L3 => "L3",
            Self::MemorySide => "memory-side cache",
            Self::NearCache => "cache of another core complex",
            Self::Memory => "memory",
            Self::Persistent => "persistent memory",
            Self::RemoteCache => "remote cache",
            Self::RemoteMemory => "remote memory",
            Self::Extension => "extension memory",
            Self::Peer => "memory of a peer",
            Self::Io => "I/O",
            Self::Uncached => "uncached",
        }
    }
}

/// What other caches had of the line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Snoop {
    /// It is not said, or none was asked.
    #[default]
    None,
    /// None had it.
    Miss,
    /// One had it, unmodified.
    Hit,
    /// One had it modified.
    Modified,
    /// One forwarded it.
    Forwarded,
}

/// What a record or a sample says of an access.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DataSource {
    /// Where the data was.
    pub level: Level,
    /// What other caches had of it.
    pub snoop: Snoop,
    /// It was a store.
    pub store: bool,
    /// The second-level TLB had no translation; `None`: it is not said.
    pub tlb_miss: Option<bool>,
    /// The access was locked; `None`: it is not said.
    pub locked: Option<bool>,
}

impl fmt::Display for DataSource {
    /// Level and snoop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        match self.snoop {
            Snoop::None => Ok(()),
            Snoop::Miss => f.write_str(", snoop missed"),
            Snoop::Hit => f.write_str(", snoop hit"),
            Snoop::Modified => f.write_str(", snoop hit modified"),
            Snoop::Forwarded => f.write_str(", forwarded"),
        }
    }
}

/// The data access of a sample, as the handler keeps it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Datum {
    /// Its linear address; 0: none.
    pub address: u64,
    /// Where the data came from, in the processor's code; bit 31 is [`Datum::TOLD`].
    pub source: u32,
    /// Cycles to the data; 0: it is not said.
    pub latency: u32,
    /// Of IBS, cycles to the translation; of PEBS with two latencies, cycles to the end of the instruction.
    pub other: u32,
}

impl Datum {
    /// The source is said.
    pub const TOLD: u32 = 1 << 31;

    /// An address alone.
    #[must_use]
    pub const fn at(address: u64) -> Self {
        Self { address, source: 0, latency: 0, other: 0 }
    }

    /// Whether the source is said.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.source & Self::TOLD != 0
    }

    /// Number of the class of powers of two that the latency is in: 0 has 0, n has 2^(n - 1) to 2^n - 1.
    #[must_use]
    pub const fn class(&self) -> u8 {
        (u32::BITS - self.latency.leading_zeros()) as u8
    }
}

#[cfg(test)]
mod tests;
