//! Events by name, counted on the emulated models: each snippet below was counted by hand.

pub mod models;

use models::*;
use pmu_model::Model;
use protocol::record::{Metric, SnippetResult};
use qemu_tests::{Called, Guest, Ran, xtask};
use xtask::cli::{Boot, Counting};
use xtask::machine::Given;

const OPTIONS: &str = "[defaults]\nunroll = 7\nruns = 3\nwarmup = 2\n";

fn snippet(name: &str, code: &str, events: &[&str]) -> String {
    format!("[[snippet]]\nname = {name:?}\nevents = {events:?}\nasm = '''\n{code}\n'''\n")
}

fn job(groups: &[Group]) -> String {
    let snippets = groups.iter().map(|(name, code, events)| {
        let events: Vec<&str> = events.iter().map(|&(event, _)| event).collect();
        snippet(name, code, &events)
    });
    OPTIONS.to_string() + &snippets.collect::<String>()
}

fn on(model: Model, toml: &str) -> Ran {
    let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run();
    ran.ends_with(0);
    ran
}

fn counts(result: &SnippetResult) -> Vec<(&str, f64)> {
    let median = |metric: &Metric| metric.value.median;
    result.metrics[1..].iter().map(|metric| (metric.event.as_str(), median(metric))).collect()
}

/// Counts of one snippet on `model`, all of which the target could count.
fn counted(model: Model, code: &str, events: &[&str]) -> Vec<(String, f64)> {
    let ran = on(model, &(OPTIONS.to_string() + &snippet("x", code, events)));
    let result = ran.results()[0];
    assert_eq!(result.uncounted, [], "{model:?}");
    counts(result).into_iter().map(|(event, count)| (event.to_string(), count)).collect()
}

#[test]
fn m1_twenty_named_events_count_what_they_name_on_each_model() {
    for (model, groups) in MODELS {
        let ran = on(model, &job(groups));
        let table = ran.report.machine().unwrap().event_tables.clone().unwrap().table.unwrap();
        let mut number = 0;
        for (result, (_, _, events)) in ran.results().into_iter().zip(groups) {
            assert_eq!(result.uncounted, [], "{model:?}");
            let expected: Vec<_> = events.iter().map(|&(name, n)| (name, n as f64)).collect();
            assert_eq!(counts(result), expected, "{model:?}: {}", result.name);
            if result.name == "accesses" {
                // Under icount a tick is an instruction, also beside events that are looked at one by one.
                assert_eq!(result.metrics[0].value.median, 9.0, "{model:?}");
            }
            for metric in &result.metrics[1..] {
                let counting = metric.counting.as_ref().unwrap();
                assert_eq!(counting.name, format!("{table}::{}", metric.event), "{model:?}");
                assert!(metric.deterministic && result.emulated, "{model:?}: {metric:?}");
            }
            number += events.len();
        }
        assert!(number >= 20 && ran.results().len() == groups.len(), "{model:?}: {number} events");
    }
}

#[test]
fn m2_generic_names_count_the_same_on_every_model() {
    for (model, _) in MODELS {
        let seen = counted(model, BRANCHES, &["instructions", "branches", "generic5"]);
        let seen: Vec<f64> = seen.into_iter().map(|(_, count)| count).collect();
        assert_eq!(seen, [20.0, 12.0, 20.0], "{model:?}");
        // Nehalem's CPUID takes the architectural event away (leaf 0xA EBX[6]).
        if model != Model::Nehalem {
            let seen = counted(model, LOST_RETURN, &["branch-misses"]);
            assert_eq!(seen[0].1, 1.0, "{model:?}");
        }
        let seen =
            counted(model, PLAIN, &["cycles", "CPU_CYCLES:k", "cpu/cycles,name=mine/", "cycles:u"]);
        let expected = [("cycles", 3.0), ("CPU_CYCLES:k", 3.0), ("mine", 3.0), ("cycles:u", 0.0)];
        assert_eq!(seen, expected.map(|(name, n)| (name.to_string(), n)), "{model:?}");
    }
}

/// Core 2 has two counters: the five of 7 events that are not on fixed ones take 3 passes.
#[test]
fn n2_what_does_not_fit_at_once_is_counted_in_the_fewest_passes() {
    let events = ["0xc4.0", "instructions", "r0c", "0xc5.0", "cycles", "0x88.0", "0xc4.0:k"];
    let ran = on(Model::Core2, &(OPTIONS.to_string() + &snippet("x", BRANCHES, &events)));
    let result = ran.results()[0];
    assert_eq!(result.uncounted, []);
    let seen = counts(result);
    assert_eq!(seen.iter().map(|one| one.0).collect::<Vec<_>>(), events, "in the job's order");
    assert_eq!([seen[0].1, seen[1].1, seen[6].1], [12.0, 20.0, 12.0]);
    let countings = result.metrics[1..].iter().map(|metric| metric.counting.as_ref().unwrap());
    let countings: Vec<_> = countings.map(|c| (c.counter.as_str(), c.pass)).collect();
    assert_eq!(countings[1].0, "fixed counter 0");
    assert_eq!(countings[4].0, "fixed counter 1");
    assert_eq!(countings.iter().map(|one| one.1).max(), Some(2), "{countings:?}");
    for pass in 0..=2 {
        let mut counters: Vec<_> = countings.iter().filter(|one| one.1 == pass).collect();
        let number = counters.len();
        counters.sort();
        counters.dedup();
        assert!(number == counters.len() && number > 0, "{countings:?}");
    }
}

/// Nehalem's L1D events go to counters 0 and 1 only.
#[test]
fn c2_a_group_is_counted_at_once_or_refused_with_those_of_it_that_conflict() {
    let group = "{MEM_INST_RETIRED.LOADS,L1D_ALL_REF.ANY}";
    let impossible = "{L1D_ALL_REF.ANY,L1D_CACHE_LD.MESI,L1D.REPL,cycles}";
    let events = ["L1D_CACHE_LD.MESI", "L1D.REPL", group, impossible];
    let allowed = format!("allow-uncounted = true\n{OPTIONS}");
    let ran = on(Model::Nehalem, &(allowed + &snippet("x", ACCESSES, &events)));
    let result = ran.results()[0];
    let expected = [
        ("L1D_CACHE_LD.MESI", 6.0),
        ("L1D.REPL", 0.0),
        ("MEM_INST_RETIRED.LOADS", 6.0),
        ("L1D_ALL_REF.ANY", 9.0),
    ];
    assert_eq!(counts(result), expected);
    let pass = |index: usize| result.metrics[index].counting.as_ref().unwrap().pass;
    assert_eq!(pass(3), pass(4), "the group");
    assert_eq!(result.uncounted.len(), 4);
    for uncounted in &result.uncounted {
        let reason = &uncounted.reason;
        let conflict = "L1D_ALL_REF.ANY, L1D_CACHE_LD.MESI, L1D.REPL cannot be counted at the same";
        assert!(
            reason.starts_with(conflict) && reason.contains("counter 0, counter 1"),
            "{reason}"
        );
    }
}

#[test]
fn p2_every_form_of_a_raw_event_counts_the_same() {
    let events = [
        "0xc4.0x20",
        "r20c4",
        "cpu/event=0xc4,umask=0x20/",
        "0x4320c4",
        "0xc4|0x20<<UM_SHIFT|U|K|EN",
        "br_inst_retired.near_taken",
        "0xc4.0x20:u",
        "0xc4|0x20<<UM_SHIFT|U|EN",
        // Cycles with a taken branch; none has two. Edges cannot tell two cycles in a row.
        "0xc4.0x20:c=1",
        "0xc4.0x20:c=2",
    ];
    let seen = counted(Model::Skylake, BRANCHES, &events);
    let seen: Vec<f64> = seen.iter().map(|one| one.1).collect();
    assert_eq!(seen, [10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 0.0, 0.0, 10.0, 0.0]);
    // The model retires one operation a cycle: never less than one, always less than two.
    let slots = ["uops_retired.retire_slots:c=1:i", "uops_retired.retire_slots:c=2:i"];
    let seen = counted(Model::Skylake, BRANCHES, &slots);
    assert_eq!([seen[0].1, seen[1].1], [0.0, 20.0]);
}

#[test]
fn p6_unit_masks_are_joined() {
    let events =
        ["br_inst_retired:near_call:near_return", "br_inst_retired:conditional:near_call:u"];
    let seen = counted(Model::Skylake, BRANCHES, &events);
    assert_eq!([seen[0].1, seen[1].1], [4.0, 0.0]);
    let seen = counted(Model::Zen2, ACCESSES, &["ls_dispatch:ld_dispatch:ld_st_dispatch"]);
    assert_eq!(seen[0].1, 6.0);
}

#[test]
fn p5_what_cannot_be_counted_has_its_reason_and_the_rest_goes_on() {
    let events =
        ["l2_rqst.mis", "ref-cycles-fixed:e", "instructions", "inst_retired.any_p:p", "fixed9"];
    let allowed = format!("allow-uncounted = true\n{OPTIONS}");
    let toml = allowed + &snippet("x", PLAIN, &events) + &snippet("y", PLAIN, &[]);
    let ran = on(Model::Skylake, &toml);
    let result = ran.results()[0];
    assert_eq!(counts(result), [("instructions", 3.0)]);
    let reasons: Vec<_> =
        result.uncounted.iter().map(|one| (one.event.as_str(), one.reason.as_str())).collect();
    for ((event, reason), (asked, part)) in reasons.iter().zip([
        ("l2_rqst.mis", "there is no event \"l2_rqst.mis\" on skylake; near it are L2_RQSTS.MISS"),
        ("ref-cycles-fixed:e", "has no edge detection"),
        ("inst_retired.any_p:p", "this event cannot be counted precisely"),
        ("fixed9", "there is no fixed counter 9"),
    ]) {
        assert!(*event == asked && reason.contains(part), "{event}: {reason}");
    }
    assert_eq!((reasons.len(), ran.results()[1].uncounted.len()), (4, 0));
    // Without any PMU the time is measured all the same.
    let ran = Guest::new(Boot::Direct, &toml).run();
    ran.ends_with(0);
    let result = ran.results()[0];
    assert_eq!((result.metrics.len(), result.metrics[0].value.median), (1, 3.0));
    assert_eq!(result.uncounted.len(), 5);
    let reason = &result.uncounted[2].reason;
    assert!(
        reason.contains("there is no PMU: CPUID announces no performance counters"),
        "{reason}"
    );
}

fn run(arguments: &[&str]) -> Called {
    let folder = tempfile::tempdir().unwrap();
    let called = xtask(folder.path(), &[&["run", "--unroll", "5"], arguments].concat());
    assert_eq!(called.code, 0, "{called:#?}");
    called
}

#[test]
fn c7_the_host_warns_of_names_that_no_table_knows() {
    let nop = ["--asm", "nop", "--pmu", "skylake"];
    let called = run(&[
        &nop[..],
        &["--event", "l2_rqst.mis", "--event", "{instructions,cycles:k}", "--allow-uncounted"],
    ]
    .concat());
    let warning =
        "warning: event l2_rqst.mis: no event table has this name; near it are L2_RQSTS.MISS";
    assert!(called.err.contains(warning), "{called:#?}");
    assert!(called.out.contains("not counted: l2_rqst.mis: there is no event"), "{called:#?}");
    assert!(called.out.contains("  instructions (emulated)"), "{called:#?}");
    // Unless that is allowed, it is refused before anything boots.
    let folder = tempfile::tempdir().unwrap();
    let called = xtask(folder.path(), &[&["run"], &nop[..], &["--event", "l2_rqst.mis"]].concat());
    called.fails_with(
        2,
        &["event l2_rqst.mis: no event table", "L2_RQSTS.MISS", "--allow-uncounted"],
    );
    // An event of the user's own is known; it counts what its code counts.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.json");
    let mine =
        r#"[{"EventName": "MY.RETURNS", "EventCode": "0xC4", "UMask": "0x8", "Counter": "0"}]"#;
    std::fs::write(&file, mine).unwrap();
    let asm = ["--asm", "call 2f; jmp 3f; 2: ret; 3:", "--pmu", "skylake", "--format", "csv"];
    let file = file.to_str().unwrap();
    let called = run(&[&asm[..], &["--event", "my_returns", "--event-file", file]].concat());
    assert!(!called.err.contains("warning: event"), "{called:#?}");
    assert!(called.out.contains(",my_returns,1,1,1,1,"), "{called:#?}");
}

/// Under icount each instruction takes 2 to the power of the shift ticks, so the ticks tell the instructions that
/// finding counters took: reading the texts, looking names up, encoding, assigning, planning passes.
#[test]
fn c2_assignment_on_the_target_costs_a_stated_number_of_instructions() {
    let of = |events: &[&str]| {
        let one = snippet("first", PLAIN, events) + &snippet("again", PLAIN, events);
        let ran = on(Model::Skylake, &(OPTIONS.to_string() + &one));
        let shift = ran.report.machine().unwrap().emulated_pmu.unwrap().tsc_shift;
        let [first, again] = ran.results()[..] else { panic!("two results") };
        assert_eq!((first.metrics.len(), again.planning), (1 + events.len(), 0));
        assert!(first.planning > 0);
        first.planning >> shift
    };
    let all: Vec<&str> =
        SKYLAKE.iter().flat_map(|(_, _, events)| events.iter().map(|&(event, _)| event)).collect();
    let (one, four, many) = (of(&all[..1]), of(&all[2..6]), of(&all));
    println!("instructions for 1 event: {one}, for 4: {four}, for {}: {many}", all.len());
    assert!(one < 100_000, "{one}");
    assert!(four < 300_000, "{four}");
    assert!(many < 1_500_000, "{many}");
}

/// Iterations of the loop below.
const ITERATIONS: u64 = 1_000_000;

/// Six instructions an iteration, and one more where ECX is odd. Each of the two lines is in the first-level cache before.
fn long_loop(events: &[&str]) -> String {
    let body = "2: mov rax, [r14]; mov [rdi], rax; test cl, 1; jz 3f; nop; 3: dec ecx; jnz 2b";
    // In braces: in one pass, or not at all.
    let together = format!("{{{}}}", events.join(","));
    format!(
        "[[snippet]]\ninit = \"mov rax, [r14]; mov rax, [rdi]\"\nasm = \"mov ecx, {ITERATIONS}; {body}\"\n\
         unroll = 1\nruns = 1\nwarmup = 1\ndifference = \"empty\"\nevents = [{together:?}]\n\
         machine = {{ time-limit = 0 }}\n"
    )
}

/// As many as the processors have, all at the same time.
#[test]
fn e1_eight_counters_at_once_are_exact_over_a_million_iterations() {
    const N: u64 = ITERATIONS;
    let skylake = [
        ("BR_INST_RETIRED.ALL_BRANCHES", 2 * N),
        ("BR_INST_RETIRED.CONDITIONAL", 2 * N),
        ("BR_INST_RETIRED.NOT_TAKEN", N / 2 + 1),
        ("BR_INST_RETIRED.NEAR_TAKEN", N / 2 + N - 1),
        ("MEM_INST_RETIRED.ALL_LOADS", N),
        ("MEM_INST_RETIRED.ALL_STORES", N),
        ("MEM_LOAD_RETIRED.L1_HIT", N),
        ("MEM_LOAD_RETIRED.L1_MISS", 0),
    ];
    let zen4 = [
        ("ex_ret_instr", 6 * N + N / 2 + 1),
        ("ex_ret_brn", 2 * N),
        ("ex_ret_brn_tkn", N / 2 + N - 1),
        ("ex_ret_cond", 2 * N),
        ("ls_dispatch.ld_dispatch", N),
        ("ls_dispatch.store_dispatch", N),
    ];
    for (model, expected) in [(Model::Skylake, &skylake[..]), (Model::Zen4, &zen4)] {
        let events: Vec<&str> = expected.iter().map(|&(event, _)| event).collect();
        // Stepping takes minutes for it.
        let guest = Guest::new(Boot::Direct, &long_loop(&events));
        let guest = Guest { pmu: Given::Emulated(model), counting: Counting::Plugin, ..guest };
        let ran = guest.run();
        ran.ends_with(0);
        let result = ran.results()[0];
        assert_eq!(result.uncounted, [], "{model:?}");
        let expected: Vec<_> = expected.iter().map(|&(event, n)| (event, n as f64)).collect();
        assert_eq!(counts(result), expected, "{model:?}");
    }
}
