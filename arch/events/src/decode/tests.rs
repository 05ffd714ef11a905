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
    }
}

fn read<'t>(choice: &Choice, core: &Core<'t>) -> Vec<Candidate<'t>> {
    match choice.counters {
        Counters::General { select, .. } => {
            let msrs: Vec<MsrValue> = choice.msr.into_iter().collect();
            general(select.to_bits(core.vendor()), &msrs, core.vendor(), Some(core)).unwrap()
        }
        Counters::Fixed { index, control } => fixed(index, control, Some(core)),
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
    assert_eq!(rows, 19_830);
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
