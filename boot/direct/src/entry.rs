//! From the multiboot loader's 32-bit protected mode into long mode, if the processor has that.

use core::arch::global_asm;

/// Bytes of the loader's stack.
const STACK_BYTES: usize = 64 << 10;

// Multiboot 0.6.96, 3.1.1. Flag 0: modules on page boundaries; 1: memory map; 16: load addresses in the
// header, because the file is flat.
const MAGIC: u32 = 0x1bad_b002;
const FLAGS: u32 = 1 << 16 | 1 << 1 | 1 << 0;

// CR4: PAE, OSFXSR. EFER: LME, NXE. CR0: PG, WP, PE stays.
const CR4_BITS: u32 = 1 << 5 | 1 << 9;
const EFER: u32 = 0xc000_0080;
const EFER_BITS: u32 = 1 << 8 | 1 << 11;
const CR0_BITS: u32 = 1 << 31 | 1 << 16;
/// CPUID leaf 0x80000001 EDX: long mode, no-execute pages (SDM vol. 2, CPUID; AMD APM vol. 3, appendix E.4.2).
const LONG_MODE: u32 = 29;
const NO_EXECUTE: u32 = 20;
/// CPUID leaf 0 EBX of Intel's processors: "Genu". IA32_MISC_ENABLE and its bit that takes no-execute pages away.
const INTEL: u32 = u32::from_le_bytes(*b"Genu");
const MISC_ENABLE: u32 = 0x1a0;
const NO_EXECUTE_OFF: u32 = 34;
/// CPUID leaf 1 ECX: a hypervisor. There, port 0xf4 is the exit device that the host tool attaches, or nobody's, and
/// 0x13 is its code for a crash.
const HYPERVISOR: u32 = 31;
const EXIT_PORT: u32 = 0xf4;
const EXIT_CRASH: u32 = 0x13;
/// The text screen, 80 by 25 characters: character and attribute. Where there is none, nobody sees what is written.
const TEXT_SCREEN: u32 = 0xb8000;

/// Present, writable, and for the third level a page of 2 MiB.
const TABLE: u32 = 0b11;
const PAGE_2M: u32 = 1 << 7 | TABLE;

global_asm!(
    ".pushsection .multiboot, \"ax\", @progbits",
    ".code32",
    ".balign 4",
    "multiboot_header:",
    ".long {magic}",
    ".long {flags}",
    ".long -({magic} + {flags})",
    ".long multiboot_header",
    ".long image_start",
    ".long image_end",
    ".long memory_end",
    ".long multiboot_entry",
    "",
    ".global multiboot_entry",
    "multiboot_entry:",
    "cld",
    "mov esp, offset stack_top",
    // For `main`: EAX holds the magic, EBX the information structure.
    "mov edi, eax",
    "mov esi, ebx",
    // There is CPUID if bit 21 of EFLAGS can be changed.
    "pushfd",
    "pop eax",
    "mov ecx, eax",
    "xor eax, 1 << 21",
    "push eax",
    "popfd",
    "pushfd",
    "pop eax",
    "xor eax, ecx",
    "mov ebp, offset no_long_mode",
    "test eax, 1 << 21",
    "jz refuse",
    "mov eax, 0x80000000",
    "cpuid",
    "cmp eax, 0x80000001",
    "jb refuse",
    "mov eax, 0x80000001",
    "cpuid",
    "bt edx, {long_mode}",
    "jnc refuse",
    "bt edx, {no_execute}",
    "jc 9f",
    // On Intel's processors the set-up may have switched them off, which can be undone (SDM vol. 4, IA32_MISC_ENABLE).
    "mov ebp, offset no_nx",
    "xor eax, eax",
    "cpuid",
    "cmp ebx, {intel}",
    "jne refuse",
    "mov ecx, {misc_enable}",
    "rdmsr",
    "btr edx, {no_execute_off} - 32",
    "jnc refuse",
    "wrmsr",
    "mov eax, 0x80000001",
    "cpuid",
    "bt edx, {no_execute}",
    "jnc refuse",
    "9:",
    // Fourth level -> third level -> four second levels of 512 pages of 2 MiB: 4 GiB.
    "mov eax, offset level_3",
    "or eax, {table}",
    "mov [level_4], eax",
    "mov eax, offset level_2",
    "or eax, {table}",
    "mov ecx, offset level_3",
    "2: mov [ecx], eax",
    "add ecx, 8",
    "add eax, 0x1000",
    "cmp ecx, offset level_3 + 32",
    "jne 2b",
    "mov eax, {page}",
    "mov ecx, offset level_2",
    "3: mov [ecx], eax",
    "add ecx, 8",
    "add eax, 0x200000",
    "jnc 3b",
    "mov eax, offset level_4",
    "mov cr3, eax",
    "mov eax, cr4",
    "or eax, {cr4}",
    "mov cr4, eax",
    "mov ecx, {efer}",
    "rdmsr",
    "or eax, {efer_bits}",
    "wrmsr",
    "mov eax, cr0",
    "or eax, {cr0}",
    "mov cr0, eax",
    "lgdt [gdt_pointer]",
    // A far jump into the 64-bit code segment.
    ".byte 0xea",
    ".long long_mode",
    ".short 8",
    "",
    // Writes the text at EBP on COM1, at 115,200 baud, 8 data bits, no parity, and on the text screen.
    "refuse: mov esi, offset line_settings",
    "mov ecx, 5",
    "4: lodsw",
    "mov edx, eax",
    "lodsb",
    "out dx, al",
    "loop 4b",
    "mov esi, ebp",
    "mov edi, {text_screen}",
    "5: lodsb",
    "test al, al",
    "jz 7f",
    "mov ah, 7",
    "stosw",
    "mov bl, al",
    // A transmitter that is not there seems ready; one that never is has had its time.
    "mov ecx, 100000",
    "mov edx, 0x3fd",
    "6: in al, dx",
    "test al, 0x20",
    "loopz 6b",
    "mov al, bl",
    "mov edx, 0x3f8",
    "out dx, al",
    "jmp 5b",
    "7: mov eax, 1",
    "cpuid",
    "bt ecx, {hypervisor}",
    "jnc 8f",
    "mov eax, {exit_crash}",
    "mov edx, {exit_port}",
    "out dx, eax",
    "8: cli",
    "hlt",
    "jmp 8b",
    // Port and value: divisor latch on, divisor 1, latch off and 8N1, FIFO on.
    "line_settings:",
    ".short 0x3fb", ".byte 0x80",
    ".short 0x3f8", ".byte 1",
    ".short 0x3f9", ".byte 0",
    ".short 0x3fb", ".byte 3",
    ".short 0x3fa", ".byte 1",
    "no_long_mode: .asciz \"barecount: this processor has no 64-bit mode (CPUID leaf 0x80000001, EDX bit 29)\\r\\n\"",
    "no_nx: .asciz \"barecount: this processor has no no-execute pages, or they are switched off in the firmware's set-up (CPUID leaf 0x80000001, EDX bit 20)\\r\\n\"",
    "",
    ".code64",
    "long_mode:",
    "xor eax, eax",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov fs, eax",
    "mov gs, eax",
    "xor ebp, ebp",
    "call {main}",
    "ud2",
    "",
    // Null; 64-bit code: present, executable, readable, long.
    ".balign 8",
    "gdt: .quad 0",
    ".quad 0x00209a0000000000",
    "gdt_pointer: .short 15",
    ".long gdt",
    ".popsection",
    "",
    ".pushsection .bss.tables, \"aw\", @nobits",
    ".balign 4096",
    "level_4: .skip 4096",
    "level_3: .skip 4096",
    "level_2: .skip 4 * 4096",
    ".skip {stack}",
    "stack_top:",
    ".popsection",
    magic = const MAGIC,
    flags = const FLAGS,
    long_mode = const LONG_MODE,
    no_execute = const NO_EXECUTE,
    intel = const INTEL,
    misc_enable = const MISC_ENABLE,
    no_execute_off = const NO_EXECUTE_OFF,
    hypervisor = const HYPERVISOR,
    exit_port = const EXIT_PORT,
    exit_crash = const EXIT_CRASH,
    text_screen = const TEXT_SCREEN,
    table = const TABLE,
    page = const PAGE_2M,
    cr4 = const CR4_BITS,
    efer = const EFER,
    efer_bits = const EFER_BITS,
    cr0 = const CR0_BITS,
    stack = const STACK_BYTES,
    main = sym crate::main,
);

unsafe extern "C" {
    static memory_end: u8;
}

/// First address after the loader.
pub fn end() -> u64 {
    (&raw const memory_end) as u64
}
