//! Segments and the task state segment.

use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, FS, GS, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::registers::segmentation::SegmentSelector;
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::tss::TaskStateSegment;

/// Code segment of ring 0: the first entry after the null descriptor.
pub const KERNEL_CODE: SegmentSelector = SegmentSelector(1 << 3);
/// Data segment of ring 0.
pub const KERNEL_DATA: SegmentSelector = SegmentSelector(2 << 3);

/// Data segment of ring 3. It comes before the code segment because SYSRET wants it so (SDM vol. 3, 5.8.8).
pub const USER_DATA: SegmentSelector = SegmentSelector(3 << 3 | 3);
/// Code segment of ring 3.
pub const USER_CODE: SegmentSelector = SegmentSelector(4 << 3 | 3);

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

/// One processor's descriptor tables. They stay where they are for as long as the processor runs.
pub struct Tables {
    gdt: GlobalDescriptorTable,
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
        Self { gdt: GlobalDescriptorTable::new(), tss: TaskStateSegment::new() }
    }

    /// Fills the tables and loads them on this processor. `stacks` are the ends (highest addresses) of
    /// the interrupt stacks, `IST_DOUBLE_FAULT` first.
    ///
    /// # Safety
    /// Each stack must be mapped, writable and used for nothing else.
    pub unsafe fn load(&'static mut self, stacks: [VirtAddr; IST_STACKS]) {
        // The TSS is a packed structure: its fields are assigned, never borrowed.
        let mut table = self.tss.interrupt_stack_table;
        table[..IST_STACKS].copy_from_slice(&stacks);
        self.tss.interrupt_stack_table = table;
        self.gdt.append(Descriptor::kernel_code_segment());
        self.gdt.append(Descriptor::kernel_data_segment());
        self.gdt.append(Descriptor::user_data_segment());
        self.gdt.append(Descriptor::user_code_segment());
        let tss = self.gdt.append(Descriptor::tss_segment(&self.tss));
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

/// Loads the task register anew.
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
