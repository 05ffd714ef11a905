//! The servers' units, which Intel's uncore performance monitoring manual of each describes. Device ids, offsets and which counters an
//! event has: Linux, `arch/x86/events/intel/uncore_snbep.c`. Numbers only.

use super::{
    BROADWELL_CBO, CHA_FIRST, ENABLE, HASWELL_CBO, ICE_LAKE_CHA, Kind, Place, SAPPHIRE_RAPIDS_CHA,
    SELECT_8, SKYLAKE_CHA, Ubox,
};
use crate::pmu::uncore::Unit;

/// Linux, `SNBEP_CPUNODEID` and `SNBEP_GIDNIDMAP`; from Skylake on `SKX_CPUNODEID` and `SKX_GIDNIDMAP`.
const fn ubox(id: u16, is_last: bool) -> Ubox {
    match id {
        0x2f1e | 0x6f1e => Ubox { id, node: 0x40, map: 0x54, is_last },
        _ => Ubox { id, node: 0xc0, map: 0xd4, is_last },
    }
}

static HASWELL_UBOX: Ubox = ubox(0x2f1e, true);
static BROADWELL_UBOX: Ubox = ubox(0x6f1e, true);
static SKYLAKE_UBOX: Ubox = ubox(0x2014, false);
static ICE_LAKE_UBOX: Ubox = ubox(0x3450, true);
static SAPPHIRE_RAPIDS_UBOX: Ubox = ubox(0x3250, true);

/// Four counters of 48 bits, by the unit's own control, and nothing else.
const PLAIN: Kind = Kind {
    unit: Unit::Memory,
    control: 0,
    counter: 0,
    counters: 4,
    width: 48,
    place: Place::Listed(0),
    own: Some(0),
    filters: &[],
    thread: (0, 0),
    only: &[],
    select: SELECT_8,
    enable: ENABLE,
    global: None,
};

/// Linux, `SNBEP_PCI_PMON_CTL0`, `_CTR0`, `_BOX_CTL`: controls of 32 bits.
const CONFIG: Kind = Kind { control: 0xd8, counter: 0xa0, own: Some(0xf4), ..PLAIN };

/// A memory channel: two controllers with four each.
const HASWELL_CHANNELS: Place = Place::Functions(
    &[
        (0x2fb0, &[]),
        (0x2fb1, &[]),
        (0x2fb4, &[]),
        (0x2fb5, &[]),
        (0x2fd0, &[]),
        (0x2fd1, &[]),
        (0x2fd4, &[]),
        (0x2fd5, &[]),
    ],
    4,
    &HASWELL_UBOX,
);
const HASWELL_QPI: Place =
    Place::Functions(&[(0x2f32, &[]), (0x2f33, &[]), (0x2f3a, &[])], 4, &HASWELL_UBOX);
pub(super) static HASWELL: [Kind; 3] = [
    HASWELL_CBO,
    Kind { place: HASWELL_CHANNELS, ..CONFIG },
    Kind { unit: Unit::Link, place: HASWELL_QPI, ..CONFIG },
];

const BROADWELL_CHANNELS: Place = Place::Functions(
    &[
        (0x6fb0, &[]),
        (0x6fb1, &[]),
        (0x6fb4, &[]),
        (0x6fb5, &[]),
        (0x6fd0, &[]),
        (0x6fd1, &[]),
        (0x6fd4, &[]),
        (0x6fd5, &[]),
    ],
    4,
    &BROADWELL_UBOX,
);
const BROADWELL_QPI: Place =
    Place::Functions(&[(0x6f32, &[]), (0x6f33, &[]), (0x6f3a, &[])], 4, &BROADWELL_UBOX);
pub(super) static BROADWELL: [Kind; 3] = [
    BROADWELL_CBO,
    Kind { place: BROADWELL_CHANNELS, ..CONFIG },
    Kind { unit: Unit::Link, place: BROADWELL_QPI, ..CONFIG },
];

/// Linux, `skx_uncore_pci_ids`: the same ids at two controllers, and others' at other places.
const SKYLAKE_CHANNELS: Place = Place::Functions(
    &[(0x2042, &[(10, 2), (12, 2)]), (0x2046, &[(10, 6), (12, 6)]), (0x204a, &[(11, 2), (13, 2)])],
    4,
    &SKYLAKE_UBOX,
);
const SKYLAKE_UPI: Place =
    Place::Functions(&[(0x2058, &[(14, 0), (15, 0), (16, 0)])], 8, &SKYLAKE_UBOX);
/// Linux, `skx_uncore_iio_constraints` and `icx_uncore_iio_constraints`.
const SKYLAKE_IIO_ONLY: &[(u8, u8)] =
    &[(0x83, 3), (0x88, 12), (0x95, 12), (0xc0, 12), (0xc5, 12), (0xd4, 12), (0xd5, 12)];
const IIO_ONLY: &[(u8, u8)] =
    &[(0x02, 3), (0x03, 3), (0x83, 3), (0x88, 12), (0xc0, 12), (0xc5, 12), (0xd5, 12)];
pub(super) static SKYLAKE: [Kind; 4] = [
    SKYLAKE_CHA,
    Kind { place: SKYLAKE_CHANNELS, ..CONFIG },
    // Linux, `SKX_UPI_PCI_PMON_*`; the unit mask goes on from bit 32 (`SKX_UPI_CTL_UMASK_EXT`).
    Kind {
        unit: Unit::Link,
        control: 0x350,
        counter: 0x318,
        own: Some(0x378),
        place: SKYLAKE_UPI,
        select: SELECT_8 | 0xff_efff << 32,
        ..PLAIN
    },
    // Linux, `SKX_IIO0_MSR_PMON_*`: a threshold of 12 bits, the ports (43:36) and the kind of request (46:44).
    Kind {
        unit: Unit::Io,
        control: 8,
        counter: 1,
        place: Place::Msrs(&[(0xa40, 0x20, 6)]),
        only: SKYLAKE_IIO_ONLY,
        select: SELECT_8 | 0x7fff << 32,
        ..PLAIN
    },
];

/// Linux, `icx_uncore_pci_ids`.
const ICE_LAKE_UPI: Place =
    Place::Functions(&[(0x3441, &[(2, 1), (3, 1), (4, 1)])], 8, &ICE_LAKE_UBOX);
const ICE_LAKE_M2M: Place =
    Place::Functions(&[(0x344a, &[(12, 0), (13, 0), (14, 0), (15, 0)])], 8, &ICE_LAKE_UBOX);
/// Linux, `ICX_UPI_PCI_PMON_*`, `ICX_UPI_CTL_UMASK_EXT`.
const UPI: Kind = Kind {
    unit: Unit::Link,
    control: 0x350,
    counter: 0x320,
    own: Some(0x318),
    place: ICE_LAKE_UPI,
    select: SELECT_8 | 0xff_ffff << 32,
    ..PLAIN
};
pub(super) static ICE_LAKE: [Kind; 4] = [
    ICE_LAKE_CHA,
    // Linux, `SNR_IMC_MMIO_PMON_CTL0`, `_CTR0`.
    Kind { control: 0x40, counter: 8, place: Place::Channels(&ICE_LAKE_UBOX), ..PLAIN },
    UPI,
    // Linux, `SNR_M2M_PCI_PMON_*`.
    Kind {
        unit: Unit::Mesh,
        control: 0x468,
        counter: 0x440,
        own: Some(0x438),
        place: ICE_LAKE_M2M,
        select: SELECT_8 | 0xff << 32,
        ..PLAIN
    },
];

/// Linux, `SPR_RAW_EVENT_MASK_EXT`.
const SELECT_LONG: u64 = SELECT_8 | 0xff_ffff << 32;
/// What the table lists: Linux, `spr_uncores` and `gnr_uncores`. Controls in memory have 32 bits.
const LISTED_CHANNELS: Kind = Kind { place: Place::Listed(6), ..PLAIN };
const LISTED_IRP: Kind =
    Kind { unit: Unit::Coherence, place: Place::Listed(2), select: SELECT_LONG, ..PLAIN };
const LISTED_POWER: Kind = Kind { unit: Unit::Power, place: Place::Listed(4), ..PLAIN };
/// Linux, `SNR_IIO_PMON_RAW_EVENT_MASK_EXT`: the ports are at 47:36, the kind of request at 50:48.
const LISTED_IIO: Kind = Kind {
    unit: Unit::Io,
    place: Place::Listed(1),
    only: IIO_ONLY,
    select: SELECT_8 | 0x7_ffff << 32,
    ..PLAIN
};
/// The table of some has links wrong, so Linux finds them by their id (`spr_update_device_location`).
const SAPPHIRE_RAPIDS_UPI: Place = Place::Functions(&[(0x3241, &[])], 8, &SAPPHIRE_RAPIDS_UBOX);
pub(super) static SAPPHIRE_RAPIDS: [Kind; 7] = [
    SAPPHIRE_RAPIDS_CHA,
    LISTED_CHANNELS,
    Kind { place: SAPPHIRE_RAPIDS_UPI, ..UPI },
    Kind { unit: Unit::Mesh, place: Place::Listed(7), select: SELECT_LONG, ..PLAIN },
    LISTED_IIO,
    LISTED_IRP,
    LISTED_POWER,
];

/// Granite Rapids, Sierra Forest, Grand Ridge and Clearwater Forest: all of theirs are listed (Linux, `gnr_uncore_init`).
pub(super) static GRANITE_RAPIDS: [Kind; 6] = [
    Kind {
        unit: Unit::Caching,
        place: Place::Listed(0),
        only: CHA_FIRST,
        select: SELECT_LONG,
        ..PLAIN
    },
    LISTED_CHANNELS,
    Kind { unit: Unit::Link, place: Place::Listed(8), select: SELECT_LONG, ..PLAIN },
    LISTED_IIO,
    LISTED_IRP,
    LISTED_POWER,
];
