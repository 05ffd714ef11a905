use super::*;
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
