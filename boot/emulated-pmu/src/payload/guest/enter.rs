//! The guest runs until its next exit, and the plugin is told.

use super::Guest;
use crate::payload::icount::Calibration;
use crate::payload::nested_guest;
use crate::payload::plugin::Left;
use crate::payload::port::{tsc, write_debug_7};
use crate::payload::switch::{self, AFTER_EXIT, Ran};
use crate::payload::{clock, events, statistics};
use core::arch::asm;
use emulated_pmu::control::enterable_code_segment;
use emulated_pmu::translator;
use emulated_pmu::vmcb::{Event, exit};
use plugin_channel::{Parts, Place, STACK_WORDS};
use pmu_model::Ring;

/// DR7: the enables, local and global, of all four breakpoints.
const DR7_ENABLES: u64 = 0xff;

/// All kinds of branches, by [`pmu_model::BranchKind::ALL`].
const EVERY_KIND: u32 = (1 << pmu_model::BranchKind::ALL.len()) - 1;

impl Guest {
    /// Runs the guest until its next exit; returns the instructions that retired, or with no plugin those that the TSC
    /// counted.
    pub fn enter(&mut self, alarm_ns: u64) -> u64 {
        self.run(alarm_ns, false)
    }

    /// The same for one instruction, at whose end the guest has to leave by what the caller has set.
    pub fn enter_to_step(&mut self) -> u64 {
        self.run(0, true)
    }

    fn run(&mut self, alarm_ns: u64, steps: bool) -> u64 {
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
        self.tell_entry(ring, delivers, steps);
        if opens {
            // SAFETY: with GIF 0 nothing comes in; VMRUN notes the flag for the guest.
            unsafe { asm!("sti", options(nomem, nostack)) };
        }
        let entered = tsc();
        // SAFETY: SVM on, GIF 0, the block prepared by the caller.
        let Ran { ticks, left } =
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
        let Calibration { overhead, shift, .. } = self.calibration;
        let own = overhead << shift;
        clock::leave(ticks.saturating_sub(own), left.wrapping_sub(AFTER_EXIT << shift));
        let instructions = self.calibration.instructions(ticks);
        instructions.wrapping_add(self.tell_exit(ring))
    }

    /// Tells the plugin that the guest is about to run; `steps`: for one instruction.
    fn tell_entry(&mut self, ring: Ring, delivers: bool, steps: bool) {
        /// EFER.LMA (AMD APM vol. 2, 3.1.7).
        const LONG: u64 = 1 << 10;
        let rip = self.linear_rip();
        let Some(plugin) = self.plugin.as_mut().filter(|plugin| plugin.is_on()) else { return };
        let mut parts = translator::parts(&self.needs, ring);
        parts.set(Parts::LEGACY, self.vmcb.efer & LONG == 0);
        // A step may end in the other ring, which the filters go by. Nothing else does while branches are recorded.
        let kinds = self.counting.recorded_kinds(ring).filter(|_| !steps).unwrap_or(EVERY_KIND);
        plugin.enter(rip, delivers, parts, kinds);
    }

    /// Tells the plugin that the guest has left, which ran in `ring`. Returns what is to be added to its instructions.
    fn tell_exit(&mut self, ring: Ring) -> u64 {
        const DEBUG: u64 = exit::EXCEPTION + 1;
        const PAGE_FAULT: u64 = exit::EXCEPTION + 14;
        /// I/D in the error code (SDM vol. 3, 4.7), which a processor sets where the guest has enabled NX or SMEP.
        const FETCH: u64 = 1 << 4;
        let behind = self.behind();
        let place = match self.vmcb.exit_code {
            exit::INTR | exit::VIRTUAL_IRQ | exit::NMI | DEBUG => Place::Boundary,
            _ if self.is_in_delivery() => Place::Boundary,
            // No instruction began that could not be fetched.
            PAGE_FAULT if self.vmcb.exit_info_1 & FETCH != 0 => Place::Boundary,
            _ => Place::Instruction,
        };
        let counts = self.needs.stepping_in(ring);
        let stack = match place {
            Place::Boundary if self.sees_deliveries() || self.sees_page_faults() => self.stack(),
            _ => [0; STACK_WORDS],
        };
        let Some(plugin) = self.plugin.as_mut().filter(|plugin| plugin.is_on()) else { return 0 };
        let Left { instructions, stopped, returned } = plugin.exit(&behind, place, stack, counts);
        if returned && !self.nmi_pending && !self.svm.runs_nested() {
            // Where one waits, the IRET is intercepted, and ends the handler when it is done.
            self.nmi_blocked = false;
        }
        if stopped {
            // It may have come as the exit, or wait after another one.
            events::take_own_nmi(self);
        }
        instructions
    }
}
