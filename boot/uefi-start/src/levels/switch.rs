//! The switch itself.

use super::LevelsError;
use super::tables::{ADDRESS, Table, five_of_four, four_of_five};
use core::arch::{asm, global_asm};
use core::ptr::NonNull;
use uefi::boot::{self, AllocateType, MemoryType, PAGE_SIZE};
use uefi::mem::memory_map::MemoryAttribute;
use uefi::proto::security::MemoryProtection;

/// CR4 bit 12.
const LA57: u64 = 1 << 12;
/// CR0 bit 31; CR4 bit 17: clearing the one while the other is set raises an exception (SDM vol. 3, 4.10.1).
const PAGING: u32 = 1 << 31;
const PCIDE: u64 = 1 << 17;
/// Selectors of the descriptor table below.
const CODE_64: u16 = 0x08;
const CODE_32: u16 = 0x10;
const DATA: u16 = 0x18;

// RDI: the page that this is copied to, RSI: the new table, both below 4 GiB. All addresses are relative, and so those of the copy.
// What is not on the stack is lost: the upper halves of registers, and R8 to R15, outside 64-bit mode.
global_asm!(
    ".balign 16",
    "levels_start:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "pushfq",
    "cli",
    "mov eax, cs", "push rax",
    "mov eax, ds", "push rax",
    "mov eax, es", "push rax",
    "mov eax, ss", "push rax",
    "sgdt [rip + levels_found]",
    "mov [rip + levels_stack], rsp",
    "lea rax, [rip + levels_gdt]",
    "mov [rip + levels_address], rax",
    "lgdt [rip + levels_pointer]",
    "mov rax, cr4",
    "and rax, {no_pcide}",
    "mov cr4, rax",
    "mov ebx, eax",
    "lea rbp, [rip + levels_64]",
    "push {code_32}",
    "lea rax, [rip + levels_32]",
    "push rax",
    "retfq",
    ".code32",
    "levels_32:",
    "mov eax, {data}",
    "mov ds, eax", "mov es, eax", "mov ss, eax",
    "lea esp, [edi + {page}]",
    "mov eax, cr0",
    "mov edx, eax",
    "and eax, {no_paging}",
    "mov cr0, eax",
    "xor ebx, {la57}",
    "mov cr4, ebx",
    "mov cr3, esi",
    "mov cr0, edx",
    "push {code_64}",
    "push ebp",
    "retf",
    ".code64",
    "levels_64:",
    "mov rsp, [rip + levels_stack]",
    // The descriptors that interrupts and boot services go by.
    "lgdt [rip + levels_found]",
    "pop rax", "mov ss, eax",
    "pop rax", "mov es, eax",
    "pop rax", "mov ds, eax",
    "lea rax, [rip + levels_back]",
    "push rax",
    "retfq",
    "levels_back:",
    "popfq",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
    "ret",
    ".balign 8",
    // Null; 64-bit code; 32-bit code and data of 4 GiB.
    "levels_gdt: .quad 0",
    ".quad 0x00209b0000000000",
    ".quad 0x00cf9b000000ffff",
    ".quad 0x00cf93000000ffff",
    "levels_stack: .quad 0",
    "levels_pointer: .short 31",
    "levels_address: .quad 0",
    "levels_found: .short 0",
    ".quad 0",
    "levels_end:",
    no_pcide = const !(PCIDE as u32) as i32,
    no_paging = const !PAGING,
    la57 = const LA57 as u32,
    page = const PAGE_SIZE,
    code_32 = const CODE_32,
    code_64 = const CODE_64,
    data = const DATA,
);

unsafe extern "C" {
    static levels_start: u8;
    static levels_end: u8;
}

fn cr4() -> u64 {
    let value;
    // SAFETY: applications run in ring 0.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

fn cr3() -> u64 {
    let value;
    // SAFETY: as above.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Whether five-level paging is on.
#[must_use]
pub fn is_on() -> bool {
    cr4() & LA57 != 0
}

/// Memory for the switch.
#[derive(Debug)]
pub struct Switch {
    code: NonNull<u8>,
    table: NonNull<u8>,
}

impl Switch {
    /// Takes the memory, if five-level paging is on: while the machine's firmware still gives some.
    ///
    /// # Errors
    /// There is none.
    pub fn needed() -> Result<Option<Self>, LevelsError> {
        is_on().then(Self::prepare).transpose()
    }

    /// Takes it in any case.
    ///
    /// # Errors
    /// There is none.
    pub fn prepare() -> Result<Self, LevelsError> {
        const BELOW: AllocateType = AllocateType::MaxAddress(u32::MAX as u64);
        let page = |kind| boot::allocate_pages(BELOW, kind, 1).map_err(|_| LevelsError::NoMemory);
        let (code, table) = (page(MemoryType::LOADER_CODE)?, page(MemoryType::LOADER_DATA)?);
        let at = code.as_ptr() as u64;
        // Firmware may protect what it gives out; where it does not offer to change that, it does not.
        if let Ok(handle) = boot::get_handle_for_protocol::<MemoryProtection>()
            && let Ok(protection) = boot::open_protocol_exclusive::<MemoryProtection>(handle)
        {
            let locked = MemoryAttribute::EXECUTE_PROTECT | MemoryAttribute::READ_ONLY;
            let _ = protection.clear_memory_attributes(at..at + PAGE_SIZE as u64, locked);
        }
        Ok(Self { code, table })
    }

    /// Switches to four-level paging. Memory ends at `end`.
    ///
    /// # Errors
    /// Four levels cannot map what is needed. Nothing has changed then.
    ///
    /// # Safety
    /// Five-level paging is on, and memory is mapped one to one.
    pub unsafe fn to_four(self, end: u64) -> Result<(), LevelsError> {
        // SAFETY: tables are mapped one to one.
        let read = |at: u64| unsafe { (at as *const Table).read() };
        let table = four_of_five(read, cr3(), end)?;
        // SAFETY: passed on.
        unsafe { self.with(&table) };
        Ok(())
    }

    /// Switches to five-level paging.
    ///
    /// # Safety
    /// The processor has it, and it is off. Else as for [`Switch::to_four`].
    pub unsafe fn to_five(self) {
        // SAFETY: passed on.
        unsafe { self.with(&five_of_four(cr3())) };
    }

    /// # Safety
    /// `table` maps everything as before, with the other number of levels.
    unsafe fn with(self, table: &Table) {
        // SAFETY: both pages are ours, below 4 GiB; the code fits into the first, with a stack above it.
        unsafe {
            let (start, end) = (&raw const levels_start, &raw const levels_end);
            self.code.as_ptr().copy_from_nonoverlapping(start, end.addr() - start.addr());
            self.table.cast::<Table>().write(*table);
            asm!(
                "call {code}",
                code = in(reg) self.code.as_ptr(),
                in("rdi") self.code.as_ptr(),
                in("rsi") self.table.as_ptr() as u64 & ADDRESS,
                clobber_abi("sysv64"),
            );
        }
    }
}
