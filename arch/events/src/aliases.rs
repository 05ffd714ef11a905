//! Other names of the tables: perfmon's short ones (`skx`), libpfm4's (`hsw_ep`, `adl_glc`), those
//! of products whose cores a table describes (`alderlake` has two), and what people say.

use crate::tables::fold;

/// A name, and the tables that it means: several on hybrid parts.
type Alias = (&'static str, &'static [&'static str]);

/// Names are compared by their folded spelling: `hsw_ep` is also `HSW-EP`.
const ALIASES: [Alias; 125] = [
    ("adl", &["goldencove", "gracemont"]),
    ("adl_glc", &["goldencove"]),
    ("adl_grt", &["gracemont"]),
    ("alderlake", &["goldencove", "gracemont"]),
    ("alderlaken", &["gracemont"]),
    ("amberlake", &["skylake"]),
    ("amd64_fam10h_barcelona", &["k10_barcelona"]),
    ("amd64_fam10h_istanbul", &["k10_istanbul"]),
    ("amd64_fam10h_shanghai", &["k10_shanghai"]),
    ("amd64_fam11h_turion", &["turion"]),
    ("amd64_fam12h_llano", &["llano"]),
    ("amd64_fam14h_bobcat", &["bobcat"]),
    ("amd64_fam15h_interlagos", &["bulldozer"]),
    ("amd64_fam16h", &["jaguar"]),
    ("amd64_fam17h", &["zen1"]),
    ("amd64_fam17h_zen1", &["zen1"]),
    ("amd64_fam17h_zen2", &["zen2"]),
    ("amd64_fam19h_zen3", &["zen3"]),
    ("amd64_fam19h_zen4", &["zen4"]),
    ("amd64_fam1ah_zen5", &["zen5"]),
    ("apollolake", &["goldmont"]),
    ("arl", &["lioncove_arl", "skymont_arl", "crestmont_arl"]),
    ("arrowlake", &["lioncove_arl", "skymont_arl", "crestmont_arl"]),
    ("atom", &["bonnell"]),
    ("bdw", &["broadwell"]),
    ("bdw_de", &["broadwellde"]),
    ("bdw_ep", &["broadwellx"]),
    ("bdx", &["broadwellx"]),
    ("bergamo", &["zen4"]),
    ("bnl", &["bonnell"]),
    ("broadwell_ep", &["broadwellx"]),
    ("cascadelake", &["cascadelakex"]),
    ("cfl", &["skylake"]),
    ("clx", &["cascadelakex"]),
    ("cml", &["skylake"]),
    ("coffeelake", &["skylake"]),
    ("cometlake", &["skylake"]),
    ("conroe", &["core2"]),
    ("cooperlake", &["cascadelakex"]),
    ("cpx", &["cascadelakex"]),
    ("cwf", &["clearwaterforest"]),
    ("denverton", &["goldmont"]),
    ("ehl", &["elkhartlake"]),
    ("emr", &["emeraldrapids"]),
    ("excavator", &["bulldozer"]),
    ("geminilake", &["goldmontplus"]),
    ("genoa", &["zen4"]),
    ("glc", &["goldencove"]),
    ("glm", &["goldmont"]),
    ("glp", &["goldmontplus"]),
    ("gnr", &["graniterapids"]),
    ("grr", &["grandridge"]),
    ("grt", &["gracemont"]),
    ("haswell_ep", &["haswellx"]),
    ("hsw", &["haswell"]),
    ("hsw_ep", &["haswellx"]),
    ("hsx", &["haswellx"]),
    ("icelake_server", &["icelakex"]),
    ("icl", &["icelake"]),
    ("icx", &["icelakex"]),
    ("ivb", &["ivybridge"]),
    ("ivb_ep", &["ivytown"]),
    ("ivt", &["ivytown"]),
    ("ivybridge_ep", &["ivytown"]),
    ("jasperlake", &["elkhartlake"]),
    ("jkt", &["jaketown"]),
    ("kabylake", &["skylake"]),
    ("kbl", &["skylake"]),
    ("knightsmill", &["knightslanding"]),
    ("knl", &["knightslanding"]),
    ("knm", &["knightslanding"]),
    ("lnl", &["lioncove_lnl", "skymont_lnl"]),
    ("lunarlake", &["lioncove_lnl", "skymont_lnl"]),
    ("merom", &["core2"]),
    ("meteorlake", &["redwoodcove", "crestmont_mtl"]),
    ("milan", &["zen3"]),
    ("mtl", &["redwoodcove", "crestmont_mtl"]),
    ("naples", &["zen1"]),
    ("nehalem", &["nehalemep"]),
    ("nhm", &["nehalemep"]),
    ("nhm_ep", &["nehalemep"]),
    ("nhm_ex", &["nehalemex"]),
    ("novalake", &["coyotecove", "arcticwolf"]),
    ("nvl", &["coyotecove", "arcticwolf"]),
    ("pantherlake", &["cougarcove", "darkmont"]),
    ("penryn", &["core2"]),
    ("piledriver", &["bulldozer"]),
    ("ptl", &["cougarcove", "darkmont"]),
    ("puma", &["jaguar"]),
    ("raptorlake", &["goldencove", "gracemont"]),
    ("rkl", &["rocketlake"]),
    ("rome", &["zen2"]),
    ("rpl", &["goldencove", "gracemont"]),
    ("sandybridge_ep", &["jaketown"]),
    ("skl", &["skylake"]),
    ("skx", &["skylakex"]),
    ("skylake_server", &["skylakex"]),
    ("skylake_sp", &["skylakex"]),
    ("slm", &["silvermont"]),
    ("snb", &["sandybridge"]),
    ("snb_ep", &["jaketown"]),
    ("snowridge", &["snowridgex"]),
    ("snr", &["snowridgex"]),
    ("spr", &["sapphirerapids"]),
    ("srf", &["sierraforest"]),
    ("steamroller", &["bulldozer"]),
    ("tgl", &["tigerlake"]),
    ("tmt", &["elkhartlake"]),
    ("tnt", &["elkhartlake"]),
    ("tremont", &["elkhartlake"]),
    ("turin", &["zen5"]),
    ("westmere", &["westmereep_dp"]),
    ("whiskeylake", &["skylake"]),
    ("wsm", &["westmereep_sp"]),
    ("wsm_dp", &["westmereep_dp"]),
    ("wsm_ep_dp", &["westmereep_dp"]),
    ("wsm_ep_sp", &["westmereep_sp"]),
    ("wsm_ex", &["westmereex"]),
    ("zen", &["zen1"]),
    ("zenplus", &["zen1"]),
    ("znver1", &["zen1"]),
    ("znver2", &["zen2"]),
    ("znver3", &["zen3"]),
    ("znver4", &["zen4"]),
    ("znver5", &["zen5"]),
];

/// The tables that another name means, the performance cores first. Empty: it is no other name of
/// any.
#[must_use]
pub fn tables_of(name: &str) -> &'static [&'static str] {
    ALIASES.iter().find(|(alias, _)| fold::same(alias, name)).map_or(&[], |(_, tables)| tables)
}

/// Whether two names of tables, other names included, can mean the same one.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    let means = |name: &str, table: &str| {
        fold::same(name, table) || tables_of(name).iter().any(|other| fold::same(other, table))
    };
    means(b, a) || tables_of(a).iter().any(|table| means(b, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_none_is_there_twice() {
        let names: Vec<&str> = ALIASES.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted());
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].iter().any(|other| fold::same(other, name)), "{name}");
        }
    }

    #[test]
    fn other_names_of_one_table_are_the_same() {
        assert!(same("skx", "SkyLake-X") && same("SKYLAKE_SP", "skx") && same("a", "A"));
        assert!(same("alderlake", "gracemont") && same("gracemont", "rpl") && same("adl", "rpl"));
        assert!(!same("skx", "skylake") && !same("adl_glc", "adl_grt") && !same("x", "y"));
        // A name and its table, in either order; a name that is nobody's is itself alone.
        assert!(same("znver5", "zen5") && same("ZEN5", "znver5") && same("no-such", "NoSuch"));
        assert!(!same("znver5", "zen4") && !same("zen4", "znver5") && !same("no-such", "zen5"));
        assert!(tables_of("skylakex").is_empty(), "its own name is no other name");
    }

    /// Every short name and every product of perfmon's files is there.
    #[cfg(feature = "pack")]
    #[test]
    fn i11_perfmons_names_mean_their_tables() {
        let tables = crate::test_support::tables();
        for (name, meant) in ALIASES {
            for table in meant {
                assert!(tables.named(table).is_some(), "{name} means {table}, which is not there");
            }
            assert!(tables.named(name).is_none(), "{name} is a table itself");
        }
        for core in tables.cores() {
            let Some((short, file)) =
                core.source().strip_prefix("perfmon:").and_then(|path| path.split_once("/events/"))
            else {
                continue;
            };
            let product = file.split('_').next().unwrap_or(file);
            for name in [short, product] {
                assert!(same(name, core.name()), "{name} does not mean {}", core.name());
            }
        }
    }
}
