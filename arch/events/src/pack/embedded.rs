//! The project's own data files, compiled into the host tool.

/// Name of a file below `data/`, and its text.
pub(super) type File = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../data/", $name)))),*]
    };
}

/// The tables. A test compares the list with the folder.
pub(super) const TABLES: &[File] = files![
    "amd/bobcat.csv",
    "amd/bulldozer.csv",
    "amd/jaguar.csv",
    "amd/k10_barcelona.csv",
    "amd/k10_istanbul.csv",
    "amd/k10_shanghai.csv",
    "amd/k8.csv",
    "amd/llano.csv",
    "amd/turion.csv",
    "amd/zen1.csv",
    "amd/zen2.csv",
    "amd/zen3.csv",
    "amd/zen4.csv",
    "amd/zen5.csv",
    "intel/arcticwolf.csv",
    "intel/bonnell.csv",
    "intel/broadwell.csv",
    "intel/broadwellde.csv",
    "intel/broadwellx.csv",
    "intel/cascadelakex.csv",
    "intel/clearwaterforest.csv",
    "intel/core2.csv",
    "intel/cougarcove.csv",
    "intel/coyotecove.csv",
    "intel/crestmont_arl.csv",
    "intel/crestmont_mtl.csv",
    "intel/darkmont.csv",
    "intel/elkhartlake.csv",
    "intel/emeraldrapids.csv",
    "intel/goldencove.csv",
    "intel/goldmont.csv",
    "intel/goldmontplus.csv",
    "intel/gracemont.csv",
    "intel/grandridge.csv",
    "intel/graniterapids.csv",
    "intel/haswell.csv",
    "intel/haswellx.csv",
    "intel/icelake.csv",
    "intel/icelakex.csv",
    "intel/ivybridge.csv",
    "intel/ivytown.csv",
    "intel/jaketown.csv",
    "intel/knightslanding.csv",
    "intel/lioncove_arl.csv",
    "intel/lioncove_lnl.csv",
    "intel/nehalemep.csv",
    "intel/nehalemex.csv",
    "intel/redwoodcove.csv",
    "intel/rocketlake.csv",
    "intel/sandybridge.csv",
    "intel/sapphirerapids.csv",
    "intel/sierraforest.csv",
    "intel/silvermont.csv",
    "intel/skylake.csv",
    "intel/skylakex.csv",
    "intel/skymont_arl.csv",
    "intel/skymont_lnl.csv",
    "intel/snowridgex.csv",
    "intel/tigerlake.csv",
    "intel/westmereep_dp.csv",
    "intel/westmereep_sp.csv",
    "intel/westmereex.csv",
];

/// Which processor has which table.
pub(super) const INDEX: File = files!["index.csv"][0];
/// What the generic events are called in each table.
pub(super) const GENERIC: File = files!["generic.csv"][0];
/// Corrections.
pub(super) const OVERRIDES: File = files!["overrides.csv"][0];
/// Events on whose codes the sources do not agree.
pub(super) const DOUBTS: File = files!["doubts.csv"][0];
/// Bits of extra MSRs that may be set.
pub(super) const MSR_BITS: File = files!["msr_bits.csv"][0];
