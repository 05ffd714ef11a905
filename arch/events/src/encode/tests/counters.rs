use super::*;
use crate::processor::Pebs;

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
        assert!(matches!(encoded.choices[0].counters, Counters::Fixed { .. }), "{text}");
        assert_eq!(general(&encoded, Vendor::Intel), (0x41_00c0, 0xf), "{text}");
    }
    assert_eq!(fixed(&skx("cycles:any").unwrap()), Some((1, 7)));
    // Reference cycles tick at another rate on general-purpose counters: no exchange.
    assert_eq!(skx("cpu_clk_unhalted.ref_tsc").unwrap().choices.len(), 1);
    // What fixed counters do not have leaves the general-purpose ones.
    assert_eq!(fixed(&skx("instructions:c=1").unwrap()), None);
    // A number requests that counter, a function word for that register.
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

/// Slots on a processor whose CPUID does not tell of them, and what a place or a name requests.
#[test]
fn a_fixed_counters_event_has_the_code_of_the_same_event() {
    let icelake = core("icelake");
    let described = Processor::described_by(&icelake);
    // Bit 7 of CPUID.0AH:EBX is younger than the list (SDM vol. 3, 20.2.3): the fixed counter says that there are slots.
    let seven = Processor { architectural_events: 0x7f, ..described.clone() };
    assert!(fixed(&on(&seven, Some(&icelake), "topdown.slots").unwrap()).is_some());
    let six = Processor { architectural_events: 0x3f, ..described };
    assert!(refusal(on(&six, Some(&icelake), "r00c5")).contains("EBX[6]"));
    // A counter that is requested is a general-purpose one, and alone.
    let second = skx("instructions:counter=1").unwrap();
    assert_eq!((fixed(&second), general(&second, Vendor::Intel).1), (None, 1 << 1));
    assert_eq!(second.choices.len(), 1);
    // An event on a fixed counter whose programmable form has another name: what both count is the same.
    let any = skx("cpu_clk_unhalted.thread_any").unwrap();
    assert_eq!((fixed(&any), general(&any, Vendor::Intel).0), (Some((1, 7)), 0x63_003c));
    // PREC_DIST shares the counter, and is another event.
    let icelakes = Processor::described_by(&icelake);
    let dist = on(&icelakes, Some(&icelake), "inst_retired.prec_dist").unwrap();
    assert_eq!((dist.choices.len(), fixed(&dist).is_some()), (1, true));
    // Reference cycles on general-purpose counters tick at another rate, with a table and without.
    let reference = |text| on(&skylakex(), None, text).unwrap();
    assert_eq!(reference("ref-cycles-fixed").choices.len(), 1);
    assert_eq!(fixed(&reference("ref-cycles-fixed")), Some((2, 3)));
    assert_eq!(fixed(&reference("arch-ref-cycles")), None);
}

/// Without skid needs format 2; with the least skid, only the counters of precise distribution.
#[test]
fn c9_pebs_takes_the_counters_that_its_level_has() {
    let table = core("icelake");
    let described = Processor::described_by(&table);
    let with = |pebs: Pebs, text: &str| {
        let processor = Processor { pebs: Some(pebs), ..described.clone() };
        on(&processor, Some(&table), text)
    };
    let pebs = Pebs {
        gp_counters: 0b0110,
        fixed_counters: 0b01,
        format: 4,
        distribution_gp: 0b1010,
        distribution_fixed: 0b10,
        states_retirement: false,
    };
    let counters = |text: &str| {
        let encoded = with(pebs, text).unwrap_or_else(|error| panic!("{error}"));
        (fixed(&encoded).map(|(index, _)| index), general(&encoded, Vendor::Intel).1)
    };
    assert_eq!(counters("inst_retired.any:p"), (Some(0), 0b0110));
    assert_eq!(counters("inst_retired.any:ppp"), (None, 0b0010));
    let both = Pebs { fixed_counters: 0b11, distribution_fixed: 0b01, ..pebs };
    assert!(fixed(&with(both, "inst_retired.any:ppp").unwrap()).is_some());
    let other = Pebs { fixed_counters: 0b10, distribution_fixed: 0b11, ..pebs };
    assert_eq!(fixed(&with(other, "inst_retired.any:p").unwrap()), None);
    // Each fixed counter has its own bit.
    let block = crate::test_support::block_of(
        &["one"],
        r#"[{"EventName": "A", "EventCode": "0", "UMask": "2", "Counter": "Fixed counter 1", "PEBS": "1"}]"#,
    );
    let own = crate::tables::Tables::open(&block).unwrap().named("one").unwrap();
    for (fixed_counters, precise) in [(0b01, false), (0b10, true)] {
        let pebs = Some(Pebs { gp_counters: 0, fixed_counters, ..pebs });
        let encoded = on(&Processor { pebs, ..skylakex() }, Some(&own), "a:p");
        assert_eq!(encoded.is_ok(), precise, "{fixed_counters:#b}: {encoded:?}");
    }
    for (format, level, works) in
        [(1, "p", true), (1, "pp", false), (1, "ppp", false), (2, "pp", true), (2, "ppp", true)]
    {
        let encoded = with(Pebs { format, ..pebs }, &format!("br_inst_retired.near_taken:{level}"));
        assert_eq!(encoded.is_ok(), works, "format {format}, {level}: {encoded:?}");
    }
}

#[test]
fn m5_msr_qualified_events_bring_their_msr() {
    let msrs = |text: &str| {
        let encoded = skx(text).unwrap_or_else(|error| panic!("{error}"));
        let msr = |choice: &Choice| choice.msr.map(|m| (m.address, m.value));
        encoded.choices.iter().map(msr).collect::<Vec<_>>()
    };
    assert_eq!(msrs("mem_trans_retired.load_latency_gt_8:p"), [Some((0x3f6, 8))]);
    assert_eq!(msrs("cpu/event=0xcd,umask=1,ldlat=30/pp"), [Some((0x3f6, 30))]);
    assert_eq!(msrs("mem_trans_retired.load_latency_gt_8:ldlat=50:p"), [Some((0x3f6, 50))]);
    assert_eq!(msrs("cpu/event=0xc6,umask=1,frontend=0x11/p"), [Some((0x3f7, 0x11))]);
    let both = [Some((0x1a6, 0x10001)), Some((0x1a7, 0x10001))];
    assert_eq!(msrs("offcore_response:offcore_rsp=0x10001"), both);
    assert_eq!(msrs("cpu/event=0xb7,umask=1,offcore_rsp=0x10001/"), both);
    assert_eq!(msrs("cpu/event=0xbb,umask=1,config1=0x10001/"), both);
    assert_eq!(msrs("r01bb:offcore_rsp_1=0x10001"), [Some((0x1a7, 0x10001))]);
    for (text, part) in [
        ("cpu/event=0xb7,umask=1/", "give one with offcore_rsp="),
        ("offcore_response", "give one with offcore_rsp="),
        ("r01cd", "with ldlat="),
        ("r01bb:offcore_rsp_0=1", "offcore_rsp_0 is given, but the event does not use"),
        ("instructions:ldlat=3", "ldlat is given, but the event does not use"),
        ("cpu/event=0xcd,umask=1,ldlat=2/", "the smallest threshold is 3"),
        ("cpu/event=0xcd,umask=1,ldlat=65536/", "bits 0x10000 of it must not be set"),
        ("offcore_response:offcore_rsp=0x7000", "bits 0x7000 of it must not be set"),
        ("offcore_response:offcore_rsp=1:ldlat=3", "more than one value"),
    ] {
        let error = refusal(skx(text));
        assert!(error.contains(part), "{text}: {error}");
    }
    let none = Processor { extra_msrs: Vec::new(), ..skylakex() };
    let error = refusal(on(&none, Some(&core("skylakex")), "mem_trans_retired.load_latency_gt_8"));
    assert!(error.contains("has no PEBS_LD_LAT"), "{error}");
}

#[test]
fn amd_large_increments_need_an_even_counter_and_its_neighbour() {
    let zen = core("zen2");
    let merged = |processor: &Processor, text: &str| match on(processor, Some(&zen), text)
        .unwrap()
        .choices[..]
    {
        [Choice { counters: Counters::General { counters, merge, .. }, .. }] => (counters, merge),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(merged(&Processor::amd(true, false), "fp_ret_sse_avx_ops.all"), (0x15, true));
    assert_eq!(merged(&Processor::amd(false, false), "fp_ret_sse_avx_ops.all"), (0x5, true));
    for code in ["rff03", "0x43ff03"] {
        assert_eq!(merged(&Processor::amd(true, false), code), (0x15, true), "{code}");
    }
    assert_eq!(merged(&Processor::amd(true, false), "ex_ret_instr"), (0x3f, false));
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
    let counters =
        |text: &str| general(&on(&processor, Some(&haswell), text).unwrap(), Vendor::Intel).1;
    // CYCLE_ACTIVITY 0xa3/0x08 with counter mask 8 is on counter 2; it has no other form.
    assert_eq!(counters("r80008a3"), 0x4);
    assert_eq!(counters("r08a3"), 0x4);
    // An unknown unit mask of MEM_UOPS_RETIRED: the others' counters.
    assert_eq!(counters("r05d0"), 0xf);
    assert_eq!(counters("r00ee"), 0xff);
}

#[test]
fn an_even_counter_without_its_odd_neighbour_counts_no_large_increments() {
    let zen = core("zen2");
    let flops = |gp_counters: u64, taken_counters: u64| {
        let processor = Processor { gp_counters, taken_counters, ..Processor::amd(true, false) };
        let [event, word] = ["fp_ret_sse_avx_ops.all", "0x43ff03"].map(|text| {
            on(&processor, Some(&zen), text).map(|encoded| general(&encoded, Vendor::Amd).1)
        });
        assert_eq!(event.clone().ok(), word.ok());
        event
    };
    assert_eq!(flops(0b11_1111, 0), Ok(0b01_0101));
    // Five counters: 4 is the last. Counter 3 missing or taken: 2 has no neighbour.
    assert_eq!(flops(0b01_1111, 0), Ok(0b00_0101));
    assert_eq!(flops(0b11_0111, 0), Ok(0b01_0001));
    assert_eq!(flops(0b11_1111, 1 << 3), Ok(0b01_0001));
    assert!(
        flops(0b01_0101, 0).unwrap_err().to_string().contains("together with the next odd one")
    );
}

/// Before family 17h event 003H is another one, which fits into one counter.
#[test]
fn c6_event_003_takes_one_counter_before_family_17h() {
    let counters = |processor: &Processor| {
        let [code, word] = ["r0003", "0x430003"].map(|text| {
            let encoded = on(processor, None, text).unwrap();
            let [Choice { counters: Counters::General { counters, merge, .. }, .. }] =
                encoded.choices[..]
            else {
                panic!("{encoded:?}")
            };
            (counters, merge)
        });
        assert_eq!(code, word);
        code
    };
    let zen = Processor::amd(true, false);
    assert_eq!(counters(&zen), (0b01_0101, true));
    let bulldozer = Processor { large_increments: false, ..zen };
    assert_eq!(counters(&bulldozer), (0b11_1111, false));
    let k10 = Processor { large_increments: false, ..Processor::amd(false, false) };
    assert_eq!(counters(&k10), (0xf, false));
}

#[test]
fn checkpointed_counts_are_on_counter_2_only() {
    for text in ["r20c4:intxcp", "br_inst_retired.near_taken:intx:intxcp:u", "0x2004320c4"] {
        assert_eq!(intel(text).1, 1 << 2, "{text}");
    }
    assert_eq!(intel("r20c4:intx").1, 0xf);
    assert_eq!(intel("0x1004320c4").1, 0xf);
    let two = [skx("r20c4:intxcp").unwrap(), skx("uops_issued.any:intxcp").unwrap()];
    let conflict = crate::assign::assign(&two).unwrap_err().to_string();
    assert!(conflict.contains("all of them need one of 1: counter 2"), "{conflict}");
    // Where counter 2 is taken, or not one of the event's, it is not available.
    let taken = Processor { taken_counters: 1 << 2, ..skylakex() };
    for text in ["r20c4:intxcp", "0x2004320c4"] {
        let error = refusal(on(&taken, Some(&core("skylakex")), text));
        assert!(error.contains("no counter of this processor"), "{text}: {error}");
    }
    assert!(refusal(skx("r01c0:intxcp")).contains("needs 1,"), "counter 1 only");
}

/// Icelake's table on a processor whose PERF_METRICS has so many fields.
fn with_metrics(fields: u8, text: &str) -> Result<Encoded, EncodeError> {
    let processor = Processor {
        metric_fields: fields,
        fixed_counters: 0xf,
        ..Processor::described_by(&core("icelake"))
    };
    on(&processor, Some(&core("icelake")), text)
}

#[test]
fn s3_fields_of_perf_metrics_are_those_that_the_processor_has() {
    for (fields, text, there) in [
        (4, "topdown-retiring", true),
        (4, "topdown-be-bound", true),
        (4, "topdown-heavy-ops", false),
        (8, "topdown-heavy-ops", true),
        (8, "topdown-mem-bound", true),
        (0, "topdown-retiring", false),
    ] {
        let found = with_metrics(fields, text);
        assert_eq!(found.is_ok(), there, "{fields} {text}: {found:?}");
        if let Ok(encoded) = found {
            assert!(matches!(
                encoded.choices[..],
                [Choice { counters: Counters::Metric { .. }, msr: None }]
            ));
        }
    }
    let why = |fields, text| refusal(with_metrics(fields, text));
    assert!(why(0, "topdown-retiring").contains("has no PERF_METRICS"));
    assert!(why(4, "topdown-heavy-ops").contains("only the four fields of the first level"));
}

#[test]
fn s3_what_perf_metrics_has_not_is_refused() {
    assert!(with_metrics(8, "topdown-retiring:u").is_ok());
    for (text, what) in [
        ("topdown-retiring:p", "precise level"),
        ("topdown-retiring:c=2", "counter mask"),
        ("topdown-retiring:e", "edge detection"),
    ] {
        let why = refusal(with_metrics(8, text));
        assert!(why.contains(what), "{text}: {why}");
    }
    let none = Processor { fixed_counters: 0b111, metric_fields: 8, ..Processor::intel(5, 8, 3) };
    let why = refusal(on(&none, Some(&core("icelake")), "topdown-retiring"));
    assert!(why.contains("fixed counter 3"), "{why}");
}

/// Of the instruction's own records; the period may be left out.
#[test]
fn s3_a_retire_latency_is_of_precise_records_where_they_state_it() {
    let table = core("lioncove_arl");
    let processor = Processor::described_by(&table);
    let of = |text: &str| {
        let encoded = on(&processor, Some(&table), text).unwrap();
        (encoded.precise, encoded.retire_latency)
    };
    let event = "mem_inst_retired.lock_loads";
    assert_eq!(of(event), (0, None));
    assert_eq!(of(&format!("{event}:retire_latency")), (2, Some(0)));
    assert_eq!(of(&format!("{event}:retire_latency=31:u")), (2, Some(31)));
    assert_eq!(of(&format!("{event}:ppp:retire_latency")), (3, Some(0)));
}

/// Zhaoxin's processors have leaf 0xA, and other codes: 3CH is not of cycles there (Linux, `arch/x86/events/zhaoxin/core.c`).
#[test]
fn i11_a_maker_with_codes_of_its_own_counts_cycles_on_fixed_counters_alone() {
    let zhaoxin =
        Processor { architectural_events: 7, coded_events: 2, ..Processor::intel(2, 4, 3) };
    let places = |text: &str| {
        let encoded = on(&zhaoxin, None, text).unwrap_or_else(|error| panic!("{error}"));
        let is_general =
            |choice: &Choice| matches!(choice.counters, Counters::General { counters: 0xf, .. });
        (fixed(&encoded).map(|(index, _)| index), encoded.choices.iter().any(is_general))
    };
    assert_eq!(places("instructions"), (Some(0), true));
    for cycles in ["cycles", "CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.THREAD_P"] {
        assert_eq!(places(cycles), (Some(1), false), "{cycles}");
    }
    assert_eq!(places("CPU_CLK_UNHALTED.REF_TSC"), (Some(2), false));
    // Raw codes are what they are there.
    assert_eq!(
        (places("r003c"), places("r0082"), places("r412e")),
        ((None, true), (None, true), (None, true))
    );
    assert!(refusal(on(&zhaoxin, None, "branches")).contains("no counterpart"));
}
