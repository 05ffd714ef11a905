//! Segments, the task state segment with a stack for each kind of interruption, and the interrupt table.

use crate::handlers;
use program_format::layout::{selector, vector};
use x86_64::instructions::port::Port;
use x86_64::instructions::tables::load_tss;
use x86_64::registers::segmentation::{CS, DS, ES, SS, Segment, SegmentSelector};
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;
use x86_64::{PrivilegeLevel, VirtAddr};

static mut GDT: GlobalDescriptorTable<8> = GlobalDescriptorTable::empty();
static mut TSS: TaskStateSegment = TaskStateSegment::new();
static mut IDT: InterruptDescriptorTable = InterruptDescriptorTable::new();

const STACK_BYTES: u64 = 16 << 10;
#[repr(C, align(4096))]
struct Stack([u8; STACK_BYTES as usize]);
/// Of ring 0 for what comes from ring 3; of NMIs, PMIs, device interrupts, and what is not expected. What comes at an
/// instruction of the program's choice has its frame on the program's own stack.
static mut STACKS: [Stack; 5] = [const { Stack([0; STACK_BYTES as usize]) }; 5];
const NMI_STACK: u16 = 0;
const PMI_STACK: u16 = 1;
const DEVICE_STACK: u16 = 2;
const LAST_STACK: u16 = 3;

fn top(index: usize) -> VirtAddr {
    VirtAddr::new((&raw const STACKS) as u64 + STACK_BYTES * (index as u64 + 1))
}

/// # Safety
/// Once.
#[allow(static_mut_refs, reason = "one processor, once")]
pub unsafe fn set_up() {
    // SAFETY: the caller's promise; nobody else names these statics.
    unsafe {
        TSS.privilege_stack_table[0] = top(0);
        let [_, stacks @ ..] = core::array::from_fn::<_, 5, _>(top);
        let [a, b, c, d] = stacks;
        TSS.interrupt_stack_table =
            [a, b, c, d, VirtAddr::zero(), VirtAddr::zero(), VirtAddr::zero()];
        // In the order of the selectors.
        let kernel = GDT.append(Descriptor::kernel_code_segment());
        GDT.append(Descriptor::kernel_data_segment());
        GDT.append(Descriptor::user_data_segment());
        GDT.append(Descriptor::user_code_segment());
        let tss = GDT.append(Descriptor::tss_segment(&TSS));
        // A 32-bit code segment of ring 3, flat: SDM vol. 3, 3.4.5.
        let code_32 = GDT.append(Descriptor::UserSegment(0x00cf_fb00_0000_ffff));
        assert_eq!(code_32.0, selector::USER_CODE_32);
        GDT.load();
        CS::set_reg(kernel);
        let data = SegmentSelector(selector::KERNEL_DATA);
        SS::set_reg(data);
        DS::set_reg(data);
        ES::set_reg(data);
        load_tss(tss);
        gates();
        IDT.load();
        // The PC's old interrupt controllers have nothing to say.
        Port::<u8>::new(0x21).write(0xff);
        Port::<u8>::new(0xa1).write(0xff);
    }
}

#[allow(static_mut_refs, reason = "one processor, once")]
fn gates() {
    let at = |handler: extern "C" fn()| VirtAddr::new(handler as *const () as u64);
    // SAFETY: each handler ends with IRET or not at all, and the stacks are in the task state segment.
    unsafe {
        let idt = &mut IDT;
        for (vector, handler) in handlers::UNEXPECTED {
            match vector {
                8 => idt.double_fault.set_handler_addr(at(handler)).set_stack_index(LAST_STACK),
                10 => idt.invalid_tss.set_handler_addr(at(handler)).set_stack_index(LAST_STACK),
                11 => idt
                    .segment_not_present
                    .set_handler_addr(at(handler))
                    .set_stack_index(LAST_STACK),
                12 => idt
                    .stack_segment_fault
                    .set_handler_addr(at(handler))
                    .set_stack_index(LAST_STACK),
                _ => continue,
            };
        }
        idt.divide_error.set_handler_addr(at(handlers::skip_two));
        idt.debug.set_handler_addr(at(handlers::back)).set_privilege_level(PrivilegeLevel::Ring3);
        idt.non_maskable_interrupt.set_handler_addr(at(handlers::nmi)).set_stack_index(NMI_STACK);
        idt.breakpoint
            .set_handler_addr(at(handlers::back))
            .set_privilege_level(PrivilegeLevel::Ring3);
        idt.invalid_opcode.set_handler_addr(at(handlers::skip_two));
        idt.general_protection_fault.set_handler_addr(at(handlers::resume));
        idt.page_fault.set_handler_addr(at(handlers::page_fault));
        for (number, handler) in [
            (vector::SERVICE, handlers::back as extern "C" fn()),
            (vector::LEAVE, handlers::leave),
            (vector::DEVICE, handlers::device),
            (vector::PMI, handlers::pmi),
        ] {
            let gate = idt[number].set_handler_addr(at(handler));
            gate.set_privilege_level(PrivilegeLevel::Ring3);
        }
        idt[vector::DEVICE].set_handler_addr(at(handlers::device)).set_stack_index(DEVICE_STACK);
        idt[vector::PMI].set_handler_addr(at(handlers::pmi)).set_stack_index(PMI_STACK);
    }
}
