use super::*;
use crate::test_support::{core, on, skx, skylakex};

/// Event select value and counters of the general-purpose choice.
fn general(encoded: &Encoded, vendor: Vendor) -> (u64, u64) {
    encoded
        .choices
        .iter()
        .find_map(|choice| match choice.counters {
            Counters::General {
                counters, select, ..
            } => Some((select.to_bits(vendor), counters)),
            Counters::Fixed { .. } => None,
        })
        .unwrap_or_else(|| panic!("{encoded:?}"))
}

fn intel(text: &str) -> (u64, u64) {
    general(
        &skx(text).unwrap_or_else(|error| panic!("{error}")),
        Vendor::Intel,
    )
}

fn fixed(encoded: &Encoded) -> Option<(u8, u8)> {
    encoded
        .choices
        .iter()
        .find_map(|choice| match choice.counters {
            Counters::Fixed { index, control } => Some((index, control.to_nibble())),
            Counters::General { .. } => None,
        })
}

fn refusal(result: Result<Encoded, EncodeError>) -> String {
    result.expect_err("refused").to_string()
}

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
fn p6_unit_masks_are_joined_by_name() {
    let encoded = skx("l2_rqsts:demand_data_rd_hit:rfo_hit:u").unwrap();
    assert_eq!(
        general(&encoded, Vendor::Intel).0,
        0x41_0024 | 0xc1 << 8 | 0xc2 << 8
    );
    assert_eq!(encoded.name, "L2_RQSTS.DEMAND_DATA_RD_HIT:RFO_HIT");
    let dotted =
        skx("fp_arith_inst_retired.scalar_double:scalar_single:128b_packed_double").unwrap();
    assert_eq!(general(&dotted, Vendor::Intel).0, 0x43_07c7);
    // MESI on Nehalem: the states of the first-level cache.
    let nehalem = core("nehalemep");
    let processor = Processor::described_by(&nehalem);
    let mesi = on(
        &processor,
        Some(&nehalem),
        "l1d_cache_ld:m_state:e_state:s_state:i_state",
    )
    .unwrap();
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
    assert_eq!(
        skx("inst_retired.any_p").unwrap().name,
        "INST_RETIRED.ANY_P"
    );
    // "any" is AnyThread where the rest is an event, and a unit mask where it is not.
    assert_eq!(intel("uops_issued:any").0, 0x43_010e);
    assert_eq!(intel("uops_issued:any:any").0, 0x63_010e);
    let old = core("cascadelakex");
    let name = "OFFCORE_RESPONSE:request=ALL_RFO:response=L3_HIT_M.SNOOP_NONE";
    let encoded = on(
        &Processor::described_by(&old),
        Some(&old),
        &format!("{name}:u"),
    )
    .unwrap();
    assert_eq!(encoded.name, name);
    assert!(encoded.notes.contains(&Note::Deprecated));
    assert_eq!(general(&encoded, Vendor::Intel).0 >> 16 & 3, 1);
}

#[test]
fn fixed_events_have_both_choices_the_fixed_one_first() {
    for text in [
        "inst_retired.any:u",
        "inst_retired.any_p:u",
        "instructions:u",
        "r00c0:u",
        "cpu/event=0xc0/u",
    ] {
        let encoded = skx(text).unwrap();
        assert_eq!(fixed(&encoded), Some((0, 2)), "{text}");
        assert!(
            matches!(encoded.choices[0].counters, Counters::Fixed { .. }),
            "{text}"
        );
        assert_eq!(general(&encoded, Vendor::Intel), (0x41_00c0, 0xf), "{text}");
    }
    assert_eq!(fixed(&skx("cycles:any").unwrap()), Some((1, 7)));
    // Reference cycles tick at another rate on general-purpose counters: no exchange.
    assert_eq!(skx("cpu_clk_unhalted.ref_tsc").unwrap().choices.len(), 1);
    // What fixed counters do not have leaves the general-purpose ones.
    assert_eq!(fixed(&skx("instructions:c=1").unwrap()), None);
    // A number asks for that counter, a function word for that register.
    assert_eq!(skx("fixed1:k").unwrap().choices.len(), 1);
    assert_eq!(fixed(&skx("0x4300c0").unwrap()), None);
    // Newer tables tell of further pairs by name: TOPDOWN_RETIRING.ALL and .ALL_P.
    let skymont = core("skymont_lnl");
    let processor = Processor::described_by(&skymont);
    let retiring = on(&processor, Some(&skymont), "topdown_retiring.all_p").unwrap();
    assert_eq!(fixed(&retiring).map(|f| f.0), Some(6));
    let retiring = on(&processor, Some(&skymont), "topdown_retiring.all").unwrap();
    assert_eq!(retiring.choices.len(), 2);
}

#[test]
fn m5_msr_qualified_events_bring_their_msr() {
    let msrs = |text: &str| {
        let encoded = skx(text).unwrap_or_else(|error| panic!("{error}"));
        let msr = |choice: &Choice| choice.msr.map(|m| (m.address, m.value));
        encoded.choices.iter().map(msr).collect::<Vec<_>>()
    };
    assert_eq!(
        msrs("mem_trans_retired.load_latency_gt_8:p"),
        [Some((0x3f6, 8))]
    );
    assert_eq!(
        msrs("cpu/event=0xcd,umask=1,ldlat=30/pp"),
        [Some((0x3f6, 30))]
    );
    assert_eq!(
        msrs("mem_trans_retired.load_latency_gt_8:ldlat=50:p"),
        [Some((0x3f6, 50))]
    );
    assert_eq!(
        msrs("cpu/event=0xc6,umask=1,frontend=0x11/p"),
        [Some((0x3f7, 0x11))]
    );
    let both = [Some((0x1a6, 0x10001)), Some((0x1a7, 0x10001))];
    assert_eq!(msrs("offcore_response:offcore_rsp=0x10001"), both);
    assert_eq!(msrs("cpu/event=0xb7,umask=1,offcore_rsp=0x10001/"), both);
    assert_eq!(msrs("cpu/event=0xbb,umask=1,config1=0x10001/"), both);
    assert_eq!(
        msrs("r01bb:offcore_rsp_1=0x10001"),
        [Some((0x1a7, 0x10001))]
    );
    for (text, part) in [
        (
            "cpu/event=0xb7,umask=1/",
            "say what to put there with offcore_rsp=",
        ),
        (
            "offcore_response",
            "say what to put there with offcore_rsp=",
        ),
        ("r01cd", "with ldlat="),
        (
            "r01bb:offcore_rsp_0=1",
            "offcore_rsp_0 is given, but the event does not look at",
        ),
        (
            "instructions:ldlat=3",
            "ldlat is given, but the event does not look at",
        ),
        (
            "cpu/event=0xcd,umask=1,ldlat=2/",
            "the smallest threshold is 3",
        ),
        (
            "cpu/event=0xcd,umask=1,ldlat=65536/",
            "bits 0x10000 of it must not be set",
        ),
        (
            "offcore_response:offcore_rsp=0x7000",
            "bits 0x7000 of it must not be set",
        ),
        (
            "offcore_response:offcore_rsp=1:ldlat=3",
            "more than one value",
        ),
    ] {
        let error = refusal(skx(text));
        assert!(error.contains(part), "{text}: {error}");
    }
    let none = Processor {
        extra_msrs: Vec::new(),
        ..skylakex()
    };
    let error = refusal(on(
        &none,
        Some(&core("skylakex")),
        "mem_trans_retired.load_latency_gt_8",
    ));
    assert!(error.contains("has no PEBS_LD_LAT"), "{error}");
}

#[test]
fn m1_what_cannot_be_had_is_refused_with_its_reason() {
    let later = Processor {
        any_thread: false,
        pebs: None,
        tsx: false,
        ..skylakex()
    };
    let mut masked = skylakex();
    masked.architectural_events &= !0b10_0000;
    let table = core("skylakex");
    let zen = core("zen4");
    let amd = Processor::amd(true, true);
    for (result, part) in [
        (
            skx("fixed0:e"),
            "fixed counter 0 counts one event as it is: it has no edge",
        ),
        (skx("fixed0:c=1"), "it has no counter mask"),
        (skx("fixed7"), "no fixed counter 7"),
        (
            on(&later, Some(&table), "r20c4:any"),
            "EDX[15] says that AnyThread is gone",
        ),
        (
            skx("r20c4:c=256"),
            "cmask is 0x100; on Intel processors it goes up to 0xff",
        ),
        (
            on(&later, Some(&table), "br_inst_retired.near_taken:p"),
            "the processor has no PEBS",
        ),
        (
            on(&later, Some(&table), "r20c4:intx"),
            "no transactional memory",
        ),
        (skx("uops_issued.any:p"), "cannot be counted precisely"),
        (
            skx("br_inst_retired.near_taken:ppp:counter=3"),
            "no counter of this processor can count it",
        ),
        (
            on(&masked, Some(&table), "br_inst_retired.all_branches"),
            "EBX[5] says that branches retired",
        ),
        (
            on(&masked, Some(&table), "r00c4"),
            "EBX[5] says that branches retired",
        ),
        (
            on(&masked, Some(&table), "0x4300c4"),
            "EBX[5] says that branches retired",
        ),
        (
            skx("r20c4:u=0:k=0"),
            "neither in user mode nor in kernel mode",
        ),
        (skx("r20c4:counter=4"), "no general-purpose counter 4"),
        (
            skx("cpu/event=0x1c4/"),
            "event is 0x1c4; on Intel processors it goes up to 0xff",
        ),
        (
            skx("cpu/event=0xc4,umask=0x100/"),
            "the processor has no UMASK2",
        ),
        (skx("r20c4:eq"), "compares with >= and < only"),
        (
            skx("r8000000000000000"),
            "reserved in an Intel event select register",
        ),
        (skx("0x00c0"), "neither in user mode nor in kernel mode"),
        (skx("load-latency-of-something"), "there is no event"),
        (skx("smi"), "the generic event smi has no counterpart"),
        (
            on(&amd, Some(&zen), "ex_ret_instr:p"),
            "instruction-based sampling",
        ),
        (
            on(&amd, Some(&zen), "ex_ret_instr:any"),
            "AMD processors count one hyper-thread",
        ),
        (
            on(&amd, Some(&zen), "cpu/event=0x1000/"),
            "event is 0x1000; on AMD processors it goes up to 0xfff",
        ),
        (
            on(&amd, Some(&zen), "0x2100c0"),
            "reserved in an AMD event select register",
        ),
        (on(&amd, Some(&zen), "fixed0"), "no fixed counter 0"),
        (
            on(&skylakex(), None, "uops_issued.any"),
            "no event table is there",
        ),
    ] {
        let error = refusal(result);
        assert!(error.contains(part), "{error}\n  lacks: {part}");
    }
}

#[test]
fn c7_a_miss_names_what_may_have_been_meant_and_where_it_is() {
    let error = skx("inst_retierd.any").unwrap_err();
    assert!(
        error.to_string().contains("near it are INST_RETIRED.ANY"),
        "{error}"
    );
    let list = crate::parse::parse_list("cycles,l2_rqsts:demand_data_rd_hti:u").unwrap();
    let error = encode(&list[1].requests[0], &skylakex(), Some(&core("skylakex"))).unwrap_err();
    assert_eq!(error.at, 16);
    assert!(error.to_string().contains("DEMAND_DATA_RD_HIT"), "{error}");
    let error = skx("instructions:zz").unwrap_err();
    assert_eq!(error.at, 13);
    assert!(
        error
            .to_string()
            .contains("no unit mask \"zz\", and it is no modifier"),
        "{error}"
    );
    let error = skx("instructions:u:u").unwrap_err();
    assert!(error.to_string().contains("u is given twice"), "{error}");
}

#[test]
fn i11_requests_for_other_cores_are_refused() {
    let golden = core("goldencove");
    let processor = Processor::described_by(&golden);
    for good in [
        "goldencove::instructions",
        "cpu_core/event=0xc0/",
        "cpu/event=0xc0/",
        "core::cycles",
    ] {
        on(&processor, Some(&golden), good).unwrap_or_else(|error| panic!("{error}"));
    }
    for bad in [
        "gracemont::instructions",
        "cpu_atom/event=0xc0/",
        "skylakex::cycles",
    ] {
        let error = refusal(on(&processor, Some(&golden), bad));
        assert!(
            error.contains("but this core has the events of goldencove"),
            "{error}"
        );
    }
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
    let encoded = on(
        &Processor::described_by(&icelake),
        Some(&icelake),
        "arch-llc-references",
    )
    .unwrap();
    assert_eq!(general(&encoded, Vendor::Intel).0, 0x43_4f2e);
}

#[test]
fn amd_large_increments_need_an_even_counter_and_its_neighbour() {
    let zen = core("zen2");
    let merged = |processor: &Processor, text: &str| match on(processor, Some(&zen), text)
        .unwrap()
        .choices[..]
    {
        [
            Choice {
                counters:
                    Counters::General {
                        counters, merge, ..
                    },
                ..
            },
        ] => (counters, merge),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(
        merged(&Processor::amd(true, false), "fp_ret_sse_avx_ops.all"),
        (0x15, true)
    );
    assert_eq!(
        merged(&Processor::amd(false, false), "fp_ret_sse_avx_ops.all"),
        (0x5, true)
    );
    assert_eq!(merged(&Processor::amd(true, false), "rff03"), (0x15, true));
    assert_eq!(
        merged(&Processor::amd(true, false), "ex_ret_instr"),
        (0x3f, false)
    );
    assert_eq!(merge_select().to_bits(Vendor::Amd), 0xf_0040_00ff);
    // Twelve bits of event.
    let stalls = on(&Processor::amd(true, false), Some(&zen), "r100000187").unwrap();
    assert_eq!(general(&stalls, Vendor::Amd).0, 0x1_0043_0187);
}

#[test]
fn raw_codes_have_the_restrictions_of_the_events_with_their_code() {
    // PREC_DIST is on counter 1 only, and so is its code.
    assert_eq!(intel("r01c0").1, 0x2);
    let haswell = core("haswell");
    let processor = Processor::described_by(&haswell);
    let counters = |text: &str| {
        general(
            &on(&processor, Some(&haswell), text).unwrap(),
            Vendor::Intel,
        )
        .1
    };
    // CYCLE_ACTIVITY 0xa3/0x08 with counter mask 8 is on counter 2; it has no other form.
    assert_eq!(counters("r80008a3"), 0x4);
    assert_eq!(counters("r08a3"), 0x4);
    // An unknown unit mask of MEM_UOPS_RETIRED: the others' counters.
    assert_eq!(counters("r05d0"), 0xf);
    assert_eq!(counters("r00ee"), 0xff);
}

#[test]
fn x2_errata_and_remarks_come_along() {
    assert_eq!(skx("inst_retired.any_p").unwrap().errata, "SKL091|SKL044");
    assert!(
        skx("mem_trans_retired.load_latency_gt_8")
            .unwrap()
            .notes
            .contains(&Note::OnlyPrecise)
    );
    assert!(skx("r20c4:e").unwrap().notes.contains(&Note::NoCounterMask));
    assert_eq!(
        skx("r5320c4").unwrap().notes,
        [Note::IgnoredBits(0x53_0000)]
    );
    assert_eq!(skx("0x0320c4").unwrap().notes, [Note::NotEnabled]);
    let haswell = core("haswell");
    let with_sibling = Processor {
        sibling_active: true,
        ..Processor::described_by(&haswell)
    };
    let loads = on(&with_sibling, Some(&haswell), "mem_uops_retired.all_loads").unwrap();
    assert!(loads.notes.contains(&Note::CorruptsSibling));
    let taken = Processor {
        taken_counters: 8,
        ..skylakex()
    };
    let encoded = on(&taken, Some(&core("skylakex")), "uops_issued.any").unwrap();
    assert_eq!(general(&encoded, Vendor::Intel).1, 0x7);
}
