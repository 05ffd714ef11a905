use super::*;
use crate::events::Block;

fn names(table: &str, pattern: &str) -> Vec<String> {
    let block = Block::embedded();
    let core = block.tables().named(table).unwrap();
    events(&core, Some(pattern)).into_iter().map(|row| row.name).collect()
}

#[test]
fn p4_a_pattern_is_a_part_of_a_name_or_has_wild_cards() {
    let some = names("skylake", "l2_rqsts.miss");
    assert!(some.contains(&"L2_RQSTS.MISS".to_string()), "{some:?}");
    assert_eq!(names("skylake", "L2-rqsts_MISS"), some, "spelling is forgiven");
    assert_eq!(names("skylake", "l2_rqsts.mis?"), ["L2_RQSTS.MISS"]);
    let whole = names("skylake", "inst_retired*");
    assert!(
        whole.len() > 1 && whole.iter().all(|name| name.starts_with("INST_RETIRED")),
        "{whole:?}"
    );
    assert_eq!(names("skylake", "nothing_like_this"), [""; 0]);
}

#[test]
fn p4_every_event_of_every_table_is_listed() {
    let block = Block::embedded();
    for core in block.tables().cores() {
        assert_eq!(events(&core, None).len(), core.len(), "{}", core.name());
    }
    let all = cpus(&block.tables());
    assert!(all.len() >= 52);
    let skylake = all.iter().find(|row| row.table == "skylake").unwrap();
    assert!(skylake.processors.contains("0x6.0x5e") && skylake.events > 500, "{skylake:?}");
    let hybrid = all.iter().find(|row| row.table == "goldencove").unwrap();
    assert!(hybrid.processors.contains("0x6.0x97:Core"), "{hybrid:?}");
}

#[test]
fn m2_generic_names_that_mean_something_come_with_what_they_are() {
    let block = Block::embedded();
    let on = |table: &str, pattern| generic_events(&block.tables().named(table).unwrap(), pattern);
    let rows = on("skylakex", Some("branch"));
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["branches", "branch-misses", "arch-branches", "arch-branch-misses"]);
    assert_eq!(rows[0].stands_for, "BR_INST_RETIRED.ALL_BRANCHES");
    assert_eq!((rows[2].select.as_str(), rows[2].counters.as_str()), ("0x4300c4", "0xff"));
    assert!(rows[0].remarks().starts_with("generic: BR_INST"), "{}", rows[0].remarks());
    // Nothing that means nothing: AMD has no fixed counters.
    let amd = on("zen4", None);
    assert!(amd.len() > 10 && amd.iter().all(|row| row.fixed.is_none() && !row.select.is_empty()));
    assert!(amd.iter().all(|row| !row.name.ends_with("-fixed")));
    assert!(on("zen4", Some("nothing-like-this")).is_empty());
}

#[test]
fn m2_generic_events_have_one_number_and_name_and_blanks_are_shown() {
    let block = Block::embedded();
    let mut columns = Vec::new();
    let mut blanks = 0;
    for core in block.tables().cores() {
        let rows = generics(&core, None);
        blanks += rows.iter().filter(|row| row.from.is_empty() && row.event.is_empty()).count();
        columns.push(rows.iter().map(|row| (row.number, row.name)).collect::<Vec<_>>());
    }
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(columns[0].len() == 46 && blanks > 0);
    let skylake = block.tables().named("skylake").unwrap();
    let rows = generics(&skylake, Some("instructions"));
    let row = rows.iter().find(|row| row.name == "instructions").unwrap();
    assert_eq!(row.select, "0x4300c0", "{row:?}");
    let fixed = rows.iter().find(|row| row.name == "instructions-fixed").unwrap();
    assert_eq!((fixed.fixed, fixed.select.as_str()), (Some(0), ""), "{fixed:?}");
    let zen4 = block.tables().named("zen4").unwrap();
    let rows = generics(&zen4, Some("cycles-fixed"));
    assert!(rows.iter().all(|row| row.event.is_empty() && row.fixed.is_none()), "{rows:?}");
}
