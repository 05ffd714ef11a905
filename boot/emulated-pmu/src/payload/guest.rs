//! The guest: its registers, its PMU, and what is pending for it.

use super::clock;
use super::code::CodeMap;
use super::counting::Counting;
use super::events;
use super::hpet::Alarm;
use super::icount::Calibration;
use super::nested_guest::{self, VirtualSvm};
use super::plugin::{Left, Plugin};
use super::pm_timer::PmTimer;
use super::port::{read_msr, tsc, write_debug_7};
use super::statistics;
use super::switch::{self, Registers};
use super::timer::Timer;
use core::arch::asm;
use core::cell::RefCell;
use emulated_pmu::control::{Control, enterable_code_segment};
use emulated_pmu::debug_registers::{DebugRegisters, SINGLE_STEP};
use emulated_pmu::extended_apic::ExtendedApic;
use emulated_pmu::nested::paging::Translation;
use emulated_pmu::returns::Returns;
use emulated_pmu::step::{self, Behind};
use emulated_pmu::translator;
use emulated_pmu::vectors::Vectors;
use emulated_pmu::vmcb::{Event, Vmcb, exit};
use emulated_pmu::walk::Paging;
use emulated_pmu::x2apic::X2Apic;
use iced_x86::{Instruction, InstructionInfoFactory, Register};
use plugin_channel::Place;
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
/// DR7: the enables, local and global, of all four breakpoints.
const DR7_ENABLES: u64 = 0xff;
const FS_BASE: u32 = 0xc000_0100;
const GS_BASE: u32 = 0xc000_0101;

/// All kinds of branches, by [`pmu_model::BranchKind::ALL`].
const EVERY_KIND: u32 = (1 << pmu_model::BranchKind::ALL.len()) - 1;

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

    /// Runs the guest until its next exit; returns the instructions that retired, or with no plugin those that the TSC
    /// counted.
    pub fn enter(&mut self, alarm_ns: u64) -> u64 {
        if !matches!(self.event, Some(Event::SoftwareInterrupt { .. })) {
            self.software_interrupt_bytes = 0;
        }
        let ring = self.next_ring();
        let delivers = self.event.is_some();
        if delivers {
            self.runs = Default::default();
            self.string_touched = false;
        }
        let event = self.event.take();
        self.vmcb.set_event(event);
        let opens = nested_guest::merge::begin(self, event);
        if core::mem::take(&mut self.keeps_interrupts_out) {
            self.vmcb.keep_interrupts_out();
        }
        if self.is_long_mode() {
            self.vmcb.cs.attributes = enterable_code_segment(self.vmcb.cs.attributes);
        }
        // QEMU sets its breakpoints when software writes to DR7, not when VMRUN loads it.
        let breakpoints = self.vmcb.dr7 & DR7_ENABLES != 0;
        if breakpoints {
            write_debug_7(self.vmcb.dr7);
        }
        self.tell_entry(ring, delivers);
        if opens {
            // SAFETY: with GIF 0 nothing comes in; VMRUN notes the flag for the guest.
            unsafe { asm!("sti", options(nomem, nostack)) };
        }
        let entered = tsc();
        // SAFETY: SVM on, GIF 0, the block prepared by the caller.
        let ticks =
            unsafe { switch::enter(&raw mut self.registers, &raw mut *self.vmcb, alarm_ns) };
        if opens {
            // SAFETY: GIF is still 0.
            unsafe { asm!("cli", options(nomem, nostack)) };
        }
        nested_guest::merge::end(self, event);
        if breakpoints {
            write_debug_7(0);
        }
        if let Some(vector) = self.vmcb.undelivered() {
            self.waiting.insert(vector);
        }
        statistics::exit(self.vmcb.exit_code, entered.wrapping_sub(clock::left()), ticks);
        clock::leave(ticks.saturating_sub(self.calibration.overhead << self.calibration.shift));
        let instructions = self.calibration.instructions(ticks);
        instructions.wrapping_add(self.tell_exit(ring))
    }

    /// Tells the plugin that the guest is about to run.
    fn tell_entry(&mut self, ring: Ring, delivers: bool) {
        let rip = self.linear_rip();
        let Some(plugin) = self.plugin.as_mut().filter(|plugin| plugin.is_on()) else { return };
        let kinds = self.counting.recorded_kinds(ring).unwrap_or(EVERY_KIND);
        plugin.enter(rip, delivers, translator::parts(&self.needs, ring), kinds);
    }

    /// Tells the plugin that the guest has left, which ran in `ring`. Returns what is to be added to its instructions.
    fn tell_exit(&mut self, ring: Ring) -> u64 {
        const DEBUG: u64 = exit::EXCEPTION + 1;
        let behind = self.behind();
        let place = match self.vmcb.exit_code {
            exit::INTR | exit::VIRTUAL_IRQ | exit::NMI | DEBUG => Place::Boundary,
            _ if self.is_in_delivery() => Place::Boundary,
            _ => Place::Instruction,
        };
        let counts = self.needs.stepping_in(ring);
        let Some(plugin) = self.plugin.as_mut().filter(|plugin| plugin.is_on()) else { return 0 };
        let Left { instructions, stopped } = plugin.exit(&behind, place, counts);
        if stopped {
            // It may have come as the exit, or wait after another one.
            events::take_own_nmi(self);
        }
        instructions
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

    /// The linear address of its next instruction.
    pub fn linear_rip(&self) -> u64 {
        match self.code_bits() {
            64 => self.vmcb.rip,
            _ => self.vmcb.cs.base.wrapping_add(self.vmcb.rip) & 0xffff_ffff,
        }
    }

    /// What a branch is judged by that it has just executed.
    pub fn behind(&self) -> Behind {
        Behind { rip: self.linear_rip(), rflags: self.vmcb.rflags, rcx: self.registers.rcx }
    }

    /// The linear address of the top of its stack.
    pub fn linear_stack(&self) -> u64 {
        match self.code_bits() {
            64 => self.vmcb.rsp,
            _ => self.vmcb.ss.base.wrapping_add(self.vmcb.rsp) & 0xffff_ffff,
        }
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

    /// Whether its next instruction needs no special care.
    pub fn is_plain(&self) -> bool {
        let mut bytes = [0; step::MAX_BYTES];
        let count = self.read(self.linear_rip(), &mut bytes);
        step::is_plain(&bytes[..count])
    }

    /// Its next instruction, by linear address, if it can be read and is one.
    pub fn instruction(&self) -> Option<Instruction> {
        let mut bytes = [0; step::MAX_BYTES];
        let rip = self.linear_rip();
        let count = self.read(rip, &mut bytes);
        step::decode(&bytes[..count], rip, self.code_bits())
    }

    /// How its addresses are translated.
    pub fn translation(&self) -> Translation {
        let vmcb = &self.vmcb;
        let own = Paging { cr0: vmcb.cr0, cr3: vmcb.cr3, cr4: vmcb.cr4, efer: vmcb.efer };
        Translation { own, nested: self.svm.nested_paging() }
    }

    /// Goes over an instruction that was emulated.
    pub fn skip(&mut self, bytes: u64) {
        self.vmcb.rip += bytes;
        // It ends an interrupt shadow, as any instruction does, and RF.
        self.vmcb.int_state &= !1;
        self.vmcb.rflags &= !RF;
        self.after_ss = false;
        // The guest steps itself: as the processor would, unless something else comes now. None of the instructions that
        // come here is a branch, but INT n and INT1, which are not stepped.
        if self.event.is_none() {
            let steps = self.vmcb.rflags & TF != 0 && !self.needs.branch_trap;
            events::traps(self, if steps { SINGLE_STEP } else { 0 }, false);
        }
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

    /// EDX:EAX as RDMSR, RDPMC and the like leave it.
    pub fn set_edx_eax(&mut self, value: u64) {
        self.vmcb.rax = value & 0xffff_ffff;
        self.registers.rdx = value >> 32;
    }

    /// EDX:EAX as WRMSR takes it.
    pub fn edx_eax(&self) -> u64 {
        self.registers.rdx << 32 | self.vmcb.rax & 0xffff_ffff
    }

    /// Sets a general register.
    pub fn set_register(&mut self, name: Register, value: u64) {
        let r = &mut self.registers;
        *match name.full_register() {
            Register::RAX => &mut self.vmcb.rax,
            Register::RCX => &mut r.rcx,
            Register::RDX => &mut r.rdx,
            Register::RBX => &mut r.rbx,
            Register::RSP => &mut self.vmcb.rsp,
            Register::RBP => &mut r.rbp,
            Register::RSI => &mut r.rsi,
            Register::RDI => &mut r.rdi,
            Register::R8 => &mut r.r8,
            Register::R9 => &mut r.r9,
            Register::R10 => &mut r.r10,
            Register::R11 => &mut r.r11,
            Register::R12 => &mut r.r12,
            Register::R13 => &mut r.r13,
            Register::R14 => &mut r.r14,
            Register::R15 => &mut r.r15,
            _ => return,
        } = value;
    }

    /// Bits of an address in the code that runs.
    pub fn code_bits(&self) -> u32 {
        const LONG: u16 = 1 << 9;
        const DEFAULT_32: u16 = 1 << 10;
        match self.vmcb.cs.attributes {
            attributes if attributes & LONG != 0 => 64,
            attributes if attributes & DEFAULT_32 != 0 => 32,
            _ => 16,
        }
    }

    /// A register by the decoder's name, cut to its width; of a segment register, the base.
    pub fn register(&self, name: Register) -> u64 {
        let r = &self.registers;
        let whole = match name.full_register() {
            Register::RAX => self.vmcb.rax,
            Register::RCX => r.rcx,
            Register::RDX => r.rdx,
            Register::RBX => r.rbx,
            Register::RSP => self.vmcb.rsp,
            Register::RBP => r.rbp,
            Register::RSI => r.rsi,
            Register::RDI => r.rdi,
            Register::R8 => r.r8,
            Register::R9 => r.r9,
            Register::R10 => r.r10,
            Register::R11 => r.r11,
            Register::R12 => r.r12,
            Register::R13 => r.r13,
            Register::R14 => r.r14,
            Register::R15 => r.r15,
            Register::CS | Register::DS | Register::ES | Register::SS if self.code_bits() == 64 => {
                return 0;
            }
            Register::CS => return self.vmcb.cs.base,
            Register::DS => return self.vmcb.ds.base,
            Register::ES => return self.vmcb.es.base,
            Register::SS => return self.vmcb.ss.base,
            // SAFETY: both registers exist in 64-bit mode; the guest's values are live in them.
            Register::FS => return unsafe { read_msr(FS_BASE) },
            // SAFETY: as above.
            Register::GS => return unsafe { read_msr(GS_BASE) },
            // Vector registers, as indexes of gathers: their first element stands for nothing here.
            _ => return 0,
        };
        match name.size() {
            8 => whole,
            4 => whole & 0xffff_ffff,
            2 => whole & 0xffff,
            _ => whole & 0xff,
        }
    }
}
