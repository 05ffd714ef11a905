//! From the multiboot loader's 32-bit protected mode into long mode.

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

/// First address behind the loader.
pub fn end() -> u64 {
    (&raw const memory_end) as u64
}
