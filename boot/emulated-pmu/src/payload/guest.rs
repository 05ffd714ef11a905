//! The guest: its registers, its PMU, and what is pending for it.

use super::hpet::Alarm;
use super::icount::Calibration;
use super::switch::Registers;
use super::vmcb::Vmcb;
use crate::payload::run::Mode;
use emulated_pmu::walk::Paging;
use pmu_model::{Pmu, Ring};

/// The one guest.
pub struct Guest {
    pub vmcb: &'static mut Vmcb,
    pub registers: Registers,
    pub pmu: Pmu,
    pub alarm: Alarm,
    pub calibration: Calibration,
    /// How the guest is being run.
    pub mode: Mode,
    /// An NMI waits to be injected.
    pub nmi_pending: bool,
    /// The guest is handling an NMI: no other until its IRET.
    pub nmi_blocked: bool,
    /// Intel's local APIC masks LVTPC when it delivers a PMI.
    pub masks_lvtpc: bool,
}

impl Guest {
    /// The ring in which the guest is.
    pub fn ring(&self) -> Ring {
        Ring::of_cpl(self.vmcb.cpl)
    }

    /// The registers that translate its addresses.
    pub fn paging(&self) -> Paging {
        let vmcb = &self.vmcb;
        Paging { cr0: vmcb.cr0, cr3: vmcb.cr3, cr4: vmcb.cr4, efer: vmcb.efer }
    }

    /// Goes over an instruction that was emulated.
    pub fn skip(&mut self, bytes: u64) {
        self.vmcb.rip += bytes;
        // It ends an interrupt shadow, as any instruction does.
        self.vmcb.int_state &= !1;
        // And RF.
        self.vmcb.rflags &= !(1 << 16);
    }

    /// EDX:EAX as RDMSR, RDPMC and the like leave it.
    pub fn set_edx_eax(&mut self, value: u64) {
        self.vmcb.rax = value & 0xffff_ffff;
        self.registers.rdx = value >> 32;
    }

    /// EDX:EAX as WRMSR takes it.
    pub fn edx_eax(&self) -> u64 {
        self.registers.rdx << 32 | self.vmcb.rax & 0xffff_ffff
    }
}

/// Reads 8 bytes of physical memory.
pub fn read_physical(address: u64) -> u64 {
    // SAFETY: all memory is mapped one to one; addresses come from the guest's page tables, and reading memory that
    // does not exist gives ones.
    unsafe { (address as *const u64).read_volatile() }
}
