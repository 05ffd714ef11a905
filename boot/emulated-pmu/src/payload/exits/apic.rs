//! The guest writes to its local APIC, whose page is guarded: see [`crate::payload::processors`].

use crate::payload::guest::Guest;
use crate::payload::processors::{self, guard};
use crate::payload::{events, lapic, retire, step};
use emulated_pmu::ipi::{Command, Kind};
use emulated_pmu::vmcb::exit;
use iced_x86::{Code, Instruction};

const PAGE: u64 = 4096;
/// A write that was refused: AMD APM vol. 2, 15.25.6.
const WRITE: u64 = 1 << 1;

/// Whether the exit is such a write.
pub fn is_write(guest: &Guest) -> bool {
    let vmcb = &guest.vmcb;
    vmcb.exit_code == exit::NESTED_PAGE_FAULT
        && vmcb.exit_info_1 & WRITE != 0
        && guard::page().is_some_and(|page| vmcb.exit_info_2 & !(PAGE - 1) == page)
}

/// Lets the write through, but for one that starts another processor or sends it an NMI.
pub(super) fn write(guest: &mut Guest) {
    let register = guest.vmcb.exit_info_2 % PAGE;
    guest.event = events::take_delivery(guest);
    let instruction = guest.instruction();
    let value = instruction.as_ref().and_then(|instruction| stored(guest, instruction));
    let Some((instruction, value)) = instruction.zip(value) else {
        return guard::lift(|| step::again(guest));
    };
    let shift = guest.calibration.shift;
    let write = |value| lapic::write_as_guest(register, value);
    let is_command = register == lapic::COMMAND;
    let command = Command::new(value, if is_command { lapic::destination() } else { 0 });
    match command.kind() {
        // What is sent is another command, or none.
        Kind::Startup(vector) if is_command => {
            processors::start(command, vector, shift, |own| write(command.with_vector(own)));
        }
        Kind::Nmi if is_command => processors::send_nmi(command),
        // Where accesses are counted, the instruction has to be executed.
        kind => {
            if is_command {
                if kind == Kind::Init {
                    processors::reset(command);
                }
                processors::signal(command);
            }
            if guest.needs.stepping() || guest.needs.occurrences.has_occurrences() {
                return guard::lift(|| step::again(guest));
            }
            write(value);
        }
    }
    retire::plain(guest, None);
    guest.skip(instruction.len() as u64);
}

/// What a plain store of 32 bits stores.
fn stored(guest: &Guest, instruction: &Instruction) -> Option<u32> {
    match instruction.code() {
        Code::Mov_rm32_r32 | Code::Mov_moffs32_EAX => {
            Some(guest.register(instruction.op1_register()) as u32)
        }
        Code::Mov_rm32_imm32 => Some(instruction.immediate32()),
        _ => None,
    }
}
