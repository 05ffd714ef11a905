//! The page below 1 MiB where a start-up interrupt takes a processor: from real mode to its copy of the hypervisor.

use crate::payload::svm::EFER;
use core::arch::global_asm;
use core::mem::offset_of;
use core::slice;
use handover::startup::{Processor, Startup};

/// CR4.PAE. EFER: LME, and NXE, as the nested tables have its bit. CR0.PG; CD and NW, which INIT leaves set.
const CR4_PAE: u32 = 1 << 5;
const EFER_BITS: u32 = 1 << 8 | 1 << 11;
const CR0_PG: u32 = 1 << 31;
const CR0_NO_CACHE: u32 = 1 << 30 | 1 << 29;
/// Selectors of the page's own descriptors.
const CODE_32: u32 = 8;
const DATA: u32 = 16;
const CODE_64: u32 = 24;
/// Offsets in the page: the value for CR3, and the address of [`Startup`].
const CR3: u32 = 8;
const SHARED: u32 = 16;

// EBX holds the page's address, which the instructions do not know.
global_asm!(
    ".pushsection .text.trampoline, \"ax\", @progbits",
    ".balign 16",
    ".code16",
    "trampoline:",
    // JMP over the two words after it, whose offsets are known thereby.
    ".byte 0xeb, 22, 0, 0, 0, 0, 0, 0",
    "trampoline_cr3: .quad 0",
    "trampoline_shared: .quad 0",
    "cli",
    "xor ebx, ebx",
    "mov bx, cs",
    "mov ds, bx",
    "shl ebx, 4",
    // LGDT [disp16]
    ".byte 0x0f, 0x01, 0x16",
    ".short trampoline_gdt_pointer - trampoline",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    // JMP far, 32-bit offset.
    ".byte 0x66, 0xea",
    "trampoline_to_32: .long trampoline_32 - trampoline",
    ".short {code_32}",
    ".code32",
    "trampoline_32:",
    "mov eax, {data}",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov eax, cr4",
    "or eax, {pae}",
    "mov cr4, eax",
    "mov eax, [ebx + {cr3}]",
    "mov cr3, eax",
    "mov ecx, {efer}",
    "rdmsr",
    "or eax, {efer_bits}",
    "wrmsr",
    "mov eax, cr0",
    "or eax, {pg}",
    "and eax, {cache}",
    "mov cr0, eax",
    ".byte 0xea",
    "trampoline_to_64: .long trampoline_64 - trampoline",
    ".short {code_64}",
    ".code64",
    "trampoline_64:",
    "mov esi, ebx",
    "mov eax, 1",
    "cpuid",
    "shr ebx, 24",
    "mov rdi, [rsi + {shared}]",
    "mov rcx, [rdi + {count}]",
    "add rdi, {processors}",
    "2: cmp [rdi + {apic_id}], rbx",
    "je 4f",
    "add rdi, {processor_bytes}",
    "dec rcx",
    "jnz 2b",
    // A processor that nobody has told us of.
    "3: cli",
    "hlt",
    "jmp 3b",
    "4: jmp [rdi + {arrival}]",
    "",
    ".balign 8",
    // Null; code and data of 4 GiB; 64-bit code.
    "trampoline_gdt: .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00209b0000000000",
    "trampoline_gdt_pointer: .short 31",
    "trampoline_gdt_base: .long trampoline_gdt - trampoline",
    "trampoline_end:",
    ".popsection",
    cr3 = const CR3,
    shared = const SHARED,
    code_32 = const CODE_32,
    data = const DATA,
    code_64 = const CODE_64,
    pae = const CR4_PAE,
    efer = const EFER,
    efer_bits = const EFER_BITS,
    pg = const CR0_PG,
    cache = const !CR0_NO_CACHE,
    count = const offset_of!(Startup, count),
    processors = const offset_of!(Startup, processors),
    apic_id = const offset_of!(Processor, apic_id),
    arrival = const offset_of!(Processor, arrival),
    processor_bytes = const size_of::<Processor>(),
);

unsafe extern "C" {
    static trampoline: u8;
    static trampoline_to_32: u8;
    static trampoline_to_64: u8;
    static trampoline_gdt_base: u8;
    static trampoline_cr3: u8;
    static trampoline_shared: u8;
    static trampoline_end: u8;
}

/// Puts the code into the page of `shared`. Processors come with the page tables at `cr3`, which map all memory one to one.
///
/// # Safety
/// The page is the hypervisor's, and nobody executes it yet.
pub unsafe fn install(shared: &Startup, cr3: u64) {
    let begin = &raw const trampoline;
    let offset = |label: *const u8| label as usize - begin as usize;
    let bytes = offset(&raw const trampoline_end);
    // SAFETY: the caller's promise; the code is shorter than the page, and lies elsewhere.
    let page = unsafe {
        let page = slice::from_raw_parts_mut(shared.page as *mut u8, bytes);
        page.copy_from_slice(slice::from_raw_parts(begin, bytes));
        page
    };
    let mut put = |label: *const u8, word: &[u8]| {
        let at = offset(label);
        page[at..at + word.len()].copy_from_slice(word);
    };
    // What has an offset within the page gets its address.
    for label in
        [&raw const trampoline_to_32, &raw const trampoline_to_64, &raw const trampoline_gdt_base]
    {
        // SAFETY: the labels are in front of words of four bytes.
        let offset = unsafe { label.cast::<u32>().read_unaligned() };
        put(label, &(offset + shared.page as u32).to_le_bytes());
    }
    put(&raw const trampoline_cr3, &cr3.to_le_bytes());
    put(&raw const trampoline_shared, &core::ptr::from_ref(shared).addr().to_le_bytes());
}
