use super::*;
use serde_json::{Value, json};

fn records(lines: &[Value]) -> Vec<Numbered> {
    let read = |value: &Value| {
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
    };
    (0..).zip(lines.iter().map(read)).map(|(seq, record)| Numbered { seq, record }).collect()
}

fn check(name: &str, verdict: &str, seen: &str) -> Value {
    json!({ "type": "check", "item": 0, "name": name, "verdict": verdict, "expected": "7", "seen": seen, "source": "" })
}

fn msrs(found: bool, values: &[[&str; 2]], absent: &[&str]) -> Value {
    json!({ "type": "msrs", "item": 0, "cpu": 0, "found": found, "values": values, "absent": absent })
}

fn cpuid(answers: &[[u32; 6]]) -> Value {
    json!({ "type": "cpuid", "item": 0, "cpu": 0, "answers": answers })
}

#[test]
fn x10_a_report_does_not_differ_from_itself() {
    let all = records(&[
        check("a.b", "pass", "7"),
        msrs(true, &[["0x186", "0x0"]], &["0x392"]),
        cpuid(&[[1, 0, 0x506e3, 0, 0, 0]]),
        json!({ "type": "measure", "item": 0, "name": "skid.interrupt", "unit": "instructions", "runs": 1, "min": 1,
                "median": 2, "max": 3 }),
    ]);
    let comparison = compare(&all, &all);
    assert_eq!((comparison.differences(), comparison.compared), (0, 1));
    let [skid] = &comparison.measures[..] else { panic!("{comparison:?}") };
    assert_eq!(skid.values, Pair { there: Some([1, 2, 3]), here: Some([1, 2, 3]) });
    assert_eq!(compare(&[], &[]), Comparison::default());
}

#[test]
fn x10_checks_differ_by_their_verdict_or_their_figures_and_those_of_one_report_alone_are_left_out()
{
    let there = [
        check("a.same", "pass", "7"),
        check("b.verdict", "fail", "8"),
        check("c.figure", "pass", "7"),
        check("d.alone", "pass", "7"),
    ];
    let here = [
        check("a.same", "pass", "7"),
        check("b.verdict", "pass", "7"),
        check("c.figure", "pass", "9"),
        check("e.alone", "pass", "7"),
    ];
    let comparison = compare(&records(&there), &records(&here));
    let names: Vec<_> =
        comparison.checks.iter().map(|one| (one.name.as_str(), one.of_verdict())).collect();
    assert_eq!(names, [("b.verdict", true), ("c.figure", false)]);
    assert_eq!(comparison.compared, 3);
}

#[test]
fn x10_a_register_is_named_if_it_holds_something_else_and_somebody_holds_it_still() {
    // Select 1, a counter, the TSC, one that is absent here, one that only one side looked at.
    let there = [
        ["0x187", "0x4300c0"],
        ["0xc1", "0x5"],
        ["0x10", "0x1"],
        ["0x345", "0x33c5"],
        ["0x999", "0x1"],
    ];
    let here = [["0x187", "0x0"], ["0xc1", "0x6"], ["0x10", "0x2"]];
    let differing = |found| {
        let there = records(&[msrs(found, &there, &[])]);
        let here = records(&[msrs(found, &here, &["0x345"])]);
        let list = compare(&there, &here).registers;
        list.into_iter()
            .map(|one| (one.name, one.values.there, one.values.here))
            .collect::<Vec<_>>()
    };
    let select = ("IA32_PERFEVTSEL1".to_string(), Some(0x4300c0), Some(0));
    let capabilities = ("IA32_PERF_CAPABILITIES".to_string(), Some(0x33c5), None);
    assert_eq!(differing(false), [select.clone(), capabilities.clone()]);
    // As it was found with a counter that runs: its value has gone on.
    assert_eq!(differing(true), [select, capabilities]);
    let still = |value| records(&[msrs(true, &[["0xc1", value], ["0x186", "0x0"]], &[])]);
    let [counter] = &compare(&still("0x5"), &still("0x6")).registers[..] else { panic!() };
    assert_eq!((counter.name.as_str(), counter.found), ("IA32_PMC0", true));
}

#[test]
fn s4_a_replay_compares_the_energy_that_is_told() {
    let machine = |unit: u8| {
        let energy = json!([{ "event": "energy-pkg", "msr": "0x611", "unit": unit }]);
        records(&[
            json!({ "type": "machine", "vendor": "v", "brand": "b", "family": 6, "model": 1, "stepping": 0,
            "topology": { "apic_id": 0, "threads_per_core": 1, "threads_per_package": 1 },
            "tsc": { "hz": 1, "source": "cpuid", "invariant": false }, "apic": { "mode": "xapic", "timer_hz": 0 },
            "processors": [], "memory_bytes": 0, "energy": energy }),
        ])
    };
    let [energy] = &compare(&machine(14), &machine(16)).pmu[..] else { panic!("one differs") };
    assert_eq!(energy.what, "energy");
    let values = (energy.values.there.as_deref(), energy.values.here.as_deref());
    assert_eq!(values, (Some("energy-pkg in 2^-14 J"), Some("energy-pkg in 2^-16 J")));
    assert!(compare(&machine(14), &machine(14)).pmu.is_empty());
    // What a register has counted is nobody's to hold still; its unit is.
    let used = |unit, counted| records(&[msrs(false, &[["0x606", unit], ["0x611", counted]], &[])]);
    assert!(compare(&used("0xa0e03", "0x5"), &used("0xa0e03", "0x9")).registers.is_empty());
    let [unit] = &compare(&used("0xa0e03", "0x5"), &used("0xa1003", "0x5")).registers[..] else {
        panic!()
    };
    assert_eq!(unit.name, "MSR_RAPL_POWER_UNIT");
}

#[test]
fn x10_answers_of_cpuid_differ_leaf_by_leaf_without_those_of_hypervisors() {
    let there = records(&[cpuid(&[
        [1, 0, 1, 2, 3, 4],
        [7, 0, 1, 0, 0, 0],
        [0x4000_0000, 0, 9, 9, 9, 9],
        [0xa, 0, 0, 0, 0, 0],
    ])]);
    let here = records(&[cpuid(&[[1, 0, 1, 2, 3, 4], [7, 0, 0, 0, 0, 0]])]);
    let [seven] = &compare(&there, &here).cpuid[..] else { panic!() };
    assert_eq!(
        (seven.leaf, seven.answers.there, seven.answers.here),
        (7, Some([1, 0, 0, 0]), None)
    );
}

/// A report of measurements has the machine's record and no answers of CPUID: what it did not record is no difference.
#[test]
fn x10_what_a_report_did_not_record_does_not_differ() {
    let there = records(&[check("a.b", "pass", "7")]);
    let here = records(&[
        check("a.b", "pass", "7"),
        msrs(true, &[["0x186", "0x1"]], &[]),
        cpuid(&[[1, 0, 1, 2, 3, 4], [7, 0, 1, 0, 0, 0]]),
    ]);
    assert_eq!(compare(&there, &here).differences(), 0);
}

#[test]
fn x10_a_name_that_no_check_of_the_report_has_is_found() {
    let made = ["freeze.exact", "pmi.count"];
    let first = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        unmatched(&wanted, &made).map(ToString::to_string)
    };
    assert_eq!(first(&[]), None);
    assert_eq!(first(&["freeze.*", "pmi.count", "*"]), None);
    assert_eq!(first(&["pmi.*", "frezze.*", "x"]).as_deref(), Some("frezze.*"));
    // A name without `*` is a whole name.
    assert_eq!(first(&["freeze"]).as_deref(), Some("freeze"));
}

#[test]
fn x10_registers_have_the_manuals_names() {
    let names = [
        (0xc3, "IA32_PMC2"),
        (0x38f, "IA32_PERF_GLOBAL_CTRL"),
        (0xc001_0203, "PERF_CTR1"),
        (0xc001_0208, "PERF_CTL4"),
        (0xc001_0246, "DF_PERF_CTL3"),
        (0xc001_1032, "instruction-based sampling, register 2"),
        (0x1234, "MSR 0x1234"),
    ];
    for (msr, expected) in names {
        assert_eq!(name(msr), expected);
    }
    // Every register that the firmware reads has a name.
    let nameless = |amd| {
        arch::pmu::inventory::registers(amd).filter(|msr| name(msr.0).starts_with("MSR 0x")).count()
    };
    assert_eq!(nameless(false) + nameless(true), 0);
}

#[test]
fn x10_a_comparison_is_told_for_people_and_as_a_document() {
    let there = [
        check("b.verdict", "fail", "8"),
        msrs(true, &[["0x186", "0x1"]], &[]),
        cpuid(&[[7, 0, 1, 0, 0, 0]]),
    ];
    let here = [
        check("b.verdict", "pass", "7"),
        msrs(true, &[["0x186", "0x0"]], &[]),
        cpuid(&[[7, 0, 0, 0, 0, 0]]),
    ];
    let comparison = compare(&records(&there), &records(&here));
    let core = recorded::cores::named("amd-zen4-amd-ryzen-5-7600x-6-core-processor").unwrap();
    let file = std::path::Path::new("x.json");
    let machine = crate::recording::Recorded::of(file, vec![core.leaves.clone()], vec![]).unwrap();
    let text = table(&comparison, &machine, crate::primitives::table::Width::default());
    for part in [
        "AMD Ryzen 5 7600X 6-Core Processor of x.json, as zen4",
        "checks with another verdict",
        "FAIL: 8",
        "0x186 IA32_PERFEVTSEL0, as found",
        "0x7.0x0, processor 0",
        "3 differences: 1 of 1 checks, 0 facts, 1 registers, 1 answers of CPUID",
        "inferred: events: those of zen4",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&json(&comparison, &machine)).unwrap();
    assert_eq!(document["differences"], 3);
    assert_eq!(document["comparison"]["registers"][0]["there"], 1);
}
