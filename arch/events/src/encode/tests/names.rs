use super::*;

#[test]
fn names_in_any_spelling_become_registers() {
    for text in [
        "BR_INST_RETIRED.NEAR_TAKEN",
        "br-inst-retired:near-taken",
        "br_inst_retired:NEAR_TAKEN:u:k",
        "cpu/event=0xc4,umask=0x20/",
        "cpu/br_inst_retired.near_taken/uk",
        "r20c4",
        "0x4320c4",
        "0xc4|0x20<<UM_SHIFT|U|K|EN",
    ] {
        assert_eq!(intel(text), (0x4320c4, 0xf), "{text}");
    }
}

#[test]
fn c8_modifiers_become_their_fields() {
    for (text, value) in [
        ("r20c4:u", 0x4120c4),
        ("r20c4:k", 0x4220c4),
        ("r20c4:u=0", 0x4220c4),
        ("r20c4:e:c=1", 0x01_4720c4),
        ("r20c4:i:c=0x10", 0x10_c320c4),
        ("r20c4:any", 0x6320c4),
        ("uops_issued.any:c=4:i:e:u", 0x04_c5010e),
        ("cpu/event=0x0e,umask=1,cmask=2,inv,edge,any/k", 0x02_e6010e),
        ("r20c4:intx", 0x1_0043_20c4),
    ] {
        assert_eq!(intel(text).0, value, "{text}");
    }
    // perf's longer raw codes: counter mask, invert and edge are in them.
    assert_eq!(intel("r1c420c4:u").0, 0x01c5_20c4);
}

#[test]
fn p6_t4_unit_masks_are_joined_by_name() {
    let encoded = skx("l2_rqsts:demand_data_rd_hit:rfo_hit:u").unwrap();
    assert_eq!(general(&encoded, Vendor::Intel).0, 0x41_0024 | 0xc1 << 8 | 0xc2 << 8);
    assert_eq!(encoded.name, "L2_RQSTS.DEMAND_DATA_RD_HIT:RFO_HIT");
    let dotted =
        skx("fp_arith_inst_retired.scalar_double:scalar_single:128b_packed_double").unwrap();
    assert_eq!(general(&dotted, Vendor::Intel).0, 0x43_07c7);
    // MESI on Nehalem: the states of the first-level cache.
    let nehalem = core("nehalemep");
    let processor = Processor::described_by(&nehalem);
    let mesi =
        on(&processor, Some(&nehalem), "l1d_cache_ld:m_state:e_state:s_state:i_state").unwrap();
    let all = on(&processor, Some(&nehalem), "l1d_cache_ld.mesi").unwrap();
    assert_eq!(general(&mesi, Vendor::Intel), general(&all, Vendor::Intel));
    let different = refusal(skx("cycle_activity:cycles_l2_miss:stalls_total"));
    assert!(different.contains("cannot be joined"), "{different}");
}

#[test]
fn modifiers_are_read_before_longer_names() {
    // INST_RETIRED.ANY_P folds to the same letters as inst_retired.any:p.
    let precise = refusal(skx("inst_retired.any:p"));
    assert!(precise.contains("precisely"), "{precise}");
    assert_eq!(skx("inst_retired.any_p").unwrap().name, "INST_RETIRED.ANY_P");
    // "any" is AnyThread where the rest is an event, and a unit mask where it is not.
    assert_eq!(intel("uops_issued:any").0, 0x43_010e);
    assert_eq!(intel("uops_issued:any:any").0, 0x63_010e);
    let old = core("cascadelakex");
    let name = "OFFCORE_RESPONSE:request=ALL_RFO:response=L3_HIT_M.SNOOP_NONE";
    let encoded = on(&Processor::described_by(&old), Some(&old), &format!("{name}:u")).unwrap();
    assert_eq!(encoded.name, name);
    assert!(encoded.notes.contains(&Note::Deprecated));
    assert_eq!(general(&encoded, Vendor::Intel).0 >> 16 & 3, 1);
}

#[test]
fn m2_generic_events_go_by_name_and_number() {
    assert_eq!(skx("generic5").unwrap().name, "INST_RETIRED.ANY_P");
    assert_eq!(skx("arch-llc-misses").unwrap().name, "arch-llc-misses");
    assert_eq!(intel("arch-llc-misses").0, 0x43_412e);
    let zen = core("zen3");
    let encoded = on(&Processor::amd(true, false), Some(&zen), "cycles").unwrap();
    assert_eq!(general(&encoded, Vendor::Amd).0, 0x43_0076);
    // Without a table: what the vendor promises.
    let encoded = on(&Processor::amd(false, false), None, "branch-misses:u").unwrap();
    assert_eq!(general(&encoded, Vendor::Amd), (0x41_00c3, 0xf));
    let encoded = on(&skylakex(), None, "inst_retired.any").unwrap();
    assert_eq!((encoded.choices.len(), fixed(&encoded)), (2, Some((0, 3))));
    // An empty cell, but an architectural event: LLC references on Ice Lake.
    let icelake = core("icelake");
    let encoded =
        on(&Processor::described_by(&icelake), Some(&icelake), "arch-llc-references").unwrap();
    assert_eq!(general(&encoded, Vendor::Intel).0, 0x43_4f2e);
}

#[test]
fn a_groups_mode_holds_for_members_without_one() {
    let list =
        crate::parse::parse_list("{r20c4,uops_issued.any:k,r02c4:c=1,instructions}:u").unwrap();
    let table = core("skylakex");
    let values: Vec<u64> = list[0]
        .requests
        .iter()
        .map(|request| encode(request, &skylakex(), Some(&table)).unwrap())
        .map(|encoded| general(&encoded, Vendor::Intel).0)
        .collect();
    assert_eq!(values, [0x4120c4, 0x42010e, 0x0141_02c4, 0x4100c0]);
}
