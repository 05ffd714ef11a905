//! Control of the machine, and snippets that do not end.

use pmu_model::Model;
use protocol::record::{ErrorCode, SnippetResult};
use qemu_tests::{Guest, Ran};
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
fn x1_an_item_whose_events_take_every_counter_says_that_nothing_watches_it() {
    let ran = on(
        Model::Zen2,
        r#"
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

/// Boots `toml` without a PMU.
fn on_plain(toml: &str) -> Ran {
    qemu_tests::direct(toml)
}
