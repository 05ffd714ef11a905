//! The code that a processor begins with: in real mode, in a page below 1 MiB, whose number the startup interrupt gives.
//!
//! It goes to 64-bit mode in one step and on to [`enter`] in the firmware's image, by tables of its own: the
//! firmware's, with the first 2 MiB mapped one to one too. Those are needed because CR3 takes 32 bits here, and
//! because the code has to continue after the write that switches paging on.

use crate::memory::layout;
use core::arch::{asm, global_asm, naked_asm};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use x86_64::registers::control::Cr3;

/// Pages below 1 MiB: the code, and three levels of tables.
pub const PAGES: u64 = 4;
const PAGE: u64 = 4096;
/// Present, writable.
const TABLE: u64 = 0b11;
/// The same, and a page of 2 MiB.
const LARGE: u64 = 0b1000_0011;
/// EFER: NXE, because the tables have such bits, and LME. LMA comes by itself.
const EFER: u32 = 1 << 11 | 1 << 8;
/// CR4: PAE.
const CR4: u32 = 1 << 5;
/// CR0: PG, WP, ET, PE; CD and NW, which INIT leaves set, clear.
const CR0: u32 = 1 << 31 | 1 << 16 | 1 << 4 | 1;

global_asm!(
    ".pushsection .rodata.barecount_trampoline, \"a\", @progbits",
    ".balign 16",
    ".global barecount_trampoline",
    "barecount_trampoline:",
    ".code16",
    "cli",
    "cld",
    "mov ax, cs",
    "mov ds, ax",
    // No no-execute pages, which the boot processor has: an Intel processor whose set-up has switched them off, each its own
    // (IA32_MISC_ENABLE bit 34).
    "mov eax, 0x80000001",
    "cpuid",
    "bt edx, 20",
    "jc 8f",
    "mov ecx, 0x1a0",
    "rdmsr",
    "btr edx, 2",
    "wrmsr",
    "8:",
    "mov eax, {cr4}",
    "mov cr4, eax",
    // The next, and two below, by their bytes, because LLVM takes no difference of labels as an address.
    // MOV EAX, moffs16, operand size 32.
    ".byte 0x66, 0xa1",
    ".short 5f - barecount_trampoline",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "mov eax, {efer}",
    "xor edx, edx",
    "wrmsr",
    // LGDT m16:32, operand size 32.
    ".byte 0x66, 0x0f, 0x01, 0x16",
    ".short 3f - barecount_trampoline",
    "mov eax, {cr0}",
    "mov cr0, eax",
    // JMP FAR m16:32, operand size 32.
    ".byte 0x66, 0xff, 0x2e",
    ".short 4f - barecount_trampoline",
    ".code64",
    "2:",
    "mov eax, 16",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov rax, [rip + 6f]",
    "jmp rax",
    ".balign 8",
    // Null, 64-bit code, data.
    "7: .quad 0, 0x00209a0000000000, 0x0000920000000000",
    "3: .short 23",
    "barecount_trampoline_gdt: .long 7b - barecount_trampoline",
    "4:",
    "barecount_trampoline_far: .long 2b - barecount_trampoline",
    ".short 8",
    "5:",
    "barecount_trampoline_cr3: .long 0",
    ".balign 8",
    "6:",
    "barecount_trampoline_entry: .quad 0",
    "barecount_trampoline_end:",
    ".popsection",
    cr4 = const CR4,
    efer = const EFER,
    cr0 = const CR0,
);

unsafe extern "C" {
    static barecount_trampoline: u8;
    static barecount_trampoline_gdt: u8;
    static barecount_trampoline_far: u8;
    static barecount_trampoline_cr3: u8;
    static barecount_trampoline_entry: u8;
    static barecount_trampoline_end: u8;
}

/// The firmware's CR3.
static ROOT: AtomicU64 = AtomicU64::new(0);
/// Tickets given out: each processor takes the stack of its ticket.
static TICKETS: AtomicU32 = AtomicU32::new(0);
/// Stacks that there are.
static LIMIT: AtomicU32 = AtomicU32::new(0);
/// Where their ends are.
static ENDS: AtomicU64 = AtomicU64::new(0);

/// Puts the code and its tables into the pages from `low` on. Processors that begin there call `super::start::arrive`
/// with the number of their ticket, each on one of the stacks that end at `ends`.
///
/// # Safety
/// The pages must be free memory below 1 MiB, for good: a processor may come late. The map of physical memory is in use.
pub unsafe fn place(low: u64, ends: &'static [u64]) {
    let (root, _) = Cr3::read();
    ROOT.store(root.start_address().as_u64(), Ordering::Relaxed);
    ENDS.store(ends.as_ptr() as u64, Ordering::Relaxed);
    LIMIT.store(ends.len() as u32, Ordering::Release);
    let page = |index: u64| (layout::PHYSICAL + low + index * PAGE) as *mut u8;
    let start = &raw const barecount_trampoline;
    let offset = |label: *const u8| label as usize - start as usize;
    // SAFETY: the caller's pages; labels lie within the code, which is shorter than a page; the root table is mapped
    // with all physical memory.
    unsafe {
        let tables = [1, 2, 3].map(|index| page(index).cast::<u64>());
        core::ptr::copy_nonoverlapping(
            (layout::PHYSICAL + root.start_address().as_u64()) as *const u64,
            tables[0],
            512,
        );
        core::ptr::write_bytes(tables[1], 0, 1024);
        tables[0].write((low + 2 * PAGE) | TABLE);
        tables[1].write((low + 3 * PAGE) | TABLE);
        tables[2].write(LARGE);
        let bytes = offset(&raw const barecount_trampoline_end);
        core::ptr::copy_nonoverlapping(start, page(0), bytes);
        let long = |label: *const u8| page(0).add(offset(label)).cast::<u32>();
        // These two hold offsets, and are to hold addresses.
        for label in [&raw const barecount_trampoline_gdt, &raw const barecount_trampoline_far] {
            let at = long(label);
            at.write_unaligned(at.read_unaligned() + low as u32);
        }
        long(&raw const barecount_trampoline_cr3).write_unaligned((low + PAGE) as u32);
        let entry = page(0).add(offset(&raw const barecount_trampoline_entry)).cast::<u64>();
        entry.write_unaligned(enter as *const () as u64);
        // The stores must be there before the interrupt is.
        asm!("mfence", options(nostack, preserves_flags));
    }
}

/// In the image, in 64-bit mode, without a stack yet.
#[unsafe(naked)]
unsafe extern "C" fn enter() -> ! {
    naked_asm!(
        "mov rax, [rip + {root}]",
        "mov cr3, rax",
        "mov edi, 1",
        "lock xadd [rip + {tickets}], edi",
        "cmp edi, [rip + {limit}]",
        "jae 2f",
        "mov rax, [rip + {ends}]",
        "mov rsp, [rax + 8 * rdi]",
        "xor ebp, ebp",
        "call {arrive}",
        "2: hlt",
        "jmp 2b",
        root = sym ROOT,
        tickets = sym TICKETS,
        limit = sym LIMIT,
        ends = sym ENDS,
        arrive = sym super::start::arrive,
    )
}
