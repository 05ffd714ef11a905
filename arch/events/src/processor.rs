//! What a processor's PMU can do, as plain data. Whoever drives the PMU fills it in from CPUID and
//! IA32_PERF_CAPABILITIES; this crate reads no register.

use crate::cpu::Vendor;
use crate::event::Precise;
use crate::msr::ExtraMsr;
use crate::tables::Core;
use alloc::vec::Vec;

/// Precise event-based sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pebs {
    /// General-purpose counters that can do it.
    pub gp_counters: u64,
    /// Fixed counters that can do it: none without PEBS baseline (format 4).
    pub fixed_counters: u32,
    /// Record format, IA32_PERF_CAPABILITIES\[11:8\]. From 2 on the record holds the exact address.
    pub format: u8,
    /// General-purpose counters with precise distribution: the least skid.
    pub distribution_gp: u64,
    /// Fixed counters with precise distribution.
    pub distribution_fixed: u32,
    /// Records state the retire latency: IA32_PERF_CAPABILITIES\[17\], or architectural PEBS.
    pub states_retirement: bool,
}

/// One logical CPU's PMU. Hyper-threading shows in [`Self::gp_counters`]: CPUID counts what this
/// thread may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Vendor.
    pub vendor: Vendor,
    /// Architectural version, CPUID.0AH:EAX\[7:0\]. AMD: 0.
    pub version: u8,
    /// Bit mask of general-purpose counters. Version 6 may leave gaps.
    pub gp_counters: u64,
    /// Their width in bits.
    pub gp_width: u8,
    /// Bit mask of fixed counters.
    pub fixed_counters: u32,
    /// Their width in bits.
    pub fixed_width: u8,
    /// Bit i: architectural event i is available. See [`available_events`].
    pub architectural_events: u32,
    /// Bit i: on general-purpose counters, Intel's code of architectural event i counts it. Other makers' processors with
    /// CPUID.0AH have codes of their own.
    pub coded_events: u32,
    /// Counting for both hyper-threads: versions 3 and 4, and later unless CPUID.0AH:EDX\[15\] says
    /// no.
    pub any_thread: bool,
    /// UMASK2, CPUID.23H.0:EBX\[0\].
    pub umask2: bool,
    /// Comparison for equality with the counter mask, CPUID.23H.0:EBX\[1\].
    pub equal: bool,
    /// RDPMC_USR_DISABLE.
    pub rdpmc_user_disable: bool,
    /// HLE or RTM, CPUID.07H:EBX\[4\] or \[11\].
    pub tsx: bool,
    /// General-purpose counters that microcode or firmware has taken: counter 3 on Skylake parts
    /// with TSX unless TSX_FORCE_ABORT\[0\] is set.
    pub taken_counters: u64,
    /// The core's other hyper-thread is running.
    pub sibling_active: bool,
    /// PEBS.
    pub pebs: Option<Pebs>,
    /// Offcore, load-latency and front-end MSRs that exist.
    pub extra_msrs: Vec<ExtraMsr>,
    /// AMD: six counters at C001_0200H instead of four, CPUID.8000_0001H:ECX\[23\].
    pub perfctr_ext_core: bool,
    /// AMD: event 003H may add more than 15 a cycle, for which the odd neighbour of its counter is taken too. From family
    /// 17h on; before that 003H is another event, on one counter (Linux, `amd_get_event_constraints_f15h`).
    pub large_increments: bool,
    /// Fields of MSR_PERF_METRICS: 0, 4 or 8.
    pub metric_fields: u8,
    /// Nobody asked the processor: all this is what its table shows, see [`Self::described_by`].
    pub described: bool,
    /// AMD: global control registers, CPUID.8000_0022H:EAX\[0\].
    pub perfmon_v2: bool,
}

/// What the names of transactional memory's events start with.
const TSX_EVENTS: [&str; 3] = ["RTM_RETIRED.", "HLE_RETIRED.", "TX_MEM."];

/// Which architectural events are available, from CPUID.0AH: EBX has a bit set for each that is
/// *not*, and EAX\[31:24\] says how many of its bits mean anything.
#[must_use]
pub fn available_events(ebx: u32, length: u8) -> u32 {
    !ebx & low_bits(length) as u32
}

/// The lowest `count` bits set.
#[must_use]
pub(crate) fn low_bits(count: u8) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl Processor {
    /// An Intel PMU of this version, with so many counters of 48 bits, all architectural events
    /// that came with it, and nothing optional.
    #[must_use]
    pub fn intel(version: u8, gp_counters: u8, fixed_counters: u8) -> Self {
        Self {
            vendor: Vendor::Intel,
            version,
            gp_counters: low_bits(gp_counters.min(64)),
            gp_width: 48,
            fixed_counters: low_bits(fixed_counters.min(16)) as u32,
            fixed_width: 48,
            architectural_events: if fixed_counters > 3 { 0xff } else { 0x7f },
            coded_events: u32::MAX,
            any_thread: matches!(version, 3 | 4),
            umask2: version >= 6,
            equal: version >= 6,
            rdpmc_user_disable: false,
            tsx: false,
            taken_counters: 0,
            sibling_active: false,
            pebs: None,
            extra_msrs: Vec::new(),
            perfctr_ext_core: false,
            perfmon_v2: false,
            large_increments: false,
            metric_fields: 0,
            described: false,
        }
    }

    /// An AMD PMU: six counters of 48 bits with PerfCtrExtCore, four without. Of family 17h or later.
    #[must_use]
    pub fn amd(perfctr_ext_core: bool, perfmon_v2: bool) -> Self {
        Self {
            vendor: Vendor::Amd,
            fixed_width: 0,
            architectural_events: 0,
            any_thread: false,
            perfctr_ext_core,
            perfmon_v2,
            large_increments: true,
            ..Self::intel(0, if perfctr_ext_core { 6 } else { 4 }, 0)
        }
    }

    /// The processor that a table describes, for listing and planning without the machine at hand:
    /// hyper-threading off, every feature there that an event of the table uses. Transactional
    /// memory is there if the table has an event of it, though not every processor of the table
    /// need have it. What the table does not tell is left out: which counters take PEBS (all are
    /// assumed to).
    #[must_use]
    pub fn described_by(core: &Core<'_>) -> Self {
        let mut gp = 0_u64;
        let mut fixed = 0_u32;
        let (mut any, mut wide, mut precise, mut precise_fixed) = (false, false, false, 0_u32);
        let mut tsx = false;
        for event in core.events() {
            gp |= u64::from(event.counters);
            let fixed_bit =
                event.fixed.map_or(0, |index| 1_u32.checked_shl(index.into()).unwrap_or(0));
            fixed |= fixed_bit;
            any |= event.any_thread;
            tsx |= TSX_EVENTS.iter().any(|prefix| event.name.starts_with(prefix));
            wide |= event.ways().iter().any(|way| way.umask > 0xff);
            if event.precise != Precise::No {
                precise = true;
                precise_fixed |= fixed_bit;
            }
        }
        if core.vendor() == Vendor::Amd {
            let large = core.events().any(|event| event.is_amd_large_increment());
            // Six counters came with family 15h and with them the registers of their own.
            return Self {
                gp_counters: gp,
                large_increments: large,
                described: true,
                ..Self::amd(gp > 0xf, false)
            };
        }
        let version = match (wide, any) {
            (true, _) => 6,
            (false, true) => 4,
            (false, false) if fixed & 8 != 0 => 5,
            (false, false) => 3,
        };
        // PEBS on fixed counters came with the baseline record format.
        let baseline = precise_fixed != 0;
        Self {
            gp_counters: gp,
            fixed_counters: fixed,
            architectural_events: if fixed & 8 != 0 { 0xff } else { 0x7f },
            any_thread: any,
            pebs: precise.then_some(Pebs {
                gp_counters: gp,
                fixed_counters: precise_fixed,
                format: if baseline { 4 } else { 3 },
                distribution_gp: if baseline { 1 } else { 2 },
                distribution_fixed: precise_fixed & 1,
                // The table does not tell.
                states_retirement: baseline,
            }),
            extra_msrs: core.extra_msrs(),
            tsx,
            metric_fields: if fixed & 8 != 0 { crate::perf_metrics::fields(Some(core)) } else { 0 },
            described: true,
            ..Self::intel(version, 0, 0)
        }
    }

    /// General-purpose counters that may be assigned.
    #[must_use]
    pub fn usable_counters(&self) -> u64 {
        self.gp_counters & !self.taken_counters
    }

    /// The extra MSR with this address, if the processor has it.
    #[must_use]
    pub fn extra_msr(&self, address: u32) -> Option<&ExtraMsr> {
        self.extra_msrs.iter().find(|msr| msr.address == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_leaf_0a_beyond_the_length_say_nothing() {
        // Seven events, the last of them missing.
        assert_eq!(available_events(0x40, 7), 0x3f);
        assert_eq!(available_events(0, 0), 0);
        assert_eq!(available_events(0, 255), u32::MAX);
    }

    #[test]
    fn amd_has_six_counters_only_with_the_extension() {
        assert_eq!(Processor::amd(true, true).usable_counters(), 0x3f);
        assert_eq!(Processor::amd(false, false).usable_counters(), 0xf);
        assert!(Processor::amd(false, false).large_increments);
        assert!(!Processor::intel(4, 8, 3).large_increments);
    }

    #[test]
    fn a_pmu_of_each_vendor_has_what_came_with_its_version() {
        let events = |fixed| Processor::intel(5, 8, fixed).architectural_events;
        assert_eq!((events(3), events(4), events(2)), (0x7f, 0xff, 0x7f));
        let amd = Processor::amd(true, false);
        assert_eq!((amd.fixed_width, amd.architectural_events, amd.any_thread), (0, 0, false));
        assert_eq!((amd.perfctr_ext_core, amd.perfmon_v2), (true, false));
        assert!(
            Processor::amd(true, true).perfmon_v2 && !Processor::amd(false, true).perfctr_ext_core
        );
    }

    #[test]
    fn a_table_describes_its_processor() {
        let of = |name: &str| Processor::described_by(&crate::test_support::core(name));
        let skylake = of("skylakex");
        assert_eq!((skylake.version, skylake.fixed_counters, skylake.gp_counters), (4, 7, 0xff));
        let pebs = skylake.pebs.unwrap();
        assert_eq!((pebs.format, pebs.distribution_gp, pebs.distribution_fixed), (3, 2, 0));
        assert!(skylake.any_thread && skylake.tsx && skylake.metric_fields == 0);
        let icelake = of("icelake");
        assert_eq!((icelake.version, icelake.architectural_events), (5, 0xff));
        assert_eq!((icelake.any_thread, icelake.metric_fields), (false, 4));
        let pebs = icelake.pebs.unwrap();
        assert_eq!((pebs.format, pebs.distribution_gp, pebs.distribution_fixed), (4, 1, 1));
        assert_eq!(of("sapphirerapids").metric_fields, 8);
        assert!(!of("icelake").perfmon_v2 && !of("haswell").umask2);
        assert!(of("icelake").described && of("zen4").described);
        assert_eq!((of("zen4").perfctr_ext_core, of("zen4").gp_counters), (true, 0x3f));
        assert_eq!(
            (of("k10_shanghai").perfctr_ext_core, of("k10_shanghai").gp_counters),
            (false, 0xf)
        );
    }
}
