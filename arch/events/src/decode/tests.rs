mod own_tables;

use super::*;
use crate::encode::{Choice, Counters, Encoded};
use crate::processor::{Pebs, Processor};
use crate::test_support::{core, on, tables};

fn texts(value: u64, msrs: &[MsrValue], name: &str) -> Vec<String> {
    let core = core(name);
    let candidates = general(value, msrs, core.vendor(), Some(&core)).unwrap();
    candidates.into_iter().map(|candidate| candidate.text).collect()
}

/// What a choice leaves in the registers, counters aside.
fn registers(choice: &Choice, vendor: Vendor) -> (u64, Option<u8>, Option<MsrValue>) {
    match choice.counters {
        Counters::General { select, .. } => (select.to_bits(vendor), None, choice.msr),
        Counters::Fixed { index, control } => (control.to_nibble().into(), Some(index), choice.msr),
        Counters::Metric { field, .. } => panic!("field {field} has no register of its own"),
    }
}

fn read<'t>(choice: &Choice, core: &Core<'t>) -> Vec<Candidate<'t>> {
    match choice.counters {
        Counters::General { select, .. } => {
            let msrs: Vec<MsrValue> = choice.msr.into_iter().collect();
            general(select.to_bits(core.vendor()), &msrs, core.vendor(), Some(core)).unwrap()
        }
        Counters::Fixed { index, control } => fixed(index, control, Some(core)),
        Counters::Metric { .. } => Vec::new(),
    }
}

/// Encodes, decodes and encodes again; all candidates must lead back to the same registers.
fn round_trip<'t>(
    text: &str,
    processor: &Processor,
    core: &Core<'t>,
    all: bool,
) -> (Encoded, Vec<Candidate<'t>>) {
    let mut seen = Vec::new();
    let encoded = on(processor, Some(core), text).unwrap_or_else(|e| panic!("{} {e}", core.name()));
    for choice in &encoded.choices {
        let candidates = read(choice, core);
        let count = if all { candidates.len() } else { 1 };
        for candidate in candidates.iter().take(count) {
            let again = on(processor, Some(core), &candidate.text)
                .unwrap_or_else(|e| panic!("{} {text} -> {e}", core.name()));
            let vendor = core.vendor();
            assert!(
                again.choices.iter().any(|c| registers(c, vendor) == registers(choice, vendor)),
                "{} {text} -> {} : {choice:?} {:?}",
                core.name(),
                candidate.text,
                again.choices
            );
        }
        assert!(candidates.len() < 3_000);
        seen.extend(candidates);
    }
    (encoded, seen)
}

#[test]
fn m1_every_row_of_every_table_encodes_decodes_and_encodes_again() {
    let mut rows = 0;
    for core in tables().cores() {
        let processor = Processor::described_by(&core);
        for event in core.events() {
            // The one event that leaves the value of its MSR to the user.
            let open = event.ways().len() > 1 && event.ways()[0].msr.is_none();
            let text = if open {
                format!("{}:offcore_rsp=0x1", event.name)
            } else {
                event.name.to_string()
            };
            let (encoded, seen) = round_trip(&text, &processor, &core, false);
            assert_eq!(encoded.name, event.name, "{}", core.name());
            // Its own name is among the exact readings of its own registers.
            let own = seen.iter().any(|candidate| {
                candidate.closeness == Closeness::Exact
                    && candidate.event.is_some_and(|e| e.name == event.name)
            });
            assert!(own || open, "{} {}", core.name(), event.name);
            rows += 1;
        }
    }
    assert_eq!(rows, 21_999);
}

#[test]
fn m1_all_candidates_lead_back_to_the_registers() {
    for name in ["skylakex", "nehalemep", "lioncove_lnl", "skymont_lnl", "zen5", "bonnell"] {
        let core = core(name);
        let processor = Processor::described_by(&core);
        for event in core.events().step_by(7) {
            let open = event.ways().len() > 1 && event.ways()[0].msr.is_none();
            if !open && event.precise != Precise::Only {
                round_trip(&format!("{}:u", event.name), &processor, &core, true);
            }
        }
    }
}

#[test]
fn registers_read_as_the_best_name() {
    assert_eq!(texts(0x4300c0, &[], "skylakex")[0], "INST_RETIRED.ANY_P");
    assert_eq!(texts(0x5101c4, &[], "skylakex")[0], "BR_INST_RETIRED.COND:u");
    assert_eq!(texts(0x0241_010e, &[], "skylakex")[0], "UOPS_ISSUED.ANY:c=2:u");
    assert_eq!(texts(0x100_0051_11c4, &[], "lioncove_lnl")[0], "BR_INST_RETIRED.COND:u");
    assert_eq!(texts(0x4300d1, &[], "zen3")[0], "ex_ret_cond");
    // Deprecated names come after those in use.
    let core = core("cascadelakex");
    for event in core.events().filter(|event| event.deprecated).step_by(37) {
        let encoded = on(&Processor::described_by(&core), Some(&core), event.name).unwrap();
        let best = read(&encoded.choices[0], &core)[0].event.unwrap();
        let others = core.events().any(|other| {
            !other.deprecated && other.ways() == event.ways() && other.msr_value == event.msr_value
        });
        assert_eq!(best.deprecated, !others, "{}", event.name);
    }
}

#[test]
fn p6_joined_unit_masks_are_found_again() {
    let texts = texts(0x41_c724, &[], "skylakex");
    assert!(texts[0].starts_with("L2_RQSTS."), "{texts:?}");
    assert!(texts[0].ends_with(":u") && texts[0].matches(':').count() >= 2, "{texts:?}");
    assert_eq!(texts.last().unwrap(), "rc724:u");
    // Settings that no event has stand after the unit masks, too.
    let core = core("skylakex");
    let read = general(0x1_0041_c724, &[], Vendor::Intel, Some(&core)).unwrap();
    let joined = read.iter().find(|c| c.closeness == Closeness::UnitMasks).unwrap();
    assert!(joined.text.ends_with(":intx=1:u"), "{joined:?}");
}

#[test]
fn m5_msr_values_decide_the_name() {
    let msr = |address, value| MsrValue { address, value };
    let with = |msrs: &[MsrValue]| texts(0x4301cd, msrs, "skylakex").remove(0);
    assert_eq!(with(&[msr(0x3f6, 8)]), "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_8");
    assert_eq!(with(&[msr(0x3f6, 9), msr(0x1a6, 1)]).split(':').nth(1), Some("ldlat=0x9"));
    let raw = texts(0x4301bb, &[msr(0x1a7, 0x123)], "skylakex").pop().unwrap();
    assert_eq!(raw, "r1bb:offcore_rsp_1=0x123");
}

#[test]
fn fixed_counters_and_raw_codes_without_a_table() {
    let both = FixedControl { user: true, kernel: true, ..FixedControl::default() };
    assert_eq!(fixed(1, both, Some(&core("skylakex")))[0].text, "CPU_CLK_UNHALTED.THREAD");
    let any = FixedControl { any_thread: true, ..both };
    assert_eq!(fixed(1, any, Some(&core("skylakex")))[0].text, "CPU_CLK_UNHALTED.THREAD_ANY");
    let user = FixedControl { user: true, ..FixedControl::default() };
    assert_eq!(fixed(2, user, None)[0].text, "fixed2:u");
    let read = |value, vendor| general(value, &[], vendor, None).unwrap().remove(0).text;
    assert_eq!(read(0x4300c0, Vendor::Intel), "arch-instructions");
    assert_eq!(read(0x410076, Vendor::Amd), "arch-core-cycles:u");
    assert_eq!(read(0x04_c720ee, Vendor::Intel), "r48420ee");
    assert!(general(1 << 63, &[], Vendor::Intel, None).is_err());
}

#[test]
fn reading_back_a_pebs_request_needs_no_pebs() {
    let core = core("skylakex");
    let processor = Processor {
        pebs: Some(Pebs {
            gp_counters: 0xf,
            fixed_counters: 0,
            format: 3,
            distribution_gp: 2,
            distribution_fixed: 0,
            states_retirement: false,
        }),
        ..Processor::described_by(&core)
    };
    let (encoded, _) =
        round_trip("mem_trans_retired.load_latency_gt_8:p", &processor, &core, false);
    assert_eq!(encoded.precise, 1);
}

#[test]
fn m1_the_registers_of_a_whole_pass_read_back_as_its_requests() {
    let core = core("skylakex");
    let processor = Processor::described_by(&core);
    let names = [
        "CPU_CLK_UNHALTED.THREAD",
        "UOPS_ISSUED.ANY:c=4:u",
        "OFFCORE_RESPONSE.DEMAND_RFO.ANY_RESPONSE",
        "INST_RETIRED.ANY:k",
    ];
    let requests: Vec<Encoded> =
        names.iter().map(|name| on(&processor, Some(&core), name).unwrap()).collect();
    let assignment = crate::assign::assign(&requests).unwrap();
    let all: Vec<&Encoded> = requests.iter().collect();
    let written = crate::assign::registers(&assignment, &all, Vendor::Intel);
    let mut read = Vec::new();
    for (_, value) in &written.selects {
        let candidates = general(*value, &written.msrs, Vendor::Intel, Some(&core)).unwrap();
        read.push(candidates[0].text.clone());
    }
    for index in 0..3 {
        let control = FixedControl::from_nibble((written.fixed_control >> (4 * index)) as u8 & 0xf);
        if control.user || control.kernel {
            read.push(fixed(index, control, Some(&core))[0].text.clone());
        }
    }
    let mut expected = names.map(ToString::to_string).to_vec();
    expected.sort();
    read.sort();
    assert_eq!(read, expected);
}

/// A processor that has every field which an event select register of this table's vendor can have.
fn with_everything(core: &Core<'_>) -> Processor {
    let described = Processor::described_by(core);
    let pebs = Pebs {
        gp_counters: described.gp_counters,
        fixed_counters: 0,
        format: 4,
        distribution_gp: 1,
        distribution_fixed: 0,
        states_retirement: false,
    };
    match core.vendor() {
        Vendor::Amd => described,
        Vendor::Intel => Processor {
            version: 6,
            any_thread: true,
            umask2: true,
            equal: true,
            tsx: true,
            rdpmc_user_disable: true,
            pebs: Some(pebs),
            ..described
        },
    }
}

/// What a text makes of a general-purpose counter's register, if it can be had there.
fn written(
    text: &str,
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<Vec<u64>, crate::encode::Refusal> {
    let request = crate::parse::parse_event(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let encoded = crate::encode::encode(&request, processor, core).map_err(|error| error.reason)?;
    let general = encoded.choices.iter().filter_map(|choice| match choice.counters {
        Counters::General { select, .. } => Some(select.to_bits(processor.vendor)),
        Counters::Fixed { .. } | Counters::Metric { .. } => None,
    });
    Ok(general.collect())
}

/// Every reading of `value` encodes to `value` again, but for the bits that it says.
fn leads_back(value: u64, core: &Core<'_>) {
    use crate::encode::Refusal;
    let (vendor, processor) = (core.vendor(), with_everything(core));
    for table in [Some(core), None] {
        let Ok(candidates) = general(value, &[], vendor, table) else {
            assert!(EventSelect::from_bits(vendor, value).is_err());
            return;
        };
        let select = EventSelect::from_bits(vendor, value).unwrap();
        let name = core.name();
        for Candidate { text, differs, closeness, .. } in &candidates {
            match written(text, &processor, table) {
                Ok(values) => assert!(
                    values.contains(&(value ^ differs)),
                    "{name} {value:#x} -> {text} ({closeness:?}) -> {values:x?}, differs {differs:#x}"
                ),
                // The one counter for it may be none of the event's.
                Err(Refusal::NoCounterLeft { .. }) if select.in_tx_checkpointed => {}
                Err(refusal) => panic!("{name} {value:#x} -> {text} ({closeness:?}): {refusal}"),
            }
        }
        // Some reading is the register itself, unless it counts in no ring.
        let exact = candidates.iter().any(|candidate| candidate.differs == 0);
        assert_eq!(exact, select.user || select.kernel, "{name} {value:#x}");
        let guest = select.guest_only || select.host_only;
        assert!(!guest || candidates.iter().all(|c| c.closeness != Closeness::Exact), "{value:#x}");
    }
}

#[test]
fn m1_guest_and_host_bits_and_registers_that_count_nowhere_are_told() {
    let zen = core("zen4");
    let read = |value| general(value, &[], Vendor::Amd, Some(&zen)).unwrap();
    for (value, differs) in [
        (0x4300c0, 0),
        (0x100_0043_00c0, 1 << 40),
        (0x200_0043_00c0, 1 << 41),
        (0x300_0053_00c0, 3 << 40 | 1 << 20),
        (0x0300c0, 1 << 22),
    ] {
        let best = &read(value)[0];
        assert_eq!((best.text.as_str(), best.differs), ("ex_ret_instr", differs), "{value:#x}");
        let exact = differs & 3 << 40 == 0;
        assert_eq!(best.closeness == Closeness::Exact, exact, "{value:#x}");
        let last = read(value).pop().unwrap();
        assert_eq!(last.closeness == Closeness::Word, differs != 0, "{value:#x}");
    }
    // No ring: no text of it can be had, and none is offered that would be refused.
    for candidate in read(0x4000c0) {
        assert_eq!(candidate.differs & MODES, MODES, "{candidate:?}");
        assert_eq!(
            written(&candidate.text, &Processor::described_by(&zen), Some(&zen)).unwrap(),
            [0x4300c0]
        );
    }
    let none = FixedControl::default();
    let both = FixedControl { user: true, kernel: true, ..none };
    for (control, differs) in [(none, 3), (both, 0), (FixedControl { interrupt: true, ..both }, 8)]
    {
        for candidate in fixed(1, control, Some(&core("skylakex"))) {
            assert_eq!(candidate.differs, differs, "{candidate:?}");
            assert!(!candidate.text.contains("u=0"), "{candidate:?}");
        }
    }
}

#[test]
fn a_code_whose_msr_is_not_known_is_read_as_a_whole_word() {
    assert_eq!(texts(0x4301b7, &[], "skylakex").last().unwrap(), "0x4301b7");
    let unrelated = MsrValue { address: 0x1a6, value: 5 };
    assert_eq!(texts(0x4301c6, &[unrelated], "skylakex").last().unwrap(), "0x4301c6");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    /// Any value of a register: codes of the tables and others, every other field as it falls.
    #[test]
    fn m1_every_reading_of_any_register_leads_back_to_it(
        bits in proptest::prelude::any::<u64>(),
        wild in 0..6_u8,
        pick in proptest::prelude::any::<u16>(),
        table in 0..7_usize,
    ) {
        let names = ["skylakex", "lioncove_lnl", "nehalemep", "bonnell", "haswell", "zen2", "zen5"];
        let core = core(names[table]);
        let known = match core.vendor() {
            Vendor::Intel => 0x0000_ff3f_ffff_ffff_u64,
            Vendor::Amd => 0x0000_030f_ffd7_ffff,
        };
        let event = core.event(usize::from(pick) % core.len()).unwrap();
        let way = event.ways()[0];
        let code = EventSelect {
            event: way.event,
            umask: way.umask as u8,
            umask2: (way.umask >> 8) as u8,
            ..EventSelect::default()
        };
        let code = if event.fixed.is_some() { 0 } else { code.to_bits(core.vendor()) };
        let fields = 0xffff | 0xff << 40 | if core.vendor() == Vendor::Amd { 0xf << 32 } else { 0 };
        // Mostly few settings in addition to a code that has a name, sometimes all bits as they come.
        let value = match wild {
            0 => bits,
            1 => bits & known,
            2 => bits & known & !fields | code,
            3 => bits & (bits >> 7) & 0x3f_00ff_0000 & known & !fields | code | 0x43_0000,
            4 => bits & 0xff00 & known | code | 0x43_0000,
            _ => bits & 0xff_0000 & known | code,
        };
        leads_back(value, &core);
    }
}

/// An event with anything in addition to its own code is that event modified.
#[test]
fn m1_each_modifier_makes_a_reading_inexact() {
    let core = core("skylakex");
    let exact = |bits: u64| {
        let candidates = general(0x4300c0 | bits, &[], core.vendor(), Some(&core)).unwrap();
        let of_event = candidates.iter().filter(|one| one.event.is_some());
        of_event.filter(|one| one.closeness == Closeness::Exact).count()
    };
    assert!(exact(0) > 0);
    // Edge, any thread, invert, counter mask, pin control, in and out of transactions, equal (SDM vol. 3, 20.2, and 20.2.8).
    for bit in [18, 21, 23, 24, 19, 32, 33, 36] {
        assert_eq!(exact(1 << bit), 0, "bit {bit}");
    }
    let zen = tables().named("zen4").unwrap();
    for bit in [40, 41] {
        let candidates = general(0x4300c0 | 1 << bit, &[], zen.vendor(), Some(&zen)).unwrap();
        let exact = |one: &&Candidate| one.event.is_some() && one.closeness == Closeness::Exact;
        assert_eq!(candidates.iter().filter(exact).count(), 0, "bit {bit}");
    }
}

/// A fixed counter that counts one ring reads as that, one that counts none as what it would count.
#[test]
fn a_fixed_counters_rings_are_said_or_told_to_be_missing() {
    let core = core("skylakex");
    let control = |user, kernel| FixedControl { user, kernel, ..FixedControl::default() };
    for (user, kernel, differs) in
        [(true, true, 0), (true, false, 0), (false, true, 0), (false, false, 3)]
    {
        let all = fixed(0, control(user, kernel), Some(&core));
        assert!(
            all.len() > 1 && all.iter().all(|one| one.differs == differs),
            "{user} {kernel}: {all:?}"
        );
        // Exact names first, the bare code last.
        assert_eq!(all.last().map(|one| one.closeness), Some(Closeness::Raw));
    }
}

/// Load latency: the threshold that is held names its event; another one names one of them, once.
#[test]
fn m5_a_threshold_is_read_as_its_event_or_as_another_one_of_it() {
    let core = core("skylakex");
    let read = |value: Option<u64>| {
        let msrs: Vec<MsrValue> =
            value.map(|value| MsrValue { address: LOAD_LATENCY, value }).into_iter().collect();
        let all = general(0x4301cd, &msrs, core.vendor(), Some(&core)).unwrap();
        let of = |closeness| all.iter().filter(|one| one.closeness == closeness).count();
        [Closeness::Exact, Closeness::OtherThreshold, Closeness::MsrUnknown].map(of)
    };
    assert_eq!(read(Some(8)), [1, 1, 0]);
    assert_eq!(read(Some(9)), [0, 1, 0]);
    let [exact, other, unknown] = read(None);
    assert_eq!((exact, other), (0, 0));
    assert!(unknown > 1, "any of them may be it");
    // Another register says nothing of it.
    let msrs = [MsrValue { address: 0x1a6, value: 8 }];
    let all = general(0x4301cd, &msrs, core.vendor(), Some(&core)).unwrap();
    assert!(all.iter().all(|one| one.closeness != Closeness::Exact), "{all:?}");
}

/// SDM vol. 4, IA32_PERFEVTSEL0: USR and OS are bits 16 and 17.
#[test]
fn the_rings_are_where_the_manual_has_them() {
    assert_eq!(super::MODES, 0x3_0000);
}
