use super::*;

#[test]
fn m1_what_cannot_be_had_is_refused_with_its_reason() {
    let later = Processor { any_thread: false, pebs: None, tsx: false, ..skylakex() };
    let mut masked = skylakex();
    masked.architectural_events &= !0b10_0000;
    let table = core("skylakex");
    let zen = core("zen4");
    let amd = Processor::amd(true, true);
    for (result, part) in [
        (skx("fixed0:e"), "fixed counter 0 always counts the same event: it has no edge"),
        (skx("fixed0:c=1"), "it has no counter mask"),
        (skx("fixed0:intx"), "it has no transaction qualifier"),
        (skx("fixed0:intxcp"), "it has no transaction qualifier"),
        (skx("fixed7"), "no fixed counter 7"),
        (
            skx("r01c0:counter=0"),
            "no counter of this processor can count it: the event needs 1, the processor has 0, 1, 2, 3",
        ),
        (skx("0x8004300c0"), "bit 35 is not available"),
        (
            skx("cpu/br_inst_retired.near_taken,umask=0x10000/"),
            "the maximum on Intel processors is 0xffff",
        ),
        (
            on(&amd, Some(&zen), "cpu/ex_ret_instr,umask=0x100/"),
            "umask is 0x100; the maximum on AMD processors is 0xff",
        ),
        (on(&skylakex(), None, "inst_retired.any:zz"), "has no unit mask \"zz\""),
        (on(&later, Some(&table), "r20c4:any"), "EDX[15] marks AnyThread as deprecated"),
        (skx("r20c4:c=256"), "cmask is 0x100; the maximum on Intel processors is 0xff"),
        (on(&later, Some(&table), "br_inst_retired.near_taken:p"), "the processor has no PEBS"),
        (on(&later, Some(&table), "r20c4:intx"), "no transactional memory"),
        (skx("uops_issued.any:p"), "cannot be counted precisely"),
        (skx("br_inst_retired.near_taken:retire_latency"), "records do not state it"),
        (
            skx("br_inst_retired.near_taken:ppp:counter=3"),
            "no counter of this processor can count it",
        ),
        (
            on(&masked, Some(&table), "br_inst_retired.all_branches"),
            "EBX[5] marks branches retired",
        ),
        (on(&masked, Some(&table), "r00c4"), "EBX[5] marks branches retired"),
        (on(&masked, Some(&table), "0x4300c4"), "EBX[5] marks branches retired"),
        (skx("r20c4:u=0:k=0"), "must count in user mode, in kernel mode, or in both"),
        (skx("r20c4:counter=4"), "no usable general-purpose counter 4"),
        (skx("cpu/event=0x1c4/"), "event is 0x1c4; the maximum on Intel processors is 0xff"),
        (skx("cpu/event=0xc4,umask=0x100/"), "the processor has no UMASK2"),
        (skx("r20c4:eq"), "compares only with >= and <"),
        (skx("r8000000000000000"), "reserved in an Intel event select register"),
        (skx("0x00c0"), "must count in user mode, in kernel mode, or in both"),
        (skx("load-latency-of-something"), "there is no event"),
        (skx("energy-pkg"), "energy-pkg is not counted by a counter: energy is read before"),
        (skx("energy-ram:u"), "energy-ram is not counted by a counter"),
        (skx("smi"), "the generic event smi has no counterpart"),
        (on(&amd, Some(&zen), "ex_ret_instr:p"), "instruction-based sampling"),
        (on(&amd, Some(&zen), "ex_ret_instr:any"), "AMD processors count one hyper-thread"),
        (
            on(&amd, Some(&zen), "cpu/event=0x1000/"),
            "event is 0x1000; the maximum on AMD processors is 0xfff",
        ),
        (on(&amd, Some(&zen), "0x2100c0"), "reserved in an AMD event select register"),
        (on(&amd, Some(&zen), "fixed0"), "no fixed counter 0"),
        (on(&skylakex(), None, "uops_issued.any"), "there is no event table"),
    ] {
        let error = refusal(result);
        assert!(error.contains(part), "{error}\n  lacks: {part}");
    }
}

/// Modifiers of a group hold for each of its members: a word has those that are not in its register, and refuses the others.
#[test]
fn p2_a_function_word_refuses_modifiers_of_its_register() {
    let first = |text: &str| {
        let list = crate::parse::parse_list(text).unwrap();
        encode(&list[0].requests[0], &skylakex(), Some(&core("skylakex")))
    };
    for modifier in ["u", "k=0", "c=1", "e", "i", "intx", "umask=1", "ldlat=3", "config1=1"] {
        let error = refusal(first(&format!("{{0x4300c0,0x4300c1}}:{modifier}")));
        assert!(error.contains("a modifier of a function word"), "{modifier}: {error}");
        assert!(error.contains("a raw code, such as r00c0"), "{modifier}: {error}");
    }
    for modifier in ["p", "ppp", "u:pp"] {
        let error = refusal(first(&format!("{{0x4300c0,0x4300c1}}:{modifier}")));
        assert!(error.contains("precise counting of a function word"), "{modifier}: {error}");
    }
    let plain = first("{0x4300c0,0x4300c1}").unwrap();
    assert_eq!((general(&plain, Vendor::Intel), plain.taken_alone), ((0x43_00c0, 0xf), false));
    let second = first("{0x4300c0}:counter=2:alone:name=retired").unwrap();
    assert_eq!(general(&second, Vendor::Intel), (0x43_00c0, 1 << 2));
    assert_eq!((second.label.as_deref(), second.taken_alone), (Some("retired"), true));
    let error = refusal(first("{0x4300c0}:counter=4"));
    assert!(error.contains("no usable general-purpose counter 4"), "{error}");
}

#[test]
fn c7_a_miss_names_what_may_have_been_meant_and_where_it_is() {
    let error = skx("inst_retierd.any").unwrap_err();
    assert!(error.to_string().contains("near it are INST_RETIRED.ANY"), "{error}");
    let list = crate::parse::parse_list("cycles,l2_rqsts:demand_data_rd_hti:u").unwrap();
    let error = encode(&list[1].requests[0], &skylakex(), Some(&core("skylakex"))).unwrap_err();
    assert_eq!(error.at, 16);
    assert!(error.to_string().contains("DEMAND_DATA_RD_HIT"), "{error}");
    let error = skx("instructions:zz").unwrap_err();
    assert_eq!(error.at, 13);
    assert!(
        error.to_string().contains("no unit mask \"zz\", and there is no such modifier"),
        "{error}"
    );
    let error = skx("instructions:u:u").unwrap_err();
    assert!(error.to_string().contains("u is given twice"), "{error}");
}

#[test]
fn i11_requests_for_other_cores_are_refused() {
    let golden = core("goldencove");
    let processor = Processor::described_by(&golden);
    for good in
        ["goldencove::instructions", "cpu_core/event=0xc0/", "cpu/event=0xc0/", "core::cycles"]
    {
        on(&processor, Some(&golden), good).unwrap_or_else(|error| panic!("{error}"));
    }
    for bad in ["gracemont::instructions", "cpu_atom/event=0xc0/", "skylakex::cycles"] {
        let error = refusal(on(&processor, Some(&golden), bad));
        assert!(error.contains("but this core has the events of goldencove"), "{error}");
    }
}

#[test]
fn x2_errata_and_remarks_come_along() {
    assert_eq!(skx("inst_retired.any_p").unwrap().errata, "SKL091|SKL044");
    assert!(skx("mem_trans_retired.load_latency_gt_8").unwrap().notes.contains(&Note::OnlyPrecise));
    assert!(skx("r20c4:e").unwrap().notes.contains(&Note::NoCounterMask));
    assert_eq!(skx("r5320c4").unwrap().notes, [Note::IgnoredBits(0x53_0000)]);
    assert_eq!(skx("0x0320c4").unwrap().notes, [Note::NotEnabled]);
    let haswell = core("haswell");
    let with_sibling = Processor { sibling_active: true, ..Processor::described_by(&haswell) };
    let loads = on(&with_sibling, Some(&haswell), "mem_uops_retired.all_loads").unwrap();
    assert!(loads.notes.contains(&Note::CorruptsSibling));
    let taken = Processor { taken_counters: 8, ..skylakex() };
    let encoded = on(&taken, Some(&core("skylakex")), "uops_issued.any").unwrap();
    assert_eq!(general(&encoded, Vendor::Intel).1, 0x7);
}

#[test]
fn what_a_table_does_not_show_is_not_laid_to_cpuid() {
    let described = |name: &str, text: &str| {
        let core = core(name);
        on(&Processor::described_by(&core), Some(&core), text)
    };
    // Skylake-X has events of transactional memory, so its processors can qualify by it.
    for table in ["skylakex", "haswell", "icelakex"] {
        let encoded = described(table, "r20c4:intx").unwrap();
        assert_eq!(general(&encoded, Vendor::Intel).0 >> 32, 1, "{table}");
    }
    for (table, text, part) in [
        ("ivybridge", "r20c4:intx", "no event of its table uses transactional memory"),
        ("zen4", "ex_ret_instr:intx", "AMD processors have no transactional memory"),
        ("icelake", "r20c4:t", "no event of its table uses it"),
        ("icelake", "cycles:t", "no event of its table uses it"),
        ("icelake", "fixed1:t", "no event of its table uses it"),
        ("skylakex", "cpu/event=0xc4,umask=0x100/", "no event of its table has one"),
        ("skylakex", "r20c4:eq", "no event of its table uses that version"),
    ] {
        let error = refusal(described(table, text));
        assert!(error.contains(part), "{table} {text}: {error}");
        assert!(!error.contains("CPUID"), "{table} {text}: {error}");
    }
    // A processor that was asked says what it said.
    let asked = Processor { any_thread: false, tsx: false, ..skylakex() };
    for (text, part) in [("r20c4:t", "CPUID.0AH:EDX[15]"), ("r20c4:intxcp", "CPUID.07H:EBX[4]")] {
        let error = refusal(on(&asked, Some(&core("skylakex")), text));
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_last_piece_any_is_noted_where_it_may_have_been_a_unit_mask() {
    let noted = |text: &str| skx(text).unwrap().notes.contains(&Note::AnyThread);
    for text in ["uops_issued:any:any", "l2_rqsts:miss:ANY", "br_inst_retired.near_taken:u:any"] {
        assert!(noted(text), "{text}");
        assert_eq!(intel(text).0 >> 21 & 1, 1, "{text}");
    }
    for text in ["uops_issued:any", "uops_issued.any:any=1", "uops_issued.any:t", "r20c4:any"] {
        assert!(!noted(text), "{text}");
    }
    assert!(!skx("cycles:any").unwrap().notes.contains(&Note::AnyThread), "no unit mask there");
}

#[test]
fn x2_events_on_whose_code_the_sources_do_not_agree_are_noted() {
    let notes = |table: &str, text: &str| {
        let core = core(table);
        on(&Processor::described_by(&core), Some(&core), text).unwrap().notes
    };
    for (table, event) in [
        ("knightslanding", "offcore_response.any_read.ddr_near"),
        ("knightslanding", "offcore_response.demand_rfo.ddr_far:u"),
        ("bonnell", "bus_trans_wb.self"),
        ("zen5", "fp_ret_sse_avx_ops.packed_double_flops"),
    ] {
        assert!(notes(table, event).contains(&Note::Doubtful), "{table} {event}");
    }
    for (table, event) in [
        ("knightslanding", "offcore_response.demand_rfo.ddr_near"),
        ("bonnell", "inst_retired.any"),
        ("zen5", "fp_ret_sse_avx_ops.all"),
    ] {
        assert!(!notes(table, event).contains(&Note::Doubtful), "{table} {event}");
    }
    let doubtful = |table: &str| core(table).events().filter(|event| event.doubtful).count();
    // 54 that libpfm4 names as well, and 12 more with the same bits.
    assert_eq!(doubtful("knightslanding"), 66);
    assert_eq!((doubtful("bonnell"), doubtful("zen5"), doubtful("skylakex")), (24, 5, 0));
}

#[test]
fn m5_a_threshold_that_a_table_has_can_be_given_back() {
    for (table, event, cycles) in [
        ("nehalemep", "mem_inst_retired.latency_above_threshold_0", 0),
        ("westmereex", "mem_inst_retired.latency_above_threshold_0", 0),
        ("darkmont", "mem_uops_retired.load_latency", 1),
    ] {
        let core = core(table);
        let processor = Processor::described_by(&core);
        let ask = |text: &str| on(&processor, Some(&core), text);
        let way = core.find(event).unwrap().ways()[0];
        for text in [
            event.to_string(),
            format!("{event}:ldlat={cycles}"),
            format!("cpu/event={:#x},umask={:#x},ldlat={cycles}/", way.event, way.umask),
        ] {
            let encoded = ask(&text).unwrap_or_else(|error| panic!("{table}: {error}"));
            let msr = encoded.choices[0].msr.unwrap();
            assert_eq!((msr.address, msr.value), (0x3f6, cycles), "{table} {text}");
        }
        // No other below the facility's own.
        let error = refusal(ask(&format!("{event}:ldlat=2")));
        assert!(error.contains("the smallest threshold is 3"), "{error}");
    }
    for cycles in 0..3 {
        let error = refusal(skx(&format!("r01cd:ldlat={cycles}")));
        assert!(error.contains("the smallest threshold is 3"), "{error}");
    }
}

#[test]
fn a_unit_mask_of_the_request_is_instead_of_the_events() {
    assert_eq!(intel("cpu/br_inst_retired.near_taken,umask=0x40/").0, 0x43_40c4);
    let zen = core("zen4");
    let amd = Processor::amd(true, true);
    let encoded = on(&amd, Some(&zen), "cpu/ex_ret_instr,umask=0xff/").unwrap();
    assert_eq!(general(&encoded, Vendor::Amd).0, 0x43_ffc0);
    // Version 6 has wide ones, and bit 35.
    let sixth = Processor::intel(6, 8, 4);
    let wide = on(&sixth, None, "cpu/event=0xc4,umask=0xffff/").unwrap();
    assert_eq!(general(&wide, Vendor::Intel).0, 0xff00_0043_ffc4);
    assert!(on(&sixth, None, "0x8004300c1").is_ok());
}

#[test]
fn each_remark_has_its_words() {
    for (note, words) in [
        (Note::Deprecated, "deprecated"),
        (Note::Doubtful, "do not agree on its code"),
        (Note::AnyThread, "read as AnyThread"),
        (Note::OnlyPrecise, "only with :p"),
        (Note::IgnoredBits(0x53_0000), "bits 0x530000 of the raw code"),
        (Note::NoCounterMask, "without a counter mask"),
        (Note::PrecisionUnknown, "not known whether this code can be precise"),
        (Note::CorruptsSibling, "the other hyper-thread (BJ122, BV98, HSD29)"),
        (Note::NeedsAuxiliary, "event 0x03/0x82"),
        (Note::NotEnabled, "no EN bit"),
    ] {
        assert!(note.to_string().contains(words), "{note}");
    }
}

/// Each remark comes for its reason and for no other.
#[test]
fn x2_each_remark_has_its_reason() {
    use crate::event::Precise;
    let haswell = core("haswell");
    let alone = Processor::described_by(&haswell);
    let beside = Processor { sibling_active: true, ..alone.clone() };
    let noted = |change: fn(&mut Draft), precise, processor: &Processor| {
        let mut draft = Draft::code("x".to_string(), 0xd0, 0x82);
        draft.precise_known = true;
        change(&mut draft);
        let mut notes = Vec::new();
        remarks(&draft, precise, processor, Some(&haswell), &mut notes);
        notes
    };
    assert_eq!(noted(|_| (), 0, &alone), []);
    assert_eq!(noted(|_| (), 1, &alone), []);
    assert_eq!(noted(|draft| draft.deprecated = true, 0, &alone), [Note::Deprecated]);
    assert_eq!(noted(|draft| draft.doubtful = true, 0, &alone), [Note::Doubtful]);
    assert_eq!(noted(|draft| draft.precise = Precise::Only, 0, &alone), [Note::OnlyPrecise]);
    assert_eq!(noted(|draft| draft.precise = Precise::Only, 1, &alone), []);
    assert_eq!(noted(|draft| draft.precise = Precise::Capable, 0, &alone), []);
    assert_eq!(noted(|draft| draft.invert = true, 0, &alone), [Note::NoCounterMask]);
    assert_eq!(noted(|draft| draft.edge = true, 0, &alone), [Note::NoCounterMask]);
    assert_eq!(noted(|draft| (draft.edge, draft.cmask) = (true, 1), 0, &alone), []);
    assert_eq!(noted(|draft| draft.precise_known = false, 1, &alone), [Note::PrecisionUnknown]);
    assert_eq!(noted(|draft| draft.precise_known = false, 0, &alone), []);
    assert_eq!(noted(|_| (), 0, &beside), [Note::CorruptsSibling]);
    assert_eq!(noted(|draft| draft.ways[0].event = 0xcd, 0, &beside), []);
}

/// A code learns from the table what events with it may be counted on; an event of the table, or a fixed counter, has
/// nothing to learn.
#[test]
fn a_code_alone_learns_from_the_table() {
    let counters = |text| general(&skx(text).unwrap(), Vendor::Intel).1;
    let l1d = "l1d_pend_miss.pending";
    assert_eq!(counters("r0148"), counters(l1d));
    assert!(fixed(&skx("fixed1").unwrap()).is_some());
}

/// Linux, `PMU_FL_MEM_LOADS_AUX`: Golden Cove's load latencies, in servers and in hybrid processors, and nothing else of them.
#[test]
fn load_latencies_of_golden_cove_need_their_auxiliary_event() {
    let needing = |event, umask| -> Vec<&str> {
        let cores = crate::test_support::tables();
        let needs = |core: &Core<'_>| errata::needs_auxiliary(Some(core), event, umask);
        let mut names: Vec<&str> = cores.cores().filter(needs).map(|core| core.name()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(needing(0xcd, 1), ["emeraldrapids", "goldencove", "sapphirerapids"]);
    for (event, umask) in [(0xcd, 2), (0xcd, 0), (0xd0, 1), (0x1cd, 1)] {
        assert_eq!(needing(event, umask), [""; 0], "{event:#x} {umask}");
    }
    assert!(!errata::needs_auxiliary(None, 0xcd, 1));
}
