//! What an instruction that was stepped over tells the PMU.

use super::events;
use super::guest::Guest;
use super::maps::PAGE;
use super::precise::{self, Place};
use emulated_pmu::step::{self, Kind, Maintenance, StringOperation, Touch};
use iced_x86::{Instruction, Register};
use pmu_model::uarch::{Access, AccessKind, LINE_BYTES, Parts, Retired};
use pmu_model::{Branch, BranchKind, Delta, Occurrence, Ring};

/// No instruction but a repeated one, and XSAVE and its kin whose areas count once, touches more places.
const MAX_ACCESSES: usize = 16;

/// Data accesses of an instruction.
pub struct Accesses {
    list: [Access; MAX_ACCESSES],
    count: usize,
    /// Of a repeated string instruction: what it ran over.
    runs: [Option<Run>; 2],
}

/// Elements that a string instruction ran over.
#[derive(Clone, Copy, Debug)]
struct Run {
    linear: u64,
    bytes: u64,
    kind: AccessKind,
}

impl Accesses {
    /// None.
    pub const NONE: Self = Self {
        list: [Access::identity(0, 0, AccessKind::Load); MAX_ACCESSES],
        count: 0,
        runs: [None; 2],
    };

    fn push(&mut self, access: Access) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = access;
            self.count += 1;
        }
    }
}

/// Registers before the instruction.
pub struct Before {
    source: u64,
    destination: u64,
    accesses: Accesses,
}

impl Before {
    /// Notes what has to be known before `instruction` runs.
    pub fn of(guest: &Guest, instruction: &Instruction) -> Self {
        let mut before = Self {
            source: guest.registers.rsi,
            destination: guest.registers.rdi,
            accesses: Accesses::NONE,
        };
        let repeated = matches!(step::kind(instruction), Kind::Repeated(_));
        if guest.needs.occurrences.has_occurrences() && !repeated {
            let mut factory = guest.factory.borrow_mut();
            let register = |name| guest.register(name);
            step::accesses(&mut factory, instruction, register, |touch| {
                let Some(physical) = guest.physical(touch.linear) else { return };
                before.accesses.push(access(guest, &touch, physical));
            });
        }
        before
    }

    /// The accesses, once it has run.
    pub fn accesses(mut self, guest: &Guest, instruction: &Instruction) -> Accesses {
        if let Kind::Repeated(operation) = step::kind(instruction)
            && guest.needs.occurrences.has_occurrences()
        {
            let mask = StringOperation::count_mask(instruction);
            let run = |before: u64, after: u64, kind| {
                let moved = after.wrapping_sub(before) & mask;
                let forward = guest.vmcb.rflags & 1 << 10 == 0;
                let bytes = if forward { moved } else { moved.wrapping_neg() & mask };
                let first = if forward {
                    before
                } else {
                    after.wrapping_add(operation.element_bytes.into())
                };
                (bytes > 0).then_some(Run { linear: first & mask, bytes, kind })
            };
            let registers = &guest.registers;
            if operation.source {
                self.accesses.runs[0] = run(self.source, registers.rsi, AccessKind::Load);
            }
            if let Some(kind) = operation.destination {
                self.accesses.runs[1] = run(self.destination, registers.rdi, kind);
            }
        }
        self.accesses
    }
}

fn access(guest: &Guest, touch: &Touch, physical: u64) -> Access {
    let &Touch { linear, bytes, kind, locked } = touch;
    let next = (linear & !(PAGE - 1)).wrapping_add(PAGE);
    let crosses = linear % PAGE + u64::from(bytes) > PAGE;
    let physical_next_page =
        if crosses { guest.physical(next).unwrap_or(physical) } else { physical };
    Access { linear, physical, physical_next_page, bytes, kind, locked }
}

/// Tells the PMU of an instruction that ran in `ring` and left the guest behind it. Returns whether it took a branch.
pub fn instruction(
    guest: &mut Guest,
    ring: Ring,
    instruction: Option<&Instruction>,
    accesses: &Accesses,
) -> bool {
    let to = guest.linear_rip();
    let branch = instruction.and_then(|instruction| step::branch(instruction, to, guest.ring()));
    finish(guest, ring, branch, instruction, accesses)
}

fn finish(
    guest: &mut Guest,
    ring: Ring,
    branch: Option<Branch>,
    instruction: Option<&Instruction>,
    accesses: &Accesses,
) -> bool {
    let taken = branch.is_some_and(|branch| branch.taken);
    let list = &accesses.list[..accesses.count];
    let ip = instruction.map_or(guest.stepped, Instruction::ip);
    let first = |kinds: [AccessKind; 2]| {
        list.iter().find(|access| kinds.contains(&access.kind)).map(|access| access.linear)
    };
    let place = Place {
        ip,
        next: guest.linear_rip(),
        load: first([AccessKind::Load, AccessKind::LoadStore]),
        store: first([AccessKind::Store, AccessKind::LoadStore]),
    };
    if !guest.needs.stepping() {
        let outcome = guest.counting.retire(ring, 1);
        precise::finish(guest, outcome, place);
        return taken;
    }
    let next = instruction.map_or(0, Instruction::next_ip);
    let timing = guest.counting.timing();
    let retired = Retired { ring, branch, next, accesses: list };
    let (mut delta, branch) = guest.core.retire(&retired, guest.llc, parts(guest), &timing);
    if let Some(instruction) = instruction {
        maintain(guest, instruction, &mut delta);
    }
    if branch.is_some_and(|branch| guest.counting.pmu().record_branch(&branch)) {
        delta.add(Occurrence::LbrInsert, 1);
    }
    report(guest, &delta, place);
    for run in accesses.runs.into_iter().flatten() {
        elements(guest, ring, run, place);
    }
    taken
}

/// An instruction that was emulated, and is neither branch nor access.
pub fn plain(guest: &mut Guest, occurrence: Option<Occurrence>) {
    guest.tick();
    let ring = guest.ring();
    // The guest has not been taken over it yet.
    let ip = guest.linear_rip();
    let next = || guest.instruction().map_or(ip, |instruction| instruction.next_ip());
    let next = if guest.needs.precise { next() } else { ip };
    let place = Place { ip, next, load: None, store: None };
    if !guest.needs.stepping() && !guest.needs.occurrences.has_occurrences() {
        let outcome = guest.counting.retire(ring, 1);
        return precise::finish(guest, outcome, place);
    }
    let timing = guest.counting.timing();
    let retired = Retired { ring, branch: None, next: 0, accesses: &[] };
    let (mut delta, _) = guest.core.retire(&retired, guest.llc, parts(guest), &timing);
    if let Some(occurrence) = occurrence {
        delta.add(occurrence, 1);
    }
    report(guest, &delta, place);
}

/// The parts of the microarchitecture that what is counted depends on. The others see nothing.
fn parts(guest: &Guest) -> Parts {
    Parts { memory: guest.needs.memory(), predictor: guest.needs.predictor() }
}

/// Tells the PMU, and writes the records of the instruction at `place` that follow.
fn report(guest: &mut Guest, delta: &Delta, place: Place) {
    let outcome = guest.counting.pmu().advance(delta);
    precise::finish(guest, outcome, place);
}

/// A string instruction touches each cache line that it runs over once.
fn elements(guest: &mut Guest, ring: Ring, run: Run, place: Place) {
    let timing = guest.counting.timing();
    let end = run.linear.saturating_add(run.bytes);
    let mut at = run.linear;
    while at < end {
        let next = ((at & !(LINE_BYTES - 1)) + LINE_BYTES).min(end);
        if let Some(physical) = guest.physical(at) {
            let bytes = (next - at) as u32;
            let touch = Touch { linear: at, bytes, kind: run.kind, locked: false };
            let access = access(guest, &touch, physical);
            let retired = Retired { ring, branch: None, next: 0, accesses: &[access] };
            let (mut delta, _) = guest.core.retire(&retired, guest.llc, parts(guest), &timing);
            // The instruction itself has been reported.
            delta.instructions = 0;
            let place = match run.kind {
                AccessKind::Load => Place { load: Some(at), ..place },
                _ => Place { store: Some(at), ..place },
            };
            report(guest, &delta, place);
        }
        at = next;
    }
}

/// A branch to a handler.
fn to_handler(from: u64, to: u64) -> Branch {
    Branch {
        from,
        to,
        kind: BranchKind::Far,
        taken: true,
        mispredicted: false,
        ring: Ring::Kernel,
        cycles: 0,
    }
}

/// INT n: a far branch to the handler of its vector.
pub fn software_interrupt(guest: &mut Guest, ring: Ring, instruction: &Instruction, vector: u8) {
    guest.tick();
    let to = events::handler(guest, vector).unwrap_or(0);
    let branch = to_handler(instruction.ip(), to);
    finish(guest, ring, Some(branch), Some(instruction), &Accesses::NONE);
}

/// The handler of an event is about to run.
pub fn delivery(guest: &mut Guest, from: u64, to: u64) {
    guest.counting.pmu().record_event_delivery();
    let branch = to_handler(from, to);
    if guest.counting.pmu().record_branch(&branch) {
        let delta = Delta::bulk(Ring::Kernel, 0).with(Occurrence::LbrInsert, 1);
        let outcome = guest.counting.pmu().advance(&delta);
        events::deliver_pmi(guest, outcome);
    }
}

fn maintain(guest: &mut Guest, instruction: &Instruction, delta: &mut Delta) {
    let Some(maintenance) = step::maintenance(instruction) else { return };
    // Its operand, by the registers behind it, which it has not changed.
    let linear = instruction.virtual_address(0, 0, |name, _, _| Some(guest.register(name)));
    let is_translation = instruction.op0_register() != Register::CR8;
    match (maintenance, linear) {
        (Maintenance::FlushLine { evicts }, Some(linear)) => {
            delta.add(Occurrence::ClFlush, u64::from(evicts));
            if let Some(physical) = guest.physical(linear).filter(|_| evicts) {
                guest.core.clflush(physical, guest.llc, None);
            }
        }
        (Maintenance::FlushPage, Some(linear)) => guest.core.invlpg(linear),
        (Maintenance::FlushCaches, _) => guest.core.flush_caches(guest.llc),
        (Maintenance::FlushTranslations, _) if is_translation => guest.core.flush_tlb(),
        _ => {}
    }
}
