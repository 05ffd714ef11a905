use super::*;
use crate::cli::models;
use crate::events::Block;

fn find(text: &str) -> Result<String, String> {
    let block = Block::embedded();
    let name: CpuName = text.parse()?;
    let found = name.core(&block.tables()).map(|core| core.name().to_string());
    found.map_err(|error| error.to_string())
}

#[test]
fn a_processor_is_named_by_table_model_or_number() {
    for (text, table) in [
        ("skylakex", "skylakex"),
        ("SkyLake-X", "skylakex"),
        ("6.0x5e", "skylake"),
        ("6.94", "skylake"),
        ("0x6.0x55.4", "skylakex"),
        ("6.85.7", "cascadelakex"),
        ("23.0x31", "zen2"),
        ("0x19.0x61", "zen4"),
        ("0x12.1", "arcticwolf"),
        ("arrowlake", "lioncove_arl"),
        ("nehalem", "nehalemep"),
        ("skx", "skylakex"),
        ("SPR", "sapphirerapids"),
        ("icx", "icelakex"),
        ("hsw-ep", "haswellx"),
        ("coffeelake", "skylake"),
        ("rome", "zen2"),
    ] {
        if table == "arcticwolf" {
            // Hybrid: two tables.
            let error = find(text).unwrap_err();
            assert!(
                error.contains("arcticwolf (Atom") && error.contains("coyotecove (Core"),
                "{error}"
            );
        } else {
            assert_eq!(find(text).as_deref(), Ok(table), "{text}");
        }
    }
}

#[test]
fn what_is_not_known_is_told_with_what_is_near() {
    for (text, parts) in [
        ("skylke", &["\"skylke\"", "did you mean skylake", "skylakex"][..]),
        ("lake", &["did you mean", "rocketlake"]),
        ("qqqqqqqq", &["there is no event table \"qqqqqqqq\"; `events --cpus`"]),
        (
            "6.0x55",
            &[
                "family 0x6 model 0x55",
                "skylakex (stepping 0 to 4)",
                "cascadelakex (stepping 5 to 15)",
            ],
        ),
        (
            "6.0x5d",
            &[
                "family 0x6 model 0x5d",
                "nearest are",
                "skylake (model 0x5e)",
                "goldmont (model 0x5c)",
            ],
        ),
        ("77.1", &["family 0x4d model 0x1; `events --cpus`"]),
        ("6.300", &["its model is \"300\"; it must be 0 to 255"]),
        ("6.0x5e.99", &["its stepping is \"99\"; it must be 0 to 15"]),
        ("6.1.2.3", &["FAMILY.MODEL.STEPPING"]),
        ("6.x", &["its model is \"x\""]),
        ("", &["a name, or a family and a model"]),
        ("alderlake", &["alderlake is ambiguous", "goldencove, gracemont"]),
    ] {
        let error = find(text).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

#[test]
fn i11_a_hybrid_part_means_all_its_cores() {
    let block = Block::embedded();
    let cores = |text: &str| {
        let name: CpuName = text.parse().unwrap();
        let cores = name.cores(&block.tables()).map_err(|error| error.to_string())?;
        Ok::<_, String>(cores.iter().map(|core| core.name().to_string()).collect::<Vec<_>>())
    };
    assert_eq!(cores("alderlake").unwrap(), ["goldencove", "gracemont"]);
    assert_eq!(cores("adl").unwrap(), ["goldencove", "gracemont"]);
    assert_eq!(cores("arrowlake").unwrap(), ["lioncove_arl", "skymont_arl", "crestmont_arl"]);
    assert_eq!(cores("0x12.1").unwrap(), ["arcticwolf", "coyotecove"]);
    assert_eq!(cores("goldencove").unwrap(), ["goldencove"]);
    assert_eq!(cores("skx").unwrap(), ["skylakex"]);
    // Two steppings are two processors, not two cores of one.
    assert!(cores("6.0x55").unwrap_err().contains("skylakex (stepping 0 to 4)"));
    assert!(cores("nosuch").unwrap_err().contains("no event table"));
}

#[test]
fn every_model_has_a_table() {
    let block = Block::embedded();
    let without: Vec<&str> = models()
        .filter(|model| block.tables().core(&key_of(*model).unwrap()).is_err())
        .map(|model| model.spec().name)
        .collect();
    assert_eq!(without, [""; 0]);
    assert_eq!(key_of(Model::None), None);
}
