//! The event tables on the host: which processor is meant ([`cpu`]), a user's own events ([`user`]), a look at a job's
//! events before it goes out ([`check`]), and what the `events` command shows ([`list`], [`encodings`],
//! [`plan`], with [`wildcards`]).

pub mod check;
pub mod cpu;
pub mod encodings;
mod error;
pub mod list;
pub mod plan;
pub mod user;
pub mod wildcards;

pub use check::{EventText, NoEvent};
pub use cpu::CpuName;
pub use error::EventsError;
pub use user::EventFile;

use events::tables::Tables;
use std::borrow::Cow;

/// The project's tables, packed by the build script.
static EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events.bin"));

/// Packed tables: what goes into a ramdisk.
#[derive(Clone, Debug)]
pub struct Block(Cow<'static, [u8]>);

impl Block {
    /// The project's tables.
    #[must_use]
    pub fn embedded() -> Self {
        Self(Cow::Borrowed(EMBEDDED))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The tables.
    ///
    /// # Panics
    /// Never: what is packed here opens.
    #[must_use]
    pub fn tables(&self) -> Tables<'_> {
        Tables::open(&self.0).expect("what is packed opens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ramdisk of every job carries them.
    #[test]
    fn all_tables_take_less_than_a_megabyte() {
        let block = Block::embedded();
        assert!(block.bytes().len() < 1 << 20, "{}", block.bytes().len());
        assert!(block.tables().cores().count() >= 52);
    }
}
