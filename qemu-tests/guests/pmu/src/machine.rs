//! Descriptors, interrupt table, local APIC, and pages for ring 3.

use crate::handlers;
use core::ptr::{read_volatile, write_volatile};
use x86_64::VirtAddr;
use x86_64::instructions::port::Port;
use x86_64::instructions::tables::load_tss;
use x86_64::registers::control::Cr3;
use x86_64::registers::model_specific::{Efer, EferFlags, Msr};
use x86_64::registers::segmentation::{CS, DS, ES, SS, Segment};
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;

/// Where the boot loader maps physical memory.
pub const PHYSICAL: u64 = 0xffff_a000_0000_0000;
const APIC: u64 = PHYSICAL + 0xfee0_0000;
/// Selectors: the order of `set_up`.
pub const KERNEL_CODE: u64 = 8;
pub const USER_DATA: u64 = 0x1b;
pub const USER_CODE: u64 = 0x23;
/// 32-bit code, after the two entries of the TSS.
pub const USER_CODE_32: u64 = 0x3b;
/// The same of ring 0.
pub const KERNEL_CODE_32: u64 = 0x40;

static mut GDT: GlobalDescriptorTable<9> = GlobalDescriptorTable::empty();
static mut TSS: TaskStateSegment = TaskStateSegment::new();
static mut IDT: InterruptDescriptorTable = InterruptDescriptorTable::new();

#[repr(C, align(4096))]
pub struct Stack([u8; 16 << 10]);
static mut RING_0_STACK: Stack = Stack([0; 16 << 10]);
/// The stack of ring 3.
pub static mut RING_3_STACK: Stack = Stack([0; 16 << 10]);

/// # Safety
/// Once.
pub unsafe fn set_up() {
    // SAFETY: the caller's promise; nobody else names these statics.
    #[allow(static_mut_refs, reason = "one processor, once")]
    unsafe {
        TSS.privilege_stack_table[0] = top(&raw const RING_0_STACK);
        GDT.append(Descriptor::kernel_code_segment());
        GDT.append(Descriptor::kernel_data_segment());
        GDT.append(Descriptor::user_data_segment());
        GDT.append(Descriptor::user_code_segment());
        let tss = GDT.append(Descriptor::tss_segment(&TSS));
        // Type and rights of a 32-bit code segment of ring 3, flat: SDM vol. 3, 3.4.5.
        GDT.append(Descriptor::UserSegment(0x00cf_fb00_0000_ffff));
        GDT.append(Descriptor::UserSegment(0x00cf_9b00_0000_ffff));
        GDT.load();
        CS::set_reg(x86_64::structures::gdt::SegmentSelector(KERNEL_CODE as u16));
        let data = x86_64::structures::gdt::SegmentSelector(16);
        SS::set_reg(data);
        DS::set_reg(data);
        ES::set_reg(data);
        load_tss(tss);
        handlers::install(&mut IDT);
        IDT.load();
        Efer::update(|efer| efer.insert(EferFlags::SYSTEM_CALL_EXTENSIONS));
        // STAR: SYSCALL to ring 0, SYSRET's selectors are 8 and 16 above.
        Msr::new(0xc000_0081).write((USER_DATA - 8) << 48 | KERNEL_CODE << 32);
        Msr::new(0xc000_0082).write(handlers::on_system_call as *const () as u64);
        Msr::new(0xc000_0084).write(0x700);
        Port::<u8>::new(0x21).write(0xff);
        Port::<u8>::new(0xa1).write(0xff);
        apic_write(0xf0, 0x1ff);
    }
}

fn top(stack: *const Stack) -> VirtAddr {
    VirtAddr::new(stack as u64 + size_of::<Stack>() as u64)
}

/// Sets the gate of `vector`, of ring 0.
pub fn set_gate(vector: u8, handler: extern "C" fn()) {
    // SAFETY: one processor; no interrupt comes meanwhile.
    #[allow(static_mut_refs, reason = "one processor")]
    unsafe {
        handlers::set(&mut IDT, vector, handler);
    }
}

/// Makes the gate of `vector` absent.
pub fn remove_gate(vector: u8) {
    // SAFETY: as above.
    unsafe { IDT[vector] = x86_64::structures::idt::Entry::missing() };
}

const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The physical address of `linear`, which is mapped with pages of 4 KiB.
pub fn physical(linear: u64) -> u64 {
    let mut table = Cr3::read().0.start_address().as_u64();
    for shift in [39, 30, 21, 12] {
        // SAFETY: the page tables in use, after the map of physical memory.
        let entry = unsafe { *((PHYSICAL + table + 8 * (linear >> shift & 0x1ff)) as *const u64) };
        table = entry & ADDRESS;
    }
    table | linear & 0xfff
}

/// Maps the page at `frame` for ring 3 at `linear`, where nothing is.
///
/// # Safety
/// Once.
pub unsafe fn map_low(linear: u64, frame: u64) {
    #[repr(C, align(4096))]
    struct Table([u64; 512]);
    static mut TABLES: [Table; 3] = [const { Table([0; 512]) }; 3];
    const ALL: u64 = 7;
    let mut table = Cr3::read().0.start_address().as_u64();
    for (level, shift) in [39, 30, 21].into_iter().enumerate() {
        let entry = (PHYSICAL + table + 8 * (linear >> shift & 0x1ff)) as *mut u64;
        // SAFETY: the page tables in use; a missing one is replaced by one of ours, which is empty.
        unsafe {
            if *entry & 1 == 0 {
                *entry = physical((&raw const TABLES[level]) as u64);
            }
            *entry |= ALL;
            table = *entry & ADDRESS;
        }
    }
    // SAFETY: as above.
    unsafe { *((PHYSICAL + table + 8 * (linear >> 12 & 0x1ff)) as *mut u64) = frame | ALL };
    x86_64::instructions::tlb::flush(VirtAddr::new(linear));
}

/// Lets ring 3 reach `bytes` from `from` on.
pub fn open_to_ring_3(from: u64, bytes: u64) {
    const USER: u64 = 1 << 2;
    const LARGE: u64 = 1 << 7;
    for page in (from & !0xfff..from + bytes).step_by(4096) {
        let mut table = Cr3::read().0.start_address().as_u64();
        for shift in [39, 30, 21, 12] {
            let entry = (PHYSICAL + table + 8 * (page >> shift & 0x1ff)) as *mut u64;
            // SAFETY: the page tables in use, after the map of physical memory.
            let value = unsafe { read_volatile(entry) };
            // SAFETY: as above; it only adds a right.
            unsafe { write_volatile(entry, value | USER) };
            if shift == 12 || value & LARGE != 0 {
                break;
            }
            table = value & ADDRESS;
        }
        x86_64::instructions::tlb::flush(VirtAddr::new(page));
    }
}

/// The page table entry of `linear`, which is mapped with a page of 4 KiB.
pub fn entry(linear: u64) -> *mut u64 {
    let mut table = Cr3::read().0.start_address().as_u64();
    for shift in [39, 30, 21] {
        let entry = (PHYSICAL + table + 8 * (linear >> shift & 0x1ff)) as *mut u64;
        // SAFETY: the page tables in use, after the map of physical memory.
        table = unsafe { read_volatile(entry) } & ADDRESS;
    }
    (PHYSICAL + table + 8 * (linear >> 12 & 0x1ff)) as *mut u64
}

/// Makes `bytes` from `from` on executable.
pub fn open_to_execution(from: u64, bytes: u64) {
    const NO_EXECUTE: u64 = 1 << 63;
    for page in (from & !0xfff..from + bytes).step_by(4096) {
        let mut table = Cr3::read().0.start_address().as_u64();
        for shift in [39, 30, 21, 12] {
            let entry = (PHYSICAL + table + 8 * (page >> shift & 0x1ff)) as *mut u64;
            // SAFETY: the page tables in use, after the map of physical memory.
            let value = unsafe { read_volatile(entry) } & !NO_EXECUTE;
            // SAFETY: as above; it only adds a right.
            unsafe { write_volatile(entry, value) };
            table = value & ADDRESS;
        }
        x86_64::instructions::tlb::flush(VirtAddr::new(page));
    }
}

pub fn apic_write(register: u64, value: u32) {
    // SAFETY: the local APIC's registers, in xAPIC mode.
    unsafe { write_volatile((APIC + register) as *mut u32, value) };
}

pub fn apic_read(register: u64) -> u32 {
    // SAFETY: as above.
    unsafe { read_volatile((APIC + register) as *const u32) }
}

/// Address of a register of the local APIC.
pub const fn apic(register: u64) -> u64 {
    APIC + register
}

/// Ends QEMU.
pub fn exit(code: u32) -> ! {
    loop {
        // SAFETY: the exit device that the test attaches.
        unsafe { Port::<u32>::new(0xf4).write(code) };
        x86_64::instructions::hlt();
    }
}
