//! Control of the machine, and snippets that do not end.

mod memory;
mod ring3;
mod state;
mod time_limit;

use pmu_model::Model;
use protocol::record::{Applied, ErrorCode, SnippetResult};
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
