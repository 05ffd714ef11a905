//! Events by name, counted on the emulated models: each snippet below was counted by hand.

use pmu_model::Model;
use protocol::record::{Metric, SnippetResult};
use qemu_tests::{Called, Guest, Ran, xtask};
use xtask::cli::Boot;
use xtask::machine::Given;

/// 20 instructions. Branches: a relative and an indirect call, their two returns, two relative jumps and an indirect
/// one; of conditional ones, one forward taken, one not, two backward taken and the loop's last, not taken.
const BRANCHES: &str = "
call 3f
jmp 4f
3: ret
4: xor eax, eax
test eax, eax
jnz 5f
jz 5f
nop
5: lea rax, [rip + 6f]
call rax
jmp 7f
6: ret
7: lea rax, [rip + 8f]
jmp rax
ud2
8: mov ecx, 3
9: dec ecx
jnz 9b";

/// A return that no call belongs to: its target cannot be known. A store and a load besides.
const LOST_RETURN: &str = "lea rax, [rip + 2f]; push rax; ret; 2:";

/// A far return to the next instruction.
const FAR: &str = "mov eax, cs; push rax; lea rax, [rip + 2f]; push rax; .byte 0x48, 0xcb; 2:";

/// Accesses: 2 loads, a store, two that do both, one of them locked; a load and a store across a line's end; a push and
/// a pop. So 4 load only, 3 store only, 2 do both.
const ACCESSES: &str = "
mov rax, [r14]
mov rbx, [r14 + 8]
mov [r14 + 64], rax
add [r14 + 128], rax
lock add [r14 + 192], rax
mov rax, [r14 + 60]
mov [r14 + 124], rax
push rax
pop rax";

/// A load of a line that is in no cache.
const FLUSHED: &str = "clflush [r14]; mov rax, [r14]";

const PLAIN: &str = "add rax, 1; add rbx, 1; nop";

/// A snippet, and for each name how often it happens in one execution.
type Group = (&'static str, &'static str, &'static [(&'static str, u64)]);

const NEHALEM: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_RETIRED.ANY", 20),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_EXEC.COND", 5),
            ("BR_INST_EXEC.DIRECT", 2),
            ("BR_INST_EXEC.INDIRECT_NON_CALL", 1),
            ("BR_INST_EXEC.RETURN_NEAR", 2),
            ("BR_INST_EXEC.DIRECT_NEAR_CALL", 1),
            ("BR_INST_EXEC.INDIRECT_NEAR_CALL", 1),
            ("BR_INST_EXEC.TAKEN", 10),
            ("BR_INST_EXEC.ANY", 12),
        ],
    ),
    ("lost return", LOST_RETURN, &[("BR_MISP_EXEC.RETURN_NEAR", 1), ("BR_MISP_EXEC.ANY", 1)]),
    (
        "accesses",
        ACCESSES,
        &[("MEM_INST_RETIRED.LOADS", 6), ("MEM_INST_RETIRED.STORES", 5), ("L1D_ALL_REF.ANY", 9)],
    ),
    (
        "flushed",
        FLUSHED,
        &[("MEM_LOAD_RETIRED.LLC_MISS", 1), ("L1D.REPL", 1), ("LONGEST_LAT_CACHE.MISS", 1)],
    ),
];

const HASWELL: &[Group] = &[
    (
        "plain",
        PLAIN,
        &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3), ("CPL_CYCLES.RING0", 3)],
    ),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_RETIRED.ALL", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NOT_TAKEN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_EXEC.ALL_BRANCHES", 12),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("BR_MISP_RETIRED.ALL_BRANCHES", 1), ("BR_MISP_RETIRED.NEAR_TAKEN", 1)],
    ),
    ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]),
    (
        "accesses",
        ACCESSES,
        &[
            ("MEM_UOPS_RETIRED.LOCK_LOADS", 1),
            ("MEM_UOPS_RETIRED.SPLIT_LOADS", 1),
            ("MEM_UOPS_RETIRED.SPLIT_STORES", 1),
            ("MEM_UOPS_RETIRED.ALL_LOADS", 6),
            ("MEM_UOPS_RETIRED.ALL_STORES", 5),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("MEM_LOAD_UOPS_RETIRED.L1_MISS", 1),
            ("MEM_LOAD_UOPS_RETIRED.L3_MISS", 1),
            ("L1D.REPLACEMENT", 1),
            ("LONGEST_LAT_CACHE.MISS", 1),
        ],
    ),
];

/// Memory events that Skylake, Ice Lake, Sapphire Rapids and Lion Cove have by the same names.
const INTEL_ACCESSES: Group = (
    "accesses",
    ACCESSES,
    &[
        ("MEM_INST_RETIRED.LOCK_LOADS", 1),
        ("MEM_INST_RETIRED.SPLIT_LOADS", 1),
        ("MEM_INST_RETIRED.SPLIT_STORES", 1),
        ("MEM_INST_RETIRED.ALL_LOADS", 6),
        ("MEM_INST_RETIRED.ALL_STORES", 5),
        ("MEM_INST_RETIRED.ANY", 9),
    ],
);
const INTEL_FLUSHED: Group = (
    "flushed",
    FLUSHED,
    &[
        ("MEM_LOAD_RETIRED.L1_MISS", 1),
        ("MEM_LOAD_RETIRED.L3_MISS", 1),
        ("L1D.REPLACEMENT", 1),
        ("LONGEST_LAT_CACHE.MISS", 1),
    ],
);

const SKYLAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_EXECUTED.THREAD", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.CONDITIONAL", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NOT_TAKEN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("BR_MISP_RETIRED.ALL_BRANCHES", 1), ("BR_MISP_RETIRED.NEAR_TAKEN", 1)],
    ),
    ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]),
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

const INTEL_LOST_RETURN: Group = (
    "lost return",
    LOST_RETURN,
    &[
        ("BR_MISP_RETIRED.ALL_BRANCHES", 1),
        ("BR_MISP_RETIRED.RET", 1),
        ("BR_MISP_RETIRED.NEAR_TAKEN", 1),
    ],
);
const INTEL_FAR: Group = ("far return", FAR, &[("BR_INST_RETIRED.FAR_BRANCH", 1)]);

const ICE_LAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.COND_TAKEN", 3),
            ("BR_INST_RETIRED.COND_NTAKEN", 2),
            ("BR_INST_RETIRED.COND", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_RETIRED.INDIRECT", 2),
        ],
    ),
    INTEL_LOST_RETURN,
    INTEL_FAR,
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

const ARROW_LAKE: &[Group] = &[
    ("plain", PLAIN, &[("CPU_CLK_UNHALTED.THREAD_P", 3), ("INST_RETIRED.ANY_P", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("UOPS_ISSUED.ANY", 20),
            ("UOPS_EXECUTED.THREAD", 20),
            ("BR_INST_RETIRED.ALL_BRANCHES", 12),
            ("BR_INST_RETIRED.COND_TAKEN_BWD", 2),
            ("BR_INST_RETIRED.COND_TAKEN_FWD", 1),
            ("BR_INST_RETIRED.COND_TAKEN", 3),
            ("BR_INST_RETIRED.COND_NTAKEN", 2),
            ("BR_INST_RETIRED.COND", 5),
            ("BR_INST_RETIRED.NEAR_CALL", 2),
            ("BR_INST_RETIRED.NEAR_RETURN", 2),
            ("BR_INST_RETIRED.NEAR_TAKEN", 10),
            ("BR_INST_RETIRED.INDIRECT", 2),
        ],
    ),
    INTEL_LOST_RETURN,
    INTEL_FAR,
    INTEL_ACCESSES,
    INTEL_FLUSHED,
];

/// Names that Zen 2 and Zen 4 share.
const ZEN_FAR: Group = ("far return", FAR, &[("ex_ret_brn_far", 1)]);
const ZEN_CPUID: Group = ("cpuid", "xor eax, eax; cpuid", &[("ls_ret_cpuid", 1)]);

const ZEN2: &[Group] = &[
    ("plain", PLAIN, &[("ls_not_halted_cyc", 3), ("ex_ret_instr", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("ex_ret_cops", 20),
            ("ex_ret_brn", 12),
            ("ex_ret_brn_tkn", 10),
            ("ex_ret_near_ret", 2),
            ("ex_ret_cond", 5),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[("ex_ret_brn_misp", 1), ("ex_ret_brn_tkn_misp", 1), ("ex_ret_near_ret_mispred", 1)],
    ),
    ZEN_FAR,
    ZEN_CPUID,
    (
        "accesses",
        ACCESSES,
        &[
            ("ls_locks.non_spec_lock", 1),
            ("ls_dispatch.ld_dispatch", 4),
            ("ls_dispatch.store_dispatch", 3),
            ("ls_dispatch.ld_st_dispatch", 2),
            ("ls_dc_accesses", 9),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("ls_ret_cl_flush", 1),
            ("ls_mab_alloc.loads", 1),
            ("ls_refills_from_sys.ls_mabresp_lcl_dram", 1),
            ("l2_cache_req_stat.ls_rd_blk_c", 1),
        ],
    ),
];

const ZEN4: &[Group] = &[
    ("plain", PLAIN, &[("ls_not_halted_cyc", 3), ("ex_ret_instr", 3)]),
    (
        "branches",
        BRANCHES,
        &[
            ("ex_ret_ops", 20),
            ("ex_ret_brn", 12),
            ("ex_ret_brn_tkn", 10),
            ("ex_ret_near_ret", 2),
            ("ex_ret_cond", 5),
            ("ex_ret_ind_brch_instr", 2),
            ("ex_ret_uncond_brnch_instr", 7),
        ],
    ),
    (
        "lost return",
        LOST_RETURN,
        &[
            ("ex_ret_brn_misp", 1),
            ("ex_ret_brn_tkn_misp", 1),
            ("ex_ret_near_ret_mispred", 1),
            ("ex_ret_uncond_brnch_instr_mispred", 1),
        ],
    ),
    ZEN_FAR,
    ZEN_CPUID,
    (
        "accesses",
        ACCESSES,
        &[
            ("ls_dispatch.ld_dispatch", 4),
            ("ls_dispatch.store_dispatch", 3),
            ("ls_dispatch.ld_st_dispatch", 2),
        ],
    ),
    (
        "flushed",
        FLUSHED,
        &[
            ("ls_ret_cl_flush", 1),
            ("ls_mab_alloc.load_store_allocations", 1),
            ("ls_dmnd_fills_from_sys.dram_io_near", 1),
            ("l2_cache_req_stat.ls_rd_blk_c", 1),
        ],
    ),
];

const MODELS: [(Model, &[Group]); 8] = [
    (Model::Nehalem, NEHALEM),
    (Model::Haswell, HASWELL),
    (Model::Skylake, SKYLAKE),
    (Model::IceLake, ICE_LAKE),
    (Model::SapphireRapids, ICE_LAKE),
    (Model::ArrowLake, ARROW_LAKE),
    (Model::Zen2, ZEN2),
    (Model::Zen4, ZEN4),
];

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

/// Core 2 has two counters: 7 events that are not on fixed ones take 4 passes.
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
    let ran = on(Model::Nehalem, &(OPTIONS.to_string() + &snippet("x", ACCESSES, &events)));
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
    let toml = OPTIONS.to_string() + &snippet("x", PLAIN, &events) + &snippet("y", PLAIN, &[]);
    let ran = on(Model::Skylake, &toml);
    let result = ran.results()[0];
    assert_eq!(counts(result), [("instructions", 3.0)]);
    let reasons: Vec<_> =
        result.uncounted.iter().map(|one| (one.event.as_str(), one.reason.as_str())).collect();
    for ((event, reason), (asked, part)) in reasons.iter().zip([
        ("l2_rqst.mis", "there is no event \"l2_rqst.mis\" on skylake; near it are L2_RQSTS.MISS"),
        ("ref-cycles-fixed:e", "has no edge detection"),
        ("inst_retired.any_p:p", "the processor has no PEBS"),
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
        &["--event", "l2_rqst.mis", "--event", "{instructions,cycles:k}"],
    ]
    .concat());
    let warning =
        "warning: event l2_rqst.mis: no event table has this name; near it are L2_RQSTS.MISS";
    assert!(called.err.contains(warning), "{called:#?}");
    assert!(called.out.contains("not counted: l2_rqst.mis: there is no event"), "{called:#?}");
    assert!(called.out.contains("  instructions (emulated)"), "{called:#?}");
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
