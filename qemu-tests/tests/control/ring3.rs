//! Snippets in ring 3.

use super::*;

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
