//! Features of instruction-based sampling, CPUID leaf 0x8000_001B EAX (APM volume 3, E.4.23; Linux,
//! `arch/x86/include/asm/perf_event.h`).

/// The other bits are valid.
pub const AVAILABLE: u32 = 1 << 0;
/// Fetches are sampled.
pub const FETCH: u32 = 1 << 1;
/// Operations are sampled.
pub const OP: u32 = 1 << 2;
/// The current count of operations can be read and written.
pub const READ_WRITE_COUNT: u32 = 1 << 3;
/// Dispatched operations can be counted instead of cycles.
pub const OP_COUNT: u32 = 1 << 4;
/// The register with the target of a branch.
pub const BRANCH_TARGET: u32 = 1 << 5;
/// The count of operations has 27 bits instead of 20.
pub const WIDE_COUNT: u32 = 1 << 6;
/// The bit that says that the address is not valid.
pub const RIP_INVALID: u32 = 1 << 7;
/// The bit of branches that were fused with what comes in front of them.
pub const FUSED_BRANCH: u32 = 1 << 8;
/// The extended control register of fetches.
pub const FETCH_EXTENDED: u32 = 1 << 9;
/// The register that says whether a load was sent again (AMD BKDG of family 15h models 60h to 6Fh, IbsOpData4).
pub const OP_DATA_4: u32 = 1 << 10;
/// What Zen 4 added: filters by misses of the third level, and more data sources.
pub const ZEN_4: u32 = 1 << 11;
/// Samples of loads alone that took long enough (Linux, `IBS_CAPS_OPLDLAT`): Zen 5.
pub const LOAD_LATENCY: u32 = 1 << 12;
/// What the model does.
pub const OFFERED: u32 = AVAILABLE
    | FETCH
    | OP
    | READ_WRITE_COUNT
    | OP_COUNT
    | BRANCH_TARGET
    | WIDE_COUNT
    | RIP_INVALID
    | FUSED_BRANCH
    | FETCH_EXTENDED
    | OP_DATA_4
    | ZEN_4
    | LOAD_LATENCY;

/// What of a recorded processor's features is offered: nothing unless the bits are valid.
#[must_use]
pub const fn offered(features: u32) -> u32 {
    if features & AVAILABLE == 0 { 0 } else { features & OFFERED }
}

/// IBS_CTL among the registers, which have the numbers from [`crate::msr::AMD_IBS`] on.
pub(crate) const CTL: usize = 10;

/// Whether a processor with these features has the register.
pub(crate) const fn has_register(features: u32, index: usize) -> bool {
    let needed = match index {
        0..=2 => FETCH,
        3..=9 => OP,
        CTL => AVAILABLE,
        11 => BRANCH_TARGET,
        12 => FETCH_EXTENDED,
        _ => OP_DATA_4,
    };
    features & needed != 0
}
