use super::*;
use crate::job::file::parse;

fn read(keys: &str) -> Result<Facts<'static>, String> {
    let file =
        parse(&format!("[[facts]]\n{keys}"), "job.toml").map_err(|error| error.to_string())?;
    let [sheet] = &file.fact_sheets[..] else { panic!("one sheet") };
    sheet.check_expected("job.toml").map_err(|error| error.to_string())?;
    let packed = FactsFile::pack(&file, &file.fact_sheets, &Programs::default());
    let (item, _) = packed.map_err(|error| error.to_string())?.remove(0);
    assert_eq!(sheet.memory.len(), usize::from(sheet.parts.memory));
    match item {
        Item::Facts(facts) => Ok(facts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn d3_d4_parts_are_chosen_and_all_of_them_are_the_default() {
    let all = read("").unwrap();
    assert_eq!(all.parts, Parts { memory: true, core: true, cores: true, noise: true });
    assert_eq!((all.bytes, all.watch), (BYTES, Watch { ms: 0, threshold_ns: 1000, smis: 0 }));
    let some = read("parts = [\"noise\", \"cores\"]\nwindow-ms = 20\nthreshold-ns = 500\nsmis = 3")
        .unwrap();
    assert_eq!(some.parts, Parts { memory: false, core: false, cores: true, noise: true });
    assert_eq!((some.bytes, some.watch), (0, Watch { ms: 20, threshold_ns: 500, smis: 3 }));
}

#[test]
fn d3_d4_what_parts_do_not_have_is_refused() {
    for (keys, says) in [
        ("parts = []", "parts is empty"),
        ("parts = [\"front\"]", "front"),
        ("parts = [\"cores\"]\nmemory = \"64M\"", "memory is for the part `memory`"),
        ("parts = [\"memory\"]\nsmis = 1", "smis is for the part `noise`"),
        ("window-ms = 0", "window-ms is 0"),
        ("window-ms = 600001", "window-ms is 600001"),
        ("threshold-ns = 49", "threshold-ns is 49"),
        ("smis = 101", "smis is 101"),
        ("expect = { \"wake by sleep ticks\" = 1 }", "wake by sleep ticks"),
    ] {
        let error = read(keys).unwrap_err();
        assert!(error.contains(says), "{keys}: {error}");
    }
    read("expect = { gaps = 0, \"farthest cores by lock xadd ticks\" = { max = 500 }, \"syscall ticks\" = { max = 900 } }").unwrap();
}
