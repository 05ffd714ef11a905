//! Where the registers of the uncore's counters are, by processor: those with control by MSR here, the others in [`servers`].
//!
//! Clients: SDM vol. 4 (MSR_UNC_PERF_GLOBAL_CTRL, MSR_UNC_PERF_FIXED_CTRL, MSR_UNC_ARB_PERFEVTSEL0) and Linux,
//! `arch/x86/events/intel/uncore_snb.c`. Servers: Linux, `uncore_snbep.c`, and for Sapphire Rapids, where the processor has a table of
//! them in PCI space, Intel's PCM, `src/types.h`. Numbers only.

pub(super) mod servers;

use super::Unit;
use super::packages::Ubox;

/// Where units are.
#[derive(Debug)]
pub(super) enum Place {
    /// In MSRs. The first registers of the units: so many from the first number on, so far apart.
    Msrs(&'static [(u32, u32, u8)]),
    /// In the configuration space of functions: device ids with the devices and functions where they may be, or all of them if
    /// there is none; and how many bytes two controls are apart, which are then of 32 or of 64 bits.
    Functions(&'static [(u16, &'static [(u8, u8)])], u16, &'static Ubox),
    /// Channels of Ice Lake's memory controllers, in memory.
    Channels(&'static Ubox),
    /// The client's memory controllers, in memory, from a base address register of its host bridge on.
    Bridge(&'static Bridge),
    /// Those of a type that the package lists ([`super::discovery`]).
    Listed(u16),
}

/// Where the client's host bridge, 00:00.0, has units in memory.
#[derive(Debug)]
pub(super) struct Bridge {
    /// The base address register, of 64 bits: bit 0 says that the memory is there.
    pub register: u16,
    /// The first unit's registers, from the base address on.
    pub first: u64,
    /// How many bytes two units are apart, and how many there may be.
    pub apart: u64,
    pub most: u64,
    /// What lets all of them count, in the last one, and its value.
    pub global: (u64, u64),
}

/// Registers of units that are alike.
#[derive(Debug)]
pub(super) struct Kind {
    pub unit: Unit,
    /// The control of the first counter, by the unit's first register.
    pub control: u32,
    /// The first counter.
    pub counter: u32,
    /// How many counters there are; those of a unit follow each other.
    pub counters: u8,
    /// Their width in bits.
    pub width: u8,
    /// Where they are.
    pub place: Place,
    /// The unit's own control.
    pub own: Option<u32>,
    /// Its filters.
    pub filters: &'static [u32],
    /// What a control enables the filter by thread with, and the bits of that filter in the first register; 0: there is none.
    pub thread: (u64, u64),
    /// Events that not all counters count, and a bit for each one that does.
    pub only: &'static [(u8, u8)],
    /// Bits of a control that may be set in addition to the enable.
    pub select: u64,
    /// The enable of a control; 0: it has none, and counts as soon as it has an event.
    pub enable: u64,
    /// What enables all of them, and its value.
    pub global: Option<(u32, u64)>,
}

/// Linux, `snb_uncore_arb_constraints`: what is outstanding.
const OUTSTANDING: &[(u8, u8)] = &[(0x80, 1), (0x83, 1)];
/// Linux, `hswep_uncore_cbox_constraints` and `skx_uncore_chabox_constraints`; 0x36 is the occupancy of the table of requests.
const CBO_FIRST: &[(u8, u8)] =
    &[(0x01, 1), (0x09, 1), (0x11, 1), (0x36, 1), (0x38, 1), (0x3b, 1), (0x3e, 1)];
const CHA_FIRST: &[(u8, u8)] = &[(0x11, 1), (0x36, 1)];

/// PERFEVTSEL.EN.
const ENABLE: u64 = 1 << 22;
/// Event, unit mask, edge, invert, threshold of 5 bits; of 6; of 8.
const SELECT_5: u64 = 0x1f84_ffff;
const SELECT_6: u64 = 0x3f84_ffff;
const SELECT_8: u64 = 0xff84_ffff;
/// From Ice Lake's servers on 26 more bits of the unit mask (Linux, `SNR_CHA_RAW_EVENT_MASK_EXT`).
const SELECT_WIDE: u64 = SELECT_8 | 0x3ff_ffff << 32;

/// MSR_UNC_PERF_GLOBAL_CTRL of Sandy Bridge to Broadwell: EN, and an enable for each core's slice.
const SNB_GLOBAL: Option<(u32, u64)> = Some((0x391, 1 << 29 | 0xf));
const SKL_GLOBAL: Option<(u32, u64)> = Some((0xe01, 1 << 29 | 0x1f));
const TGL_GLOBAL: Option<(u32, u64)> = Some((0xe01, 1 << 29));
const ADL_GLOBAL: Option<(u32, u64)> = Some((0x2ff0, 1 << 29));
const MTL_GLOBAL: Option<(u32, u64)> = Some((0x240e, 1 << 29));

const fn clock(control: u32, counter: u32, global: Option<(u32, u64)>) -> Kind {
    Kind {
        unit: Unit::Clock,
        control: 0,
        counter: counter - control,
        counters: 1,
        width: 48,
        place: Place::Msrs(match control {
            0x394 => &[(0x394, 0, 1)],
            0x2fde => &[(0x2fde, 0, 1)],
            _ => &[(0x2402, 0, 1)],
        }),
        own: None,
        filters: &[],
        thread: (0, 0),
        only: &[],
        // It counts one thing.
        select: 0,
        enable: ENABLE,
        global,
    }
}

const ARBITER: Kind = Kind {
    unit: Unit::Arbiter,
    control: 2,
    counter: 0,
    counters: 2,
    width: 44,
    place: Place::Msrs(&[(0x3b0, 0, 1)]),
    own: None,
    filters: &[],
    thread: (0, 0),
    only: OUTSTANDING,
    select: SELECT_5,
    enable: ENABLE,
    global: None,
};

const CBO: Kind = Kind {
    unit: Unit::Caching,
    control: 1,
    counter: 8,
    counters: 4,
    width: 48,
    place: Place::Msrs(&[(0xe00, 0x10, 18)]),
    own: Some(0),
    filters: &[5, 6],
    // Linux, `SNBEP_CBO_PMON_CTL_TID_EN`, `HSWEP_CB0_MSR_PMON_BOX_FILTER_TID`.
    thread: (1 << 19, 0x3f),
    only: CBO_FIRST,
    select: SELECT_8,
    enable: ENABLE,
    global: None,
};

/// MCHBAR (Intel's datasheets of the client's processors, volume 2, host bridge, register 0x48). Units: Linux, `adl_uncore_imc`; 6 resets
/// all controls and counters, and bit 0, which would freeze them, is clear (`ADL_UNCORE_IMC_CTL_INT`).
static MCHBAR: Bridge =
    Bridge { register: 0x48, first: 0xd900, apart: 0x1_0000, most: 2, global: (0xc0, 6) };
/// The client's memory controllers from Alder Lake on. The unit mask is a mask of channels, 0 for all (`ADL_UNC_CTL_CHMASK_MASK`).
const CONTROLLER: Kind = Kind {
    unit: Unit::Memory,
    control: 0xd0,
    counter: 0xe8,
    counters: 5,
    width: 64,
    place: Place::Bridge(&MCHBAR),
    own: Some(0xc4),
    filters: &[],
    thread: (0, 0),
    only: &[],
    select: 0x4_0fff,
    enable: 0,
    global: None,
};

static SANDY_BRIDGE: [Kind; 2] =
    [clock(0x394, 0x395, SNB_GLOBAL), Kind { global: SNB_GLOBAL, ..ARBITER }];
static SKYLAKE: [Kind; 2] =
    [clock(0x394, 0x395, SKL_GLOBAL), Kind { global: SKL_GLOBAL, ..ARBITER }];
/// The second counter only (perfmon, `icelake_uncore.json`).
const SECOND: Kind =
    Kind { place: Place::Msrs(&[(0x3b1, 0, 1)]), counters: 1, only: &[], ..ARBITER };
/// Linux enables nothing else.
static ICE_LAKE: [Kind; 2] = [clock(0x394, 0x395, None), SECOND];
static ROCKET_LAKE: [Kind; 2] =
    [clock(0x394, 0x395, TGL_GLOBAL), Kind { global: TGL_GLOBAL, ..SECOND }];
static TIGER_LAKE: [Kind; 2] =
    [clock(0x394, 0x395, TGL_GLOBAL), Kind { global: TGL_GLOBAL, ..ARBITER }];
static ALDER_LAKE: [Kind; 3] = [
    clock(0x2fde, 0x2fdf, ADL_GLOBAL),
    Kind {
        place: Place::Msrs(&[(0x2fd0, 8, 2)]),
        control: 0,
        counter: 2,
        global: ADL_GLOBAL,
        ..ARBITER
    },
    CONTROLLER,
];
const METEOR_ARBITER: Kind = Kind {
    place: Place::Msrs(&[(0x2412, 0x10, 2)]),
    control: 0,
    counter: 6,
    width: 48,
    // perfmon, `meteorlake_uncore.json`: occupancy is counted by the first one.
    only: &[(0x85, 1)],
    select: SELECT_6,
    ..ARBITER
};
static METEOR_LAKE: [Kind; 3] = [clock(0x2402, 0x2408, MTL_GLOBAL), METEOR_ARBITER, CONTROLLER];
/// Where its clock is, neither Linux nor Intel says (perfmon: a fixed counter of SANTA).
static LUNAR_LAKE: [Kind; 2] = [Kind { global: MTL_GLOBAL, ..METEOR_ARBITER }, CONTROLLER];
const HASWELL_CBO: Kind = CBO;
const BROADWELL_CBO: Kind = Kind { place: Place::Msrs(&[(0xe00, 0x10, 24)]), ..CBO };
/// Linux, `SKX_CHA_MSR_PMON_BOX_FILTER_TID`: thread and core.
const SKYLAKE_CHA: Kind = Kind {
    place: Place::Msrs(&[(0xe00, 0x10, 28)]),
    thread: (1 << 19, 0x1ff),
    only: CHA_FIRST,
    ..CBO
};
/// Linux, `icx_cha_msr_offsets`, `icx_cha_hw_config`.
const ICE_LAKE_CHA: Kind = Kind {
    place: Place::Msrs(&[(0xe00, 0xe, 18), (0xf0a, 0xe, 16), (0xb60, 0xe, 6)]),
    filters: &[5],
    thread: (1 << 19, 0x1ff),
    only: CHA_FIRST,
    select: SELECT_WIDE,
    ..CBO
};
const SAPPHIRE_RAPIDS_CHA: Kind = Kind {
    control: 2,
    place: Place::Msrs(&[(0x2000, 0x10, 60)]),
    filters: &[0xe],
    // Linux, `SPR_CHA_PMON_CTL_TID_EN`, `SPR_CHA_PMON_BOX_FILTER_TID`.
    thread: (1 << 16, 0x3ff),
    only: CHA_FIRST,
    select: SELECT_WIDE,
    ..CBO
};

/// What is known of Intel's family 6 processor of this model; empty: nothing.
pub(super) fn of(model: u32) -> &'static [Kind] {
    match model {
        0x2a | 0x3a | 0x3c | 0x45 | 0x46 | 0x3d | 0x47 => &SANDY_BRIDGE,
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => &SKYLAKE,
        0x7d | 0x7e => &ICE_LAKE,
        0x8c | 0x8d => &TIGER_LAKE,
        0xa7 => &ROCKET_LAKE,
        0x97 | 0x9a | 0xb7 | 0xba | 0xbf => &ALDER_LAKE,
        0xaa | 0xac | 0xb5 | 0xc5 | 0xc6 => &METEOR_LAKE,
        0xbd => &LUNAR_LAKE,
        0x3f => &servers::HASWELL,
        0x4f | 0x56 => &servers::BROADWELL,
        0x55 => &servers::SKYLAKE,
        0x6a | 0x6c => &servers::ICE_LAKE,
        0x8f | 0xcf => &servers::SAPPHIRE_RAPIDS,
        0xad | 0xae | 0xaf | 0xb6 | 0xdd => &servers::GRANITE_RAPIDS,
        _ => &[],
    }
}

impl Kind {
    /// The first registers of all units that there may be, as far as they are MSRs.
    pub fn bases(&self) -> impl Iterator<Item = u32> + use<> {
        let units: &'static [(u32, u32, u8)] = match self.place {
            Place::Msrs(units) => units,
            _ => &[],
        };
        units.iter().flat_map(|&(first, apart, most)| {
            (0..u32::from(most)).map(move |number| first + number * apart)
        })
    }

    /// A bit for each counter that counts an event.
    pub fn counters_for(&self, event: u8) -> u8 {
        let only = self.only.iter().find(|(known, _)| *known == event);
        only.map_or(u8::MAX, |(_, counters)| *counters) & ((1_u16 << self.counters) - 1) as u8
    }
}
