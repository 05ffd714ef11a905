//! Tasks of both kinds of code under one scheduler.

use super::code::there_and_back;
use super::{MODELS, on};
use pmu_model::Model;
use protocol::record::{Samples, TaskEnd, TaskResult};
use qemu_tests::direct;
use std::collections::BTreeMap;

/// A hash over the turn's number, in 32 bits: as 64-bit code and as 32-bit code, of four instructions.
const WIDE: &str = "inc ecx; add eax, ecx; imul eax, eax, 0x01000193; mov [r14], eax";
const NARROW: &str = "inc ecx; add eax, ecx; imul eax, eax, 0x01000193; mov [ebx], eax";

fn hash(turns: u64) -> u64 {
    let step = |hash: u32, turn: u64| hash.wrapping_add(turn as u32).wrapping_mul(0x0100_0193);
    (1..=turns).fold(0, step).into()
}

/// Name, code, bits, ring, turns, and instructions of a turn with the loop's two.
fn tasks() -> [(&'static str, String, u8, u8, u64, u64); 6] {
    let (there, wide, compatibility, _) = there_and_back(3);
    let (zero, ..) = there_and_back(0);
    [
        ("wide", WIDE.into(), 64, 3, 4_001, 6),
        ("compatibility", NARROW.into(), 32, 3, 5_003, 6),
        ("compatibility zero", NARROW.into(), 32, 0, 3_001, 6),
        ("wide zero", WIDE.into(), 64, 0, 2_003, 6),
        ("both", there, 64, 3, 1_009, wide + compatibility + 2),
        ("both zero", zero, 64, 0, 501, wide + compatibility + 2),
    ]
}

fn tables(kind: &str) -> String {
    let table = |(name, asm, bits, ring, turns, _): &(_, String, u8, u8, u64, u64)| {
        format!(
            "[[{kind}.task]]\nname = \"{name}\"\nasm = '''\n{asm}\n'''\nbits = {bits}\nring = {ring}\nturns = {turns}\n"
        )
    };
    tasks().iter().map(table).collect()
}

fn check(results: &[TaskResult], at: &str) {
    for (result, (name, _, bits, _, turns, _)) in results.iter().zip(tasks()) {
        assert_eq!((result.end, result.turns), (TaskEnd::Exit, turns), "{at}: {result:?}");
        assert_eq!((result.bits, result.ended_bits), (bits, None), "{at}, {name}");
        if !name.starts_with("both") {
            assert_eq!(result.value.0, hash(turns), "{at}, {name}");
        }
    }
}

#[test]
fn t6_t9_tasks_of_both_modes_compute_what_they_do_alone_under_random_ticks() {
    let timers = [
        "tick-ns = 0",
        "tick-ns = 20000",
        "tick-ns = 3000\njitter = 1",
        "tick-ns = 2000\njitter = 2",
    ];
    let job: String =
        timers.iter().map(|timer| format!("[[run]]\n{timer}\n{}", tables("run"))).collect();
    let ran = direct(&job);
    ran.ends_with(0);
    for (result, timer) in ran.report.tasks().zip(timers) {
        check(&result.tasks, timer);
        assert!(timer == timers[0] || result.switches > 10, "{timer}: {}", result.switches);
    }
}

#[test]
fn t6_c3_counts_by_task_are_exact_in_both_modes_under_random_ticks() {
    let mut job = String::new();
    for ticks in ["tick-ns = 40000\njitter = 1", "tick-ns = 60000\njitter = 77"] {
        job += &format!("[[count]]\nevents = [\"r00c0:u\"]\n{ticks}\n{}", tables("count"));
    }
    for model in MODELS {
        let ran = on(model, &job);
        ran.ends_with(0);
        for count in ran.report.counts() {
            check(&count.tasks, &format!("{model:?}"));
            let counted: Vec<u64> = count.events[0].tasks.iter().map(|task| task.raw).collect();
            // With the INT at the end.
            let of = |(_, _, _, ring, turns, each)| if ring == 3 { turns * each + 1 } else { 0 };
            let expected: Vec<u64> = tasks().into_iter().map(of).collect();
            assert_eq!(counted, expected, "{model:?}");
            assert_eq!(count.events[0].sum.raw, expected.iter().sum::<u64>(), "{model:?}");
            assert!(count.switches > 10, "{model:?}: {}", count.switches);
        }
    }
}

#[test]
fn t6_m9_each_sample_says_which_kind_of_code_it_interrupted() {
    let (_, wide, compatibility, _) = there_and_back(3);
    for model in MODELS {
        for keep in ["histogram", "samples"] {
            let head = "events = [\"r00c0:u\"]\nperiod = 61\ntick-ns = 300000\njitter = 5";
            let job = format!("[[sample]]\n{head}\nkeep = \"{keep}\"\n{}", tables("sample"));
            let ran = on(model, &job);
            let result = ran.ends_with(0).report.sampled().next().expect("an item");
            // Task and bits, and how often.
            let mut seen: BTreeMap<(u32, u8), u64> = BTreeMap::new();
            for row in &result.addresses {
                *seen.entry((row.task, row.bits)).or_default() += row.count;
            }
            for part in ran.report.samples(result.item) {
                for (index, (_, _, _, task)) in (0..).zip(Samples::iter(part)) {
                    let bits = if part.compatibility.contains(&index) { 32 } else { 64 };
                    *seen.entry((task >> 2, bits)).or_default() += 1;
                }
            }
            let one = &result.events[0];
            assert_eq!(seen.values().sum::<u64>(), one.overflows, "{model:?}: {seen:?}");
            let all: u64 =
                tasks().iter().filter(|task| task.3 == 3).map(|task| task.4 * task.5 + 1).sum();
            assert_eq!(one.overflows * 61 + one.rest, all, "{model:?}");
            let of = |task, bits| seen.get(&(task, bits)).copied().unwrap_or(0);
            assert_eq!([of(0, 32), of(1, 64)], [0, 0], "{model:?}, {keep}: {seen:?}");
            assert!(of(0, 64) > 200 && of(1, 32) > 250, "{model:?}, {keep}: {seen:?}");
            // The one that changes has the share of its instructions in each, as far as the period lets it.
            let (in_wide, in_narrow) = (of(4, 64) as f64, of(4, 32) as f64);
            let share = in_narrow / (in_wide + in_narrow);
            let expected = compatibility as f64 / (wide + compatibility + 2) as f64;
            // Some 250 samples: three standard deviations are 0.093.
            assert!((share - expected).abs() < 0.1, "{model:?}, {keep}: {share} of {expected}");
            let shown =
                xtask::render::render(&ran.report, &Default::default(), xtask::cli::Format::Table);
            for part in ["compatibility (32-bit)", "3 (32-bit)", "mov [ebx], eax", "mov [r14], eax"]
            {
                assert!(
                    shown.contains(part) || keep == "samples" && part.contains("mov"),
                    "{part}: {shown}"
                );
            }
        }
    }
}

/// Without a scheduler: one task of ring 0.
#[test]
fn t6_a_single_sampled_task_may_be_32_bit_code() {
    let job = "[[sample]]\nasm = \"inc eax; tail: push eax; pop edx\"\nturns = 3000\nbits = 32\n\
               events = [\"r00c0\"]\nperiod = 101\n";
    // PEBS records, which do not have the code segment, are taken out at the end.
    let precise = job.replace("r00c0", "inst_retired.prec_dist") + "precise = true\n";
    for (model, job) in [(Model::Skylake, job), (Model::Zen2, job), (Model::Skylake, &precise)] {
        let ran = on(model, job);
        let result = ran.ends_with(0).report.sampled().next().expect("an item");
        let body = result.code[0].body.map(|at| at.0);
        let inside =
            result.addresses.iter().filter(|row| (body[0]..body[1]).contains(&row.address.0));
        let inside: Vec<_> = inside.collect();
        assert!(!inside.is_empty() && inside.iter().all(|row| row.bits == 32), "{result:?}");
        let first = inside.iter().find(|row| row.address.0 == body[0]).expect("INC is sampled");
        assert!(first.bytes.starts_with("40"), "{first:?}");
    }
}

#[test]
fn t6_m15_faults_of_32_bit_tasks_are_theirs_alone_and_a_change_of_mode_at_the_end_is_told() {
    let (there, ..) = there_and_back(3);
    // Ends where it is 32-bit code: INT 0x82 in place of the way back.
    let half = there.replace("call 3f", "int 0x82\ncall 3f");
    let bad = [
        ("opcode", 32, 3, "inc eax\nud2".to_string(), Some(("#UD", 1, 32))),
        ("divide", 32, 0, "xor ecx, ecx\ndiv ecx".into(), Some(("#DE", 2, 32))),
        ("other", 32, 3, "mov eax, 0x800cf000\nmov edx, [eax]".into(), Some(("#PF", 5, 32))),
        ("port", 32, 3, "dec eax\ncli".into(), Some(("#GP", 1, 32))),
        ("half", 64, 3, half, None),
        ("wide", 64, 3, "nop\nud2".into(), Some(("#UD", 1, 64))),
    ];
    let mut job = "[[run]]\ntick-ns = 3000\njitter = 4\n".to_string();
    for (name, bits, ring, asm, _) in &bad {
        job += &format!(
            "[[run.task]]\nname = \"{name}\"\nbits = {bits}\nring = {ring}\nasm = '''\n{asm}\n'''\n"
        );
    }
    // Selectors are the task's own. QEMU's translator lets code reach data through an empty DS; a processor does not.
    let keeps = |ds: &str, body: &str| {
        format!(
            "mov eax, {ds}\nmov ds, eax\nmov gs, eax\nnop\nnop\nmov edx, ds\ncmp edx, eax\njne 2f\n\
             mov edx, gs\ncmp edx, eax\njne 2f\nmov edx, es\ncmp edx, 0x1b\njne 2f\n{body}\njmp 3f\n2: ud2\n3:"
        )
    };
    let count = "mov es:[ebx], ecx\ninc ecx";
    for (name, asm) in [("empty", keeps("0", count)), ("flat", keeps("0x1b", count))] {
        job += &format!(
            "[[run.task]]\nname = \"{name}\"\nbits = 32\nring = 3\nturns = 4000\nasm = '''\n{asm}\n'''\n"
        );
    }
    let ran = direct(&job);
    ran.ends_with(1);
    let result = ran.report.tasks().next().expect("an item");
    for (task, (name, _, _, _, expected)) in result.tasks.iter().zip(&bad) {
        let seen =
            task.fault.as_ref().map(|fault| (fault.mnemonic.as_str(), fault.offset, fault.bits));
        let expected = expected.map(|(mnemonic, offset, bits)| (mnemonic, Some(offset), bits));
        assert_eq!(seen, expected, "{name}: {task:?}");
    }
    let half = &result.tasks[4];
    assert_eq!((half.end, half.bits, half.ended_bits), (TaskEnd::Exit, 64, Some(32)), "{half:?}");
    for task in &result.tasks[6..] {
        assert_eq!((task.end, task.turns, task.value.0), (TaskEnd::Exit, 4000, 3999), "{task:?}");
    }
    assert!(result.switches > 40, "{}", result.switches);
    let shown = xtask::render::render(&ran.report, &Default::default(), xtask::cli::Format::Table);
    for part in [
        "opcode (32-bit)",
        "half (64-bit, at its end 32-bit)",
        "at byte 1 of its body: ud2 (32-bit)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
