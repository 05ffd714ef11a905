//! What an instruction that was stepped over tells the PMU.

use super::accesses::{self, Before};
use super::events;
use super::guest::Guest;
use super::precise::{self, Place};
use super::qualified;
use emulated_pmu::step::{self, Maintenance};
use iced_x86::{Instruction, Register};
use pmu_model::uarch::{Parts, Retired};
use pmu_model::{Branch, BranchKind, Delta, Occurrence, Ring};

/// Tells the PMU of an instruction that ran in `ring` and left the guest after it. Returns whether it took a branch.
pub fn instruction(
    guest: &mut Guest,
    ring: Ring,
    instruction: Option<&Instruction>,
    before: &Before,
) -> bool {
    let behind = guest.behind();
    let branch =
        instruction.and_then(|instruction| step::branch(instruction, &behind, guest.ring()));
    let taken = branch.is_some_and(|branch| branch.taken);
    let place = Place { branch, ..before.place(guest, instruction) };
    if !guest.needs.stepping_in(ring) {
        let outcome = guest.counting.retire(ring, 1);
        precise::finish(guest, outcome, place);
    } else if guest.plugin.is_some() {
        counted(guest, ring, 1, Some(place));
    } else {
        stepped(guest, ring, branch, instruction, before);
    }
    guest.runs = Default::default();
    taken
}

/// The same of a repeated string instruction that did not end: what it has done so far.
pub fn unfinished(guest: &mut Guest, ring: Ring, instruction: &Instruction, before: &Before) {
    if !guest.needs.stepping_in(ring) {
        return;
    }
    let place = before.place(guest, Some(instruction));
    if guest.plugin.is_some() {
        return counted(guest, ring, 0, Some(place));
    }
    let mut delta = Delta::bulk(ring, 0);
    let mut passed = Delta::bulk(ring, 0);
    accesses::elements(guest, instruction, before, &mut delta, &mut passed);
    if !delta.is_bulk() {
        report(guest, &delta, Some(&passed), place);
    }
}

/// By what the model sees of it.
fn stepped(
    guest: &mut Guest,
    ring: Ring,
    branch: Option<Branch>,
    instruction: Option<&Instruction>,
    before: &Before,
) {
    let next = instruction.map_or(0, Instruction::next_ip);
    let parts = parts(guest);
    let retired = Retired { ring, branch, next, accesses: before.list() };
    let takes = instruction.is_some_and(|instruction| qualified::takes(guest, instruction));
    let (mut delta, branch, mut passed) = match takes {
        true => {
            let qualifiers = guest.counting.qualifiers();
            guest.core.retire_qualified(&retired, guest.llc, parts, qualifiers)
        }
        false => {
            let (delta, branch) = guest.core.retire(&retired, guest.llc, parts);
            (delta, branch, Delta::bulk(ring, 0))
        }
    };
    if let Some(instruction) = instruction {
        accesses::elements(guest, instruction, before, &mut delta, &mut passed);
        qualified::end_string(guest, instruction, takes, &mut passed);
        let before = delta.count(Occurrence::ClFlush);
        maintain(guest, instruction, &mut delta);
        if passed.instructions > 0 {
            passed.add(Occurrence::ClFlush, delta.count(Occurrence::ClFlush) - before);
        }
    }
    record(guest, branch, &mut delta);
    let place = Place { branch, ..before.place(guest, instruction) };
    report(guest, &delta, Some(&passed), place);
}

/// By what the plugin has counted in the guest run that has just ended, in which `retired` instructions retired in `ring`.
pub fn counted(guest: &mut Guest, ring: Ring, retired: u64, place: Option<Place>) {
    let Some(plugin) = &mut guest.plugin else { return };
    let mut delta = plugin.take(ring, retired);
    // Taken in any case: what passes while no counter is qualified is nobody's.
    let passed = plugin.take_passed(ring);
    let passed = guest.needs.qualified.then_some(passed);
    drain(guest, &mut delta);
    if delta.instructions == 0 && delta.is_bulk() {
        return;
    }
    let outcome = guest.counting.pmu().advance_qualified(&delta, passed.as_ref());
    if outcome.late_instructions > 0 {
        super::debug::line(format_args!(
            "an overflow was detected {} instructions late",
            outcome.late_instructions
        ));
    }
    match place {
        Some(place) => precise::finish(guest, outcome, place),
        None => events::deliver_pmi(guest, outcome),
    }
}

/// Records the branches that the plugin has seen.
fn drain(guest: &mut Guest, delta: &mut Delta) {
    let timing = guest.counting.timing();
    let cycles = |instructions| timing.cycles(&Delta::bulk(delta.ring, instructions));
    let before = core::mem::replace(&mut guest.since_record, 0);
    let ring = guest.ring();
    let mut since = before.saturating_add(cycles(delta.instructions));
    let Some(plugin) = &guest.plugin else { return };
    if guest.needs.branch_records {
        let records = plugin.records();
        let mut inserted = records.unlisted();
        guest.counting.pmu().skip_branches(inserted);
        let mut carried = if inserted == 0 { before } else { 0 };
        for record in records.listed() {
            let Some(kind) = BranchKind::ALL.get(record.kind as usize) else { continue };
            let branch = Branch {
                from: record.from,
                to: record.to,
                kind: *kind,
                taken: true,
                mispredicted: record.mispredicted != 0,
                ring,
                cycles: carried.saturating_add(cycles(record.instructions)),
            };
            if guest.counting.pmu().record_branch(&branch) {
                inserted += 1;
                carried = 0;
            } else {
                carried = branch.cycles;
            }
        }
        if inserted > 0 {
            since = carried + cycles(delta.instructions.saturating_sub(records.position()));
            delta.add(Occurrence::LbrInsert, inserted);
        }
    }
    guest.since_record = since;
}

/// Records a branch, if there is one, and the time that passes with `delta`.
fn record(guest: &mut Guest, branch: Option<Branch>, delta: &mut Delta) {
    let cycles = guest.counting.timing().cycles(delta);
    guest.since_record = guest.since_record.saturating_add(cycles);
    let Some(branch) = branch.filter(|_| guest.needs.branch_records) else { return };
    let branch = Branch { cycles: guest.since_record, ..branch };
    if guest.counting.pmu().record_branch(&branch) {
        guest.since_record = 0;
        delta.add(Occurrence::LbrInsert, 1);
    }
}

/// The parts of the microarchitecture that what is counted depends on. The others see nothing.
pub fn parts(guest: &Guest) -> Parts {
    Parts { memory: guest.needs.memory(), predictor: guest.needs.predictor() }
}

/// An instruction that was emulated, and is neither branch nor access.
pub fn plain(guest: &mut Guest, occurrence: Option<Occurrence>) {
    guest.tick();
    let ring = guest.ring();
    // The guest has not been taken over it yet.
    let ip = guest.linear_rip();
    let next = || guest.instruction().map_or(ip, |instruction| instruction.next_ip());
    let next = if guest.needs.precise { next() } else { ip };
    let place = Place { ip, next, load: None, store: None, branch: None, access: None };
    let counts = occurrence.is_some_and(|occurrence| guest.needs.occurrences.has(occurrence));
    if !guest.needs.stepping_in(ring) && !counts {
        let outcome = guest.counting.retire(ring, 1);
        return precise::finish(guest, outcome, place);
    }
    let mut delta = Delta::step(ring);
    record(guest, None, &mut delta);
    if let Some(occurrence) = occurrence {
        delta.add(occurrence, 1);
    }
    let passes = guest.needs.qualified
        && guest.instruction().is_some_and(|one| qualified::passes_alone(guest, &one));
    report(guest, &delta, passes.then_some(&delta.clone()), place);
}

/// An instruction that was emulated, and is a far branch to where the guest is now, or to `handler`.
pub fn far(guest: &mut Guest, ring: Ring, instruction: &Instruction, handler: Option<u64>) {
    guest.tick();
    let ip = instruction.ip();
    let next = guest.linear_rip();
    let branch = match handler {
        Some(handler) => to_handler(ip, handler),
        None => Branch { ring: guest.ring(), ..to_handler(ip, next) },
    };
    let place = Place { ip, next, load: None, store: None, branch: Some(branch), access: None };
    if !guest.needs.stepping_in(ring) {
        let outcome = guest.counting.retire(ring, 1);
        return precise::finish(guest, outcome, place);
    }
    // The predictor learns nothing from it.
    let mut delta = Delta::step(ring);
    delta.add_branch(&branch);
    let passed = qualified::passes_alone(guest, instruction).then(|| delta.clone());
    record(guest, Some(branch), &mut delta);
    report(guest, &delta, passed.as_ref(), place);
}

/// Tells the PMU, and writes the records of the instruction at `place` that follow.
fn report(guest: &mut Guest, delta: &Delta, passed: Option<&Delta>, place: Place) {
    let outcome = guest.counting.pmu().advance_qualified(delta, passed);
    precise::finish(guest, outcome, place);
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
    let to = events::handler(guest, vector).unwrap_or(0);
    far(guest, ring, instruction, Some(to));
}

/// The handler of an event is about to run.
pub fn delivery(guest: &mut Guest, from: u64, to: u64) {
    guest.counting.pmu().record_event_delivery();
    let mut delta = Delta::bulk(Ring::Kernel, 0);
    record(guest, Some(to_handler(from, to)), &mut delta);
    if !delta.is_bulk() {
        let outcome = guest.counting.pmu().advance(&delta);
        events::deliver_pmi(guest, outcome);
    }
}

fn maintain(guest: &mut Guest, instruction: &Instruction, delta: &mut Delta) {
    let Some(maintenance) = step::maintenance(instruction) else { return };
    let sees_memory = guest.needs.memory();
    // Its operand, by the registers after it, which it has not changed.
    let linear = instruction.virtual_address(0, 0, |name, _, _| Some(guest.register(name)));
    let is_translation = instruction.op0_register() != Register::CR8;
    match (maintenance, linear) {
        (Maintenance::FlushLine { evicts }, Some(linear)) => {
            delta.add(Occurrence::ClFlush, u64::from(evicts));
            if let Some(physical) = guest.physical(linear).filter(|_| evicts && sees_memory) {
                guest.core.clflush(physical, guest.llc, None);
            }
        }
        _ if !sees_memory => {}
        (Maintenance::FlushPage, Some(linear)) => guest.core.invlpg(linear),
        (Maintenance::FlushCaches, _) => guest.core.flush_caches(guest.llc),
        (Maintenance::FlushTranslations, _) if is_translation => guest.core.flush_tlb(),
        _ => {}
    }
}
