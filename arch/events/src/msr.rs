//! Addresses and codes that events refer to. Intel SDM volume 4; AMD APM volume 2, 13.2, and the
//! PPRs.

use crate::event::Way;

/// `MSR_OFFCORE_RSP_0`.
pub const OFFCORE_RSP_0: u32 = 0x1a6;
/// `MSR_OFFCORE_RSP_1`.
pub const OFFCORE_RSP_1: u32 = 0x1a7;
/// `MSR_PEBS_LD_LAT`: the threshold of load-latency events, in cycles.
pub const LOAD_LATENCY: u32 = 0x3f6;
/// `MSR_PEBS_FRONTEND`: the filter of front-end events.
pub const FRONTEND: u32 = 0x3f7;
/// `MSR_SNOOP_RSP_0`, on newer efficient cores.
pub const SNOOP_RSP_0: u32 = 0x1328;
/// `MSR_SNOOP_RSP_1`.
pub const SNOOP_RSP_1: u32 = 0x1329;

/// The merge event that the odd counter of a pair counts for the even one.
pub const AMD_MERGE_EVENT: u16 = 0xfff;

/// Smallest threshold that the load-latency facility takes, in cycles (SDM 3B, "Load Latency
/// Performance Monitoring Facility").
pub const MIN_LOAD_LATENCY: u64 = 3;

/// An extra MSR of a processor, and the bits of it that may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraMsr {
    /// Address.
    pub address: u32,
    /// Bits that may be set; others raise #GP. All ones: not known.
    pub valid_bits: u64,
}

/// A value to be written to an extra MSR before counting starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MsrValue {
    /// Address.
    pub address: u32,
    /// Value.
    pub value: u64,
}

/// The MSR's name in the manuals, as far as events use it.
#[must_use]
pub fn name(address: u32) -> &'static str {
    match address {
        OFFCORE_RSP_0 => "OFFCORE_RSP_0",
        OFFCORE_RSP_1 => "OFFCORE_RSP_1",
        LOAD_LATENCY => "PEBS_LD_LAT",
        FRONTEND => "PEBS_FRONTEND",
        SNOOP_RSP_0 => "SNOOP_RSP_0",
        SNOOP_RSP_1 => "SNOOP_RSP_1",
        0x3e0..=0x3e3 => "OFFCORE_RSP (0x3e0 to 0x3e3)",
        _ => "extra MSR",
    }
}

/// Whether it is one of the MSRs that offcore response events look at.
pub(crate) fn is_offcore(address: u32) -> bool {
    matches!(address, OFFCORE_RSP_0 | OFFCORE_RSP_1 | 0x3e0..=0x3e3)
}

/// The MSR that a code has looked at on all Intel processors that have both.
pub(crate) fn usual(code: &Way) -> Option<u32> {
    Some(match (code.event, code.umask) {
        (0xb7 | 0x2a, 0x01) => OFFCORE_RSP_0,
        (0xbb | 0x2b, 0x01) | (0xb7, 0x02) => OFFCORE_RSP_1,
        (0xcd, 0x01) | (0x0b, 0x10) | (0xd0, 0x05) => LOAD_LATENCY,
        (0xc6, 0x01..=0x03) => FRONTEND,
        (0x27, 0x01) => SNOOP_RSP_0,
        (0x27, 0x02) => SNOOP_RSP_1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and addresses of the SDM, volume 4, table 2-2 and those of single processors.
    #[test]
    fn m5_each_msr_has_its_name() {
        for (address, known) in [
            (0x1a6, "OFFCORE_RSP_0"),
            (0x1a7, "OFFCORE_RSP_1"),
            (0x3f6, "PEBS_LD_LAT"),
            (0x3f7, "PEBS_FRONTEND"),
            (0x1328, "SNOOP_RSP_0"),
            (0x1329, "SNOOP_RSP_1"),
            (0x3e0, "OFFCORE_RSP (0x3e0 to 0x3e3)"),
            (0x3e3, "OFFCORE_RSP (0x3e0 to 0x3e3)"),
            (0x3e4, "extra MSR"),
        ] {
            assert_eq!(name(address), known, "{address:#x}");
        }
    }

    #[test]
    fn m5_codes_look_at_their_msrs() {
        let looks = |event, umask| usual(&Way { event, umask, msr: None });
        for (event, umask, msr) in [
            (0xb7, 1, 0x1a6),
            (0x2a, 1, 0x1a6),
            (0xbb, 1, 0x1a7),
            (0x2b, 1, 0x1a7),
            (0xb7, 2, 0x1a7),
            (0xcd, 1, 0x3f6),
            (0x0b, 0x10, 0x3f6),
            (0xd0, 5, 0x3f6),
            (0xc6, 1, 0x3f7),
            (0xc6, 3, 0x3f7),
            (0x27, 1, 0x1328),
            (0x27, 2, 0x1329),
        ] {
            assert_eq!(looks(event, umask), Some(msr), "{event:#x} {umask}");
        }
        assert_eq!((looks(0x27, 3), looks(0xc6, 4), looks(0xc0, 1)), (None, None, None));
    }
}
