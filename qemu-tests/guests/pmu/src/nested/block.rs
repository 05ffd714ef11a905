//! The virtual machine control block, by its offsets: APM vol. 2, appendix B.

use crate::machine::{open_to_execution, physical};
use core::arch::{asm, naked_asm};
use core::sync::atomic::AtomicU64;
use x86_64::registers::model_specific::Msr;

pub const CR: usize = 0x00;
pub const DR: usize = 0x04;
pub const EXCEPTIONS: usize = 0x08;
/// Vectors 3 and 4 together.
pub const VECTORS: usize = 0x0c;
pub const IO_MAP: usize = 0x40;
pub const MSR_MAP: usize = 0x48;
pub const TSC_OFFSET: usize = 0x50;
pub const ASID: usize = 0x58;
pub const INTERRUPTS: usize = 0x60;
pub const SHADOW: usize = 0x68;
pub const EXIT: usize = 0x70;
pub const INFO_1: usize = 0x78;
pub const INFO_2: usize = 0x80;
pub const DELIVERING: usize = 0x88;
pub const NESTED: usize = 0x90;
pub const INJECT: usize = 0xa8;
pub const NESTED_CR3: usize = 0xb0;
pub const CLEAN: usize = 0xc0;
pub const NEXT_RIP: usize = 0xc8;
pub const CS: usize = 0x410;
const SS: usize = 0x420;
const GDTR: usize = 0x460;
pub const IDTR: usize = 0x480;
pub const RFLAGS: usize = 0x570;
pub const EFER: usize = 0x4d0;
pub const CR4: usize = 0x548;
pub const CR3: usize = 0x550;
pub const CR0: usize = 0x558;
pub const DR7: usize = 0x560;
pub const DR6: usize = 0x568;
pub const RIP: usize = 0x578;
pub const RSP: usize = 0x5d8;
pub const RAX: usize = 0x5f8;
const PAT: usize = 0x668;

/// Bits of [`VECTORS`].
pub const INTR: u64 = 1 << 0;
pub const NMI: u64 = 1 << 1;
pub const VIRTUAL: u64 = 1 << 4;
pub const HLT: u64 = 1 << 24;
pub const PORTS: u64 = 1 << 27;
pub const REGISTERS: u64 = 1 << 28;
pub const SHUTDOWN: u64 = 1 << 31;
pub const VMRUN: u64 = 1 << 32;
pub const VMMCALL: u64 = 1 << 33;
/// Exit codes.
pub const AT_INTR: u64 = 0x60;
pub const AT_NMI: u64 = 0x61;
pub const AT_VIRTUAL: u64 = 0x64;
pub const AT_HLT: u64 = 0x78;
pub const AT_VMMCALL: u64 = 0x81;
pub const AT_INVALID: u64 = u64::MAX;

#[repr(C, align(4096))]
pub struct Page(pub [u8; 4096]);

static mut BLOCK: Page = Page([0; 4096]);
static mut SAVE_AREA: Page = Page([0; 4096]);
static mut CODE: Page = Page([0; 4096]);
static mut STACK: Page = Page([0; 4096]);

/// The nested guest's registers, at its VMRUN and after its exit: RCX, RDX, RBX, RSI, RDI.
pub static mut REGISTERS_IN_USE: [u64; 5] = [0; 5];
/// The block's physical address.
pub static ADDRESS: AtomicU64 = AtomicU64::new(0);
/// VMMCALL, by which a nested guest ends.
const END: [u8; 3] = [0x0f, 0x01, 0xd9];

/// Physical address of the page for VM_HSAVE_PA.
pub fn save_area() -> u64 {
    physical(&raw const SAVE_AREA as u64)
}

pub fn set_up() {
    open_to_execution(code(), 4096);
    ADDRESS.store(physical(&raw const BLOCK as u64), core::sync::atomic::Ordering::Relaxed);
}

/// Where the nested guest's code begins.
pub fn code() -> u64 {
    &raw const CODE as u64
}

/// The top of its stack.
pub fn stack() -> u64 {
    &raw const STACK as u64 + 4096 - 64
}

pub fn put(field: usize, value: u64) {
    // SAFETY: within the page, which only this processor touches.
    unsafe { (&raw mut BLOCK).cast::<u8>().add(field).cast::<u64>().write_unaligned(value) };
}

pub fn get(field: usize) -> u64 {
    // SAFETY: as above.
    unsafe { (&raw const BLOCK).cast::<u8>().add(field).cast::<u64>().read_unaligned() }
}

/// Sets bits of a field of 32 bits.
pub fn add(field: usize, bits: u32) {
    // SAFETY: as above.
    unsafe {
        let at = (&raw mut BLOCK).cast::<u8>().add(field).cast::<u32>();
        at.write_unaligned(at.read_unaligned() | bits);
    }
}

pub fn register(index: usize) -> u64 {
    // SAFETY: one processor.
    unsafe { (&raw const REGISTERS_IN_USE).cast::<u64>().add(index).read() }
}

pub fn set_registers(values: [u64; 5]) {
    // SAFETY: as above.
    unsafe { (&raw mut REGISTERS_IN_USE).write(values) };
}

/// A nested guest like its guest, that executes `parts` and then VMMCALL.
pub fn prepare(parts: &[&[u8]]) {
    // SAFETY: as above; the nested guest does not run.
    unsafe {
        (&raw mut BLOCK).cast::<u8>().write_bytes(0, 4096);
        let mut at = (&raw mut CODE).cast::<u8>();
        for part in parts.iter().chain([&&END[..]]) {
            at.copy_from_nonoverlapping(part.as_ptr(), part.len());
            at = at.add(part.len());
        }
    }
    let (cr0, cr3, cr4): (u64, u64, u64);
    let (mut gdtr, mut idtr) = ([0u8; 10], [0u8; 10]);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr3", "mov {}, cr4", out(reg) cr0, out(reg) cr3, out(reg) cr4);
        asm!("sgdt [{}]", "sidt [{}]", in(reg) gdtr.as_mut_ptr(), in(reg) idtr.as_mut_ptr());
        put(EFER, Msr::new(super::EFER).read());
        put(PAT, Msr::new(0x277).read());
    }
    put(VECTORS, VMRUN | VMMCALL);
    put(ASID, 1);
    segment(CS, 8, 0xa9b, u32::MAX, 0);
    for (place, segment_of) in [(0x400, 16), (SS, 16), (0x430, 16)] {
        segment(place, segment_of, 0xc93, u32::MAX, 0);
    }
    table(GDTR, gdtr);
    table(IDTR, idtr);
    for (field, value) in [
        (CR0, cr0),
        (CR3, cr3),
        (CR4, cr4),
        (DR6, 0xffff_0ff0),
        (DR7, 0x400),
        (RFLAGS, 2),
        (RIP, code()),
        (RSP, stack()),
    ] {
        put(field, value);
    }
}

pub fn segment(field: usize, selector: u16, attributes: u16, limit: u32, base: u64) {
    put(field, u64::from(selector) | u64::from(attributes) << 16 | u64::from(limit) << 32);
    put(field + 8, base);
}

fn table(field: usize, bytes: [u8; 10]) {
    let limit = u16::from_le_bytes([bytes[0], bytes[1]]);
    let base = u64::from_le_bytes(bytes[2..].try_into().expect("8 bytes"));
    segment(field, 0, 0, limit.into(), base);
}

/// Runs the nested guest until its exit, with the global interrupt flag clear from before VMRUN to after the exit.
#[unsafe(naked)]
pub extern "C" fn enter() {
    naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
        "mov rax, [rip + {address}]",
        "mov rcx, [rip + {registers}]",
        "mov rdx, [rip + {registers} + 8]",
        "mov rbx, [rip + {registers} + 16]",
        "mov rsi, [rip + {registers} + 24]",
        "mov rdi, [rip + {registers} + 32]",
        "clgi",
        "vmrun rax",
        "stgi",
        "mov [rip + {registers}], rcx",
        "mov [rip + {registers} + 8], rdx",
        "mov [rip + {registers} + 16], rbx",
        "mov [rip + {registers} + 24], rsi",
        "mov [rip + {registers} + 32], rdi",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        address = sym ADDRESS, registers = sym REGISTERS_IN_USE,
    )
}
/// The guest's own instructions in it.
pub const ENTER: u64 = 27;
