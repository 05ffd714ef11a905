//! Code whose instructions were counted by hand.

/// 32-bit code with its instructions, branches, and, where they are plain, loads and stores.
pub const NARROW: [(&str, f64, f64, Option<[f64; 2]>); 9] = [
    // 0x40 to 0x4f: REX prefixes in 64-bit mode.
    ("inc eax; dec ecx; inc edi; dec esi; inc ebp; dec edx", 6.0, 0.0, Some([0.0, 0.0])),
    ("push eax; push 7; pop edx; pop eax", 4.0, 0.0, Some([2.0, 2.0])),
    ("call 2f; jmp 3f; 2: ret; 3: jecxz 4f; 4: loop 5f; 5:", 5.0, 5.0, Some([1.0, 1.0])),
    (
        "mov eax, [ebx]; mov [ebx + 4], eax; mov cl, [esi]; mov [esi], cx",
        4.0,
        0.0,
        Some([2.0, 2.0]),
    ),
    ("xor ecx, ecx; mov cl, 5; rep stosd; mov cl, 3; rep movsb", 5.0, 0.0, None),
    // None of these exist in 64-bit mode, or they are MOVSXD.
    ("daa; das; aaa; aas; aad; arpl cx, ax", 6.0, 0.0, Some([0.0, 0.0])),
    // PUSHAD, POPAD.
    (".byte 0x60, 0x61", 2.0, 0.0, None),
    // 0xc4 and 0x62 begin VEX and EVEX prefixes in 64-bit mode.
    ("push es; les eax, [ebx]; pop es", 3.0, 0.0, None),
    ("xor eax, eax; bound eax, [ebx]", 2.0, 0.0, None),
];

/// 64-bit code of `ring` that goes to 32-bit code and comes back, with its instructions of both and its branches.
pub fn there_and_back(ring: u8) -> (String, u64, u64, u64) {
    let (wide, compatibility) = if ring == 0 { ("0x08", "0x40") } else { ("0x23", "0x4b") };
    // 0x48 0xcb: RETFQ. From the POP to label 4 are 8 bytes.
    let asm = format!(
        "lea rax, [rip + 2f]\npush {compatibility}\npush rax\n.byte 0x48, 0xcb\n\
         .code32\n2: inc eax\ndec eax\nmov edx, [esi]\ncall 3f\n3: pop eax\nadd eax, 8\n\
         push {wide}\npush eax\nretf\n.code64\n4: nop"
    );
    (asm, 5, 9, 3)
}
