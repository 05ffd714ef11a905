use super::*;
use arch::pmu::numbers;
use std::collections::BTreeSet;

#[test]
fn k1_every_model_passes_or_skips_every_check() {
    for model in Model::ALL.into_iter().filter(|&model| model != Model::None) {
        let (made, suite) = suite(model, None, &all());
        for check in made.iter().filter(|check| check.verdict == CheckVerdict::Fail) {
            eprintln!("{model:?} {}: expected {}, saw {}", check.name, check.expected, check.seen);
        }
        println!(
            "{model:?}: {} passed, {} skipped: {:?}",
            suite.passed,
            suite.skipped,
            named(&made, CheckVerdict::Skip)
        );
        assert_eq!(suite.failed, 0, "{model:?}");
        assert!(suite.passed >= 30 && suite.emulated, "{model:?}: {suite:?}");
        assert_eq!(made.len(), checks().count());
    }
}

#[test]
fn without_a_pmu_everything_is_skipped_with_the_reason() {
    let (made, suite) = suite(Model::None, None, &all());
    assert!(made.is_empty());
    assert_eq!((suite.passed, suite.failed, suite.known_errata), (0, 0, 0));
    assert_eq!(suite.skipped as usize, checks().count());
    assert_eq!(suite.reason.as_deref(), Some("CPUID announces no performance counters"));
}

#[test]
fn names_are_unique_and_have_a_family() {
    let names: BTreeSet<&str> = checks().map(|check| check.name).collect();
    assert_eq!(names.len(), checks().count());
    for check in checks() {
        assert_eq!(check.name.split('.').count(), 2, "{}", check.name);
        assert!(!check.source.is_empty());
    }
}

#[test]
fn the_host_tool_knows_the_names_of_all_checks() {
    let known = include_str!("../../../../xtask/data/checks.txt").lines();
    assert!(known.eq(checks().map(|check| check.name)), "xtask/data/checks.txt");
}

#[test]
fn a_name_that_no_check_has_is_a_failure() {
    for model in [Model::Skylake, Model::None] {
        let checks = ["overflow.exact", "overflow"].map(Cow::Borrowed).to_vec();
        let (made, suite) = suite(model, None, &Conformance { checks, ..all() });
        assert_eq!((suite.failed, made[0].name.as_str()), (1, "overflow"), "{model:?}");
    }
}

#[test]
fn a_filter_runs_what_it_names() {
    let checks = ["overflow.*", "pmi.count"].map(Cow::Borrowed).to_vec();
    let (made, suite) = suite(Model::Skylake, None, &Conformance { checks, ..all() });
    let names: Vec<&str> = made.iter().map(|check| check.name.as_str()).collect();
    assert!(names.iter().all(|name| name.starts_with("overflow.") || *name == "pmi.count"));
    assert_eq!((names.len(), suite.passed), (6, 6), "{names:?}");
}

#[test]
fn s1_checks_of_records_use_a_period_that_no_erratum_of_the_processor_is_about() {
    let job = Conformance { checks: vec![Cow::Borrowed("pebs.*")], ..all() };
    // HSW11: at least 128, `nhm_limit_period`: at least 32, and one more with PEBS; Skylake: none. Of 521 instructions each
    // 129th, 33rd and 20th.
    for (model, records) in
        [(Model::Haswell, (2, 4)), (Model::Nehalem, (7, 15)), (Model::Skylake, (13, 26))]
    {
        let mut host = Host::new(model);
        host.unmarked = true;
        host.pmu.reset();
        let (made, suite) = suite_on(&mut host, &job);
        assert_eq!((suite.emulated, suite.failed), (false, 0), "{model:?}: {made:?}");
        let count = made.iter().find(|check| check.name == "pebs.count").unwrap();
        let expected = format!("{} to {} records of ", records.0, records.1);
        assert!(count.expected.starts_with(&expected), "{model:?}: {count:?}");
    }
}

#[test]
fn k1_a_processor_that_is_as_exact_as_the_emulated_pmu_fails_no_check() {
    for model in Model::ALL.into_iter().filter(|&model| model != Model::None) {
        let mut host = Host::new(model);
        host.unmarked = true;
        host.pmu.reset();
        let (made, suite) = suite_on(&mut host, &all());
        let failed = named(&made, CheckVerdict::Fail);
        assert_eq!((suite.emulated, failed), (false, vec![]), "{model:?}");
    }
}

/// The checks that `pattern` names, on a model that is taken for a processor of that signature.
fn on_signature(
    model: Model,
    signature: u32,
    fault: Option<Mutation>,
    pattern: &'static str,
) -> (Host, Vec<Made>) {
    let mut host = Host::new(model);
    (host.unmarked, host.signature) = (true, Some(signature));
    host.pmu.set_mutation(fault);
    host.pmu.reset();
    let (made, _) = suite_on(&mut host, &only(pattern));
    (host, made)
}

fn only(pattern: &'static str) -> Conformance<'static> {
    Conformance { checks: vec![Cow::Borrowed(pattern)], ..all() }
}

/// Family 6 model 5Ch; family 17h models 1 and 31h.
const GOLDMONT: u32 = 0x5_06c9;
const ZEN_1: u32 = 0x80_0f11;
const ZEN_2: u32 = 0x83_0f10;

#[test]
fn k1_where_counter_0_alone_has_pebs_the_checks_use_it() {
    let (_, made) = on_signature(Model::Skylake, GOLDMONT, None, "pebs.*");
    let passed = named(&made, CheckVerdict::Pass);
    for name in ["pebs.address", "pebs.count", "pebs.threshold", "pebs.interrupt", "pebs.maximum"] {
        assert!(passed.contains(&name), "{name}: {made:?}");
    }
}

#[test]
fn k1_what_a_record_says_of_a_load_is_checked_where_its_encoding_is_known() {
    for (signature, verdict) in [(GOLDMONT, CheckVerdict::Skip), (0x5_06e3, CheckVerdict::Pass)] {
        for name in ["pebs.latency", "pebs.data_source"] {
            let (_, made) = on_signature(Model::Skylake, signature, None, name);
            assert_eq!(made[0].verdict, verdict, "{signature:#x}: {made:?}");
        }
    }
}

#[test]
fn k1_erratum_1023_explains_missing_interrupts_of_two_counters() {
    for (name, fault) in
        [("pmi.two_at_once", Mutation::LostPmi), ("freeze.by_software", Mutation::PmiDropped)]
    {
        let verdict = |signature| {
            let (_, made) = on_signature(Model::Zen2, signature, Some(fault), name);
            made[0].verdict
        };
        let seen = [ZEN_1, ZEN_2].map(verdict);
        assert_eq!(seen, [CheckVerdict::KnownErratum, CheckVerdict::Fail], "{name}");
    }
    // It explains neither missing interrupts of one counter, nor missing instructions.
    for (name, fault) in
        [("pmi.each_counter", Mutation::LostPmi), ("freeze.by_software", Mutation::AllStandStill)]
    {
        let (_, made) = on_signature(Model::Zen2, ZEN_1, Some(fault), name);
        assert_eq!(made[0].verdict, CheckVerdict::Fail, "{made:?}");
    }
}

#[test]
fn k1_reserved_bits_of_amds_status_are_not_compared() {
    let mut host = Host::new(Model::Zen4);
    host.altered = Some((numbers::AMD_GLOBAL_STATUS, |value| value | 1 << 20 | 1 << 60));
    host.pmu.reset();
    let (made, suite) = suite_on(&mut host, &only("status.*"));
    assert_eq!((suite.passed, suite.failed), (4, 0), "{made:?}");
}

#[test]
fn k1_checks_of_ibs_switch_the_unit_of_family_10h_off_in_two_writes() {
    let mut host = Host::new(Model::K10);
    host.pmu.reset();
    let (made, suite) = suite_on(&mut host, &only("ibs.*"));
    assert_eq!((host.at_once, suite.failed), (0, 0), "{made:?}");
    // The others have no need of it.
    let mut host = Host::new(Model::Zen2);
    host.pmu.reset();
    suite_on(&mut host, &only("ibs.*"));
    assert!(host.at_once > 0);
}

/// KVM without the register that sets the status, and where it drops writes of DEBUGCTL.
#[test]
fn x12_what_kvm_lacks_looks_as_it_is_known() {
    for (model, fault, name) in [
        (Model::Zen4, Mutation::StatusSetIgnored, "status.set"),
        (Model::Zen2, Mutation::LbrNeverRecords, "lbr.mispredicted"),
    ] {
        let (made, _) = suite(model, Some(fault), &only(name));
        let finding = Finding::fail(&made[0].expected, &made[0].seen);
        let finding = known::explain(finding, &made[0].name, Some(Hypervisor::Kvm), true);
        assert_eq!(finding.verdict, CheckVerdict::KnownBehaviour, "{made:?}");
    }
}

#[test]
fn k1_no_erratum_excuses_the_emulated_pmu() {
    let name = "amd.instructions_retired_counter";
    for (unmarked, verdict) in [(true, CheckVerdict::KnownErratum), (false, CheckVerdict::Fail)] {
        let mut host = Host::new(Model::Zen2);
        (host.unmarked, host.signature) = (unmarked, Some(ZEN_1));
        host.altered = Some((numbers::AMD_IRPERF, |_| 0));
        host.pmu.reset();
        let (made, _) = suite_on(&mut host, &only(name));
        assert_eq!(made[0].verdict, verdict, "{made:?}");
    }
}
