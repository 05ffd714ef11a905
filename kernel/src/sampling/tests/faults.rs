//! Sampling on a PMU with a planted fault: a right figure, or a reason.

use super::*;
use arch::pmu::FreezeKind;
use pmu_model::Mutation;

/// Samples, and holds the result to what the code does: 1,000 instructions.
fn sampled(model: Model, fault: Mutation) -> Result<SampleResult, String> {
    let mut host = Host::with(model, fault).map_err(|missing| missing.to_string())?;
    let item = item(&[event(RETIRED, 77)], 100);
    match measure(&mut host, 0, &item, &mut (), &mut |_| ()) {
        Ok(result) => Ok(result),
        Err(Unmeasured::Refused(text)) => Err(text),
        Err(other) => panic!("{model:?} {fault:?}: {other:?}"),
    }
}

fn right_or_said(model: Model) {
    for fault in Mutation::ALL {
        match sampled(model, fault) {
            Err(reason) => assert!(!reason.is_empty(), "{model:?} {fault:?}"),
            Ok(result) => {
                let one = &result.events[0];
                let sum = (one.overflows + one.throttled) * one.period + one.rest;
                let right = sum.abs_diff(1_000) <= 100;
                assert!(right || !one.remarks.is_empty(), "{model:?} {fault:?}: {one:?}");
            }
        }
    }
}

#[test]
fn i4_no_fault_of_a_skylake_gives_a_wrong_profile_without_a_word() {
    right_or_said(Model::Skylake);
}

#[test]
fn i4_no_fault_of_a_core_2_gives_a_wrong_profile_without_a_word() {
    right_or_said(Model::Core2);
}

#[test]
fn i4_no_fault_of_a_zen_4_gives_a_wrong_profile_without_a_word() {
    right_or_said(Model::Zen4);
}

#[test]
fn i4_no_fault_of_a_k10_gives_a_wrong_profile_without_a_word() {
    right_or_said(Model::K10);
}

#[test]
fn i4_where_the_freeze_does_nothing_or_is_refused_the_handler_stops() {
    for model in [Model::Core2, Model::Skylake, Model::Zen4] {
        for fault in [Mutation::FreezeIgnored, Mutation::FreezeRefused, Mutation::FreezeLate] {
            let result = sampled(model, fault).unwrap_or_else(|text| panic!("{fault:?}: {text}"));
            assert!(result.handling.starts_with("stopped by the handler"), "{}", result.handling);
            let freeze = &result.capability.freeze;
            assert!(freeze.starts_with("by the handler, at once: "), "{freeze}");
            assert!(freeze.contains("freezing of the counters on a PMI is not used"), "{freeze}");
            assert_eq!(result.events[0].witness, Some(1_000), "{model:?} {fault:?}");
        }
    }
}

#[test]
fn i4_a_sum_that_differs_from_its_witness_is_said() {
    // The interrupt is lost: the counter ran on through its periods.
    let result = sampled(Model::Skylake, Mutation::LostPmi).unwrap();
    let one = &result.events[0];
    assert_eq!((one.overflows, one.witness), (0, Some(1_000)), "{one:?}");
    let said = "1000 events came since its last interrupt, of a period of 77: interrupts were lost";
    assert_eq!(one.remarks, [said]);
    // Nothing to say on a sound one.
    let (result, _) = run(&mut Host::new(Model::Skylake), &item(&[event(RETIRED, 77)], 100));
    assert_eq!(result.events[0].remarks, [""; 0]);
}

#[test]
fn i3_interrupts_that_never_stop_are_cut_off_and_named() {
    let mut host = Host::with(Model::Skylake, Mutation::PmiNeverStops).unwrap();
    let item = item(&[event(RETIRED, 77)], 500);
    let Err(Unmeasured::Refused(text)) = measure(&mut host, 0, &item, &mut (), &mut |_| ()) else {
        panic!("it is not refused");
    };
    // A thousand more than those with an overflow.
    let times =
        text.strip_prefix("the PMU's interrupt came ").and_then(|rest| rest.split_once(' '));
    let (times, rest) = times.expect("how often it came");
    assert!(times.parse::<u64>().unwrap() >= 1_000, "{text}");
    assert!(rest.starts_with("times without an overflow"), "{text}");
}

#[test]
fn m8_a_timer_samples_without_a_pmu() {
    let mut host = Host { absent: true, ..Host::new(Model::Skylake) };
    let item = Sampling { interval_ns: 1_000, ..item(&[], 3_000) };
    let (result, _) = run(&mut host, &item);
    let [timer] = &result.events[..] else { panic!("{:?}", result.events) };
    assert!(timer.event == "timer" && timer.overflows >= 22 && timer.samples == timer.overflows);
    assert_eq!(result.capability.culprit, "there is no PMU: none");
    assert!(!result.emulated && !result.capability.overflow_interrupt);
    let refused =
        measure(&mut host, 0, &self::item(&[event(RETIRED, 77)], 1), &mut (), &mut |_| ());
    assert!(matches!(refused, Err(Unmeasured::Refused(text)) if text.contains("no PMU")));
}

/// One instruction takes more cycles than a few periods have: they are counted, and said to have had no overflow of their own.
#[test]
fn i4_m12_periods_that_end_while_an_interrupt_waits_are_accounted_for() {
    for (model, mut host) in hosts() {
        let has = host.driver.capabilities();
        let (cycles, stands) = (if has.is_intel() { "r003c" } else { "r0076" }, has.has_global());
        let mut item = item(&[event(cycles, MIN_PERIOD)], 100);
        item.workload.tasks[0].body = Cow::Borrowed(&[0x90, FAR, 0x90]);
        if has.freeze == FreezeKind::None {
            // The handler stops them, and is not counted in ring 3.
            item.workload.tasks[0].ring = TaskRing::User;
        }
        let (result, _) = run(&mut host, &item);
        let one = &result.events[0];
        let sum = (one.overflows + one.throttled) * one.period + one.rest;
        if stands {
            assert_eq!(one.witness, Some(sum), "{model:?}: {one:?}");
            assert!(one.throttled > 100 && one.rest < 2 * one.period, "{model:?}: {one:?}");
            let said = format!("came to {} periods", one.throttled);
            assert!(one.remarks[0].contains(&said), "{model:?}: {one:?}");
        }
    }
}
