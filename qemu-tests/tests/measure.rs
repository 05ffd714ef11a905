//! What the firmware measures.

use pmu_model::Model;
use protocol::authentication::Key;
use protocol::hex::Hex;
use protocol::record::{Outcome, Verdict};
use qemu_tests::{Guest, Ran, direct};
use xtask::cli::Boot;
use xtask::job::{file, form};
use xtask::machine::Given;

fn tour() -> Ran {
    direct(include_str!("../../xtask/jobs/tour.toml"))
}

/// What the tour's snippets come to in instructions.
fn in_the_tour() -> Vec<(&'static str, f64)> {
    // Loop and counter are part of neither, so 11 instructions a turn remain, and one more for each of the turns in which
    // the generator gives an odd number.
    let mispredicted = 11.0 + odd_turns(1000) as f64 / 1000.0;
    vec![
        ("empty body", 0.0),
        ("add rax, rbx", 1.0),
        ("100 dependent adds", 100.0),
        ("div r32", 3.0),
        ("lfence", 1.0),
        ("rdtsc", 1.0),
        ("load chain, L1: one line", 1.0),
        ("load chain, 8 KiB", 1.0),
        ("load chain, 128 KiB", 1.0),
        ("load chain, 4 MiB", 1.0),
        ("load of a flushed line", 4.0),
        ("the same without the load", 3.0),
        ("store-to-load forward", 2.0),
        ("load chain, 1024 lines on 1024 pages", 1.0),
        ("load chain, 1024 lines on 16 pages", 1.0),
        ("invlpg and a load of the page", 2.0),
        ("branch, never taken", 2.0),
        ("branch, always taken", 2.0),
        ("mispredicted-branch loop", mispredicted),
        ("the same without the branch", 11.0),
        ("indirect jump, one target", 2.0),
        ("indirect jump, eight random targets", 15.0),
        ("the same with one of them", 15.0),
        ("call and return", 3.0),
        ("cpuid (below a hypervisor: a VM exit)", 3.0),
        ("rdmsr", 2.0),
        ("wrmsr", 1.0),
        ("cr3 read", 1.0),
        ("cr3 write", 1.0),
        ("invlpg", 1.0),
        ("interrupt and back: lidt, int, iretq, lidt", 4.0),
        ("the same without the interrupt", 2.0),
        ("syscall, back by a jump", 2.0),
    ]
}

/// Under icount with shift 0 the TSC counts instructions: each snippet comes to a whole number, the same in
/// every run.
#[test]
fn n1_the_tour_is_exact_under_icount() {
    let ran = tour();
    ran.ends_with(0);
    let (seen, expected) = (ran.medians(), in_the_tour());
    assert_eq!(seen[..expected.len()], expected);
    assert!(seen.len() > expected.len() + 40, "and the forms");
    for result in ran.results() {
        assert!(result.metrics[0].deterministic, "{result:?}");
        assert_eq!(result.metrics[0].series.each_ref().map(|s| s.distinct), [1, 1]);
    }
}

/// With a PMU, on Intel's and AMD's: what is counted is what is executed.
#[test]
fn n1_each_item_of_the_tour_has_figures_with_an_emulated_pmu() {
    let toml = include_str!("../../xtask/jobs/tour.toml");
    for model in [Model::Skylake, Model::Zen4] {
        let guest = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) };
        let ran = guest.run();
        let results = ran.ends_with(0).results();
        assert_eq!(results.len(), tour_items(toml), "{model:?}");
        let mut counted = 0;
        for (name, expected) in in_the_tour() {
            let result = results.iter().find(|result| result.name == name).unwrap();
            let counts = result.metrics.iter().filter(|metric| metric.event == "instructions");
            for metric in counts {
                assert_eq!(metric.value.median, expected, "{model:?}: {name}");
                assert!(metric.deterministic && result.emulated, "{model:?}: {name}");
                counted += 1;
            }
        }
        assert_eq!(counted, 18, "{model:?}");
    }
}

fn tour_items(toml: &str) -> usize {
    let file = file::parse(toml, "tour.toml").unwrap();
    form::expand(&file).unwrap().snippets.len()
}

/// The tour's xorshift generator: the second code size runs the body twice a turn, so turns 1001 to 2000
/// make the difference.
fn odd_turns(turns: usize) -> usize {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut odd = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x & 1) as usize
    };
    (0..turns).for_each(|_| {
        odd();
    });
    (0..turns).map(|_| odd()).sum()
}

#[test]
fn two_runs_send_the_same_bytes() {
    let (first, second) = (tour(), tour());
    assert!(first.raw.len() > 3000);
    assert!(first.raw == second.raw, "the serial lines of two runs differ");
}

#[test]
fn n1_loop_unroll_and_both_differences_agree() {
    let ran = direct(
        r#"
        [defaults]
        unroll = 7
        [[snippet]]
        asm = "add rax, 1; add rax, 1; add rax, 1"
        [[snippet]]
        asm = "add rax, 1; add rax, 1; add rax, 1"
        difference = "empty"
        [[snippet]]
        asm = "add rax, 1; add rax, 1; add rax, 1"
        loop = 13
        [[snippet]]
        asm = "add r15, 1; add r15, 1; add r15, 1"
        loop = 13
        [[snippet]]
        asm = "add rax, 1; add rax, 1; add rax, 1"
        loop = 13
        difference = "empty"
        "#,
    );
    ran.ends_with(0);
    assert!(ran.medians().iter().all(|&(_, median)| median == 3.0), "{:?}", ran.medians());
}

#[test]
fn n1_values_are_listed_on_request() {
    let ran = direct("[[snippet]]\nasm = \"nop\"\nruns = 4\nvalues = true\nunroll = 10");
    let metric = &ran.ends_with(0).results()[0].metrics[0];
    let listed = metric.series.each_ref().map(|series| series.values.clone().unwrap());
    assert_eq!(listed.each_ref().map(Vec::len), [4, 4]);
    assert_eq!(listed[1][0] - listed[0][0], 10);
}

#[test]
fn expectations_decide_verdict_and_exit_code() {
    let ran = direct(
        "[[snippet]]\nasm = \"nop\"\nexpect = 1\n[[snippet]]\nasm = \"nop; nop\"\nexpect = { min = 0, max = 1 }",
    );
    ran.ends_with(1);
    let verdicts: Vec<Verdict> = ran.results().iter().map(|result| result.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Fail]);
    assert_eq!(ran.report.end().unwrap().outcome, Outcome::Fail);
}

/// The memory areas are there, zero at the start of each item, and apart from each other.
#[test]
fn n1_memory_areas_are_fresh_for_every_item() {
    let check = r#"
        [[snippet]]
        name = "AREA"
        asm = """
        cmp qword ptr [REG], 0
        je 2f
        ud2
        2:
        """
    "#;
    let mut toml =
        String::from("[defaults]\nunroll = 1\nruns = 1\nwarmup = 0\ndifference = \"empty\"\n");
    for register in ["rsp", "rbp", "rdi", "rsi", "r14"] {
        // Both ends of the area, half a MiB either side of the middle; the loop must not run twice.
        toml += &format!(
            "[[snippet]]\nasm = \"mov qword ptr [{register} + 0x7fff8], 1; mov qword ptr [{register} - \
             0x80000], 1; mov qword ptr [{register}], 1\"\n"
        );
        toml += &check.replace("AREA", register).replace("REG", register);
        toml += &check.replace("AREA", register).replace("REG", &format!("{register} + 0x7fff8"));
        toml += &check.replace("AREA", register).replace("REG", &format!("{register} - 0x80000"));
    }
    direct(&toml).ends_with(0);
}

#[test]
fn x1_a_fault_is_named_and_the_next_snippet_runs() {
    let ran = direct(
        r#"
        [defaults]
        unroll = 4
        [[snippet]]
        name = "undefined"
        asm = "nop; ud2"
        [[snippet]]
        name = "fine"
        asm = "nop"
        [[snippet]]
        name = "null"
        init = "xor eax, eax; mov rbx, 0x1234"
        asm = "mov rax, [rax + 0x10]"
        [[snippet]]
        name = "divide"
        init = "xor ecx, ecx; div ecx"
        asm = "nop"
        [[snippet]]
        name = "own code"
        asm = "lea rax, [rip - 7]; mov byte ptr [rax], 0x90"
        [[snippet]]
        name = "data as code"
        asm = "jmp r14"
        [[snippet]]
        name = "no stack"
        asm = "xor esp, esp; push rax"
        [[snippet]]
        name = "breakpoint"
        asm = "int3"
        [[snippet]]
        name = "fine again"
        asm = "nop"
        "#,
    );
    ran.ends_with(1);
    let names: Vec<_> = ran.results().iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, ["fine", "fine again"]);
    let errors = ran.errors();
    let faults: Vec<_> = errors
        .iter()
        .map(|error| {
            let fault = error.fault.as_ref().unwrap();
            let name = error.name.as_deref().unwrap();
            (name, fault.mnemonic.as_str(), fault.part.as_str(), fault.offset, fault.copy)
        })
        .collect();
    assert_eq!(
        faults,
        [
            ("undefined", "#UD", "body", Some(1), Some(0)),
            ("null", "#PF", "body", Some(0), Some(0)),
            ("divide", "#DE", "init", Some(2), None),
            ("own code", "#PF", "body", Some(7), Some(0)),
            ("data as code", "#PF", "outside", None, None),
            ("no stack", "#PF", "body", Some(2), Some(0)),
            // INT3 is a trap: RIP points behind it, into the next copy.
            ("breakpoint", "#BP", "body", Some(0), Some(1)),
        ]
    );
    let null = errors[1].fault.as_ref().unwrap();
    assert_eq!((null.registers.cr2, null.registers.rbx), (Hex(0x10), Hex(0x1234)));
    assert_eq!(errors[0].fault.as_ref().unwrap().bytes.as_deref(), Some("0f0b"));
}

/// Counted, not timed: instructions a snippet, and the heap.
#[test]
fn ten_thousand_snippets_in_one_job_take_the_time_and_the_memory_of_a_thousand_each() {
    let run = |text: &str, count: usize| {
        let key = Key::new([0x5a; 16]);
        let ran = Guest::keyed(Boot::Direct, text, key).run();
        let results = ran.ends_with(0).results();
        assert_eq!(results.len(), count);
        for (index, result) in (0..).zip(&results) {
            assert_eq!((result.item, result.metrics[0].value.median), (index, 1.0));
        }
        let instructions = results[count - 1].tsc[1] - results[0].tsc[0];
        let between = results.windows(2).map(|pair| pair[1].tsc[0] - pair[0].tsc[1]).max().unwrap();
        println!("at most {between} instructions between two snippets");
        // 25,970 in the job of 1,000; numbers with more digits take some more.
        assert!(between < 26_500, "{between}");
        let heap = ran.report.end().unwrap().heap.unwrap();
        (instructions as f64 / count as f64, heap)
    };
    let many = |count: usize| run(&xtask::bench::job_text(count), count);
    // The least that means 100 copies and 10 runs: no warm-up, and no copy at all subtracted.
    let least =
        "[defaults]\nunroll = 100\nruns = 10\nwarmup = 0\ndifference = \"empty\"\n[[snippet]]\n";
    let text = xtask::bench::job_text(1000).replacen("[[snippet]]\n", least, 1);
    let (least, _) = run(&text, 1000);
    println!("{least} instructions a snippet of 10 runs with 100 copies and 10 without");
    // 41,748.
    assert!(least < 41_800.0, "{least}");
    let ((few, small), (many, large)) = (many(1000), many(10_000));
    println!("{few} instructions a snippet, {many} with ten times as many");
    println!("{} bytes of heap beyond the job", small.most - small.before);
    // 47,711, of which 4,500 are the snippet's own.
    assert!(few < 47_800.0, "{few}");
    // Numbers with more digits take a few instructions more.
    assert!((many / few - 1.0).abs() < 0.02, "{few} {many}");
    for heap in [small, large] {
        assert_eq!(heap.after, heap.before, "{heap:?}");
        assert!(heap.most > heap.before, "{heap:?}");
    }
    // The job itself is there before: what the items take beyond it does not depend on their number.
    let most = [small, large].map(|heap| heap.most - heap.before);
    assert!(most[1].abs_diff(most[0]) <= 64, "{most:?}");
    assert!(large.before > small.before, "the count is not that of a constant");
}

#[test]
fn x2_the_machine_record_says_what_the_figures_come_from() {
    let ran = direct("[[snippet]]\nasm = \"nop\"");
    let machine = ran.ends_with(0).report.machine().unwrap().clone();
    assert_eq!(machine.hypervisor.as_deref(), Some("TCGTCGTCGTCG"));
    assert!(machine.pmu.is_none());
    assert!(machine.pmu_absent.unwrap().contains("CPUID announces no performance counters"));
    // One instruction is one tick of a 1 GHz clock; the ACPI timer resolves 1 in 3,500.
    assert!(machine.tsc.hz.abs_diff(1_000_000_000) < 1_000_000, "{:?}", machine.tsc);
}
