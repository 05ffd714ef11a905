//! Rounds in which all processors do the same things at once: what they share must bear it.

use super::per_cpu::{AllProcessors, BOOT};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::apic;
use arch::interrupts;
use arch::pmu::pmi::{self, ControlBlock, Delivery};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{self, Capabilities, Counter, Driver, PmuError, Selection, window};
use arch::smp;
use arch::trap::TrapFrame;
use core::hint::spin_loop;
use kernel::processors::contention::Together;
use protocol::record::ContentionRounds;
use spin::Mutex;

/// What a processor sends its neighbour.
const VECTOR: u8 = 0xe5;
/// Looks at whether an interrupt has come, before the processor halts for it. Emulated processors share few of the host's.
const LOOKS: u32 = 1000;
/// Turns of the loop that is counted in each round.
const TURNS: u64 = 50;
/// Instructions retired, on both vendors.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

/// The interrupt is counted by its stub.
fn on_neighbour(_: &mut TrapFrame) {
    apic::end_of_interrupt();
}

/// Lets interrupts in until `come` says that the one that is waited for has come.
fn let_in(come: impl Fn() -> bool) {
    use x86_64::instructions::interrupts::{disable, enable, enable_and_hlt};
    enable();
    let has_come = (0..LOOKS).any(|_| {
        spin_loop();
        come()
    });
    disable();
    if has_come {
        return;
    }
    while !come() {
        // STI holds interrupts back until HLT: none gets lost in between.
        enable_and_hlt();
        disable();
    }
}

/// How often this processor has taken [`VECTOR`].
fn taken() -> u64 {
    let mut taken = [0; 256];
    interrupts::taken(&mut taken);
    taken[usize::from(VECTOR)]
}

/// Raises the word by one. It is read and written apart, so that two that came in at once would lose one.
fn raise(word: &Mutex<u64>) -> u64 {
    let mut word = word.lock();
    let word: *mut u64 = &raw mut *word;
    // SAFETY: a word that the lock holds.
    unsafe {
        let seen = word.read_volatile();
        spin_loop();
        word.write_volatile(seen + 1);
    }
    1
}

/// Installs a control block, sends this processor one interrupt of the PMI's vector, and removes the block. Returns what the block
/// counted.
fn own_pmi() -> u64 {
    // SAFETY: ring 0, tables and APIC in use, interrupts off; nothing is programmed, and the block says so.
    unsafe {
        pmi::install(&ControlBlock::EMPTY, Delivery::Fixed);
        let block = pmi::block();
        let count = || {
            let found = (&raw const (*block).pmis).read_volatile();
            found + (&raw const (*block).spurious).read_volatile()
        };
        apic::send(smp::this().apic_id(), pmi::VECTOR);
        let_in(|| count() > 0);
        pmi::uninstall();
        count()
    }
}

/// Starts a counter, runs a loop, stops the counter. Returns its count.
fn count_once(has: &Capabilities) -> Result<u64, PmuError> {
    // SAFETY: ring 0, interrupt table loaded; the PMU is ours.
    let mut registers = unsafe { pmu::Machine::new() };
    let mut driver = Driver::new(has.clone());
    driver.reset(&mut registers)?;
    let counter = has.generals().next().unwrap_or(Counter::General(0));
    driver.program(&mut registers, counter, &INSTRUCTIONS)?;
    driver.write(&mut registers, counter, 0)?;
    // SAFETY: the gate's writes are the driver's, and the code is a piece with its arguments.
    unsafe { window::run(&driver.gate(), Ring0Code::Loop.address(), [TURNS, 0]) };
    let count = driver.read(&mut registers, counter)?;
    driver.reset(&mut registers)?;
    Ok(count)
}

/// Does `rounds` rounds on the processors at these places. `in_turn`: counters of one count what the others do, so each
/// counts while the others are halted.
///
/// # Errors
/// Which of the chosen ones has a counter that cannot be used, and why.
pub fn contend(
    all: &AllProcessors,
    chosen: &[usize],
    rounds: u32,
    in_turn: bool,
) -> Result<Together, (usize, String)> {
    let number = |place: usize| all.members[place].number as usize;
    let at = |place: usize| chosen.iter().position(|&one| one == place).unwrap_or(0);
    let next = |place: usize| all.members[chosen[(at(place) + 1) % chosen.len()]].apic_id;
    let count = |place: usize| {
        let counted = all.members[place].pmu.as_ref().ok().map(count_once).transpose();
        counted.map_err(|error| (at(place), error.to_string()))
    };
    let on_its_own = |place: usize| smp::run_on(number(place), || count(place)).expect(BOOT);
    let alone = chosen.iter().map(|&place| on_its_own(place)).collect::<Result<_, _>>()?;
    let mut each = alloc::vec![ContentionRounds::default(); chosen.len()];
    let sum = Mutex::new(0);
    interrupts::set_handler(VECTOR, Some(on_neighbour));
    let before = |&place: &usize| smp::run_on(number(place), taken).expect(BOOT);
    let mut before: Vec<u64> = chosen.iter().map(before).collect();
    let mut one_round = || {
        let round = |place: usize| {
            let locked = raise(&sum);
            // The neighbour may have been here before this processor was.
            let before = before[at(place)];
            apic::send(next(place), VECTOR);
            let_in(|| taken() != before);
            let interrupts = taken() - before;
            let pmis = own_pmi();
            let counted = if in_turn { None } else { count(place)? };
            Ok(ContentionRounds { rounds: 1, locked, interrupts, pmis, counted })
        };
        let done = smp::halting(|| smp::on_some(|place| chosen.contains(&place), round));
        let done = done.expect(BOOT).into_iter().flatten();
        for ((one, done), &place) in each.iter_mut().zip(done).zip(chosen) {
            let mut done = done?;
            if in_turn {
                done.counted = on_its_own(place)?;
            }
            add(one, &done);
        }
        before.iter_mut().for_each(|before| *before += 1);
        Ok(())
    };
    let done = (0..rounds).try_for_each(|_| one_round());
    interrupts::set_handler(VECTOR, None);
    done?;
    Ok(Together { each, sum: sum.into_inner(), alone })
}

fn add(all: &mut ContentionRounds, round: &ContentionRounds) {
    all.rounds += round.rounds;
    all.locked += round.locked;
    all.interrupts += round.interrupts;
    all.pmis += round.pmis;
    if let Some(counted) = round.counted {
        all.counted = Some(all.counted.unwrap_or(0).saturating_add(counted));
    }
}
