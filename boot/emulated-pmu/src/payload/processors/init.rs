//! The state in which a processor is after INIT and a start-up interrupt: SDM vol. 3, table 10-1, and 9.4.3 for CS.

use crate::payload::exits::overlaid;
use crate::payload::guest::Guest;
use crate::payload::nested_guest::VirtualSvm;
use crate::payload::svm::SVME;
use crate::payload::switch::Registers;
use crate::payload::timer::Timer;
use crate::payload::{breakpoint, ibs, tables};
use emulated_pmu::debug_registers::{DR6_IDLE, DR7_ONE, DebugRegisters};
use emulated_pmu::vmcb::Segment;

/// CR0: caches off, and ET, which is always set.
const CR0: u64 = 1 << 30 | 1 << 29 | 1 << 4;
/// RFLAGS: bit 1, which is always set.
const RFLAGS: u64 = 1 << 1;
/// Attributes of segments: present, of ring 0, accessed; code that can be read, data that can be written to.
const CODE: u16 = 0x9b;
const DATA: u16 = 0x93;
const LIMIT: u32 = 0xffff;

/// Makes `guest` start at the page `vector`. The PMU's registers and the caches keep what they have. FS, GS, LDTR, TR, the
/// registers of the FPU and the local APIC are the processor's own, which INIT has set.
pub fn reset(guest: &mut Guest, vector: u8) {
    let signature = overlaid(guest, 1, 0).eax;
    guest.registers = Registers { rdx: signature.into(), ..Registers::default() };
    let vmcb = &mut *guest.vmcb;
    let data = Segment { selector: 0, attributes: DATA, limit: LIMIT, base: 0 };
    (vmcb.ds, vmcb.es, vmcb.ss) = (data, data, data);
    let (selector, base) = (u16::from(vector) << 8, u64::from(vector) << 12);
    vmcb.cs = Segment { selector, attributes: CODE, limit: LIMIT, base };
    (vmcb.gdtr, vmcb.idtr) = (data, data);
    (vmcb.cr0, vmcb.cr2, vmcb.cr3, vmcb.cr4, vmcb.efer) = (CR0, 0, 0, 0, SVME);
    (vmcb.dr6, vmcb.dr7) = (DR6_IDLE, DR7_ONE);
    (vmcb.rip, vmcb.rsp, vmcb.rax, vmcb.rflags) = (0, 0, 0, RFLAGS);
    (vmcb.cpl, vmcb.int_state, vmcb.exit_int_info, vmcb.asid) = (0, 0, 0, 1);
    vmcb.set_event(None);

    guest.debug = DebugRegisters::new(breakpoint::read(), vmcb.dr6, vmcb.dr7);
    (guest.happened, guest.held) = (0, 0);
    (guest.after_ss, guest.sce, guest.svm) = (false, false, VirtualSvm::new());
    guest.returns = Default::default();
    (guest.event, guest.waiting) = (None, Default::default());
    guest.runs = Default::default();
    guest.software_interrupt_bytes = 0;
    (guest.nmi_pending, guest.nmi_blocked) = (false, false);
    (guest.nmi_not_before, guest.nmi_streak) = (0, 0);
    guest.timer = Timer::default();
    ibs::reset(guest);
    guest.code.end();
    guest.alarm.silence();
    // Of what came in before.
    let _ = (tables::take_vector(), tables::take_nmis());
}
