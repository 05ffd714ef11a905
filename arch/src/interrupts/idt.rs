//! The interrupt descriptor table.

use super::stubs;
use crate::descriptors::{
    IST_DEBUG, IST_DEVICE, IST_DOUBLE_FAULT, IST_FAULT, IST_MACHINE_CHECK, IST_NMI, IST_TASK,
};
use crate::trap::exception;
use crate::vectors::OF_RING_3;
use core::cell::UnsafeCell;
use x86_64::VirtAddr;
use x86_64::structures::idt::InterruptDescriptorTable;

/// Stack of each vector. Every vector has one of its own kind, because measured code may leave any
/// value in RSP.
fn stack(vector: u8) -> u16 {
    match exception::Exception(vector) {
        exception::DOUBLE_FAULT => IST_DOUBLE_FAULT,
        exception::NMI => IST_NMI,
        exception::MACHINE_CHECK => IST_MACHINE_CHECK,
        exception::DEBUG => IST_DEBUG,
        exception::Exception(0..=31) => IST_FAULT,
        _ => IST_DEVICE,
    }
}

/// Fills `table` with the stubs and loads it on this processor.
///
/// # Safety
/// The GDT and TSS of [`crate::descriptors`] must be loaded, with valid interrupt stacks.
pub unsafe fn load(table: &'static mut InterruptDescriptorTable) {
    // SAFETY: the type is 256 gates of 16 bytes each, in order (SDM vol. 3, 6.14.1); `Gate` has that
    // layout. The named fields of the type cannot all be set without its nightly-only handler types.
    let gates = unsafe { &mut *core::ptr::from_mut(table).cast::<[Gate; 256]>() };
    for (gate, vector) in gates.iter_mut().zip(0..=255u8) {
        *gate = Gate::new(VirtAddr::new(stubs::address(vector)), stack(vector));
    }
    // Ring 3 may call these.
    for vector in OF_RING_3 {
        gates[usize::from(vector)].options |= 3 << 13;
    }
    // SAFETY: one processor runs, and nothing holds a reference to the copy.
    unsafe { *COPY.0.get() = *gates };
    table.load();
}

/// The table as it should be: foreign code of ring 0 may write to the one in use.
struct Copy(UnsafeCell<[Gate; 256]>);

// SAFETY: the boot processor alone changes gates.
unsafe impl Sync for Copy {}

static COPY: Copy = Copy(UnsafeCell::new([Gate::ABSENT; 256]));

/// The words of the table in use, and of its copy; `None` before [`load`].
pub(crate) fn gates() -> Option<[*mut [u64]; 2]> {
    const WORDS: usize = size_of::<[Gate; 256]>() / 8;
    let table = x86_64::instructions::tables::sidt();
    let words = |at: *mut Gate| core::ptr::slice_from_raw_parts_mut(at.cast::<u64>(), WORDS);
    let is_ours = usize::from(table.limit) == WORDS * 8 - 1;
    is_ours.then(|| [words({ table.base }.as_mut_ptr()), words(COPY.0.get().cast())])
}

/// Lets `vector` enter at `handler`, past the stubs. For handlers that cannot afford them.
///
/// # Safety
/// The table of [`load`] must be in use. `handler` must be an interrupt handler: it saves what it changes and ends in
/// IRETQ; the vector's exception must have no error code.
pub unsafe fn set_entry(vector: u8, handler: u64) {
    // SAFETY: the caller's promise.
    unsafe { enter_at(vector, handler, stack(vector)) };
}

/// The same for a vector of tasks, whose registers are pushed where [`IST_TASK`] says.
///
/// # Safety
/// As for [`set_entry`].
pub(crate) unsafe fn set_task_entry(vector: u8, handler: u64) {
    // SAFETY: the caller's promise.
    unsafe { enter_at(vector, handler, IST_TASK) };
}

/// Gives `vector` back to its stub.
///
/// # Safety
/// The table of [`load`] must be in use.
pub unsafe fn reset_entry(vector: u8) {
    // SAFETY: the stubs are what `load` filled the table with.
    unsafe { set_entry(vector, stubs::address(vector)) };
}

/// # Safety
/// As for [`set_entry`].
unsafe fn enter_at(vector: u8, handler: u64, stack: u16) {
    let table = x86_64::instructions::tables::sidt();
    // SAFETY: `load` made the table out of 256 gates. One processor, and the vector is masked or the new gate as
    // good as the old one.
    unsafe {
        let copy = COPY.0.get().cast::<Gate>().add(usize::from(vector));
        let options = (*copy).options & !7 | stack;
        *copy = Gate { options, ..Gate::new(VirtAddr::new(handler), stack) };
        *table.base.as_mut_ptr::<Gate>().add(usize::from(vector)) = *copy;
    }
}

/// A 64-bit interrupt gate: SDM vol. 3, figure 6-8.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Gate {
    offset_low: u16,
    selector: u16,
    /// Bits 2:0 stack, 11:8 type 14 (interrupt gate: clears IF), 14:13 DPL 0, 15 present.
    options: u16,
    offset_middle: u16,
    offset_high: u32,
    reserved: u32,
}

impl Gate {
    const ABSENT: Self = Self {
        offset_low: 0,
        selector: 0,
        options: 0,
        offset_middle: 0,
        offset_high: 0,
        reserved: 0,
    };

    fn new(handler: VirtAddr, stack: u16) -> Self {
        let address = handler.as_u64();
        Self {
            offset_low: address as u16,
            selector: crate::descriptors::KERNEL_CODE.0,
            options: 0x8e00 | stack,
            offset_middle: (address >> 16) as u16,
            offset_high: (address >> 32) as u32,
            reserved: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_laid_out_as_the_manual_draws_it() {
        assert_eq!(size_of::<[Gate; 256]>(), size_of::<InterruptDescriptorTable>());
        let gate = Gate::new(VirtAddr::new(0xffff_ffff_8012_3456), 3);
        assert_eq!(
            (gate.offset_low, gate.offset_middle, gate.offset_high),
            (0x3456, 0x8012, 0xffff_ffff)
        );
        assert_eq!(gate.options, 0b1000_1110_0000_0011);
    }

    #[test]
    fn stubs_are_sixteen_bytes_apart_and_push_their_vector() {
        for vector in [0u8, 8, 14, 32, 127, 128, 255] {
            let at = stubs::address(vector) as *const u8;
            // SAFETY: the stubs are 256 times 16 bytes of readable code.
            let code = unsafe { core::slice::from_raw_parts(at, 16) };
            let code =
                if exception::Exception(vector).has_error_code() { &code[8..] } else { &code[2..] };
            // push imm8 for vectors up to 127, push imm32 above.
            let pushed = match code[0] {
                0x6a => u32::from(code[1]),
                0x68 => u32::from_le_bytes(code[1..5].try_into().unwrap()),
                other => panic!("stub {vector} begins with {other:#x}"),
            };
            assert_eq!(pushed, u32::from(vector));
        }
    }
}
