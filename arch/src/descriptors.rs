//! Segments and the task state segment. Each processor has its own.

use crate::smp::Processor;
use crate::trap::TrapFrame;
use core::sync::atomic::Ordering;
use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, FS, GS, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::registers::segmentation::SegmentSelector;
use x86_64::structures::gdt::{Descriptor, DescriptorFlags, GlobalDescriptorTable};
use x86_64::structures::tss::TaskStateSegment;

/// Code segment of ring 0: the first entry after the null descriptor.
pub const KERNEL_CODE: SegmentSelector = SegmentSelector(1 << 3);
/// Data segment of ring 0.
pub const KERNEL_DATA: SegmentSelector = SegmentSelector(2 << 3);

/// Data segment of ring 3. It comes before the code segment because SYSRET wants it so (SDM vol. 3, 5.8.8).
pub const USER_DATA: SegmentSelector = SegmentSelector(3 << 3 | 3);
/// Code segment of ring 3.
pub const USER_CODE: SegmentSelector = SegmentSelector(4 << 3 | 3);

/// A segment that is never loaded: its limit is the processor's number. After the task state segment, which takes two
/// entries.
pub const PROCESSOR_NUMBER: SegmentSelector = SegmentSelector(7 << 3 | 3);

/// Code segment of ring 0 for compatibility mode (SDM vol. 3, 3.4.5: L clear, D set).
pub const KERNEL_CODE_32: SegmentSelector = SegmentSelector(8 << 3);
/// The same of ring 3.
pub const USER_CODE_32: SegmentSelector = SegmentSelector(9 << 3 | 3);

/// Whether code with this CS is 32-bit code, by the tables of [`Tables::load`]; else it is 64-bit code.
#[must_use]
pub const fn is_compatibility(cs: u64) -> bool {
    // The lowest two bits are the ring.
    let segment = cs as u16 & !3;
    segment == KERNEL_CODE_32.0 || segment == USER_CODE_32.0 & !3
}

/// Entries of the table: the null descriptor, nine segments, of which that of the task state takes two.
const ENTRIES: usize = 10;

// Entries of the interrupt stack table, as an IDT gate names them: 1 to 7 (SDM vol. 3, 6.14.5).
/// Stack for #DF.
pub const IST_DOUBLE_FAULT: u16 = 1;
/// Stack for NMI.
pub const IST_NMI: u16 = 2;
/// Stack for #MC.
pub const IST_MACHINE_CHECK: u16 = 3;
/// Stack for #DB.
pub const IST_DEBUG: u16 = 4;
/// Stack for all other exceptions.
pub const IST_FAULT: u16 = 5;
/// Stack for device interrupts.
pub const IST_DEVICE: u16 = 6;
/// How many interrupt stacks there are.
pub const IST_STACKS: usize = 6;
/// For the vectors of tasks: the stack for device interrupts, or where the registers of the running task are kept.
pub const IST_TASK: u16 = 7;

/// One processor's descriptor tables. They stay where they are for as long as the processor runs.
pub struct Tables {
    gdt: GlobalDescriptorTable<ENTRIES>,
    tss: TaskStateSegment,
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// Empty tables.
    #[must_use]
    pub const fn new() -> Self {
        Self { gdt: GlobalDescriptorTable::empty(), tss: TaskStateSegment::new() }
    }

    /// The stacks' ends, as the processor has them.
    fn ends(&self) -> [VirtAddr; 7] {
        // The TSS is a packed structure: its fields are copied, never borrowed.
        self.tss.interrupt_stack_table
    }

    /// Fills the tables and loads them on this processor, which is `processor`. `stacks` are the ends (highest addresses)
    /// of the interrupt stacks, `IST_DOUBLE_FAULT` first, multiples of 16. The top word of each says whose it is.
    ///
    /// # Safety
    /// Each stack must be mapped, writable and used for nothing else.
    pub unsafe fn load(
        &'static mut self,
        stacks: [VirtAddr; IST_STACKS],
        processor: &'static Processor,
    ) {
        processor.tables.store(core::ptr::from_mut(self).cast(), Ordering::Release);
        let stacks = stacks.map(|end| {
            let top = end - TOP_BYTES;
            // SAFETY: the stack is writable, and this its end.
            unsafe {
                top.as_mut_ptr::<&'static Processor>().write(processor);
                (top + 8).as_mut_ptr::<u64>().write((top - size_of::<TrapFrame>() as u64).as_u64());
            }
            top
        });
        let mut table = self.ends();
        table[..IST_STACKS].copy_from_slice(&stacks);
        table[usize::from(IST_TASK - 1)] = table[usize::from(IST_DEVICE - 1)];
        self.tss.interrupt_stack_table = table;
        self.gdt.append(Descriptor::kernel_code_segment());
        self.gdt.append(Descriptor::kernel_data_segment());
        self.gdt.append(Descriptor::user_data_segment());
        self.gdt.append(Descriptor::user_code_segment());
        let tss = self.gdt.append(Descriptor::tss_segment(&self.tss));
        self.gdt.append(number_segment(processor.index() as u16));
        for code in [DescriptorFlags::KERNEL_CODE32, DescriptorFlags::USER_CODE32] {
            self.gdt.append(Descriptor::UserSegment(code.bits()));
        }
        self.gdt.load();
        // SAFETY: the selectors name the entries appended above, in that order.
        unsafe {
            CS::set_reg(KERNEL_CODE);
            SS::set_reg(KERNEL_DATA);
            DS::set_reg(KERNEL_DATA);
            ES::set_reg(KERNEL_DATA);
            FS::set_reg(SegmentSelector::NULL);
            GS::set_reg(SegmentSelector::NULL);
            load_tss(tss);
        }
    }
}

/// The words of a processor's GDT and TSS. Empty for one that has not loaded its tables.
pub(crate) fn words_of(processor: &Processor) -> [*const [u64]; 2] {
    const GDT_WORDS: usize = ENTRIES;
    const TSS_WORDS: usize = size_of::<TaskStateSegment>() / 8;
    const { assert!(size_of::<TaskStateSegment>().is_multiple_of(8)) };
    let tables = processor.tables.load(Ordering::Acquire).cast_const().cast::<Tables>();
    if tables.is_null() {
        return [core::ptr::slice_from_raw_parts(core::ptr::null(), 0); 2];
    }
    // SAFETY: `load` stored a pointer to tables that stay, and nobody holds a reference to them.
    let [gdt, tss] = unsafe {
        let gdt = &raw const (*tables).gdt;
        let gdt = (&*gdt).entries().as_ptr().cast::<u64>();
        [gdt, (&raw const (*tables).tss).cast::<u64>()]
    };
    [(gdt, GDT_WORDS), (tss, TSS_WORDS)]
        .map(|(at, words)| core::ptr::slice_from_raw_parts(at, words))
}

/// The words above a processor's interrupt stacks, which say whose they are.
pub(crate) fn stack_tops_of(processor: &Processor) -> impl Iterator<Item = *const [u64]> {
    let tables = processor.tables.load(Ordering::Acquire).cast_const().cast::<Tables>();
    // SAFETY: as above.
    let stacks = (!tables.is_null()).then(|| unsafe { (*tables).ends() });
    let tops = stacks.into_iter().flat_map(|stacks| stacks.into_iter().take(IST_STACKS));
    tops.map(|top| core::ptr::slice_from_raw_parts(top.as_ptr::<u64>(), 1))
}

/// Where a processor's state segment says where the interrupts of tasks begin to push, and where those of devices do.
///
/// # Safety
/// The processor has loaded its tables, and uses the place for nothing else.
pub(crate) unsafe fn task_stack_of(processor: &Processor) -> (*mut u64, VirtAddr) {
    let tables = processor.tables.load(Ordering::Acquire).cast::<Tables>();
    // SAFETY: the caller's promise; the tables stay where they are.
    unsafe {
        let table = (&raw mut (*tables).tss.interrupt_stack_table).cast::<u64>();
        (table.add(usize::from(IST_TASK - 1)), (*tables).ends()[usize::from(IST_DEVICE - 1)])
    }
}

/// Loads the task register again.
///
/// # Safety
/// The GDT of [`Tables::load`] must be in use, and `selector` be the one that it loaded.
pub(crate) unsafe fn reload_task(selector: SegmentSelector) {
    /// In the upper half of the descriptor's first eight bytes: the type's busy bit, which LTR wants clear.
    const BUSY: u64 = 1 << 41;
    let table = x86_64::instructions::tables::sgdt();
    // SAFETY: the caller's promise; the table is writable.
    unsafe {
        let entry = table.base.as_mut_ptr::<u64>().add(usize::from(selector.index()));
        entry.write_volatile(entry.read_volatile() & !BUSY);
        load_tss(selector);
    }
}

/// Bytes kept at the end of an interrupt stack: a pointer to the processor, and the place of what an interrupt pushes.
const TOP_BYTES: u64 = 16;

/// A data segment of ring 3 with the given limit, read only: SDM vol. 3, 3.4.5.
const fn number_segment(limit: u16) -> Descriptor {
    /// Present, DPL 3, code or data, accessed.
    const ACCESS: u64 = 0xf1;
    Descriptor::UserSegment(ACCESS << 40 | limit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_code_segments_of_32_bits_are_told_by_their_selectors_and_descriptors() {
        for (selector, compatibility) in
            [(KERNEL_CODE, false), (USER_CODE, false), (KERNEL_CODE_32, true), (USER_CODE_32, true)]
        {
            assert_eq!(is_compatibility(selector.0.into()), compatibility);
        }
        for (flags, dpl) in [(DescriptorFlags::KERNEL_CODE32, 0), (DescriptorFlags::USER_CODE32, 3)]
        {
            let bits = flags.bits();
            // L, D, DPL: SDM vol. 3, figure 3-8.
            assert_eq!((bits >> 53 & 1, bits >> 54 & 1, bits >> 45 & 3), (0, 1, dpl));
        }
    }

    #[test]
    fn m13_the_processors_number_is_a_limit_in_bytes() {
        let Descriptor::UserSegment(bits) = number_segment(0x1ff) else { panic!("one entry") };
        assert_eq!((bits & 0xffff, bits >> 48), (0x1ff, 0));
        assert_eq!(bits >> 40 & 0xff, 0xf1);
    }
}
