//! The guest accesses its local APIC, whose page is guarded: see [`crate::payload::processors`] and [`crate::payload::ibs`].

use crate::payload::guest::Guest;
use crate::payload::processors::{self, guard};
use crate::payload::{events, lapic, retire, step};
use emulated_pmu::extended_apic::ExtendedApic;
use emulated_pmu::ipi::{Command, Kind};
use emulated_pmu::modify::modified;
use emulated_pmu::vmcb::exit;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use pmu_model::Occurrence;

const PAGE: u64 = 4096;
/// A write that was refused: AMD APM vol. 2, 15.25.6.
const WRITE: u64 = 1 << 1;

/// Whether the exit is an access that was refused.
pub fn is_access(guest: &Guest) -> bool {
    let vmcb = &guest.vmcb;
    vmcb.exit_code == exit::NESTED_PAGE_FAULT
        && (vmcb.exit_info_1 & WRITE != 0 || guard::hides())
        && guard::page().is_some_and(|page| vmcb.exit_info_2 & !(PAGE - 1) == page)
}

/// Handles it.
pub(super) fn handle(guest: &mut Guest) {
    guest.event = events::take_delivery(guest);
    let register = guest.vmcb.exit_info_2 % PAGE;
    if guard::hides() && ExtendedApic::has(register) && modify(guest, register) {
        return;
    }
    match guest.vmcb.exit_info_1 & WRITE {
        0 => read(guest),
        _ => write(guest),
    }
}

/// Whether an instruction must be executed, as its accesses are counted, or a record or a sample is of it.
fn counts_accesses(guest: &Guest) -> bool {
    guest.needs.stepping() || guest.needs.occurrences.has_occurrences() || guest.awaiting > 0
}

/// Changes one of the extended registers for the guest, if that is what its instruction does.
fn modify(guest: &mut Guest, register: u64) -> bool {
    let Some(instruction) = guest.instruction() else { return false };
    let in_memory = instruction.op0_kind() == OpKind::Memory;
    if !in_memory || instruction.memory_size().size() != 4 {
        return false;
    }
    let operand = match (instruction.op_count(), instruction.op1_kind()) {
        (1, _) => 0,
        (_, OpKind::Register) => guest.register(instruction.op1_register()) as u32,
        _ => match instruction.try_immediate(1) {
            Ok(immediate) => immediate as u32,
            Err(_) => return false,
        },
    };
    // A bit string may lie elsewhere.
    let far = instruction.op1_kind() == OpKind::Register && operand > 31;
    let of_bits = matches!(instruction.mnemonic(), Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    let old = guest.extended_apic.read(register, || 0);
    let Some((new, flags)) = modified(instruction.mnemonic(), old, operand, guest.vmcb.rflags)
        .filter(|_| !(far && of_bits))
    else {
        return false;
    };
    guest.extended_apic.write(register, new);
    guest.vmcb.rflags = flags;
    retire::plain(guest, Some(Occurrence::LoadStore));
    guest.skip(instruction.len() as u64);
    true
}

/// Reads for the guest, or lets it read.
fn read(guest: &mut Guest) {
    let register = guest.vmcb.exit_info_2 % PAGE;
    let instruction = guest.instruction();
    let loaded = instruction.as_ref().and_then(loaded);
    let is_extended = ExtendedApic::has(register);
    let Some((instruction, to)) =
        instruction.zip(loaded).filter(|_| is_extended || !counts_accesses(guest))
    else {
        return guard::lift(|| step::again(guest));
    };
    let value = guest.extended_apic.read(register, || lapic::read_as_guest(register));
    guest.set_register(to, value.into());
    retire::plain(guest, is_extended.then_some(Occurrence::Load));
    guest.skip(instruction.len() as u64);
}

/// Lets the write through, but for one that starts another processor or sends it an NMI. Logical destinations are noted.
fn write(guest: &mut Guest) {
    let register = guest.vmcb.exit_info_2 % PAGE;
    write_to(guest, register);
    if matches!(register, lapic::DESTINATION | lapic::DESTINATION_FORMAT) {
        processors::note_destination();
    }
}

fn write_to(guest: &mut Guest, register: u64) {
    let instruction = guest.instruction();
    let value = instruction.as_ref().and_then(|instruction| stored(guest, instruction));
    let Some((instruction, value)) = instruction.zip(value) else {
        return guard::lift(|| step::again(guest));
    };
    if guard::hides() && guest.extended_apic.write(register, value) {
        retire::plain(guest, Some(Occurrence::Store));
        return guest.skip(instruction.len() as u64);
    }
    let shift = guest.calibration.shift;
    let write = |value| lapic::write_as_guest(register, value);
    let is_command = register == lapic::COMMAND;
    let command = Command::new(value, if is_command { lapic::destination() } else { 0 });
    match command.kind() {
        // What is sent is another command, or none.
        Kind::Startup(vector) if is_command => {
            processors::start(command, vector, shift, |own| write(command.with_vector(own)));
        }
        Kind::Nmi if is_command && processors::are_shared() => processors::send_nmi(command),
        // Where accesses are counted, the instruction must be executed.
        kind => {
            if is_command {
                if kind == Kind::Init {
                    processors::reset(command);
                }
                processors::signal(command);
            }
            if counts_accesses(guest) {
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

/// Where a plain load of 32 bits loads to.
fn loaded(instruction: &Instruction) -> Option<Register> {
    match instruction.code() {
        Code::Mov_r32_rm32 => Some(instruction.op0_register()),
        Code::Mov_EAX_moffs32 => Some(Register::EAX),
        _ => None,
    }
}
