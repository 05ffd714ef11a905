use super::*;
use arch::msr::Msr;
use arch::pmu::{Driver, find};
use events::pack::Sources;
use events::tables::{Core, Tables};
use pmu_model::{Host, Model, Pmu, Timing};
use std::sync::OnceLock;

fn tables() -> Tables<'static> {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    let block = BLOCK.get_or_init(|| Sources::embedded().unwrap().pack().unwrap());
    Tables::open(block).unwrap()
}

fn core(name: &str) -> Core<'static> {
    tables().cores().find(|core| core.name() == name).unwrap()
}

fn pmu(model: Model) -> Pmu {
    Pmu::new(model, Host::EXAMPLE, Timing::FLAT)
}

fn known(model: Model, table: Option<&str>) -> Known<'static> {
    let mut pmu = pmu(model);
    let has = find(&mut pmu).unwrap();
    Known::new(&has, table.map(core), &mut pmu)
}

fn planned(known: &Known, texts: &[&str]) -> Plan {
    let texts: Vec<Cow<str>> = texts.iter().map(|&text| text.into()).collect();
    plan(&texts, known)
}

fn places(plan: &Plan) -> Vec<(usize, &str, Counter)> {
    let all = plan.passes.iter().enumerate();
    let mut all: Vec<_> = all
        .flat_map(|(pass, counted)| counted.iter().map(move |one| (pass, one)))
        .map(|(pass, one)| (one.number, (pass, one.event.as_str(), one.counter)))
        .collect();
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, place)| place).collect()
}

use Counter::{Fixed, General};

#[test]
fn m1_names_become_counters_and_selections() {
    let skylake = known(Model::Skylake, Some("skylake"));
    let texts =
        ["inst_retired.any", "cycles:u", "l2_rqsts.miss:c=1", "0xc4.0x20:k:e:c=2", "fixed2"];
    let plan = planned(&skylake, &texts);
    assert_eq!(plan.uncounted, []);
    let [pass] = &plan.passes[..] else { panic!("{plan:?}") };
    let find = |text: &str| pass.iter().find(|one| one.event == text).unwrap();
    assert_eq!(find("inst_retired.any").counter, Fixed(0));
    assert_eq!(find("inst_retired.any").counting.name, "skylake::INST_RETIRED.ANY");
    assert_eq!(find("fixed2").counter, Fixed(2));
    let cycles = find("cycles:u");
    assert_eq!((cycles.counter, cycles.selection.rings), (Fixed(1), Rings::USER));
    let miss = find("l2_rqsts.miss:c=1").selection;
    assert_eq!(miss, Selection { cmask: 1, ..Selection::of(0x24, 0x3f) });
    let raw = find("0xc4.0x20:k:e:c=2").selection;
    let expected = Selection { edge: true, cmask: 2, ..Selection::of(0xc4, 0x20) };
    assert_eq!(raw, expected.in_rings(Rings::KERNEL));
}

#[test]
fn i11_one_name_has_each_processors_own_code() {
    for (model, table, event, umask) in [
        (Model::Nehalem, "nehalemep", 0xc4, 0x02),
        (Model::Skylake, "skylake", 0xc4, 0x02),
        (Model::ArrowLake, "lioncove_arl", 0xc4, 0x02),
        (Model::CougarCove, "cougarcove", 0xc4, 0x30),
    ] {
        let plan = planned(&known(model, Some(table)), &["br_inst_retired.near_call"]);
        assert_eq!(plan.passes[0][0].selection, Selection::of(event, umask), "{table}");
    }
    let arrow_lake = known(Model::ArrowLake, Some("lioncove_arl"));
    let plan = planned(&arrow_lake, &["br_inst_retired.cond"]);
    assert_eq!(plan.passes[0][0].selection, Selection::of(0xc4, 0x111));
    let plan = planned(&known(Model::Zen4, Some("zen4")), &["cycles", "ex_ret_uncond_brnch_instr"]);
    let [cycles, branches] = &plan.passes[0][..] else { panic!("{plan:?}") };
    assert_eq!((cycles.selection.event, branches.selection.event), (0x76, 0x1c9));
}

#[test]
fn c2_what_does_not_fit_at_once_is_spread_over_passes() {
    // Two counters, and both instructions and cycles on a fixed one too.
    let core2 = known(Model::Core2, None);
    let plan = planned(&core2, &["0xc4.0", "0xc5.0", "0x2e.0x41", "instructions", "cycles"]);
    assert_eq!((plan.passes.len(), plan.uncounted.len()), (2, 0));
    let seen = places(&plan);
    assert_eq!(seen[3..], [(seen[3].0, "instructions", Fixed(0)), (seen[4].0, "cycles", Fixed(1))]);
    // The events of 1D.REPL and the like have two counters of the four.
    let nehalem = known(Model::Nehalem, Some("nehalemep"));
    let plan = planned(&nehalem, &["l1d.repl", "l1d_cache_ld.mesi", "l1d_all_ref.any", "0xc4.4"]);
    assert_eq!(plan.passes.len(), 2);
    for pass in &plan.passes {
        for one in pass.iter().filter(|one| one.event.starts_with("l1d")) {
            assert!(matches!(one.counter, General(0 | 1)), "{one:?}");
        }
    }
}

#[test]
fn c2_a_group_stays_together_or_says_which_of_it_conflict() {
    let nehalem = known(Model::Nehalem, Some("nehalemep"));
    let group = "{br_inst_retired.near_call,l1d.repl:u}";
    let plan = planned(&nehalem, &["l1d_cache_ld.mesi", "l1d_all_ref.any", group]);
    let seen = places(&plan);
    assert_eq!(seen[2].0, seen[3].0, "{seen:?}");
    let plan = planned(&nehalem, &["{l1d.repl,l1d_cache_ld.mesi,l1d_all_ref.any,cycles}", "loads"]);
    assert_eq!(places(&plan).iter().map(|place| place.1).collect::<Vec<_>>(), ["loads"]);
    assert_eq!(plan.uncounted.len(), 4);
    let reason = &plan.uncounted[3].reason;
    assert!(reason.contains("l1d.repl, l1d_cache_ld.mesi, l1d_all_ref.any cannot"), "{reason}");
}

#[test]
fn p5_each_refusal_has_its_reason_and_the_rest_goes_on() {
    let skylake = known(Model::Skylake, Some("skylake"));
    for (text, part) in [
        ("l2_rqst.mis", "near it are L2_RQSTS.MISS"),
        ("cycles:", "an event is missing"),
        ("fixed3", "no fixed counter 3"),
        ("0x4000c0", "must count in user mode, in kernel mode, or in both"),
        ("0x0100c0", "no EN bit"),
        ("0x5300c0", "interrupt bit"),
        ("0x4b00c0", "pin control"),
        ("inst_retired.any_p:p", "precisely"),
        ("inst_retired.prec_dist:p", "for sampling"),
        ("zen4::ex_ret_instr", "meant for zen4"),
        ("0x1c4.0", "event"),
    ] {
        let plan = planned(&skylake, &[text, "instructions"]);
        let [left] = &plan.uncounted[..] else { panic!("{text}: {plan:?}") };
        assert!(left.event == text && left.reason.contains(part), "{left:?}");
        assert_eq!(places(&plan), [(0, "instructions", Fixed(0))], "{text}");
    }
    let plan = planned(&skylake, &["cpu_core/cycles/", "cpu_atom/cycles/"]);
    assert_eq!((plan.passes.len(), plan.uncounted.len()), (0, 2));
    // A generic event that requests a fixed counter, on a processor without.
    let plan = planned(&known(Model::Zen2, Some("zen2")), &["reference-cycles", "cycles"]);
    assert!(plan.uncounted[0].reason.contains("ref-cycles-fixed has no counterpart"), "{plan:?}");
    assert_eq!(places(&plan), [(0, "cycles", General(0))]);
}

#[test]
fn c7_without_a_table_raw_and_architectural_events_are_counted() {
    let none = known(Model::Skylake, None);
    let plan = planned(&none, &["instructions", "r00c4", "0xc5.0", "l2_rqsts.miss"]);
    assert_eq!(places(&plan).len(), 3);
    assert!(plan.uncounted[0].reason.contains("no event table"), "{plan:?}");
}

#[test]
fn x2_errata_and_doubts_come_along_and_a_label_names_the_result() {
    let haswell = known(Model::Haswell, Some("haswell"));
    let plan =
        planned(&haswell, &["mem_uops_retired.all_loads", "cpu/event=0xc0,name=mine/", "r1c0:i"]);
    let find = |text: &str| plan.passes[0].iter().find(|one| one.event == text).unwrap();
    assert!(find("mem_uops_retired.all_loads").counting.remarks[0].starts_with("erratum HSD"));
    assert_eq!(find("mine").counting.name, "event=0xc0,umask=0x0");
    assert!(find("r1c0:i").counting.remarks[0].contains("without a counter mask"));
}

#[test]
fn m5_an_events_register_takes_its_value() {
    let plan = planned(
        &known(Model::Skylake, Some("skylake")),
        &["cpu/event=0xb7,umask=0x1,offcore_rsp=0x10001/"],
    );
    let [pass] = &plan.passes[..] else { panic!("{plan:?}") };
    let (msr, value) = pass[0].selection.extra.unwrap();
    assert!(matches!(msr, Msr(0x1a6 | 0x1a7)) && value == 0x1_0001, "{plan:?}");
}

#[test]
fn c2_large_increments_take_the_next_counter_too() {
    let core = core("zen4");
    let name = core.events().find(events::event::Event::is_amd_large_increment).unwrap().name;
    let plan = planned(&known(Model::Zen4, Some("zen4")), &[name]);
    let one = &plan.passes[0][0];
    let programs: Vec<_> = one.programs().collect();
    let General(n) = one.counter else { panic!("{one:?}") };
    assert!(n.is_multiple_of(2) && programs.len() == 2, "{one:?}");
    assert_eq!((programs[0].0, programs[0].1.event), (General(n + 1), 0xfff));
    assert_eq!(programs[1], (one.counter, one.selection));
}

/// Every event of every model's table is counted by registers that the model takes, or refused with a reason.
#[test]
fn m1_whatever_is_planned_can_be_programmed() {
    for (model, table) in [
        (Model::Nehalem, "nehalemep"),
        (Model::Haswell, "haswell"),
        (Model::Skylake, "skylake"),
        (Model::IceLake, "icelake"),
        (Model::SapphireRapids, "sapphirerapids"),
        (Model::ArrowLake, "lioncove_arl"),
        (Model::CougarCove, "cougarcove"),
        (Model::Zen2, "zen2"),
        (Model::Zen4, "zen4"),
    ] {
        let known = known(model, Some(table));
        let mut pmu = pmu(model);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        let (mut programmed, mut refused) = (0, 0);
        for event in core(table).events() {
            let plan = planned(&known, &[event.name]);
            assert_eq!(plan.passes.len() + plan.uncounted.len(), 1, "{}", event.name);
            refused += plan.uncounted.len();
            driver.reset(&mut pmu).unwrap();
            for (counter, selection) in plan.passes.iter().flatten().flat_map(Counted::programs) {
                match driver.program(&mut pmu, counter, &selection) {
                    Ok(()) => programmed += 1,
                    // The models refuse some bits of the registers in addition to the counters.
                    Err(error) => assert!(selection.extra.is_some(), "{}: {error}", event.name),
                }
            }
        }
        assert!(programmed > 4 * refused, "{table}: {programmed} programmed, {refused} refused");
    }
}
