//! What a guest's block requests, as VMRUN finds it. The processor may keep it until the exit (APM vol. 2, 15.5.1).

use crate::vmcb::{Intercepts, NESTED_PAGING, VIRTUAL_MASKING, Vmcb};

/// The control area's part that a nested guest runs with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Control {
    /// Intercepted accesses to control registers: reads by number, writes from bit 16 on.
    pub cr_intercepts: u32,
    /// The same of debug registers.
    pub dr_intercepts: u32,
    /// Intercepted exceptions.
    pub exceptions: u32,
    /// Intercept vectors 3 and 4.
    pub intercepts: Intercepts,
    /// Intercept vector 5.
    pub more_intercepts: u32,
    /// The I/O permission map.
    pub io_permissions: u64,
    /// The MSR permission map.
    pub msr_permissions: u64,
    /// Added to the guest's own TSC.
    pub tsc_offset: u64,
    /// Whose translations.
    pub asid: u32,
    /// Virtual interrupts.
    pub int_control: u64,
    /// The nested page tables, if they are used.
    pub nested_cr3: Option<u64>,
    /// What is to be injected.
    pub event: u64,
    /// What an injected INT n returns to.
    pub next_rip: u64,
}

impl Control {
    /// From a guest's block.
    #[must_use]
    pub fn of(block: &Vmcb) -> Self {
        let pages = block.nested_control & NESTED_PAGING != 0;
        Self {
            cr_intercepts: block.cr_intercepts,
            dr_intercepts: block.dr_intercepts,
            exceptions: block.exceptions,
            intercepts: block.intercepts(),
            more_intercepts: block.more_intercepts,
            // Bits 11:0 are ignored: APM vol. 2, 15.10.1 and 15.11.
            io_permissions: block.io_permissions & !0xfff,
            msr_permissions: block.msr_permissions & !0xfff,
            tsc_offset: block.tsc_offset,
            asid: block.asid,
            int_control: block.int_control,
            nested_cr3: pages.then_some(block.nested_cr3),
            event: block.event,
            next_rip: block.next_rip,
        }
    }

    /// Whether the guest's own IF, and not the nested guest's, lets interrupts of devices in: APM vol. 2, 15.21.1.
    #[must_use]
    pub const fn masks_virtually(&self) -> bool {
        self.int_control & VIRTUAL_MASKING != 0
    }
}
