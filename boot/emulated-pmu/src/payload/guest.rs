//! The guest: its registers, its PMU, and what is pending for it.

mod enter;
mod instruction;
mod registers;

use super::clock;
use super::code::CodeMap;
use super::counting::Counting;
use super::hpet::Alarm;
use super::icount::Calibration;
use super::nested_guest::VirtualSvm;
use super::plugin::Plugin;
use super::pm_timer::PmTimer;
use super::switch::Registers;
use super::timer::Timer;
use core::cell::RefCell;
use emulated_pmu::control::Control;
use emulated_pmu::debug_registers::DebugRegisters;
use emulated_pmu::extended_apic::ExtendedApic;
use emulated_pmu::returns::Returns;
use emulated_pmu::vectors::Vectors;
use emulated_pmu::vmcb::{Event, Vmcb};
use emulated_pmu::x2apic::X2Apic;
use iced_x86::InstructionInfoFactory;
use pmu_model::model::Vendor;
use pmu_model::uarch::{Core, Llc, StringRun};
use pmu_model::{Needs, Ring};

/// RFLAGS.TF.
pub const TF: u64 = 1 << 8;
/// RFLAGS.IF.
pub const IF: u64 = 1 << 9;
/// RFLAGS.RF.
pub const RF: u64 = 1 << 16;
/// EFER.SCE.
pub const SCE: u64 = 1;
/// EFER.LMA.
const LMA: u64 = 1 << 10;

/// The one guest.
pub struct Guest {
    pub vmcb: &'static mut Vmcb,
    pub registers: Registers,
    pub counting: Counting,
    /// What the PMU's registers, as they stand, request.
    pub needs: Needs,
    /// Counts at full speed what would otherwise must be stepped.
    pub plugin: Option<Plugin>,
    /// Predictor, caches and translations, if there is no plugin, which has its own.
    pub core: Core,
    pub llc: &'static mut Llc,
    /// Lines that a repeated string instruction has touched at its source and its destination.
    pub runs: [StringRun; 2],
    /// One of them passes the qualifiers.
    pub string_touched: bool,
    /// Cycles since the last branch record.
    pub since_record: u64,
    pub factory: RefCell<InstructionInfoFactory>,
    pub alarm: Alarm,
    /// The timer of its local APIC.
    pub timer: Timer,
    pub pm_timer: PmTimer,
    /// Its debug registers. The processor's are the hypervisor's.
    pub debug: DebugRegisters,
    /// What DR6 is to say of the #DB that has made it leave.
    pub happened: u64,
    /// The same of an instruction that is done, where the exception has to wait for the next one.
    pub held: u64,
    /// The instruction that is done loaded SS: no debug exception in front of the next one.
    pub after_ss: bool,
    /// The write to CR0 or CR4 that comes has been looked at.
    pub lets_control_writes: bool,
    pub calibration: Calibration,
    /// The guest's EFER.SCE; the processor's is taken away while rings are distinguished.
    pub sce: bool,
    /// Whose processor the guest believes to have.
    pub vendor: Option<Vendor>,
    /// QEMU's own processor is Intel's: SYSCALL and SYSRET are not instructions outside 64-bit mode.
    pub on_intel: bool,
    /// SVM, where it is offered, and whoever runs in it.
    pub svm: VirtualSvm,
    /// An exception or interrupt to be delivered at the next entry.
    pub event: Option<Event>,
    /// Device interrupts whose delivery something else came before: they are delivered when the guest can take them.
    pub waiting: Vectors,
    /// The stay that comes, with nothing to be delivered, is to end when it can.
    pub leaves_for_interrupt: bool,
    /// Instructions that were stepped since a counter awaits its PEBS record, and whether interrupts of devices are kept out of
    /// the next one: see [`super::precise::begin`].
    pub awaiting: u8,
    pub keeps_interrupts_out: bool,
    /// Bytes of the INT n that was emulated and is to be delivered: RIP is after it already. 0 of one that the guest
    /// executes itself.
    pub software_interrupt_bytes: u64,
    /// An NMI waits to be delivered.
    pub nmi_pending: bool,
    /// The guest is handling an NMI: no other until its IRET.
    pub nmi_blocked: bool,
    /// The guest's time at which the last NMI was delivered, and before which no other is to be.
    pub nmi_begun: u64,
    pub nmi_not_before: u64,
    /// NMIs in a row whose PMIs were requested while one was being handled.
    pub nmi_streak: u32,
    /// What may be executed at full speed.
    pub code: CodeMap,
    /// Stays since something was last counted by the clock.
    pub idle_stays: u32,
    /// Frames that lead back to a breakpoint of the hypervisor's, and past it.
    pub returns: Returns,
    /// Event selects that have been named as unknown, the last few.
    pub said: [u64; 16],
    /// Counters that have been named as stepped, the last few sets.
    pub said_stepped: [u64; 4],
    /// Intel's local APIC masks LVTPC when it delivers a PMI.
    pub masks_lvtpc: bool,
    /// Registers of its local APIC that QEMU's has not.
    pub extended_apic: ExtendedApic,
    /// Its mode with registers that are model-specific ones.
    pub x2apic: X2Apic,
    /// Linear address of the instruction that was stepped over last.
    pub stepped: u64,
}

impl Guest {
    /// The ring in which the guest is.
    pub fn ring(&self) -> Ring {
        Ring::of_cpl(self.vmcb.cpl)
    }

    /// The ring in which its next instruction is executed: that of the handlers if something is to be delivered.
    pub fn next_ring(&self) -> Ring {
        if self.event.is_some() { Ring::Kernel } else { self.ring() }
    }

    /// Whether the PMU counts or records anything of whoever runs.
    pub fn is_counted(&self) -> bool {
        let needs = &self.needs;
        needs.bulk | needs.stepped != 0 || needs.free_running || needs.branch_records
    }

    /// Whether each change of ring must be seen while instructions are counted. Branch records say in which ring they
    /// ended.
    pub fn tells_rings_apart(&self) -> bool {
        self.needs.ring_split || self.needs.branch_records
    }

    /// Whether what runs in `ring` must be watched for instructions that the clock counts wrongly. A plugin counts them.
    pub fn is_watched(&self, ring: Ring) -> bool {
        self.plugin.is_none() && (self.needs.free_running || self.needs.rings.contains(ring))
    }

    /// Whether what `needs` ask to have stepped in `ring` can be counted at full speed, as far as no overflow is near.
    pub fn counts_at_speed(&self, ring: Ring) -> bool {
        self.plugin.is_some()
            && self.needs.unspread == 0
            && self.counting.recorded_kinds(ring).is_some()
    }

    /// What VMRUN looks at.
    pub fn control(&self) -> Control {
        let vmcb = &self.vmcb;
        let (cr0, cr3, cr4) = (vmcb.cr0, vmcb.cr3, vmcb.cr4);
        Control { cr0, cr3, cr4, efer: vmcb.efer, cs: vmcb.cs.attributes }
    }

    /// Whether a breakpoint on the instruction after a load of SS is not met.
    pub fn suppresses_breakpoint_behind_ss(&self) -> bool {
        self.vendor != Some(Vendor::Amd)
    }

    /// The guest's clock continues for an instruction that was emulated.
    pub fn tick(&self) {
        clock::pass(1 << self.calibration.shift);
    }

    /// Takes EFER.SCE away, so that SYSCALL and SYSRET raise #UD, or gives the guest its own back.
    pub fn withhold_system_calls(&mut self, withhold: bool) {
        self.vmcb.efer &= !SCE;
        self.vmcb.efer |= u64::from(self.sce && !withhold) * SCE;
    }

    /// Whether it is in long mode, 64-bit or compatibility.
    pub fn is_long_mode(&self) -> bool {
        self.vmcb.efer & LMA != 0
    }

    /// Whether the exit came in the middle of a delivery, which is then still to be done.
    pub fn is_in_delivery(&self) -> bool {
        self.vmcb.exit_int_info >> 31 & 1 != 0 || self.vmcb.undelivered().is_some()
    }

    /// Whether the exit came in the middle of the delivery of an INT n, INT3 or INTO.
    pub fn delivers_software_interrupt(&self) -> bool {
        let event = Event::decode(self.vmcb.exit_int_info);
        matches!(event, Some(Event::SoftwareInterrupt { .. }))
    }

    /// Whether an NMI waits, and none is being handled.
    pub fn awaits_nmi(&self) -> bool {
        self.nmi_pending && !self.nmi_blocked && self.svm.gif
    }

    /// Instructions until an NMI that waits may be delivered.
    pub fn nmi_in(&self) -> u64 {
        self.nmi_not_before.saturating_sub(clock::now()) >> self.calibration.shift
    }

    /// Whether interrupts and traps are held back until the next instruction is done.
    pub fn in_shadow(&self) -> bool {
        self.vmcb.int_state & 1 != 0
    }
}
