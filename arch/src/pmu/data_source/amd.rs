//! What a sample of IBS says of an access: IbsOpData2 and IbsOpData3 (AMD's PPRs, MSRC001_1036 and 1037; Linux,
//! `arch/x86/events/amd/ibs.c`).
//!
//! Each is of meaning under conditions: the source of loads alone, latencies of loads that missed the first level alone. Uncached
//! accesses have neither.

use super::{DataSource, Datum, Encoding, Level, Snoop};

/// IbsOpData3.
const LOAD: u64 = 1 << 0;
const STORE: u64 = 1 << 1;
const L1_TLB_MISS: u64 = 1 << 2;
const L2_TLB_MISS: u64 = 1 << 3;
const MISS: u64 = 1 << 7;
const UNCACHED: u64 = 1 << 14;
const LOCKED: u64 = 1 << 15;
const NO_BUFFER: u64 = 1 << 16;
const ADDRESS_VALID: u64 = 1 << 17;
const L2_MISS: u64 = 1 << 20;
const SOFTWARE_PREFETCH: u64 = 1 << 21;
const LATENCY_AT: u32 = 32;
const REFILL_AT: u32 = 48;

/// IbsOpData2: the source in bits 2:0, further bits of it in 7:6 (Zen 4), the other node in 4, in 5 the state of a
/// line that came out of another cache: 0 modified, 1 owned.
const SOURCE: u64 = 0b111;
const SOURCE_HIGH_AT: u32 = 6;
const REMOTE: u64 = 1 << 4;
const OWNED: u64 = 1 << 5;

/// Bits of [`Datum::source`]: IbsOpData2 in 7:0, the flags of IbsOpData3 above.
const FLAGS: [(u64, u32); 11] = [
    (LOAD, 8),
    (STORE, 9),
    (L1_TLB_MISS, 10),
    (L2_TLB_MISS, 11),
    (MISS, 12),
    (UNCACHED, 13),
    (LOCKED, 14),
    (NO_BUFFER, 15),
    (L2_MISS, 16),
    (ADDRESS_VALID, 17),
    (SOFTWARE_PREFETCH, 18),
];

/// The access of a sample, out of both registers; `None`: it neither loads nor stores.
#[must_use]
pub fn ibs_datum(data_2: u64, data_3: u64, address: u64) -> Option<Datum> {
    if data_3 & (LOAD | STORE) == 0 {
        return None;
    }
    let flag = |&(bit, at): &(u64, u32)| u32::from(data_3 & bit != 0) << at;
    let source = FLAGS.iter().map(flag).sum::<u32>() | u32::from(data_2 as u8) | Datum::TOLD;
    let load = data_3 & LOAD != 0 && data_3 & UNCACHED == 0;
    // The latency of a software prefetch is not valid.
    let waited = load && data_3 & MISS != 0 && data_3 & SOFTWARE_PREFETCH == 0;
    let latency = if waited { (data_3 >> LATENCY_AT) as u16 } else { 0 };
    let refill = if load && data_3 & L1_TLB_MISS != 0 { (data_3 >> REFILL_AT) as u16 } else { 0 };
    Some(Datum { address, source, latency: latency.into(), other: refill.into() })
}

/// What the source of such a datum means.
pub(super) fn source(encoding: Encoding, word: u32) -> DataSource {
    let has = |bit: u64| FLAGS.iter().any(|&(one, at)| one == bit && word >> at & 1 != 0);
    // Erratum 1293 of Zen 3 (revision guide of family 19h models 00h to 0Fh; Linux, `perf_ibs_parse_data_src`): then neither the source
    // nor the miss of the second level is right.
    let wrong = encoding == Encoding::Zen3 && (has(SOFTWARE_PREFETCH) || has(NO_BUFFER));
    let data_2 = if wrong { 0 } else { u64::from(word & 0xff) };
    let low = data_2 & SOURCE;
    let code = match encoding {
        Encoding::Zen4 => low | data_2 >> SOURCE_HIGH_AT << 3,
        _ => low,
    };
    let load = has(LOAD);
    let remote = data_2 & REMOTE != 0;
    let memory = if remote { Level::RemoteMemory } else { Level::Memory };
    // Family 10h has no bit for the second level: a source of 0 is all that is left for it.
    let second = encoding != Encoding::Family10h && !has(L2_MISS) && !wrong;
    let level = match (encoding, code) {
        _ if has(UNCACHED) => Level::Uncached,
        _ if !has(MISS) => Level::L1,
        _ if second => Level::L2,
        _ if !load && has(NO_BUFFER) => Level::Lfb,
        _ if !load => Level::NotL1,
        (Encoding::Family10h, 0) => Level::L2,
        (Encoding::Family10h, 1) => Level::L3,
        (Encoding::Family10h, 2) if remote => Level::RemoteCache,
        (Encoding::Family10h, 2) => Level::NearCache,
        // Zen to Zen 3: the third level, or another core's cache of the same node.
        (Encoding::Zen | Encoding::Zen3, 2) if !remote => Level::L3,
        (Encoding::Zen | Encoding::Zen3, 2 | 4) => Level::RemoteCache,
        (Encoding::Zen4, 1) => Level::L3,
        (Encoding::Zen4, 2) => Level::NearCache,
        (Encoding::Zen4, 5) => Level::RemoteCache,
        (Encoding::Zen4, 6) => Level::Persistent,
        (Encoding::Zen4, 8) => Level::Extension,
        (Encoding::Zen4, 12) => Level::Peer,
        (_, 3) => memory,
        (_, 7) => Level::Io,
        _ if has(NO_BUFFER) => Level::Lfb,
        _ => Level::Unknown,
    };
    // The state is of lines out of another cache, and Zen 3 has none (Linux, `perf_ibs_get_mem_snoop`).
    let cached = match encoding {
        Encoding::Zen3 => false,
        Encoding::Zen4 => matches!(code, 1 | 2 | 5),
        _ => code == 2,
    };
    let missed = !matches!(level, Level::Uncached | Level::L1 | Level::L2);
    let modified = load && missed && cached && data_2 & OWNED == 0;
    let snoop = if modified { Snoop::Modified } else { Snoop::None };
    DataSource {
        level,
        snoop,
        store: !load,
        tlb_miss: has(ADDRESS_VALID).then(|| has(L1_TLB_MISS) && has(L2_TLB_MISS)),
        locked: Some(has(LOCKED)),
    }
}
