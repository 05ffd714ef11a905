//! The guest one instruction at a time: with the trap flag, or with a breakpoint behind instructions that show the flag,
//! hold traps back or would be stopped in their middle.

use super::free::ALWAYS;
use super::guest::{Guest, RF, TF};
use super::vmcb::{Event, Intercepts, exit};
use super::{breakpoint, bulk, events, exits, nested, retire, system_call};
use emulated_pmu::step::{self, Kind};
use iced_x86::Instruction;

const DEBUG: u64 = exit::EXCEPTION + 1;

/// Delivers what is pending, or else executes one instruction.
pub fn step(guest: &mut Guest) {
    if events::choose(guest) {
        deliver(guest);
    } else {
        instruction(guest);
    }
}

/// Delivers the pending event and stops at the first instruction of its handler.
fn deliver(guest: &mut Guest) {
    let from = guest.linear_rip();
    let vector = guest.event.map_or(0, Event::vector);
    // INT n is an instruction, whose branch has been recorded.
    let is_own = !matches!(guest.event, Some(Event::SoftwareInterrupt { .. }));
    let has_error = matches!(guest.event, Some(Event::Exception { error: Some(_), .. }));
    let Some(handler) = events::handler(guest, vector) else { return bulk::stay(guest, None) };
    let saved = breakpoint::set(guest, &[handler]);
    everything(guest);
    guest.enter(0);
    let hit = breakpoint::restore(guest, saved);
    let delivered = !guest.is_in_delivery();
    if is_own && delivered {
        retire::delivery(guest, from, handler);
    }
    if core::mem::take(&mut guest.without_resume) && delivered {
        // The frame: RIP, CS, RFLAGS; with an error code in front of it.
        let flags = guest.vmcb.rsp + 8 * (2 + u64::from(has_error));
        guest.change_word(flags, |flags| flags & !RF);
    }
    if !(guest.vmcb.exit_code == DEBUG && hit) {
        exits::handle(guest);
    }
}

/// Executes one instruction. It may find an interrupt in front of it; then that comes first.
pub fn instruction(guest: &mut Guest) {
    guest.stepped = guest.linear_rip();
    if !guest.needs.stepping() && guest.is_plain() {
        return trap(guest, None);
    }
    let Some(instruction) = guest.instruction() else { return trap(guest, None) };
    let overflow = guest.vmcb.rflags & 1 << 11 != 0;
    match step::kind(&instruction) {
        Kind::Repeated(_) | Kind::Shadow => to_next(guest, &instruction),
        Kind::SystemCall | Kind::SystemReturn(_) if settled(guest) => {
            emulate(guest, &instruction);
        }
        Kind::SoftwareInterrupt(vector) if vector > 1 && (vector != 4 || overflow) => {
            if settled(guest) {
                exits::software_interrupt(guest);
            }
        }
        Kind::SystemCall | Kind::SystemReturn(_) => {}
        _ => trap(guest, Some(&instruction)),
    }
}

/// SYSCALL or SYSRET.
fn emulate(guest: &mut Guest, instruction: &Instruction) {
    let ring = guest.ring();
    if system_call::emulate(guest, instruction) {
        retire::instruction(guest, ring, Some(instruction), &retire::Accesses::NONE);
    } else {
        // Its exception is the processor's matter.
        trap(guest, Some(instruction));
    }
}

fn everything(guest: &mut Guest) {
    let intercepts =
        ALWAYS | Intercepts::HLT | Intercepts::MWAIT | Intercepts::INTR | Intercepts::INT_N;
    guest.vmcb.set_intercepts(intercepts);
    guest.vmcb.exceptions = u32::MAX;
    guest.withhold_system_calls(false);
    nested::idle(guest);
}

/// Whether nothing comes in front of the next instruction. What comes is handled.
fn settled(guest: &mut Guest) -> bool {
    let rip = guest.linear_rip();
    let saved = breakpoint::set(guest, &[rip]);
    everything(guest);
    let resume = guest.vmcb.rflags & RF;
    guest.vmcb.rflags &= !RF;
    guest.enter(0);
    guest.vmcb.rflags |= resume;
    let hit = breakpoint::restore(guest, saved);
    let settled = guest.vmcb.exit_code == DEBUG && hit;
    if !settled {
        exits::handle(guest);
    }
    settled
}

/// With a breakpoint behind the instruction.
fn to_next(guest: &mut Guest, instruction: &Instruction) {
    let ring = guest.ring();
    let before = retire::Before::of(guest, instruction);
    let saved = breakpoint::set(guest, &[instruction.next_ip()]);
    everything(guest);
    // Nothing but our own breakpoint looks at it, and that is behind this instruction.
    guest.vmcb.rflags &= !RF;
    guest.enter(0);
    let hit = breakpoint::restore(guest, saved);
    if guest.linear_rip() != instruction.next_ip() {
        // Interrupted: it goes on later, and then has to be seen again.
        guest.vmcb.rflags &= !RF;
    } else {
        let accesses = before.accesses(guest, instruction);
        retire::instruction(guest, ring, Some(instruction), &accesses);
    }
    if !(guest.vmcb.exit_code == DEBUG && hit) {
        exits::handle(guest);
    }
}

/// With the trap flag.
fn trap(guest: &mut Guest, instruction: Option<&Instruction>) {
    let ring = guest.ring();
    let kind = instruction.map_or(Kind::Plain, step::kind);
    let accesses = instruction.map_or(retire::Accesses::NONE, |instruction| {
        retire::Before::of(guest, instruction).accesses(guest, instruction)
    });
    let own = guest.vmcb.rflags & TF;
    let dr6 = guest.vmcb.dr6;
    guest.vmcb.rflags |= TF;
    guest.vmcb.dr6 = breakpoint::DR6_IDLE;
    everything(guest);
    guest.enter(0);
    let happened = guest.vmcb.dr6;
    guest.vmcb.dr6 = dr6;
    let done = guest.vmcb.exit_code == DEBUG && happened & breakpoint::SINGLE_STEP != 0;
    // These have replaced the flag by the one that they found in memory.
    if !(done && matches!(kind, Kind::PopFlags | Kind::InterruptReturn)) {
        guest.vmcb.rflags = guest.vmcb.rflags & !TF | own;
    }
    if !done {
        if guest.vmcb.exit_code == DEBUG {
            guest.vmcb.dr6 = happened;
        }
        return exits::handle(guest);
    }
    if kind == Kind::PushFlags && own == 0 {
        let stack = guest.linear_stack();
        guest.change_word(stack, |flags| flags & !TF);
    }
    if kind == Kind::InterruptReturn {
        guest.nmi_blocked = false;
    }
    let taken = retire::instruction(guest, ring, instruction, &accesses);
    let trapped = own != 0 && (taken || !guest.needs.branch_trap);
    if trapped || happened & 0xf != 0 {
        let step = if trapped { breakpoint::SINGLE_STEP } else { 0 };
        guest.vmcb.dr6 = happened & !breakpoint::SINGLE_STEP | step;
        events::reflect(guest, 1);
    }
}
