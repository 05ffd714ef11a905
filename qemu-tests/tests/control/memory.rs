//! Page sizes and memory types.

use super::*;

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
