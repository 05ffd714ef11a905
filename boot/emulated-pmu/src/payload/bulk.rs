//! The guest while instructions are counted, at full speed: the clock states how many there were. The alarm clock stops
//! it shortly before an overflow.

use super::free::{self, ALWAYS, returns};
use super::guest::Guest;
use super::{
    breakpoint, clock, debug, events, exits, nested_paging, processors, retire, step, system_call,
};
use emulated_pmu::debug_registers::{Placed, Which};
use emulated_pmu::step::is_privileged;
use emulated_pmu::vmcb::{Event, Intercepts, exit};
use pmu_model::{Occurrence, Ring};

const INVALID_OPCODE: u64 = exit::EXCEPTION + 6;
const DEBUG: u64 = exit::EXCEPTION + 1;
const NO_DEVICE: u64 = exit::EXCEPTION + 7;
const GENERAL_PROTECTION: u64 = exit::EXCEPTION + 13;

/// Exceptions that the translator may have counted as instructions: #UD, #NM, #GP, and #TS, #NP and #SS, which the gate of
/// an INT n raises.
const MISCOUNTED: u32 = 1 << 6 | 1 << 7 | 0b1111 << 10;
const PAGE_FAULT_VECTOR: u8 = 14;
const PAGE_FAULT: u32 = 1 << PAGE_FAULT_VECTOR;
/// Exceptions that stop a repeated string instruction in its middle: #PF and #AC in addition to those. The clock does not count the
/// iteration, which the plugin has counted.
const OF_STRINGS: u32 = PAGE_FAULT | 1 << 17;
/// STI.
const STI: u8 = 0xfb;

/// Runs the guest until the alarm, or whatever comes first. `left`: instructions until the next overflow.
pub fn enter(guest: &mut Guest, left: Option<u64>) {
    events::choose(guest);
    let ring = guest.next_ring();
    intercept(guest, ring);
    let placed = if guest.is_watched(ring) {
        nested_paging::watch(guest)
    } else {
        nested_paging::idle(guest);
        breakpoint::arm_guests(guest, Which::All)
    };
    run(guest, ring, left, &placed);
}

/// The same, within one page; or one step, if that cannot be.
pub fn enter_in_page(guest: &mut Guest, left: Option<u64>) {
    let Some(placed) = nested_paging::enter_in_page(guest) else { return step::step(guest) };
    let ring = guest.ring();
    intercept(guest, ring);
    // Nothing may continue elsewhere in this page unseen.
    guest.vmcb.add_intercepts(Intercepts::INT_N);
    guest.vmcb.exceptions = u32::MAX;
    run(guest, ring, left, &placed);
}

fn run(guest: &mut Guest, ring: Ring, left: Option<u64>, placed: &Placed) {
    let left_ns = left.and_then(|left| nanoseconds(guest, left));
    let alarm_ns = alarm(guest, left_ns);
    let withheld = guest.tells_rings_apart();
    let counted = system_call::without_segment(guest, withheld, |guest| guest.enter(alarm_ns));
    events::stop_alarm(guest);
    let foreseen = take_back_foreseen(guest);
    let ended = step::behind_iteration(guest);
    let retired = counted.saturating_sub(foreseen) + ended;
    if guest.plugin.is_some() && guest.needs.stepping_in(ring) {
        retire::counted(guest, ring, retired, None);
    } else {
        account(guest, ring, retired);
    }
    let hit = breakpoint::happened(guest, placed);
    match guest.vmcb.exit_code {
        DEBUG if hit => step::instruction(guest),
        DEBUG if is_debug_behind_ss(guest) => events::debug_behind_ss(guest),
        exit::NESTED_PAGE_FAULT if nested_paging::is_ours(guest) => {
            if nested_paging::fault(guest) {
                step::step(guest);
            }
        }
        _ => exits::handle(guest),
    }
}

fn intercept(guest: &mut Guest, ring: Ring) {
    let split = guest.tells_rings_apart();
    let mut intercepts =
        ALWAYS | Intercepts::HLT | Intercepts::MWAIT | returns(guest) | free::yields();
    // Nothing that is delivered leads to a ring that is counted by itself, and no record is to have it.
    let is_split_user = split && ring == Ring::User;
    let lets_in = !is_split_user && !guest.needs.precise;
    let sees_all = lets_in && guest.sees_deliveries();
    if !sees_all || guest.timer.is_watched() || guest.needs.occurrences.has(Occurrence::Interrupt) {
        intercepts |= Intercepts::INTR;
    }
    let mut exceptions = MISCOUNTED | free::DEBUG;
    match ring {
        // Whatever leaves the ring.
        Ring::User if split => {
            intercepts |= Intercepts::INT_N | Intercepts::ICEBP;
            exceptions = u32::MAX;
        }
        Ring::Kernel if split => intercepts |= Intercepts::IRET,
        Ring::User | Ring::Kernel => {}
    }
    if guest.plugin.is_some() && guest.needs.stepping_in(ring) {
        // It follows the code, and must be told wherever that is left otherwise than by a branch.
        intercepts |= Intercepts::INT_N | Intercepts::ICEBP;
        exceptions = u32::MAX;
    } else if guest.plugin.is_some() {
        exceptions |= OF_STRINGS;
    }
    let sees_faults = lets_in && guest.sees_page_faults();
    let handler = sees_faults.then(|| fault_handler(guest)).flatten();
    if sees_all || handler.is_some() {
        exceptions &= !PAGE_FAULT;
    }
    if let Some(plugin) = &mut guest.plugin {
        plugin.set_fault_handler(handler);
    }
    guest.vmcb.set_intercepts(intercepts);
    guest.vmcb.exceptions = exceptions;
    events::leave_for_interrupts(guest);
    rewind_if_undelivered(guest);
    careful(guest);
    guest.withhold_system_calls(split);
}

/// Where the guest handles page faults, if it has a gate for them. A guest that changes the gate has to leave once before that is known.
fn fault_handler(guest: &Guest) -> Option<u64> {
    events::gate(guest, PAGE_FAULT_VECTOR).filter(|gate| gate.is_usable).map(|gate| gate.handler)
}

/// While the guest has breakpoints, interrupts are delivered by [`step`] alone: QEMU sets RF in their frames, and the
/// instruction that was interrupted would continue without its breakpoint. While it watches data, everything is: QEMU loses an
/// event whose frame meets a breakpoint.
pub fn careful(guest: &mut Guest) {
    if guest.debug.is_active() {
        guest.vmcb.add_intercepts(Intercepts::INTR);
    }
    if guest.debug.watches_data() {
        let deliveries = Intercepts::INTR | Intercepts::INT_N | Intercepts::ICEBP;
        guest.vmcb.add_intercepts(deliveries);
        guest.vmcb.exceptions = u32::MAX;
    }
}

/// The RIP that an INT n pushes is already after it. If its gate or stack does not take it, the exception is of the INT,
/// and the guest has to leave for that to be set right: see [`events::reflect`].
pub fn rewind_if_undelivered(guest: &mut Guest) {
    if matches!(guest.event, Some(Event::SoftwareInterrupt { .. })) {
        guest.vmcb.exceptions = u32::MAX;
    }
}

/// Whether the exit is a debug exception right after a load of SS, where QEMU's translator does not hold it back.
pub fn is_debug_behind_ss(guest: &Guest) -> bool {
    guest.vmcb.exit_code == DEBUG && guest.in_shadow() && !is_behind_sti(guest)
}

/// Whether the interrupt shadow is that of an STI, and not of a load of SS.
fn is_behind_sti(guest: &Guest) -> bool {
    let mut byte = [0];
    guest.read(guest.linear_rip().wrapping_sub(1), &mut byte) == 1 && byte == [STI]
}

/// Nanoseconds for the alarm clock, so that it rings when `left` instructions have been executed, or up to a tick earlier.
fn nanoseconds(guest: &Guest, left: u64) -> Option<u64> {
    let calibration = &guest.calibration;
    let nanoseconds = left.checked_mul(1 << calibration.shift)?;
    nanoseconds.checked_add(calibration.before_entry)
}

/// Sets the alarm clock for the guest run, to these nanoseconds or the end of the processor's turn. 0: it does not ring.
pub fn alarm(guest: &mut Guest, left_ns: Option<u64>) -> u64 {
    let turn = processors::turns::left(guest);
    let earliest = left_ns.into_iter().chain(turn).min();
    earliest.and_then(|earliest| guest.alarm.nanoseconds(earliest)).unwrap_or(0)
}

/// As [`foreseen`]; such an instruction takes no time either.
pub fn take_back_foreseen(guest: &Guest) -> u64 {
    let foreseen = foreseen(guest);
    clock::take_back(foreseen << guest.calibration.shift);
    foreseen
}

/// 1 if the instruction that made the guest leave was counted by the translator and is not to be: it has not retired, or
/// is counted when its emulation has succeeded.
fn foreseen(guest: &Guest) -> u64 {
    if guest.software_interrupt_bytes == 0 && guest.delivers_software_interrupt() {
        return 1;
    }
    let counted = match guest.vmcb.exit_code {
        NO_DEVICE | exit::INT_N => true,
        INVALID_OPCODE => !guest
            .instruction()
            .is_some_and(|instruction| system_call::is_refused_late(guest, &instruction)),
        GENERAL_PROTECTION => !guest.is_in_delivery() && is_foreseen(guest),
        _ => false,
    };
    u64::from(counted)
}

/// Whether the translator knew that the instruction would raise #GP: a privileged one outside ring 0.
fn is_foreseen(guest: &Guest) -> bool {
    guest.ring() == Ring::User
        && guest.instruction().is_some_and(|instruction| is_privileged(&instruction))
}

/// Tells the PMU how many instructions retired.
pub fn account(guest: &mut Guest, ring: Ring, retired: u64) {
    if retired == 0 {
        return;
    }
    let outcome = guest.counting.retire(ring, retired);
    if outcome.late_instructions > 0 {
        debug::line(format_args!(
            "an overflow was detected {} instructions late",
            outcome.late_instructions
        ));
    }
    events::deliver_pmi(guest, outcome);
}
