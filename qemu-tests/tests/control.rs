//! Control of the machine, and snippets that do not end.

use pmu_model::Model;
use protocol::record::{Applied, ErrorCode, SnippetResult};
use qemu_tests::{Guest, Ran, direct};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Boots `toml` with an emulated PMU.
fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn result<'a>(ran: &'a Ran, name: &str) -> &'a SnippetResult {
    ran.report.results().find(|result| result.name == name).unwrap_or_else(|| {
        panic!("no result of {name}: {:?}", ran.errors());
    })
}

/// Median of an event, which every run agrees on.
fn exactly(result: &SnippetResult, event: &str) -> f64 {
    let metric = result.metrics.iter().find(|metric| metric.event == event);
    let metric = metric.unwrap_or_else(|| panic!("{event}: {:?}", result.uncounted));
    assert!(metric.deterministic, "{}: {metric:?}", result.name);
    metric.value.median
}

/// Both vendors, with global control and without, 32 and 48 bits to write.
const MODELS: [Model; 4] = [Model::Skylake, Model::Core2, Model::Zen4, Model::Zen2];

#[test]
fn x1_a_loop_without_end_is_ended_by_an_nmi_and_the_same_boot_goes_on() {
    for model in MODELS {
        let ran = on(
            model,
            r#"
            [defaults]
            unroll = 10
            runs = 3
            events = ["instructions"]
            machine = { time-limit = 20 }
            [[snippet]]
            name = "control before"
            asm = "nop; nop; nop"
            [[snippet]]
            name = "endless"
            init = "mov ebx, 77"
            asm = "nop; 2: jmp 2b"
            [[snippet]]
            name = "endless with interrupts off and no stack"
            asm = "cli; xor esp, esp; 2: jmp 2b"
            events = []
            [[snippet]]
            name = "endless init"
            init = "2: pause; jmp 2b"
            asm = "nop"
            [[snippet]]
            name = "control behind"
            asm = "nop; nop; nop"
            "#,
        );
        ran.ends_with(1);
        assert_eq!(ran.report.machine().unwrap().watchdog.as_deref(), Some("counter NMI"));
        for name in ["control before", "control behind"] {
            let control = result(&ran, name);
            assert_eq!(exactly(control, "instructions"), 3.0, "{model:?}");
            assert_eq!(exactly(control, "tsc"), 3.0, "{model:?}");
            assert_eq!((control.unwatched, &control.restored[..]), (0, &[][..]));
        }
        let errors = ran.errors();
        assert_eq!(errors.len(), 3, "{errors:?}");
        let parts: Vec<_> = errors
            .iter()
            .map(|error| {
                assert_eq!(error.code, ErrorCode::TimeLimit);
                assert!(error.text.contains("20 ms"), "{}", error.text);
                error.fault.as_ref().unwrap().part.as_str()
            })
            .collect();
        assert_eq!(parts, ["body", "body", "init"]);
        let fault = errors[0].fault.as_ref().unwrap();
        assert_eq!((fault.offset, fault.registers.rbx.0), (Some(1), 77));
    }
}

#[test]
fn x1_a_time_limit_that_nothing_can_keep_is_not_available() {
    let ran = direct(
        "[[snippet]]\nname = \"limited\"\nmachine = { time-limit = 20 }\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\n",
    );
    ran.ends_with(0);
    let reason = "there is no PMU";
    assert_eq!(ran.report.machine().unwrap().watchdog_absent.as_deref(), Some(reason));
    let [limited, other] = ran.results()[..] else { panic!("two results") };
    let [control] = &limited.controls[..] else { panic!("{:?}", limited.controls) };
    assert_eq!((control.option.as_str(), control.applied), ("time-limit=20", false));
    assert!(control.note.ends_with(reason), "{}", control.note);
    assert!(other.controls.is_empty());
}

#[test]
fn x1_an_item_whose_events_take_every_counter_says_that_nothing_watches_it() {
    let ran = on(
        Model::Zen2,
        r#"
        [defaults]
        machine = { time-limit = 5000 }
        [[snippet]]
        name = "all six"
        asm = "nop"
        unroll = 10
        events = ["{r00c0,r00c0,r00c0,r00c0,r00c0,r00c0}"]
        [[snippet]]
        name = "five"
        asm = "nop"
        unroll = 10
        events = ["{r00c0,r00c0,r00c0,r00c0,r00c0}"]
        "#,
    );
    ran.ends_with(0);
    assert_eq!((result(&ran, "all six").unwatched, result(&ran, "five").unwatched), (1, 0));
}

/// Each with what is to be put back.
const CHANGES: [(&str, &str); 19] = [
    ("mov rax, cr0; btr rax, 16; mov cr0, rax", "CR0"),
    ("mov rax, cr4; btr rax, 7; mov cr4, rax", "CR4"),
    ("mov rax, cr3; xor rax, 8; mov cr3, rax", "CR3"),
    ("mov eax, 5; mov cr8, rax", "CR8"),
    ("xor ecx, ecx; mov eax, 1; xor edx, edx; xsetbv", "XCR0"),
    ("sub rsp, 64; sgdt [rsp]; dec word ptr [rsp]; lgdt [rsp]", "GDTR"),
    ("sub rsp, 64; sidt [rsp]; dec word ptr [rsp]; lidt [rsp]", "IDTR"),
    ("xor eax, eax; mov ds, eax", "DS"),
    ("mov eax, 0x10; mov fs, eax", "FS"),
    ("mov rax, r14; mov dr0, rax; mov eax, 0x401; mov dr7, rax", "DR7"),
    ("mov rax, dr7; bts rax, 13; mov dr7, rax", "DR7"),
    ("mov rax, r14; mov dr2, rax", "DR2"),
    ("mov ecx, 0xc0000080; rdmsr; btc eax, 0; wrmsr", "IA32_EFER"),
    ("mov ecx, 0xc0000082; mov eax, 1; xor edx, edx; wrmsr", "IA32_LSTAR"),
    ("mov ecx, 0xc0000100; mov eax, 1; xor edx, edx; wrmsr", "IA32_FS_BASE"),
    ("mov ecx, 0xc0000102; mov eax, 1; xor edx, edx; wrmsr", "IA32_KERNEL_GS_BASE"),
    ("mov ecx, 0x277; rdmsr; xor eax, 6; wrmsr", "IA32_PAT"),
    ("mov ecx, 0x2ff; rdmsr; btc eax, 11; wrmsr", "IA32_MTRR_DEF_TYPE"),
    ("mov ecx, 0xc0000103; mov eax, 9; xor edx, edx; wrmsr", "IA32_TSC_AUX"),
];

#[test]
fn x1_what_a_snippet_changes_is_put_back_and_named_and_the_next_one_does_not_see_it() {
    let mut toml =
        "[defaults]\nunroll = 1\nruns = 1\nwarmup = 0\ndifference = \"empty\"\n".to_string();
    // The control raises #UD if anything of the state differs from what the first control found.
    let look = "mov rax, cr0; mov rbx, cr4; add rax, rbx; mov rbx, cr8; add rax, rbx; mov rbx, dr7; add rax, rbx; \
                mov rbx, dr2; add rax, rbx; mov ebx, ds; add rax, rbx; mov ebx, fs; add rax, rbx; xor ecx, ecx; \
                xgetbv; add rbx, rax";
    let msrs = [0xc000_0080u32, 0xc000_0082, 0xc000_0100, 0xc000_0102, 0x277, 0x2ff, 0xc000_0103];
    let msrs: String = msrs
        .iter()
        .map(|msr| format!("; mov ecx, {msr:#x}; rdmsr; imul rbx, rbx, 31; add rbx, rax"))
        .collect();
    let control =
        |expected: &str| format!("{look}{msrs}; mov rax, {expected}; cmp rax, rbx; je 2f; ud2; 2:");
    let first = on_plain(&format!("{toml}[[snippet]]\nasm = \"{}\"\n", control("-1")));
    let seen = first.errors()[0].fault.as_ref().unwrap().registers.rbx;
    for (index, (code, _)) in CHANGES.iter().enumerate() {
        toml += &format!("[[snippet]]\nname = \"change {index}\"\nasm = \"{code}\"\n");
        toml += &format!(
            "[[snippet]]\nname = \"control {index}\"\nasm = \"{}\"\n",
            control(&seen.to_string())
        );
    }
    let ran = on_plain(&toml);
    ran.ends_with(0);
    for (index, (code, name)) in CHANGES.iter().enumerate() {
        let restored = &result(&ran, &format!("change {index}")).restored;
        assert!(restored.iter().any(|one| one == name), "{code}: {restored:?}");
        assert_eq!(result(&ran, &format!("control {index}")).restored, [""; 0], "{code}");
    }
}

/// Tasks of ring 0 as well: what they changed is named in the record of their run.
#[test]
fn x1_what_tasks_change_is_put_back_and_named() {
    let task = |name: &str, asm: &str| {
        format!(
            "[[run]]\nname = \"{name}\"\n[[run.task]]\nname = \"a\"\nring = 0\nasm = \"{asm}\"\n"
        )
    };
    let change = task("changes", "mov ecx, 0xc0000082; rdmsr; xor eax, 0x1000; wrmsr");
    // Its data segments and the timer that limits it are the firmware's own doing.
    let ring_3 = "[[run]]\nname = \"ring 3\"\ntick-ns = 0\n[[run.task]]\nname = \"a\"\nring = 3\nasm = \"nop\"\n";
    let ran = on_plain(&(change + &task("does not", "nop") + ring_3));
    let seen: Vec<_> = ran.ends_with(0).report.tasks().map(|run| run.restored.clone()).collect();
    assert_eq!(seen, [vec!["IA32_LSTAR".to_string()], vec![], vec![]]);
}

/// Boots `toml` without a PMU.
fn on_plain(toml: &str) -> Ran {
    qemu_tests::direct(toml)
}

/// The only option that was asked for.
fn applied<'a>(ran: &'a Ran, name: &str) -> &'a Applied {
    match &result(ran, name).controls[..] {
        [one] => one,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn n5_ring_3_runs_the_snippet_and_nothing_of_the_way_is_counted() {
    for model in MODELS {
        let ran = on(
            model,
            r#"
            [defaults]
            unroll = 10
            runs = 3
            events = ["instructions:u", "instructions:k"]
            machine = { ring = 3, time-limit = 20 }
            [[snippet]]
            name = "three"
            asm = "nop; push rax; pop rax"
            [[snippet]]
            name = "looped"
            loop = 4
            asm = "nop; nop"
            [[snippet]]
            name = "state of init arrives"
            unroll = 1
            one-time-init = "mov [r14], r14"
            init = "mov ecx, 5; push rcx; cmp [r14], r14; jne 3f; stc; 3:"
            asm = "jnc 3f; cmp qword ptr [rsp], 5; jne 3f; mov eax, cs; cmp eax, 0x23; jne 3f; stc; jmp 4f; 3: ud2; 4:"
            [[snippet]]
            name = "endless"
            asm = "2: jmp 2b"
            [[snippet]]
            name = "ring 0 again"
            machine = { ring = 0 }
            asm = "mov eax, cs; cmp eax, 0x8; je 2f; ud2; 2:"
            "#,
        );
        ran.ends_with(1);
        let [three, looped] = ["three", "looped"].map(|name| result(&ran, name));
        assert_eq!(
            (exactly(three, "instructions:u"), exactly(three, "instructions:k")),
            (3.0, 0.0)
        );
        assert_eq!(exactly(three, "tsc"), 3.0, "{model:?}");
        // DEC and JNZ once for the ten copies, in both sizes: they cancel.
        assert_eq!(
            (exactly(looped, "instructions:u"), exactly(looped, "instructions:k")),
            (2.0, 0.0)
        );
        for name in ["state of init arrives", "ring 0 again"] {
            assert_eq!(result(&ran, name).restored, [""; 0], "{name}");
        }
        assert!(three.controls[0].note.contains("cancel"), "{:?}", three.controls);
        let errors: Vec<_> = ran.errors().iter().map(|error| error.code).collect();
        assert_eq!(errors, [ErrorCode::TimeLimit]);
    }
}

/// What a snippet of ring 3 cannot do, and how it ends.
const OUT_OF_REACH: [(&str, &str); 12] = [
    ("cli", "#GP"),
    ("hlt", "#GP"),
    ("mov rax, cr0", "#GP"),
    ("mov ecx, 0x10; wrmsr", "#GP"),
    ("mov dx, 0x60; in al, dx", "#GP"),
    ("lgdt [r14]", "#GP"),
    ("int 14", "#GP"),
    // The measuring code's data, physical memory, the firmware, its own code.
    ("mov eax, 0x40000000; mov [rax], rax", "#PF"),
    ("movabs rax, 0xffff800000100000; mov rax, [rax]", "#PF"),
    ("mov rax, 0xffffffff80000000; mov rax, [rax]", "#PF"),
    ("lea rax, [rip]; mov byte ptr [rax], 0", "#PF"),
    ("syscall", "#UD"),
];

#[test]
fn x1_ring_3_confines_the_snippet_to_its_own_pages() {
    let mut toml =
        "[defaults]\nunroll = 1\nruns = 1\nwarmup = 0\nmachine = { ring = 3 }\n".to_string();
    for (code, _) in OUT_OF_REACH {
        toml += &format!("[[snippet]]\nasm = \"{code}\"\n[[snippet]]\nasm = \"nop\"\n");
    }
    let ran = on_plain(&toml);
    ran.ends_with(1);
    assert_eq!(ran.results().len(), OUT_OF_REACH.len());
    let seen: Vec<_> =
        ran.errors().iter().map(|error| error.fault.as_ref().unwrap().mnemonic.as_str()).collect();
    assert_eq!(seen, OUT_OF_REACH.map(|(_, mnemonic)| mnemonic));
    assert!(ran.errors().iter().all(|error| error.restored.is_empty()), "{:?}", ran.errors());
}

/// Walks the page tables to the entry of R14's page in the page directory, and compares its bits 3, 4 and 7 (PWT, PCD,
/// large page).
fn looks_at_its_page(levels: u32, bits: u32) -> String {
    let mut code = "mov rbx, cr3; mov rdx, 0xffff800000000000".to_string();
    for level in 0..levels {
        let shift = 39 - 9 * level;
        code += "; mov rcx, 0xffffffffff000; and rbx, rcx; mov rax, r14";
        code +=
            &format!("; shr rax, {shift}; and eax, 511; add rbx, rdx; mov rbx, [rbx + 8 * rax]");
    }
    code + &format!(
        "; and ebx, 0x98; cmp ebx, {bits:#x}; je 2f; ud2; 2: mov [r14], rax; mov rax, [r14 - 524288]"
    )
}

#[test]
fn n5_pages_and_memory_types_are_those_that_were_asked_for() {
    let item = |options: &str, levels, bits| {
        let code = looks_at_its_page(levels, bits);
        format!("[[snippet]]\nname = '{options}'\nmachine = {{ {options} }}\nasm = \"{code}\"\n")
    };
    let toml: String = "[defaults]\nunroll = 1\nruns = 2\n".to_string()
        + &item("page-size = \"4k\"", 4, 0)
        + &item("memory-type = \"wt\"", 4, 0x10)
        + &item("memory-type = \"wc\"", 4, 0x08)
        + &item("memory-type = \"uc\"", 4, 0x18)
        + &item("page-size = \"2m\"", 3, 0x80)
        + &item("page-size = \"2m\", memory-type = \"uc\"", 3, 0x98)
        + &item("page-size = \"1g\"", 2, 0x80);
    let guest = Guest { memory: 3072, cpu: Some("max".into()), ..Guest::new(Boot::Direct, &toml) };
    let ran = guest.run();
    ran.ends_with(0);
    for one in ran.results() {
        assert!(one.controls.iter().all(|applied| applied.applied), "{one:?}");
    }
    // As there is no GiB in one piece here, the page is a small one, and the record says why.
    let small = item("page-size = \"1g\"", 4, 0);
    let ran = on_plain(&small);
    ran.ends_with(0);
    let one = applied(&ran, "page-size = \"1g\"");
    assert!(!one.applied && one.note.contains("out of memory"), "{one:?}");
}

#[test]
fn n5_each_option_is_reported_as_applied_or_with_the_reason_why_not() {
    let ran = on(
        Model::Skylake,
        r#"
        [defaults]
        unroll = 10
        runs = 3
        events = ["instructions"]
        [[snippet]]
        name = "prefetchers"
        machine = { prefetchers = "off" }
        asm = "nop"
        [[snippet]]
        name = "frequency"
        machine = { frequency = 2000 }
        asm = "nop"
        [[snippet]]
        name = "turbo"
        machine = { turbo = "off" }
        asm = "nop"
        [[snippet]]
        name = "wbinvd"
        machine = { caches = "cold" }
        asm = "nop"
        [[snippet]]
        name = "clflush"
        machine = { caches = "cold", cold-by = "clflush" }
        asm = "nop"
        [[snippet]]
        name = "tlb"
        machine = { tlb = "flushed" }
        asm = "nop"
        [[snippet]]
        name = "apic"
        machine = { interrupts = "apic" }
        init = "mov rax, cr8; cmp eax, 15; je 2f; ud2; 2:"
        asm = "nop"
        [[snippet]]
        name = "plain"
        init = "mov rax, cr8; test eax, eax; jz 2f; ud2; 2:"
        asm = "nop"
        "#,
    );
    ran.ends_with(0);
    for (name, option, is_applied, note) in [
        // QEMU's translator swallows what is written to these.
        ("prefetchers", "prefetchers=off", false, "MSR 0x1a4"),
        ("frequency", "frequency=2000", false, ""),
        ("wbinvd", "caches=cold", true, "WBINVD"),
        ("clflush", "caches=cold", true, "CLFLUSH"),
        ("tlb", "tlb=flushed", true, "CR4.PGE"),
        ("apic", "interrupts=apic", true, "CR8"),
    ] {
        let one = applied(&ran, name);
        assert_eq!((one.option.as_str(), one.applied), (option, is_applied), "{one:?}");
        assert!(one.note.contains(note), "{one:?}");
    }
    let turbo = applied(&ran, "turbo");
    assert!(!turbo.note.is_empty() && turbo.applied == turbo.note.contains("APERF"), "{turbo:?}");
    assert_eq!(result(&ran, "plain").controls, []);
    for one in ran.results() {
        assert_eq!(exactly(one, "instructions"), 1.0, "{}", one.name);
        assert_eq!(one.restored, [""; 0], "{}", one.name);
    }
}

#[test]
fn i10_registers_are_read_before_and_after_a_run_and_a_missing_one_is_named() {
    // IA32_KERNEL_GS_BASE, which each execution of the body raises by 1.
    let toml = |msr: &str| {
        format!(
            "[[snippet]]\nname = \"a\"\nunroll = 10\nruns = 3\nmachine = {{ msrs = [\"0xc0000102\", \"{msr}\"] }}\n\
             asm = \"mov ecx, 0xc0000102; rdmsr; inc eax; wrmsr\"\n\
             [[snippet]]\nname = \"b\"\nunroll = 10\nasm = \"nop\"\n"
        )
    };
    let ran = on_plain(&toml("smi-count\", \"0x10"));
    ran.ends_with(0);
    let a = result(&ran, "a");
    assert_eq!((a.metrics.len(), exactly(a, "tsc")), (4, 4.0));
    assert_eq!((exactly(a, "0xc0000102"), exactly(a, "smi-count")), (1.0, 0.0));
    assert_eq!((a.metrics[1].series[0].min, a.metrics[1].series[1].min), (10, 20));
    assert_eq!(a.restored, ["IA32_KERNEL_GS_BASE"]);
    // QEMU's translator has no IA32_TIME_STAMP_COUNTER to read. A silent 0 says so, the others do not.
    let notes: Vec<&str> = a.controls.iter().map(|one| one.option.as_str()).collect();
    assert_eq!(notes, ["msrs=0x10"]);
    assert!(a.controls[0].note.contains("read 0 before and behind every run"));
    let ran = on(Model::Core2, &toml("0x4c1"));
    ran.ends_with(1);
    let errors = ran.errors();
    let [error] = errors[..] else { panic!("{errors:?}") };
    assert_eq!(error.code, ErrorCode::Unsupported);
    assert!(error.text.contains("0x4c1"), "{}", error.text);
    assert_eq!(result(&ran, "b").metrics.len(), 1);
}

#[test]
fn n1_counting_pauses_between_markers() {
    let item = |name: &str, asm: &str| format!("[[snippet]]\nname = \"{name}\"\nasm = \"{asm}\"\n");
    let nops = "nop; ".repeat(50);
    let toml = "[defaults]\nunroll = 10\nruns = 3\nevents = [\"instructions\"]\n".to_string()
        + &item("empty pause", "nop; .barecount pause; .barecount resume; nop")
        + &item("long pause", &format!("nop; .barecount pause; {nops}.barecount resume; nop"))
        + &item("more outside", "nop; nop; nop; .barecount pause; .barecount resume; nop")
        + &item(
            "registers and flags",
            "mov eax, 1; mov edx, 2; mov ecx, 3; stc; .barecount pause; jnc 3f; \
                 .barecount resume; jnc 3f; cmp eax, 1; jne 3f; cmp edx, 2; jne 3f; cmp ecx, 3; je 2f; 3: ud2; 2:",
        );
    for model in MODELS {
        let ran = on(model, &toml);
        ran.ends_with(0);
        let count = |name: &str| exactly(result(&ran, name), "instructions");
        // The jumps, the moves around the gate's writes, the closing write and the fence: the same for each pause.
        let pause = count("empty pause") - 2.0;
        assert!((10.0..30.0).contains(&pause), "{model:?}: {pause}");
        assert_eq!(count("long pause"), 2.0 + pause);
        assert_eq!(count("more outside"), 4.0 + pause);
    }
    let refused = format!("{}machine = {{ ring = 3 }}", item("x", ".barecount pause"));
    let file = xtask::job::file::parse(&refused, "test.toml").unwrap();
    let error = xtask::job::pack(&file, xtask::job::Purpose::Qemu).unwrap_err();
    assert!(error.to_string().contains("WRMSR needs ring 0"), "{error}");
}

/// Each run finds the registers in their initial configuration, and the larger ones are on.
#[test]
fn n5_avx_state_is_on_and_new_in_each_run() {
    let toml = r#"
        [defaults]
        unroll = 1
        runs = 3
        [[snippet]]
        name = "avx"
        asm = "vptest ymm0, ymm0; jz 2f; ud2; 2: vpcmpeqd ymm0, ymm0, ymm0"
        difference = "empty"
        [[snippet]]
        name = "avx in ring 3"
        machine = { ring = 3 }
        asm = "vptest ymm7, ymm7; jz 2f; ud2; 2: vpcmpeqd ymm7, ymm7, ymm7"
        difference = "empty"
        [[snippet]]
        name = "control word"
        asm = "fnstcw [r14]; cmp word ptr [r14], 0x37f; je 2f; ud2; 2: mov dword ptr [r14], 0x1f00; fldcw [r14]; \
               stmxcsr [r14]; cmp dword ptr [r14], 0x1f80; je 2f; ud2; 2: mov dword ptr [r14], 0x9fc0; ldmxcsr [r14]"
        difference = "empty"
    "#;
    let toml = toml.replace("\\\n", "");
    let ran = Guest { cpu: Some("max".into()), ..Guest::new(Boot::Direct, &toml) }.run();
    ran.ends_with(0);
    assert_eq!(ran.results().len(), 3);
}
