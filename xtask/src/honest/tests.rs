use super::counts::{Seen, judge};
use super::experiments::{self, EXITS, SNIPPETS};
use super::interrupts::timer;
use super::*;
use crate::collect::Numbered;
use crate::job::{self, file};
use proptest::prelude::*;
use protocol::record::{CountResult, Record};

fn record(json: &str) -> Record {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn report(records: Vec<Record>) -> Report {
    let numbered = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
    Report { records: numbered.collect(), ..Report::default() }
}

fn machine(pmu: &str) -> Record {
    record(&format!(
        r#"{{"type":"machine","vendor":"GenuineIntel","brand":"x","family":6,"model":1,"stepping":1,
        "topology":{{"apic_id":0,"threads_per_core":1,"threads_per_package":1}},{pmu},
        "tsc":{{"hz":64000000,"source":"cpuid","invariant":true}},
        "apic":{{"mode":"xapic","timer_hz":1}},"processors":[],"memory_bytes":1}}"#
    ))
}

fn with_faults(faults: &[&str]) -> Record {
    let faults = serde_json::to_string(faults).unwrap();
    machine(&format!(
        r#""pmu":{{"architecture":"intel","version":4,"counters":8,"counter_bits":48,"fixed_counters":3,
        "fixed_counter_bits":48,"features":[],"errata":[],"conflicts":[],"faults":{faults}}}"#
    ))
}

/// A snippet's result with one event.
fn result(name: &str, event: &str, value: f64) -> Record {
    let series = |value: u64| format!(r#"{{"min":{value},"max":{value},"distinct":1}}"#);
    record(&format!(
        r#"{{"type":"result","item":1,"name":"{name}","verdict":"none","per":1,"runs":8,"metrics":[
        {{"event":"{event}","min":{value},"median":{value},"mean":{value},"max":{value},"deterministic":true,
        "series":[{},{}]}}],"tsc":[0,1]}}"#,
        series(0),
        series(value as u64)
    ))
}

fn check(name: &str, verdict: &str, seen: &str) -> Record {
    record(&format!(
        r#"{{"type":"check","item":0,"name":"{name}","verdict":"{verdict}","expected":"x","seen":"{seen}",
        "source":"y"}}"#
    ))
}

#[test]
fn every_experiment_is_an_item_and_every_snippet_has_a_truth() {
    let job = file::parse(JOB, "honest.toml").unwrap();
    let names: Vec<&str> = job.snippets.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, SNIPPETS.map(|(name, _)| name));
    let packed = job::pack(&job, job::Purpose::Qemu).unwrap();
    let others = packed.job.items[1 + names.len()..].iter().map(protocol::job::Item::name);
    assert_eq!(others.collect::<Vec<_>>(), [experiments::TIMER, experiments::OVERFLOWS]);
    assert!(names.iter().all(|name| name.starts_with(PREFIX)));
}

#[test]
fn a_report_without_experiments_has_no_certificate() {
    let other = report(vec![with_faults(&[]), result("nop", "instructions", 1.0)]);
    assert_eq!(Certificate::of(&other), None);
}

#[test]
fn what_the_trial_says_is_read_as_it_is_meant() {
    for (text, how) in [
        ("counter 0 is not used: it stood still while 2009 instructions ran", Some(Lie::Stuck)),
        ("counter 1 is not used: it reads 0xff after 0x2a was written", Some(Lie::Stuck)),
        ("counter 0 is not used: it counted 4018 where the code has 2009", Some(Lie::Scaled)),
        (
            "counter 0 is not used: it counted 281474976708647 where the code has 2009",
            Some(Lie::Backwards),
        ),
        ("RDPMC cannot be relied on: it reads 0x7 of counter 0, RDMSR 0x0", Some(Lie::Deviates)),
        (
            "freezing of the counters on a PMI is not used: the counters went on to the end",
            Some(Lie::FrozenLate),
        ),
        // KVM refuses it, which is the truth.
        (
            "freezing of the counters on a PMI is not used: writing 0x1000 to MSR 0x1d9 raised an exception",
            None,
        ),
        ("MSR 0x3f1 does not exist: no PEBS", None),
    ] {
        assert_eq!(trial::meaning(text), how, "{text}");
    }
}

#[test]
fn a_cause_is_named_and_not_what_follows_from_it() {
    let name = SNIPPETS[0].0;
    let base = || vec![result(name, "instructions", 8.0)];
    let lies = |records: Vec<Record>| {
        let certificate = Certificate::of(&report(records)).unwrap();
        let lies = certificate.findings.iter().filter_map(|one| match one.class {
            Class::Lying { how } => Some(how),
            _ => None,
        });
        lies.collect::<Vec<_>>()
    };
    // A counter that stands still fails checks of everything.
    let mut stuck =
        vec![with_faults(&["counter 0 is not used: it stood still while 9 instructions ran"])];
    stuck.extend(base());
    stuck.push(check("freeze.counters", "fail", "0"));
    assert_eq!(lies(stuck), [Lie::Stuck]);
    // Where nothing interrupts, nothing freezes.
    let freeze = "freezing of the counters on a PMI is not used: the counters went on to the end";
    let mut lost = vec![with_faults(&[freeze])];
    lost.extend(base());
    lost.push(check("pmi.each_counter", "fail", "none"));
    assert_eq!(lies(lost), [Lie::DroppedInterrupts]);
    let mut sound = vec![with_faults(&[])];
    sound.extend(base());
    sound.push(check("pmi.each_counter", "pass", "so it is"));
    sound.push(check("interference.page_faults", "pass", "3 a turn: 1 over the loop's own"));
    let certificate = Certificate::of(&report(sound)).unwrap();
    assert_eq!(certificate.honest, Some(true));
    let constant = Class::ExactUpTo { added: 1.0, per: Cause::Fault };
    assert_eq!(certificate.findings[0].class, constant);
}

#[test]
fn without_a_pmu_there_is_nothing_to_certify() {
    let none = machine(r#""pmu_absent":"CPUID announces none""#);
    let name = SNIPPETS[0].0;
    let certificate = Certificate::of(&report(vec![none, result(name, "tsc", 8.0)])).unwrap();
    assert_eq!((certificate.honest, certificate.exit_code()), (None, 77));
    // But one that announces counters of which none counts lies.
    let lying = machine(
        r#""pmu_absent":"none can be relied on: counter 0: it stood still while 9 instructions ran""#,
    );
    let certificate = Certificate::of(&report(vec![lying, result(name, "tsc", 8.0)])).unwrap();
    assert_eq!((certificate.honest, certificate.exit_code()), (Some(false), 1));
}

/// Every experiment with what `value` makes of its truth: least, median, greatest.
fn seen(event: &str, value: impl Fn(&str, f64) -> [f64; 3]) -> Vec<Seen<'static>> {
    let one = |(item, (name, truth)): (u32, &(&'static str, experiments::Truth))| {
        let truth = experiments::expected(event, truth);
        let value = value(name, truth.unwrap_or(5) as f64);
        Seen { item, name, truth, per: 50, value, same: value[0] == value[2], smis: 0 }
    };
    (1..).zip(&SNIPPETS).map(one).collect()
}

fn class(event: &str, value: impl Fn(&str, f64) -> [f64; 3]) -> Class {
    judge(event, &seen(event, value)).unwrap().class
}

const KNOWN: [&str; 3] = ["instructions", "branches", "ex_ret_cond"];

#[test]
fn what_happens_to_a_guest_adds_a_constant() {
    let exits = |name: &str, truth: f64| [truth + f64::from(u8::from(name == EXITS)); 3];
    let constant = Class::ExactUpTo { added: 1.0, per: Cause::VmExit };
    assert_eq!(class("instructions", exits), constant);
    assert_eq!(
        class("cycles", |_, _| [4.0, 5.0, 6.0]).words(),
        "noisy within 0.8 to 1.2 of its median"
    );
    assert_eq!(class("cycles", |_, _| [0.0; 3]), Class::Lying { how: Lie::Stuck });
    // Branches that are not taken are lost: the share depends on the code.
    let incomplete =
        |name: &str, truth: f64| [if name.contains("not taken") { 0.0 } else { truth }; 3];
    assert_eq!(class("branches", incomplete), Class::Lying { how: Lie::Incomplete });
}

/// The figures are of one execution, and an SMI comes in a run.
#[test]
fn what_an_smi_adds_or_loses_is_of_a_run_and_not_of_an_execution() {
    for (ends, added) in [([0.0, 10.0], 500.0), ([-4.0, 0.0], -200.0), ([-4.0, 10.0], 500.0)] {
        let mut all = seen("instructions", |_, truth| [truth; 3]);
        let truth = all[0].value[1];
        all[0].value = [truth + ends[0], truth, truth + ends[1]];
        (all[0].same, all[0].smis) = (false, 100);
        let class = judge("instructions", &all).unwrap().class;
        assert_eq!(class, Class::ExactUpTo { added, per: Cause::Smi }, "{ends:?}");
    }
}

#[test]
fn a_timer_adds_nothing_a_constant_or_lies() {
    let of = |sum: u64| {
        let json = format!(
            r#"{{"item":1,"name":"{}","tasks":[],"events":[{{"event":"instructions:u","name":"i","counter":"c",
            "group":0,"sum":{{"raw":{sum},"counted":1,"enabled":1}},"cpus":[],
            "kernel":{{"raw":0,"counted":0,"enabled":0}},"tasks":[]}}],"groups":1,"passes":0,"ticks":50,
            "switches":0,"tsc":[0,1]}}"#,
            experiments::TIMER
        );
        timer(&serde_json::from_str::<CountResult>(&json).unwrap())[0].class
    };
    assert_eq!(of(500_001), Class::Exact);
    assert_eq!(of(500_051), Class::ExactUpTo { added: 1.0, per: Cause::Interrupt });
    assert_eq!(of(0), Class::Lying { how: Lie::Stuck });
    assert_eq!(of(450_000), Class::Lying { how: Lie::Incomplete });
    assert!(matches!(of(510_000), Class::Noisy { .. }));
}

proptest! {
    #[test]
    fn truth_is_exact_and_a_multiple_of_it_is_scaled(which in 0usize..3, share in 0.05f64..20.0) {
        let event = KNOWN[which];
        prop_assert_eq!(class(event, |_, truth| [truth; 3]), Class::Exact);
        prop_assume!((share - 1.0).abs() > 0.05);
        let scaled = class(event, |_, truth| [truth * share; 3]);
        prop_assert_eq!(scaled, Class::Lying { how: Lie::Scaled });
    }

    #[test]
    fn what_somebody_else_takes_is_shared_and_what_is_added_at_random_is_noise(
        which in 0usize..3, taken in 0.05f64..0.9, added in 0.05f64..0.9,
    ) {
        let event = KNOWN[which];
        let shared = class(event, |_, truth| [truth * (1.0 - taken), truth * (1.0 - taken / 2.0), truth]);
        prop_assert_eq!(shared, Class::Lying { how: Lie::Shared });
        let noisy = class(event, |_, truth| [truth, truth, truth * (1.0 + added)]);
        prop_assert!(matches!(noisy, Class::Noisy { .. }), "{noisy:?}");
        prop_assert!(!noisy.lies());
    }

    #[test]
    fn no_figures_end_the_judging(values in prop::collection::vec((-1e6f64..1e6, 0u32..3), 7), which in 0usize..3) {
        let mut seen = seen(KNOWN[which], |_, truth| [truth; 3]);
        for (one, (value, smis)) in seen.iter_mut().zip(values) {
            (one.value, one.same, one.smis) = ([value, value + 1.0, value + 2.0], smis == 0, smis);
        }
        let found = judge(KNOWN[which], &seen).unwrap();
        prop_assert!(!found.class.words().is_empty());
    }
}
