//! The guest one instruction at a time: with the trap flag, or with a breakpoint after instructions that show the flag,
//! hold traps back or would be stopped in their middle.

use super::accesses::Before;
use super::free::ALWAYS;
use super::guest::{Guest, RF, TF};
use super::plugin::Plugin;
use super::{breakpoint, bulk, events, exits, nested_paging, precise, retire, timer};
use emulated_pmu::debug_registers::{SINGLE_STEP, Which};
use emulated_pmu::step::{self, Kind, StringOperation};
use emulated_pmu::vmcb::{Event, Intercepts, exit};
use iced_x86::{Instruction, Register};
use pmu_model::Ring;

const DEBUG: u64 = exit::EXCEPTION + 1;

/// Delivers what is pending, or else executes one instruction.
pub fn step(guest: &mut Guest) {
    if guest.event.is_none() && guest.held != 0 && !guest.after_ss {
        events::traps(guest, 0, false);
    }
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
    // QEMU sets RF in the frame of an interrupt as in that of a fault.
    let is_interrupt = matches!(guest.event, Some(Event::Interrupt { .. } | Event::Nmi));
    let clears_resume = is_interrupt && guest.vmcb.rflags & RF == 0;
    let has_error = matches!(guest.event, Some(Event::Exception { error: Some(_), .. }));
    let Some(handler) = events::handler(guest, vector) else { return bulk::enter(guest, None) };
    let placed = breakpoint::arm(guest, &[handler], Which::None).unwrap_or_default();
    everything(guest);
    guest.enter_to_step();
    let hit = breakpoint::happened(guest, &placed);
    let delivered = !guest.is_in_delivery();
    if is_own && delivered {
        retire::delivery(guest, from, handler);
    }
    // The frame: RIP, CS, RFLAGS, RSP, SS; with an error code in front of it.
    let frame = guest.vmcb.rsp + 8 * u64::from(has_error);
    if clears_resume && delivered {
        guest.clear_stored_bit(frame + 16, RF);
    }
    if delivered {
        guest.after_ss = false;
        let words = (guest.vmcb.rsp..frame + 40).step_by(8);
        guest.held |= words.fold(0, |bits, word| bits | guest.debug.on_store(word));
    }
    if !(guest.vmcb.exit_code == DEBUG && hit) {
        exits::handle(guest);
    }
}

/// Executes one instruction. It may find an interrupt in front of it, or a breakpoint of the guest's; then that comes
/// first.
pub fn instruction(guest: &mut Guest) {
    guest.stepped = guest.linear_rip();
    let suppressed = guest.after_ss && guest.suppresses_breakpoint_behind_ss();
    if guest.vmcb.rflags & RF == 0 && !suppressed {
        let hits = guest.debug.on_instruction(guest.linear_rip());
        if hits != 0 {
            if completed(guest) {
                let held = core::mem::take(&mut guest.held);
                events::debug(guest, hits | held);
            }
            return;
        }
    }
    if !needs_instruction(guest) && guest.is_plain() {
        return trap(guest, None);
    }
    let Some(instruction) = guest.instruction() else { return trap(guest, None) };
    precise::keep_interrupts_out(guest, &instruction);
    if timer::is_touched(guest, &instruction) {
        guest.timer.release();
    }
    let overflow = guest.vmcb.rflags & 1 << 11 != 0;
    match step::kind(&instruction) {
        Kind::Repeated(_) if guest.vmcb.rflags & TF != 0 || guest.debug.watches_data() => {
            iterate(guest, &instruction);
        }
        Kind::Repeated(_) | Kind::Shadow => to_next(guest, &instruction),
        Kind::SystemCall | Kind::SystemReturn(_) if completed(guest) => {
            emulate(guest, &instruction);
        }
        Kind::SoftwareInterrupt(vector) if vector > 1 && (vector != 4 || overflow) => {
            if completed(guest) {
                exits::software_interrupt(guest);
            }
        }
        Kind::SystemCall | Kind::SystemReturn(_) => {}
        _ => trap(guest, Some(&instruction)),
    }
}

/// Whether even an instruction that needs no special care must be decoded: for the model, for a record, or because only
/// branches trap.
fn needs_instruction(guest: &Guest) -> bool {
    let needs = &guest.needs;
    let modelled = guest.plugin.is_none() && needs.stepping_in(guest.ring());
    modelled || needs.precise || needs.branch_trap
}

/// SYSCALL or SYSRET.
fn emulate(guest: &mut Guest, instruction: &Instruction) {
    let ring = guest.ring();
    if super::system_call::emulate(guest, instruction) {
        system_call(guest, ring, instruction);
    } else {
        // Its exception is the processor's matter.
        trap(guest, Some(instruction));
    }
}

/// SYSCALL or SYSRET has been emulated. Whether it is stepped is for the flags that it has set: AMD APM vol. 2, 13.1.4.
pub fn system_call(guest: &mut Guest, ring: Ring, instruction: &Instruction) {
    retire::far(guest, ring, instruction, None);
    let steps = guest.vmcb.rflags & TF != 0;
    events::traps(guest, if steps { SINGLE_STEP } else { 0 }, false);
}

fn everything(guest: &mut Guest) {
    let intercepts = ALWAYS
        | Intercepts::HLT
        | Intercepts::MWAIT
        | Intercepts::INTR
        | Intercepts::INT_N
        | Intercepts::ICEBP;
    guest.vmcb.set_intercepts(intercepts);
    guest.vmcb.exceptions = u32::MAX;
    guest.withhold_system_calls(false);
    nested_paging::idle(guest);
}

/// A write to a control register that has been looked at: executes it with the processor's own effects.
pub fn control_write(guest: &mut Guest) {
    guest.stepped = guest.linear_rip();
    guest.lets_control_writes = true;
    let instruction = guest.instruction();
    trap(guest, instruction.as_ref());
    guest.lets_control_writes = false;
}

/// An instruction that has been looked at when it made the guest leave: executes it.
pub fn again(guest: &mut Guest) {
    guest.stepped = guest.linear_rip();
    let instruction = guest.instruction();
    trap(guest, instruction.as_ref());
}

/// Whether nothing comes in front of the next instruction. What comes is handled.
fn completed(guest: &mut Guest) -> bool {
    let rip = guest.linear_rip();
    let placed = breakpoint::arm(guest, &[rip], Which::None).unwrap_or_default();
    everything(guest);
    let resume = guest.vmcb.rflags & RF;
    guest.vmcb.rflags &= !RF;
    guest.enter_to_step();
    guest.vmcb.rflags |= resume;
    let hit = breakpoint::happened(guest, &placed);
    let completed = guest.vmcb.exit_code == DEBUG && hit;
    if !completed {
        exits::handle(guest);
    }
    completed
}

/// With a breakpoint after the instruction, and the guest's on data, if there is room.
fn to_next(guest: &mut Guest, instruction: &Instruction) {
    let ring = guest.ring();
    let before = Before::of(guest, instruction);
    let own = [instruction.next_ip()];
    let placed = breakpoint::arm(guest, &own, Which::Data)
        .or_else(|| breakpoint::arm(guest, &own, Which::None))
        .unwrap_or_default();
    everything(guest);
    let flag = guest.vmcb.rflags & TF;
    // Nothing but our own breakpoint looks at RF, and that is behind this instruction.
    guest.vmcb.rflags &= !(RF | TF);
    let left = |guest: &Guest| guest.registers.rcx & StringOperation::count_mask(instruction);
    let count = left(guest);
    guest.enter_to_step();
    guest.vmcb.rflags |= flag;
    breakpoint::happened(guest, &placed);
    let iterated = matches!(step::kind(instruction), Kind::Repeated(_)) && left(guest) != count;
    if guest.linear_rip() == instruction.ip() && iterated && is_between(guest.vmcb.exit_code) {
        if left(guest) == 0 {
            guest.tick();
            goes_over(guest, instruction);
        } else {
            retire::unfinished(guest, ring, instruction, &before);
            return behind_iteration_with_breakpoint(guest);
        }
    }
    if guest.linear_rip() != instruction.next_ip() {
        retire::unfinished(guest, ring, instruction, &before);
        return interrupted(guest, instruction);
    }
    let bits = core::mem::take(&mut guest.happened);
    retire::instruction(guest, ring, Some(instruction), &before);
    let steps = flag != 0 && !guest.needs.branch_trap;
    let loads_ss = instruction.op0_register() == Register::SS;
    events::traps(guest, bits | if steps { SINGLE_STEP } else { 0 }, loads_ss);
    // A debug exception comes before an interrupt, which waits.
    if guest.vmcb.exit_code != DEBUG && guest.event.is_none() {
        exits::handle(guest);
    }
}

/// A repeated instruction did not end: it continues later, and then must be seen again, unless the guest's
/// breakpoint on it has been met; the hypervisor has none there then.
fn interrupted(guest: &mut Guest, instruction: &Instruction) {
    if guest.debug.on_instruction(instruction.ip()) != 0 {
        guest.vmcb.rflags |= RF;
    } else {
        guest.vmcb.rflags &= !RF;
    }
    exits::handle(guest);
}

/// What came after an iteration that was not the last, and finds RF set. The hypervisor must not miss the instruction when
/// it continues.
fn behind_iteration_with_breakpoint(guest: &mut Guest) {
    guest.vmcb.rflags |= RF;
    if nested_paging::is_candidate(guest) {
        guest.returns.expect(guest.linear_rip());
    }
    exits::handle(guest);
}

/// One iteration of a repeated instruction, which is stepped, or whose data is watched: an exception comes after each.
fn iterate(guest: &mut Guest, instruction: &Instruction) {
    let ring = guest.ring();
    let before = Before::of(guest, instruction);
    let placed = breakpoint::arm_guests(guest, Which::Data);
    everything(guest);
    let flag = guest.vmcb.rflags & TF;
    guest.vmcb.rflags = guest.vmcb.rflags & !RF | TF;
    guest.enter_to_step();
    guest.vmcb.rflags = guest.vmcb.rflags & !TF | flag;
    breakpoint::happened(guest, &placed);
    if guest.vmcb.exit_code != DEBUG {
        retire::unfinished(guest, ring, instruction, &before);
        return interrupted(guest, instruction);
    }
    let bits = core::mem::take(&mut guest.happened) & !SINGLE_STEP;
    let left = guest.registers.rcx & StringOperation::count_mask(instruction);
    if guest.linear_rip() == instruction.next_ip() || left == 0 {
        goes_over(guest, instruction);
        retire::instruction(guest, ring, Some(instruction), &before);
    } else {
        retire::unfinished(guest, ring, instruction, &before);
        // SDM vol. 3, 17.3.1.1: set in the frame of a trap after any iteration but the last.
        guest.vmcb.rflags |= RF;
    }
    let steps = flag != 0 && !guest.needs.branch_trap;
    events::traps(guest, bits | if steps { SINGLE_STEP } else { 0 }, false);
}

/// Whether the exit came between two instructions, or between two iterations of a repeated one.
fn is_between(code: u64) -> bool {
    matches!(code, DEBUG | exit::INTR | exit::VIRTUAL_IRQ | exit::NMI)
}

/// An exit after an iteration of a repeated string instruction, at full speed: the last iteration ends it, where QEMU goes
/// back to it once more. After any other one RF is set in the frame of what comes (SDM vol. 3, 17.3.1.1). Returns the
/// instructions that this makes retire.
pub fn behind_iteration(guest: &mut Guest) -> u64 {
    let open = guest.plugin.as_ref().is_some_and(Plugin::has_open_string);
    if !is_between(guest.vmcb.exit_code) || !open {
        return 0;
    }
    let Some(instruction) = guest.instruction() else { return 0 };
    if guest.registers.rcx & StringOperation::count_mask(&instruction) != 0 {
        guest.vmcb.rflags |= RF;
        return 0;
    }
    // QEMU has not looked at the count again, which takes as long as an iteration. Who steps himself sees each.
    if guest.vmcb.exit_code != DEBUG {
        guest.tick();
    }
    goes_over(guest, &instruction);
    1
}

/// The guest goes over a repeated instruction whose count is 0.
fn goes_over(guest: &mut Guest, instruction: &Instruction) {
    guest.plugin.iter_mut().for_each(Plugin::end_open_string);
    guest.vmcb.rip = guest.vmcb.rip.wrapping_add(instruction.next_ip() - guest.linear_rip());
    guest.vmcb.rflags &= !RF;
}

/// With the trap flag.
fn trap(guest: &mut Guest, instruction: Option<&Instruction>) {
    let ring = guest.ring();
    let kind = instruction.map_or(Kind::Plain, step::kind);
    let before =
        instruction.map_or_else(Before::nothing, |instruction| Before::of(guest, instruction));
    let own = guest.vmcb.rflags & TF;
    let placed = breakpoint::arm_guests(guest, Which::Data);
    guest.vmcb.rflags |= TF;
    everything(guest);
    guest.enter_to_step();
    breakpoint::happened(guest, &placed);
    // A breakpoint on a port comes without the step.
    let done = guest.vmcb.exit_code == DEBUG && guest.happened != 0;
    // These have replaced the flag by the one that they found in memory.
    if !(done && matches!(kind, Kind::PopFlags | Kind::InterruptReturn)) {
        guest.vmcb.rflags = guest.vmcb.rflags & !TF | own;
    }
    if !done {
        bulk::take_back_foreseen(guest);
        return exits::handle(guest);
    }
    let bits = core::mem::take(&mut guest.happened) & !SINGLE_STEP;
    if kind == Kind::PushFlags && own == 0 {
        let stack = guest.linear_stack();
        guest.clear_stored_bit(stack, TF);
    }
    if kind == Kind::InterruptReturn {
        events::end_nmi(guest);
        guest.returns.happened(guest.linear_rip());
    }
    let taken = retire::instruction(guest, ring, instruction, &before);
    let steps = own != 0 && (taken || !guest.needs.branch_trap);
    events::traps(guest, bits | if steps { SINGLE_STEP } else { 0 }, false);
}
