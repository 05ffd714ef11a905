//! Intel's encodings.

use super::Level::*;
use super::Snoop::{Forwarded, Hit, Miss, Modified};
use super::{DataSource, Encoding, Level, Snoop};

/// Flags that [`super::Words::datum`] adds: a store; one of which it is told alone whether the first level had the line.
pub(super) const STORE: u32 = 1 << 30;
pub(super) const HIT_ONLY: u32 = 1 << 29;
/// In addition to that, whether the second-level TLB had it and whether it was locked: precise stores (Linux, `precise_store_data`).
pub(super) const WITH_FLAGS: u32 = 1 << 28;

/// The table of Sandy Bridge; the others change some of it.
const SANDY_BRIDGE: [(Level, Snoop); 16] = [
    (Level::Unknown, Snoop::None),
    (L1, Snoop::None),
    (Lfb, Snoop::None),
    (L2, Snoop::None),
    (L3, Snoop::None),
    (L3, Miss),
    (L3, Hit),
    (L3, Modified),
    (RemoteCache, Hit),
    (RemoteCache, Modified),
    (Memory, Hit),
    (RemoteMemory, Hit),
    (Memory, Snoop::None),
    (RemoteMemory, Snoop::None),
    (Io, Snoop::None),
    (Uncached, Snoop::None),
];

/// Lion Cove's, which has more than sixteen.
const LION_COVE: [(Level, Snoop); 18] = [
    (Level::Unknown, Snoop::None),
    (L1, Snoop::None),
    (L1, Snoop::None),
    (Lfb, Snoop::None),
    (Level::Unknown, Snoop::None),
    (L2, Snoop::None),
    (L2Buffer, Snoop::None),
    (Level::Unknown, Snoop::None),
    (L3, Snoop::None),
    (Level::Unknown, Snoop::None),
    (Level::Unknown, Snoop::None),
    (Level::Unknown, Snoop::None),
    (L3, Forwarded),
    (L3, Modified),
    (Level::Unknown, Snoop::None),
    // Another core had it, and the last level missed.
    (NearCache, Modified),
    (MemorySide, Snoop::None),
    (Memory, Snoop::None),
];

fn place(encoding: Encoding, code: u32) -> (Level, Snoop) {
    let changed = match (encoding, code) {
        (Encoding::LionCove, _) => {
            LION_COVE.get(code as usize).copied().or(Some((Level::Unknown, Snoop::None)))
        }
        (Encoding::Nehalem | Encoding::Gracemont, 5) => Some((L3, Hit)),
        (Encoding::Nehalem | Encoding::Gracemont, 6) => Some((L3, Modified)),
        (Encoding::Gracemont, 8) => Some((L3, Forwarded)),
        // 9: of another socket.
        (Encoding::SkylakeServer, 8 | 9) => Some((Persistent, Hit)),
        // A cache in front of memory, in the package.
        (Encoding::Skylake, 8 | 9) => Some((MemorySide, Hit)),
        (Encoding::Skylake | Encoding::SkylakeServer, 0xb) => Some((RemoteMemory, Snoop::None)),
        (Encoding::Skylake | Encoding::SkylakeServer, 0xc) => Some((RemoteCache, Forwarded)),
        (Encoding::Skylake | Encoding::SkylakeServer, 0xd) => Some((RemoteCache, Modified)),
        (Encoding::Crestmont, 7) => Some((L3, Forwarded)),
        (Encoding::Crestmont, 8) => Some((L3, Modified)),
        (Encoding::Crestmont, 0xa) => Some((Memory, Snoop::None)),
        (Encoding::Crestmont, 0xb) => Some((RemoteMemory, Snoop::None)),
        (Encoding::Crestmont, 0xc) => Some((RemoteMemory, Forwarded)),
        (Encoding::Crestmont, 0xd) => Some((RemoteMemory, Modified)),
        _ => None,
    };
    changed.unwrap_or(SANDY_BRIDGE[code as usize & 15])
}

/// What a record's source means.
pub(super) fn source(encoding: Encoding, word: u32) -> DataSource {
    let flag = |bit: u32| Some(word >> bit & 1 != 0);
    let (bits, tlb_miss, locked) = match encoding {
        Encoding::Nehalem => (0xf, None, None),
        Encoding::Unknown => (0, None, None),
        // The other way round than the performance cores (Linux, `grt_latency_data`).
        Encoding::Gracemont => (0xf, flag(5), flag(4)),
        // The field has five bits, of which Linux' table takes four.
        Encoding::Crestmont => (0xf, flag(6), flag(5)),
        Encoding::LionCove => (0xff, flag(10), flag(11)),
        _ => (0xf, flag(4), flag(5)),
    };
    let store = word & STORE != 0;
    if word & HIT_ONLY != 0 {
        let level = if word & 1 != 0 { L1 } else { NotL1 };
        // Else no more than that (Linux, `precise_datala_hsw`).
        let told = word & WITH_FLAGS != 0;
        let (tlb_miss, locked) = if told { (tlb_miss, locked) } else { (None, None) };
        return DataSource { level, snoop: Snoop::None, store, tlb_miss, locked };
    }
    let (level, snoop) = place(encoding, word & bits);
    DataSource { level, snoop, store, tlb_miss, locked }
}
