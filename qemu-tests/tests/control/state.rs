//! State that an item changes is put back and named.

use super::*;
use protocol::record::ApicMode;
use xtask::cli::Icount;

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

/// An APIC that code switched off is put back in its mode, by the way through xAPIC mode. QEMU has x2APIC mode without icount.
#[test]
fn x1_the_mode_of_the_local_apic_is_put_back_and_named() {
    let off = "mov ecx, 0x1b; rdmsr; and eax, ~0xc00; wrmsr";
    let toml = format!(
        "[[snippet]]\nname = \"off\"\nasm = \"{off}\"\n[[snippet]]\nname = \"after\"\nasm = \"nop\"\n"
    );
    for (icount, mode) in [(Icount::Off, ApicMode::X2Apic), (Icount::Auto, ApicMode::XApic)] {
        let ran = Guest { icount, ..Guest::new(Boot::Direct, &toml) }.run();
        ran.ends_with(0);
        assert_eq!(ran.report.machine().unwrap().apic.mode, mode);
        let restored = &result(&ran, "off").restored;
        assert!(restored.iter().any(|one| one == "IA32_APIC_BASE"), "{mode:?}: {restored:?}");
        assert_eq!(result(&ran, "after").restored, [""; 0], "{mode:?}");
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
