//! What the last instruction of a block leaves open: the start of the next block, or the exit, decides it.

use crate::facts::Branch;
use crate::tally::Tally;
use pmu_model::BranchKind;
use std::collections::HashMap;

/// Something open. Addresses are offsets in their pages.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Opened {
    /// A branch.
    Branch {
        /// The instruction.
        branch: Branch,
        /// Bytes from its block's start to the address after it: for where offsets do not tell the way.
        bytes: u16,
        /// It stores.
        stores: bool,
        /// What else was counted for it before it began.
        early: Tally,
        /// Whether it was counted as one that was taken.
        counted: bool,
    },
    /// A repeated string instruction: it may have ended, or be at its next element.
    Repeat {
        /// Its address.
        ip: u16,
        /// The address after it.
        next: u16,
        /// Each element stores, and it ends when it looks at the count.
        stores: bool,
        /// It may pass the qualifiers.
        passes: bool,
        /// Each element is two loads.
        pair: bool,
        /// It may end before its count does: SCAS and CMPS.
        compares: bool,
        /// The part of RCX that counts.
        count_mask: u64,
    },
    /// An instruction that was counted before it began: to be taken back if it fails.
    Early {
        /// Its address.
        ip: u16,
        /// Bytes from its block's start to it.
        at: u16,
        /// It stores.
        stores: bool,
        /// What was counted.
        tally: Tally,
        /// It may raise a page fault.
        faults: bool,
    },
}

/// In the word that says what is open: nothing.
pub const NOTHING: u64 = 0;
/// In the same: something to which no block's start is a key; the instruction's address is below.
const NO_KEY: u64 = 1 << 32;
/// In the same: a repeated string instruction has stored its element, or a call its return address.
pub const ITERATED: u64 = 1 << 33;
/// In the same, in a mode that [sees deliveries](plugin_channel::Mode::sees_deliveries), as all that follow: an element of a repeated
/// string instruction has begun.
pub const BEGUN: u64 = 1 << 34;
/// In the same: its one load is done, and with it the element. The instruction's address is below.
pub const LOADED: u64 = 1 << 35;
/// In the same: its store is done, and with it the element. The instruction's address is below.
pub const STORED: u64 = 1 << 36;
/// In the same: an instruction was counted early that may raise a page fault. Its address is below.
const FAULTS: u64 = 1 << 37;
/// Above all of these.
pub const END: u64 = 1 << 38;
/// In the same, where a callback decides all that is open, and looks for no key: the rest is the address of what is open.
/// The uppermost bit of a program's addresses is 0 (SDM vol. 1, 3.3.7.1: canonical addresses).
const ADDRESS: u64 = 1 << 63;

/// The key of a block that starts at an offset.
pub const fn key(offset: u16) -> u64 {
    offset as u64 + 1
}

/// What the words say: of the key that is open, and of the address of what is.
#[inline]
pub fn find(open: u64, what: u64) -> Option<&'static Opened> {
    let address = match open {
        NOTHING => return None,
        _ if open & ADDRESS != 0 => open & !ADDRESS,
        _ => what,
    };
    // SAFETY: whoever opens something writes the address of one that stays ([`Interned`]).
    Some(unsafe { &*(address as *const Opened) })
}

impl Opened {
    /// What says both that it is open and where it lies.
    pub fn address(&'static self) -> u64 {
        ADDRESS | core::ptr::from_ref(self) as u64
    }

    /// The key of the block at which it would be found to have fallen through.
    pub const fn key(&self) -> u64 {
        match self {
            Self::Branch { branch, .. } => key(branch.next),
            Self::Repeat { next, .. } => key(*next),
            Self::Early { ip, faults: true, .. } => FAULTS | *ip as u64,
            Self::Early { ip, .. } => NO_KEY | *ip as u64,
        }
    }
}

impl Opened {
    /// The word that says that an element of a repeated string instruction is done. `None`: it has two loads, and its count says it.
    pub fn element_word(&self) -> Option<u64> {
        match self {
            Self::Repeat { pair: false, stores, ip, .. } => {
                Some(if *stores { STORED } else { LOADED } | u64::from(*ip))
            }
            _ => None,
        }
    }

    /// Whether a block that starts at this offset may let the instruction begin once more: QEMU lets a store that changes its own
    /// block begin again by itself. It does not if [its store is done](Self::notes_store), nor [elsewhere](Self::restart).
    pub fn restarts_at(&self, offset: u16) -> bool {
        match self {
            Self::Early { ip, stores, .. } | Self::Repeat { ip, stores, .. } => {
                *stores && *ip == offset
            }
            Self::Branch { branch, stores, .. } => *stores && branch.from == offset,
        }
    }

    /// Whether a word says that it has stored, where a callback decides what is open: it may lead to a block at its own offset in
    /// another page, or to itself.
    pub fn notes_store(&self) -> bool {
        match self {
            Self::Repeat { stores, .. } => *stores,
            Self::Branch { branch, .. } => match branch.kind {
                BranchKind::IndirectCall => true,
                BranchKind::RelativeCall => branch.target == branch.from,
                _ => false,
            },
            Self::Early { .. } => false,
        }
    }

    /// Bytes from its block's start to where it begins once more, if the offset in the page does not tell: a far call, an interrupt
    /// or a handler may lead to the same offset in another page.
    pub fn restart(&self) -> Option<u16> {
        match self {
            Self::Early { at, .. } => Some(*at),
            Self::Branch { branch, bytes, .. } if branch.kind == BranchKind::Far => {
                Some(bytes.wrapping_sub(branch.next.wrapping_sub(branch.from) & 0xfff))
            }
            _ => None,
        }
    }
}

/// One of each kind that there has been, at an address that stays: code that is translated has it in it. There are no
/// more of them than offsets in a page and ways to use them.
#[derive(Debug)]
pub struct Interned<T: 'static>(HashMap<T, &'static T>);

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Copy + Eq + core::hash::Hash> Interned<T> {
    /// The one that is equal.
    pub fn get(&mut self, wanted: T) -> &'static T {
        self.0.entry(wanted).or_insert_with(|| Box::leak(Box::new(wanted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_found_by_its_key_and_by_its_address() {
        let mut interned = Interned::default();
        let early = interned.get(Opened::Early {
            ip: 0x123,
            at: 3,
            stores: false,
            tally: Tally::NONE,
            faults: true,
        });
        let other = interned.get(Opened::Repeat {
            ip: 0x123,
            next: 0x125,
            stores: true,
            passes: false,
            pair: false,
            compares: false,
            count_mask: 0xffff,
        });
        let what = core::ptr::from_ref(early) as u64;
        assert_eq!(find(early.key(), what), Some(early));
        assert_eq!(find(other.address(), what), Some(other));
        assert_eq!(find(ITERATED, what), Some(early));
        assert_eq!(find(NOTHING, what), None);
    }
}
