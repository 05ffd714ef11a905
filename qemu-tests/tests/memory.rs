//! Memory of a job's own size: its pages, its content, its ends, and that it is given back.

use pmu_model::Model;
use protocol::record::{ErrorCode, Record, SnippetResult, TaskEnd};
use qemu_tests::{Guest, Ran, direct, xtask};
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Each piece of code once, whole.
const ONCE: &str = "[defaults]\nunroll = 1\nruns = 2\nwarmup = 0\ndifference = \"empty\"\n";

/// Code that ends in #UD unless the eight bytes at `offset` of memory `name` are `value`.
fn holds(name: &str, offset: u64, value: u64) -> String {
    format!(
        "movabs rax, offset memory_{name}; mov ecx, {offset}; movabs rdx, {value:#x}; \
         cmp [rax+rcx], rdx; je 9f; ud2; 9:\n"
    )
}

/// An item whose code ends in #UD if something is not as it should be.
fn item(kind: &str, memory: &str, asm: &str) -> String {
    format!("[[{kind}]]\nasm = '''{asm}'''\nmemory = [{memory}]\n")
}

fn result<'a>(ran: &'a Ran, name: &str) -> &'a SnippetResult {
    let found = ran.report.results().find(|result| result.name == name);
    found.unwrap_or_else(|| panic!("no result of {name}: {:?}", ran.errors()))
}

fn records(ran: &Ran) -> impl Iterator<Item = &Record> {
    ran.report.records.iter().map(|one| &one.record)
}

/// Median of an event, which every run agrees on.
fn exactly(result: &SnippetResult, event: &str) -> f64 {
    let metric = result.metrics.iter().find(|metric| metric.event == event);
    let metric = metric.unwrap_or_else(|| panic!("{event}: {:?}", result.uncounted));
    assert!(metric.deterministic, "{}: {metric:?}", result.name);
    metric.value.median
}

#[test]
fn n5_a_chase_and_a_walk_over_64_mib_have_exact_counts() {
    const ELEMENTS: f64 = (1 << 20) as f64;
    // The chase comes back to its begin after as many loads as its cycle is long.
    let toml = ONCE.to_string()
        + r#"
        events = ["instructions", "loads", "stores"]
        [[defaults.memory]]
        name = "list"
        size = "64M"
        fill = { chase = { stride = 64, seed = 1 } }
        [[snippet]]
        name = "chase"
        init = "mov rbx, offset memory_list; mov rax, rbx"
        asm = "2: mov rax, [rax]; inc rcx; cmp rax, rbx; jne 2b"
        [[snippet]]
        name = "walk"
        init = "mov rbx, offset memory_list; mov ecx, offset memory_list_size; shr ecx, 6"
        asm = "2: add rax, [rbx]; add rbx, 64; dec ecx; jnz 2b"
        [[snippet]]
        name = "loads that miss"
        init = "mov rax, offset memory_list"
        loop = 1000
        asm = "mov rax, [rax]"
        events = ["L1-dcache-load-misses"]
        [[snippet]]
        name = "loads that hit"
        init = "mov rax, offset memory_list"
        loop = 1000
        asm = "mov rax, [rax]"
        events = ["L1-dcache-load-misses"]
        memory = [{ name = "list", size = "8K", fill = { chase = { stride = 8, order = "forward" } } }]
        [[snippet]]
        name = "cycle by cycle"
        history = 5
        memory = [{ name = "list", size = "1M", fill = { pattern = "01" } }]
        asm = "mov rbx, [memory_list+64]"
        events = ["loads"]
        [[sample]]
        events = [{ event = "loads:u", period = 100 }]
        memory = [{ name = "list", size = "4K" }]
        [[sample.task]]
        name = "sampled"
        asm = "load: mov rax, [memory_list+rcx]; add rcx, 64; and rcx, 0xfff"
        turns = 3000
        ring = 3
        "#;
    let guest = Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    ran.ends_with(0);
    for name in ["chase", "walk"] {
        let one = result(&ran, name);
        assert_eq!(exactly(one, "instructions"), 4.0 * ELEMENTS, "{name}");
        assert_eq!((exactly(one, "loads"), exactly(one, "stores")), (ELEMENTS, 0.0), "{name}");
        assert_eq!(
            (one.controls[0].option.as_str(), one.controls[0].note.as_str()),
            (
                "memory=list",
                "67108864 bytes at 0x70200000, pages of 4 KiB: 16384; \
                 a chase of 1048576 elements 64 bytes apart, in the random order of seed 1"
            )
        );
    }
    let misses = |name| {
        let metrics = &result(&ran, name).metrics;
        metrics.iter().find(|metric| metric.event == "L1-dcache-load-misses").unwrap().value
    };
    // A random order goes to another line each time, 64,000 bytes in 1000 steps: twice the cache. Forward by eight bytes it is
    // one line in eight at most.
    let (miss, hit) = (misses("loads that miss"), misses("loads that hit"));
    assert!(miss.min > 0.9 && hit.max <= 0.126, "{miss:?} {hit:?}");
    let Some(Record::History(history)) =
        records(&ran).find(|one| matches!(one, Record::History(_)))
    else {
        panic!("{:?}", ran.errors())
    };
    assert_eq!(history.controls[0].option, "memory=list");
    let sampled = ran.report.sampled().next().expect("a sample");
    let loads = &sampled.events[0];
    assert_eq!((loads.overflows, loads.rest), (30, 0), "{loads:?}");
}

#[test]
fn n5_memory_holds_what_was_asked_for_and_ends_where_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, (0..4100u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    let word = |index: u64| ((2 * index + 1) << 32) | (2 * index);
    let pattern = u64::from_le_bytes([2, 3, 1, 2, 3, 1, 2, 3]);
    let several = format!(
        "{{ name = 'file', fill = {{ file = '{}' }} }}, {{ name = 'more', size = 20_000, fill = {{ file = '{}' }} }}, \
         {{ name = 'zero', size = '1M' }}, {{ name = 'pattern', size = 5000, fill = {{ pattern = '01 02 03' }} }}, \
         {{ name = 'back', size = '8K', fill = {{ chase = {{ order = 'backward', stride = 4096 }} }} }}",
        path.display(),
        path.display()
    );
    let looks = [
        holds("file", 0, word(0)),
        holds("file", 16_392, word(2049)),
        holds("file", 16_400, 0),
        holds("more", 16_392, word(2049)),
        holds("more", 16_400, 0),
        holds("zero", (1 << 20) - 8, 0),
        holds("pattern", 4990, pattern),
        // The last byte is the second of the pattern.
        holds("pattern", 4999, 2),
        "mov rax, offset memory_back; mov rbx, [rax]; cmp [rbx], rax; je 9f; ud2; 9: sub rbx, rax; cmp ebx, 4096; je 9f; \
         ud2; 9: mov eax, offset memory_file_size; cmp eax, 16400; je 9f; ud2; 9:\n"
            .to_string(),
    ];
    let looks = looks.concat();
    let spoils = "mov rdi, offset memory_zero; mov ecx, 4096; mov al, 255; rep stosb";
    let list = "{ name = 'list', size = '64M', page-size = '2m' }";
    let pages = "mov rax, offset memory_list; add rax, offset memory_list_size";
    let most = "{ name = 'most', size = '150M' }";
    let toml = ONCE.to_string()
        + &item("snippet", &several, &format!("{looks}{spoils}"))
        + &item("snippet", &several, &looks)
            .replace("memory =", "machine = { ring = 3 }\nmemory =")
        + &item(
            "snippet",
            "{ name = 'low', size = 1, fill = { pattern = '07' } }",
            "cmp byte ptr [memory_low], 7; je 9f; ud2; 9: inc byte ptr [memory_low+4095]",
        )
        .replace("memory =", "bits = 32\nmemory =")
        + &item("snippet", list, &format!("{pages}; mov rbx, [rax - 8]; mov rbx, [rax + 8]"))
        + &item("snippet", list, "mov rax, offset memory_list; mov [rax - 16], rax")
        + &item("snippet", most, &holds("most", 0, 0))
        + &item("snippet", &format!("{most}, {list}"), "nop")
        + &item("snippet", "{ name = 'wide', size = 1, page-size = '1g' }", "nop")
        + &item("snippet", most, &holds("most", (150 << 20) - 8, 0))
        + &item(
            "snippet",
            "{ name = 'list', size = '4K', fill = { chase = {} } }",
            "mov rbx, offset memory_list; mov rax, rbx; 2: mov rax, [rax]; cmp rax, rbx; jne 2b",
        )
        .replace("memory =", "exact = true\nmemory =");
    let guest = Guest { cpu: Some("max,pdpe1gb=off".into()), ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    ran.ends_with(1);
    let errors: Vec<_> = ran.errors().iter().map(|e| (e.item.unwrap(), e.code, &*e.text)).collect();
    let [behind, before, both, giant] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((behind.0, behind.1), (3, ErrorCode::SnippetFault));
    assert!(behind.2.ends_with(", 8 bytes after the end of memory `list`"), "{behind:?}");
    assert!(before.2.ends_with(", 16 bytes before memory `list`"), "{before:?}");
    assert_eq!(
        (both.0, both.1, giant.0, giant.1),
        (6, ErrorCode::Unsupported, 7, ErrorCode::Unsupported)
    );
    let text = "memory `list`: 67108864 bytes are asked for, in pages of 2 MiB; the machine has ";
    assert!(both.2.starts_with(text), "{both:?}");
    assert_eq!(giant.2, "memory `wide`: the processor has no pages of 1 GiB");
    let Some(Record::Exact(exact)) = records(&ran).find(|one| matches!(one, Record::Exact(_)))
    else {
        panic!("no counts")
    };
    let count = |event: &str| exact.counts.iter().find(|one| one.event == event).unwrap().value;
    // 64 elements, three instructions each, and two in front.
    assert_eq!((count("instructions"), count("loads")), (2.0 + 3.0 * 64.0, 64.0));
}

/// Walks the page tables to the entry of the first page of memory `m`, and compares its bits 3, 4 and 7 (PWT, PCD, large page).
fn looks_at_its_page(levels: u32, bits: u32) -> String {
    let mut code =
        "mov rbx, cr3; movabs rdx, 0xffff800000000000; movabs rdi, offset memory_m".to_string();
    for level in 0..levels {
        let shift = 39 - 9 * level;
        code += "; movabs rcx, 0xffffffffff000; and rbx, rcx; mov rax, rdi";
        code +=
            &format!("; shr rax, {shift}; and eax, 511; add rbx, rdx; mov rbx, [rbx + 8 * rax]");
    }
    code + &format!(
        "; and ebx, 0x98; cmp ebx, {bits:#x}; je 2f; ud2; 2: mov [rdi], rax; mov rax, [rdi]"
    )
}

#[test]
fn n5_pages_and_types_of_own_memory_are_those_that_were_asked_for() {
    let of = |options: &str, levels, bits| {
        let memory = format!("{{ name = 'm', size = '3M', {options} }}");
        item("snippet", &memory, &looks_at_its_page(levels, bits))
    };
    // 4 KiB and 2 MiB at the same addresses one after the other: the tables between are given back.
    let toml = ONCE.to_string()
        + &of("page-size = '4k'", 4, 0)
        + &of("page-size = '2m'", 3, 0x80)
        + &of("memory-type = 'wt'", 4, 0x10)
        + &of("memory-type = 'wc'", 4, 0x08)
        + &of("page-size = '2m', memory-type = 'uc'", 3, 0x98)
        + &of("page-size = '1g'", 2, 0x80)
        + &of("page-size = '4k'", 4, 0);
    let guest = Guest { memory: 3072, cpu: Some("max".into()), ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    ran.ends_with(0);
    assert_eq!(ran.results().len(), 7);
    assert!(ran.results().iter().all(|one| one.restored.is_empty()));
}

#[test]
fn n5_tasks_and_other_processors_have_the_memory_of_their_item() {
    let task = |name: &str, rest: &str| {
        let asm = format!("{}{}", holds("low", 8, 0x0101_0101_0101_0101), holds("high", 0, 0));
        format!(
            "[[run.task]]\nname = '{name}'\nturns = 50\n{rest}\nasm = '''{asm}inc qword ptr [r14]\nlock inc qword ptr [memory_low+{}]'''\n",
            4000
        )
    };
    // The second piece has no room below 2 GiB beside the first.
    let memory = "{ name = 'low', size = '240M', page-size = '2m', fill = { file = 'ONES' } }, { name = 'high', size = '16M' }";
    let folder = tempfile::tempdir().unwrap();
    let ones = folder.path().join("ones");
    std::fs::write(&ones, [1; 4000]).unwrap();
    let memory = memory.replace("ONES", &ones.display().to_string());
    let sum = "movabs rax, offset memory_high; lock inc qword ptr [rax]";
    let toml = format!("{ONCE}[[run]]\ntick-ns = 50000\nmemory = [{memory}]\n")
        + &task("kernel", "")
        + &task("user", "ring = 3")
        + &task("other", "cpu = 1\nring = 3")
        + &item("processors", &memory, &format!("{}{sum}", holds("low", 16, 0x0101_0101_0101_0101)))
        + &item("processors", "{ name = 'low', size = '1M' }", &holds("low", 16, 0))
        // Both code sizes, two runs: each processor has added one in the two runs that have a body; here all is new.
        + &item("snippet", &memory, &holds("high", 0, 0));
    let guest = Guest { cpus: Cpus::Many(2), memory: 600, ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    ran.ends_with(0);
    let tasks = records(&ran).find_map(|record| match record {
        Record::Tasks(tasks) => Some(tasks),
        _ => None,
    });
    let tasks = &tasks.expect("the run").tasks;
    assert_eq!(tasks.len(), 3);
    assert!(tasks.iter().all(|task| task.end == TaskEnd::Exit && task.turns == 50), "{tasks:?}");
    let both = records(&ran).filter(|one| matches!(one, Record::Processors(_))).count();
    assert_eq!(both, 2);
}

#[test]
fn n5_x1_tables_of_own_memory_that_code_changed_do_not_reach_the_next_item() {
    // RAX: the entry of the page; RSI: that of its table.
    let walk = "mov rbx, cr3; movabs rdx, 0xffff800000000000; movabs rcx, 0xffffffffff000; mov rdi, offset memory_m; \
                and rbx, rcx; add rbx, rdx; mov rbx, [rbx]; and rbx, rcx; add rbx, rdx; mov rbx, [rbx + 8]; \
                and rbx, rcx; add rbx, rdx; lea rsi, [rbx + 8 * 385]; mov rax, [rsi]; and rax, rcx; add rax, rdx";
    let memory = "{ name = 'm', size = '3M', fill = { pattern = '05' } }";
    let good = item("snippet", memory, &holds("m", 0, 0x0505_0505_0505_0505));
    let toml = ONCE.to_string()
        + &item(
            "snippet",
            memory,
            &format!(
                "{walk}; cmp qword ptr [rax], 0; jne 9f; ud2; 9: mov qword ptr [rax], 0; invlpg [rdi]"
            ),
        )
        + &good
        + &item("snippet", memory, &format!("{walk}; add qword ptr [rax], 4096; invlpg [rdi]"))
        + &good
        + &item("snippet", memory, &format!("{walk}; mov qword ptr [rsi], 0; invlpg [rdi]"))
        + &good;
    // What the entry led to is gone in the second run, which then faults.
    let ran = direct(&toml.replace("runs = 2", "runs = 1"));
    ran.ends_with(0);
    let restored: Vec<_> = ran.results().iter().map(|one| one.restored.clone()).collect();
    assert_eq!(restored.len(), 6, "{:?}", ran.errors());
    assert_eq!(restored[4], ["page tables"]);
    assert!([0, 1, 2, 3, 5].iter().all(|&index| restored[index].is_empty()), "{restored:?}");
}

#[test]
fn n5_run_gives_the_machine_the_memory_that_the_job_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let code = "movabs rax, offset memory_big; mov rbx, [rax]; movabs rcx, offset memory_big_size; mov rbx, [rax+rcx-8]";
    let run = |more: &[&str]| {
        let mut arguments =
            vec!["run", "--asm", code, "--unroll", "1", "--pmu", "none", "--accel", "tcg"];
        arguments.extend(["--memory-area", "big=300M,page-size=2m", "--timeout", "300"]);
        arguments.extend(more);
        xtask(folder.path(), &arguments)
    };
    let called = run(&[]);
    assert_eq!(called.code, 0, "{} {}", called.out, called.err);
    assert!(called.out.contains("memory=big"), "{}", called.out);
    let called = run(&["--memory", "300"]);
    assert_eq!(called.code, 1, "{} {}", called.out, called.err);
    let text = "memory `big`: 314572800 bytes are asked for, in pages of 2 MiB; the machine has ";
    assert!(called.out.contains(text), "{}", called.out);
}
