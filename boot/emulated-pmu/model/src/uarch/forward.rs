//! What loads of recently stored bytes wait for, by parameters.

/// Most entries.
pub const MOST_STORES: u32 = 128;

/// Further cycles of a load that reads bytes of a recent store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forward {
    /// It reads what was stored.
    pub same: u16,
    /// Less, from the same address on.
    pub narrow: u16,
    /// Less, from another address on.
    pub offset: u16,
    /// Bytes of which some were not stored.
    pub wide: u16,
    /// What was stored lies in two lines, and is not read with other bytes.
    pub cross: u16,
    /// It reads no such bytes, but some whose addresses have the lowest 12 bits of theirs.
    pub alias: u16,
}

impl Forward {
    /// As a list, in the order in which they are written.
    #[must_use]
    pub const fn list(self) -> [u16; 6] {
        let Self { same, narrow, offset, wide, cross, alias } = self;
        [same, narrow, offset, wide, cross, alias]
    }

    /// From such a list.
    #[must_use]
    pub const fn of([same, narrow, offset, wide, cross, alias]: [u16; 6]) -> Self {
        Self { same, narrow, offset, wide, cross, alias }
    }

    /// What a load waits that reads some bytes of a store.
    #[cfg(feature = "hierarchy")]
    pub(super) const fn cycles(
        self,
        (store, stored): (u64, u64),
        (load, loaded): (u64, u64),
        line: u64,
    ) -> u16 {
        match load.wrapping_sub(store) {
            distance if distance >= stored || distance + loaded > stored => self.wide,
            _ if store / line != store.wrapping_add(stored - 1) / line => self.cross,
            0 if loaded == stored => self.same,
            0 => self.narrow,
            _ => self.offset,
        }
    }
}
