//! #VMEXIT to the guest.

use super::entry::{BREAKPOINT, OVERFLOW, PAT, set_debug_registers};
use super::maps;
use crate::payload::guest::{Guest, RF, SCE, TF};
use crate::payload::port::write_msr;
use crate::payload::svm::{self, SVME};
use crate::payload::{clock, events, exits, step};
use emulated_pmu::debug_registers::{DR7_ONE, SINGLE_STEP};
use emulated_pmu::nested::exit::{Exit, is_of_instruction};
use emulated_pmu::nested::permissions::{msr_is_intercepted, port_is_intercepted};
use emulated_pmu::nested::{Control, State};
use emulated_pmu::vmcb::{Event, Vmcb, exit};
use iced_x86::Mnemonic;
use pmu_model::World;

const CR0_PE: u64 = 1;
const DEBUG: u8 = 1;
const PAGE_FAULT: u8 = 14;

/// Whether the exit that has just happened is one of the guest's, which then continues after its VMRUN. Exceptions are requested
/// later: see [`takes_exception`].
pub fn takes(guest: &mut Guest) -> bool {
    let Some(inner) = &guest.svm.inner else { return false };
    let control = inner.control;
    if matches!(guest.vmcb.exit_code, exit::READ_CR0 | exit::RDTSC) {
        guest.vmcb.exit_code = own_code(guest);
    }
    let code = guest.vmcb.exit_code;
    let is_guests = match code {
        // What comes from outside is taken first, whoever it is for.
        exit::INTR | exit::NMI | exit::VIRTUAL_IRQ => false,
        // Asked for where it is told from INT3 and INTO.
        exit::INT_N => false,
        // No processor that is presented has the instruction: it raises #UD, whatever is intercepted.
        exit::SKINIT => false,
        exit::EXCEPTION..=exit::LAST_EXCEPTION => false,
        exit::MSR => control.wants(code) && wants_msr(guest, &control),
        exit::PORT => {
            let map = control.io_permissions;
            let info = guest.vmcb.exit_info_1;
            control.wants(code) && port_is_intercepted(info, |at| maps::byte(map, at))
        }
        exit::WRITE_CR0 if !control.wants(code) && wants_selective(guest, &control) => {
            guest.vmcb.exit_code = exit::CR0_SELECTIVE;
            true
        }
        exit::INVALID if exits::is_control_write(guest) => false,
        exit::INVALID => {
            guest.vmcb.exit_code = exit::ARCHITECTURAL_INVALID;
            true
        }
        _ => control.wants(code),
    };
    if is_guests {
        let vmcb = &guest.vmcb;
        let (code, infos) = (vmcb.exit_code, (vmcb.exit_info_1, vmcb.exit_info_2));
        let delivering = events::take_delivery(guest);
        leave(guest, code, infos, delivering);
    }
    is_guests
}

/// The exit code that the instruction has which QEMU takes for a read of CR0, or for RDTSC.
fn own_code(guest: &Guest) -> u64 {
    let code = guest.vmcb.exit_code;
    let Some(instruction) = guest.instruction() else { return code };
    match (instruction.mnemonic(), instruction.op1_register()) {
        (Mnemonic::Rdtscp, _) => exit::RDTSCP,
        (Mnemonic::Mov, read) if read.is_cr() => exit::READ_CR0 + read.number() as u64,
        _ => code,
    }
}

/// One of those that the guest does not intercept.
pub fn let_through(guest: &mut Guest) {
    guest.svm.lets_through = true;
    step::again(guest);
    guest.svm.lets_through = false;
}

fn wants_msr(guest: &Guest, control: &Control) -> bool {
    let (number, writes) = (guest.registers.rcx as u32, guest.vmcb.exit_info_1 != 0);
    msr_is_intercepted(number, writes, |at| maps::byte(control.msr_permissions, at))
}

fn wants_selective(guest: &Guest, control: &Control) -> bool {
    let old = guest.vmcb.cr0;
    guest
        .instruction()
        .is_some_and(|mov| control.wants_selective(old, guest.register(mov.op1_register())))
}

/// Whether the exception that has just been raised is one of the guest's.
pub fn takes_exception(guest: &mut Guest, vector: u8) -> bool {
    let inner = guest.svm.inner.as_ref();
    if !inner.is_some_and(|inner| inner.control.wants_exception(vector)) {
        return false;
    }
    if vector == DEBUG {
        let bits = core::mem::take(&mut guest.happened);
        guest.debug.raise(bits);
    }
    let vmcb = &guest.vmcb;
    let has_error = matches!(vector, 8 | 10..=14 | 17 | 21);
    let info_1 = if has_error { vmcb.exit_info_1 } else { 0 };
    let info_2 = if vector == PAGE_FAULT { vmcb.exit_info_2 } else { 0 };
    let delivering = events::take_delivery(guest);
    leave(guest, exit::EXCEPTION + u64::from(vector), (info_1, info_2), delivering);
    true
}

/// Whether a triple fault is one of the guest's.
pub fn takes_shutdown(guest: &mut Guest) -> bool {
    let inner = guest.svm.inner.as_ref();
    let is_guests = inner.is_some_and(|inner| inner.control.wants(exit::SHUTDOWN));
    if is_guests {
        leave(guest, exit::SHUTDOWN, (0, 0), None);
    }
    is_guests
}

/// Whether INT n, INT3 or INTO of this vector, the next instruction, which has `bytes` bytes, is one of the guest's. Those two
/// are intercepted as their exceptions (APM vol. 2, 15.12.4 and 15.12.5), which QEMU's processor does not look at.
pub fn takes_software_interrupt(guest: &mut Guest, vector: u8, bytes: u64) -> bool {
    let Some(inner) = &guest.svm.inner else { return false };
    let is_int_n = bytes > 1;
    let code = if is_int_n { exit::INT_N } else { exit::EXCEPTION + u64::from(vector) };
    let is_guests = inner.control.wants(code);
    if is_guests {
        leave(guest, code, (0, 0), None);
    }
    is_guests
}

/// The guest continues after its VMRUN.
pub fn leave(guest: &mut Guest, code: u64, infos: (u64, u64), delivering: Option<Event>) {
    let injected = core::mem::take(&mut guest.svm.injected);
    let delivering = delivering.or(guest.event.filter(|_| injected));
    let next_rip = next_rip(guest, code, infos.1);
    let Some(inner) = guest.svm.inner.take() else { return };
    let mut state = State::of(guest.vmcb);
    let behind = match delivering {
        Some(Event::SoftwareInterrupt { .. }) => guest.software_interrupt_bytes,
        Some(Event::Exception { vector: BREAKPOINT | OVERFLOW, .. }) => guest.svm.rewind,
        _ => 0,
    };
    state.rip = state.rip.wrapping_sub(behind);
    state.efer = (state.efer & !(SCE | SVME)) | (u64::from(guest.sce) * SCE) | guest.svm.svme();
    (state.dr6, state.dr7) = (guest.debug.read(6), guest.debug.read(7));
    let left = Exit {
        code,
        info_1: infos.0,
        info_2: infos.1,
        delivering,
        state,
        int_control: inner.control.int_control,
        shadow: guest.in_shadow(),
        next_rip,
    };
    // SAFETY: the block that the guest has named at its VMRUN; identity mapped.
    let block = unsafe { &mut *(inner.block as *mut Vmcb) };
    left.write(&inner.control, block);
    if inner.control.nested_cr3.is_some() {
        block.pat = read_pat();
        // SAFETY: every x86-64 processor has the register; the value is the guest's.
        unsafe { write_msr(PAT, inner.pat) };
    }
    // CR2 and DR6 stay as they are: nothing puts them back.
    let back = State { cr2: state.cr2, cpl: 0, cr0: inner.host.cr0 | CR0_PE, ..inner.host };
    back.put(guest.vmcb);
    let vmcb = &mut guest.vmcb;
    (vmcb.msr_permissions, vmcb.io_permissions) = svm::map_addresses();
    (vmcb.int_state, vmcb.exit_int_info) = (0, 0);
    guest.sce = inner.sce;
    guest.svm.enabled = true;
    guest.svm.gif = false;
    guest.svm.rewind = 0;
    set_debug_registers(guest, state.dr6, DR7_ONE);
    guest.event = None;
    guest.after_ss = false;
    guest.software_interrupt_bytes = 0;
    guest.nmi_blocked = inner.nmi_blocked;
    guest.runs = Default::default();
    clock::set_nested_offset(0);
    if let Some(plugin) = &mut guest.plugin {
        plugin.goes_elsewhere();
    }
    guest.needs = guest.counting.pmu().enter_world(World::Host);
    step_behind_vmrun(guest, inner.host.rflags);
}

/// A guest that steps its VMRUN is stopped after the exit.
pub(super) fn step_behind_vmrun(guest: &mut Guest, rflags: u64) {
    guest.vmcb.rflags &= !RF;
    if rflags & TF != 0 {
        events::traps(guest, SINGLE_STEP, false);
    }
}

/// Where the nested guest continues after the instruction that was intercepted.
fn next_rip(guest: &Guest, code: u64, info_2: u64) -> u64 {
    if code == exit::PORT {
        return info_2;
    }
    if !is_of_instruction(code) {
        return 0;
    }
    let instruction = guest.instruction();
    instruction.map_or(0, |instruction| guest.vmcb.rip.wrapping_add(instruction.len() as u64))
}

fn read_pat() -> u64 {
    // SAFETY: every x86-64 processor has the register.
    unsafe { crate::payload::port::read_msr(PAT) }
}
