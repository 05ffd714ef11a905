//! PEBS records and AMD's samples: the model says when and what, this is where and of which instruction.

use super::clock;
use super::events;
use super::guest::Guest;
use super::memory;
use super::vector_registers::{upper_halves, vectors};
use emulated_pmu::step::{self, Kind};
use iced_x86::{Instruction, Register};
use pmu_model::uarch::Access;
use pmu_model::{Branch, GuestMemory, Outcome, PageSize, Retirement, Sampled};

/// The general registers in the order of their encoding.
const REGISTERS: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The guest's memory, through its own page tables, or by its physical addresses, which are the machine's.
struct Memory<'a>(&'a Guest);

impl GuestMemory for Memory<'_> {
    fn read(&mut self, linear: u64) -> Option<u64> {
        self.0.read_word(linear)
    }

    fn write(&mut self, linear: u64, value: u64) -> Option<()> {
        self.0.write_word(linear, value)
    }

    fn write_physical(&mut self, physical: u64, value: u64) -> Option<()> {
        memory::write_physical(physical, value)
    }
}

/// Instructions for which interrupts of devices wait, at most.
const WAIT: u8 = 16;

/// Before each guest run. Between an overflow and its record a processor executes an instruction or a few, and seldom has an
/// interrupt there. The machine's devices continue while the hypervisor works, so here it would be often; and a system that
/// switches the counter off in its handler loses the record. So interrupts wait for a few instructions.
pub fn begin(guest: &mut Guest) {
    let ring = guest.next_ring();
    let awaits = guest.needs.precise && guest.counting.peek().awaits_record(ring);
    guest.awaiting = if awaits { guest.awaiting.saturating_add(1) } else { 0 };
}

/// Whether interrupts of devices wait.
pub fn holds_interrupts(guest: &Guest) -> bool {
    (1..=WAIT).contains(&guest.awaiting)
}

/// Before `instruction` is stepped. One that touches CR8 does not keep interrupts out, nor one that may last.
pub fn keep_interrupts_out(guest: &mut Guest, instruction: &Instruction) {
    let touches = [instruction.op0_register(), instruction.op1_register()].contains(&Register::CR8);
    let lasts = matches!(step::kind(instruction), Kind::Repeated(_));
    guest.keeps_interrupts_out = holds_interrupts(guest) && !touches && !lasts;
}

/// An instruction that has just been reported.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its linear address.
    pub ip: u64,
    /// Where the guest continues after it.
    pub next: u64,
    /// What it loaded first.
    pub load: Option<u64>,
    /// What it stored to first.
    pub store: Option<u64>,
    /// Its branch, if it is one.
    pub branch: Option<Branch>,
    /// Its first access.
    pub access: Option<Access>,
}

/// What a sample of AMD's reports it.
fn sampled(guest: &Guest, place: &Place) -> Sampled {
    let size = |linear| guest.page(linear).map_or(PageSize::Small, |(_, size)| size);
    Sampled {
        code: guest.page(place.ip),
        branch: place.branch,
        access: place.access.map(|access| (access, size(access.linear))),
    }
}

/// Writes the records and samples that `outcome` requests, of the instruction at `place`, and adds the interrupt that they lead to.
pub fn record(guest: &mut Guest, outcome: Outcome, place: Place) -> Outcome {
    if outcome.due == 0 {
        return outcome;
    }
    let retired = Retirement {
        ip: place.ip,
        next: place.next,
        outside_64_bit_mode: guest.code_bits() != 64,
        flags: guest.vmcb.rflags,
        registers: REGISTERS.map(|name| guest.register(name)),
        load: place.load,
        store: place.store,
        tsc: clock::now(),
        vectors: if guest.counting.peek().records_vectors() { vectors() } else { [0; 32] },
        ymm_upper: match guest.counting.peek().records_upper_halves() {
            true => upper_halves(),
            false => None,
        },
        sampled: if guest.masks_lvtpc { Sampled::default() } else { sampled(guest, &place) },
    };
    // The model is written to while the guest's memory is looked at.
    let mut pmu = guest.counting.pmu().clone();
    let more = pmu.write_record(outcome.due, &retired, &mut Memory(guest));
    *guest.counting.pmu() = pmu;
    Outcome {
        pmi: outcome.pmi | more.pmi,
        ibs: more.ibs,
        // The counters were set back: look at the needs again.
        overflowed: outcome.overflowed | more.overflowed | outcome.due,
        ..outcome
    }
}

/// The same, and delivers the interrupt.
pub fn finish(guest: &mut Guest, outcome: Outcome, place: Place) {
    let outcome = record(guest, outcome, place);
    events::deliver_pmi(guest, outcome);
}
