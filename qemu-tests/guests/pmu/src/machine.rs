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

static mut GDT: GlobalDescriptorTable<8> = GlobalDescriptorTable::empty();
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

/// Lets ring 3 reach `bytes` from `from` on.
pub fn open_to_ring_3(from: u64, bytes: u64) {
    const USER: u64 = 1 << 2;
    const LARGE: u64 = 1 << 7;
    const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
    for page in (from & !0xfff..from + bytes).step_by(4096) {
        let mut table = Cr3::read().0.start_address().as_u64();
        for shift in [39, 30, 21, 12] {
            let entry = (PHYSICAL + table + 8 * (page >> shift & 0x1ff)) as *mut u64;
            // SAFETY: the page tables in use, behind the map of physical memory.
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
