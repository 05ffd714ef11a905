//! Thirty cores, each with what its maker's manuals say of it.
//!
//! Sources. Counters, widths and versions of Intel: SDM vol. 3, "Performance Monitoring", the sections by microarchitecture
//! (four counters with hyper-threading and eight without from Nehalem's successors to Skylake; eight and four fixed ones
//! from Ice Lake's P-cores on, six by leaf 0xA on a hybrid package, which tells what all its cores have). AMD: the BKDGs of
//! families 0Fh to 16h (four counters, six from 15h on but not on 16h), the PPRs of 17h to 1Ah (six; PerfMonV2 from Zen 4).

use crate::outcome::Outcome;
use recorded::cores;

/// Name, family, model, version, counters and width, fixed counters and width, table.
type Row = (&'static str, [u32; 2], u32, [u32; 2], [u32; 2], Option<&'static str>);

const ROWS: [Row; 30] = [
    ("intel-ia-32-p6-intel-core-duo-cpu-t2600", [6, 0x0e], 1, [2, 40], [0, 0], None),
    ("intel-x86-64-core-intel-core2-duo-cpu-e6750", [6, 0x0f], 2, [2, 40], [3, 40], Some("core2")),
    ("intel-x86-64-core-intel-core2-duo-cpu-p8400", [6, 0x17], 2, [2, 40], [3, 40], Some("core2")),
    ("intel-x86-64-core-intel-xeon-cpu-e7450-quad", [6, 0x1d], 2, [2, 40], [3, 40], Some("core2")),
    (
        "intel-x86-64-nehalem-intel-core-i7-cpu-920",
        [6, 0x1a],
        3,
        [4, 48],
        [3, 48],
        Some("nehalemep"),
    ),
    (
        "intel-x86-64-nehalem-intel-core-i7-cpu-x-980",
        [6, 0x2c],
        3,
        [4, 48],
        [3, 48],
        Some("westmereep_dp"),
    ),
    (
        "intel-x86-64-sandy-bridge-intel-core-i7-2600-cpu",
        [6, 0x2a],
        3,
        [4, 48],
        [3, 48],
        Some("sandybridge"),
    ),
    (
        "intel-x86-64-sandy-bridge-intel-celeron-cpu-g540",
        [6, 0x2a],
        3,
        [8, 48],
        [3, 48],
        Some("sandybridge"),
    ),
    (
        "intel-x86-64-haswell-intel-core-i3-4130-cpu",
        [6, 0x3c],
        3,
        [4, 48],
        [3, 48],
        Some("haswell"),
    ),
    (
        "intel-x86-64-haswell-intel-core-i7-6800k-cpu",
        [6, 0x4f],
        3,
        [4, 48],
        [3, 48],
        Some("broadwellx"),
    ),
    (
        "intel-x86-64-skylake-intel-core-i3-6100-cpu",
        [6, 0x5e],
        4,
        [4, 48],
        [3, 48],
        Some("skylake"),
    ),
    (
        "intel-x86-64-skylake-intel-core-i5-6400t-cpu",
        [6, 0x5e],
        4,
        [8, 48],
        [3, 48],
        Some("skylake"),
    ),
    (
        "intel-x86-64-skylake-intel-core-i7-7800x-cpu",
        [6, 0x55],
        4,
        [4, 48],
        [3, 48],
        Some("skylakex"),
    ),
    (
        "intel-x86-64-skylake-intel-core-i9-10940x-cpu",
        [6, 0x55],
        4,
        [4, 48],
        [3, 48],
        Some("cascadelakex"),
    ),
    ("intel-x86-64-palm-cove-intel-core-i3-8121u-cpu", [6, 0x66], 4, [4, 48], [3, 48], None),
    (
        "intel-x86-64-cypress-cove-11th-gen-intel-core-i7-11700k",
        [6, 0xa7],
        5,
        [8, 48],
        [4, 48],
        Some("rocketlake"),
    ),
    (
        "intel-x86-64-golden-cove-12th-gen-intel-core-i5-12400",
        [6, 0x97],
        5,
        [8, 48],
        [4, 48],
        Some("goldencove"),
    ),
    (
        "intel-x86-64-golden-cove-12th-gen-intel-core-i7-12700h-p-core",
        [6, 0x9a],
        5,
        [8, 48],
        [4, 48],
        Some("goldencove"),
    ),
    (
        "intel-x86-64-golden-cove-12th-gen-intel-core-i7-12700h-e-core",
        [6, 0x9a],
        5,
        [6, 48],
        [3, 48],
        Some("gracemont"),
    ),
    (
        "intel-x86-64-lion-cove-intel-core-ultra-5-245k-p-core",
        [6, 0xc6],
        6,
        [10, 48],
        [4, 48],
        Some("lioncove_arl"),
    ),
    (
        "intel-x86-64-lion-cove-intel-core-ultra-5-245k-e-core",
        [6, 0xc6],
        6,
        [8, 48],
        [6, 48],
        Some("skymont_arl"),
    ),
    ("amd-k8-amd-opteron-processor-248", [0xf, 0x05], 0, [4, 48], [0, 0], Some("k8")),
    (
        "amd-k10-amd-phenom-9500-quad-core-processor",
        [0x10, 0x02],
        0,
        [4, 48],
        [0, 0],
        Some("k10_barcelona"),
    ),
    (
        "amd-bulldozer-amd-fx-8350-eight-core-processor",
        [0x15, 0x02],
        1,
        [6, 48],
        [0, 0],
        Some("bulldozer"),
    ),
    (
        "amd-jaguar-amd-a4-5000-apu-with-radeon-hd-graphics",
        [0x16, 0x00],
        0,
        [4, 48],
        [0, 0],
        Some("jaguar"),
    ),
    (
        "amd-zen-amd-ryzen-7-2700x-eight-core-processor",
        [0x17, 0x08],
        1,
        [6, 48],
        [0, 0],
        Some("zen1"),
    ),
    (
        "amd-zen2-amd-ryzen-threadripper-pro-3955wx-16-cores",
        [0x17, 0x31],
        1,
        [6, 48],
        [0, 0],
        Some("zen2"),
    ),
    (
        "amd-zen3-amd-ryzen-9-5900x-12-core-processor",
        [0x19, 0x21],
        1,
        [6, 48],
        [0, 0],
        Some("zen3"),
    ),
    ("amd-zen4-amd-ryzen-5-7600x-6-core-processor", [0x19, 0x61], 2, [6, 48], [0, 0], Some("zen4")),
    ("amd-zen5-amd-ryzen-7-9700x-8-core-processor", [0x1a, 0x44], 2, [6, 48], [0, 0], Some("zen5")),
];

#[test]
fn c6_thirty_recorded_cores_are_what_their_manuals_say() {
    for (name, [family, model], version, counters, fixed, table) in ROWS {
        let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
        let outcome = Outcome::of(&core.leaves);
        let identity = &outcome.identity;
        assert_eq!([identity.family, identity.model], [family, model], "{name}");
        let pmu = outcome.pmu.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(pmu.version, version, "{name}");
        assert_eq!([pmu.counters, pmu.bits], counters, "{name}");
        assert_eq!([pmu.fixed, pmu.fixed_bits], fixed, "{name}");
        assert_eq!(pmu.table.as_deref().ok(), table, "{name}: {:?}", pmu.table);
        assert_eq!(pmu.intel, name.starts_with("intel"), "{name}");
        // One that is given no table is told so.
        if let Err(why) = &pmu.table {
            assert!(why.contains("no event table"), "{name}: {why}");
        }
    }
}
