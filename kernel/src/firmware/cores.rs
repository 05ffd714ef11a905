//! What lies between the processors: those that work together.

mod line;
pub mod patience;
mod waits;

use super::per_cpu::BOOT;
use super::reset;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use arch::cpu::{Topology, native};
use arch::smp::{self, Offset};
use arch::time::{Clock, tsc};
use core::sync::atomic::{AtomicUsize, Ordering};
use facts::cores::Cores;
use line::Line;
use patience::Patience;
use protocol::record::{ContentionPoint, CoreFacts, CorePlace, LineAccess, Waiting};

/// How much is measured.
struct Effort {
    /// Samples of a pair; one more is passed over.
    samples: usize,
    /// How often the line goes there and back in each.
    rounds: u32,
    /// How often each of those who compete changes it.
    changes: u32,
    /// How often each is woken.
    wakes: usize,
}

/// A sample of a hundred rounds takes some 20 µs, and a thousandth of it is what reading the clock adds.
const AT_ONCE: Effort = Effort { samples: 15, rounds: 100, changes: 10_000, wakes: 50 };
/// Where each look is a change of turns, of thousands of instructions.
const IN_TURN: Effort = Effort { samples: 3, rounds: 2, changes: 100, wakes: 3 };
/// Microseconds from when a processor is ready to when it is woken: longer than a deep state of sleep takes to be reached (ACPI
/// tables state up to some 200 µs).
const SETTLE_US: u64 = 300;

/// Measures what lies between the processors. `in_turn`: one runs at a time.
pub fn measure(clock: Clock, in_turn: bool) -> CoreFacts {
    let places = smp::on_all(|_| Topology::read(&native())).expect(BOOT);
    let place = |(processor, topology): (&smp::Processor, Topology)| {
        let [core, package] = topology.place();
        let (number, apic_id) = (processor.index() as u32, processor.apic_id());
        CorePlace { number, apic_id, core, package }
    };
    let mut machine = Together {
        places: smp::in_use().zip(places).map(place).collect(),
        offsets: smp::offsets().expect(BOOT),
        clock,
        effort: if in_turn { IN_TURN } else { AT_ONCE },
        patience: Patience::new(clock.hz, in_turn),
        in_turn,
    };
    // Who commands and has no part in it is halted as the others are.
    smp::halting(|| facts::cores::measure(&mut machine))
}

/// The processors.
struct Together {
    places: Vec<CorePlace>,
    offsets: Vec<Offset>,
    clock: Clock,
    effort: Effort,
    patience: Patience,
    in_turn: bool,
}

impl Together {
    fn silent(&self, from: usize, to: usize, what: &str) -> String {
        let [from, to] = [from, to].map(|place| self.places[place].number);
        let ms = self.patience.ticks * 1000 / self.clock.hz.max(1);
        format!(
            "{what} between processors {from} and {to}: one of them did not answer within {ms} ms"
        )
    }
}

impl Cores for Together {
    fn processors(&self) -> Vec<CorePlace> {
        self.places.clone()
    }

    fn hz(&self) -> u64 {
        self.clock.hz
    }

    fn in_turn(&self) -> bool {
        self.in_turn
    }

    fn rounds(&self) -> u32 {
        self.effort.rounds
    }

    fn bounce(&mut self, by: LineAccess, from: usize, to: usize) -> Result<Vec<u64>, String> {
        let (line, patience, rounds) = (Line::new(), self.patience, self.effort.rounds);
        let mut samples = vec![0; self.effort.samples + 1];
        let all = samples.len() as u64 * u64::from(rounds);
        let own = spin::Mutex::new(&mut samples[..]);
        let work = |place| match place == from {
            true => line::begin(by, &line, (&mut own.lock()[..], rounds), &patience),
            false => line::answer(by, &line, all, &patience),
        };
        let done = smp::on_some(|place| place == from || place == to, work).expect(BOOT);
        if done.into_iter().flatten().all(|came| came) {
            // The first one brings code and line.
            samples.remove(0);
            return Ok(samples);
        }
        Err(self.silent(from, to, &format!("a line by {}", by.name())))
    }

    fn contend(&mut self, by: LineAccess, processors: usize) -> Result<ContentionPoint, String> {
        let (line, patience, changes) = (Line::new(), self.patience, self.effort.changes);
        let ready = AtomicUsize::new(0);
        let work = |place: usize| {
            ready.fetch_add(1, Ordering::AcqRel);
            // Who runs alone for a turn would wait for those that have none: they work one after the other.
            if !patience.wait(|| ready.load(Ordering::Acquire) == processors) {
                return None;
            }
            let offset = self.offsets.get(place).map_or(0, |offset| offset.ticks);
            let begun = tsc::now();
            let tries = line::change(by, &line, changes);
            let ended = tsc::now();
            Some(([begun, ended].map(|at| at.wrapping_add_signed(-offset)), tries))
        };
        let done = smp::on_some(|place| place < processors, work).expect(BOOT);
        let done: Option<Vec<_>> = done.into_iter().flatten().collect();
        let done = done.ok_or_else(|| self.silent(0, processors - 1, "contention"))?;
        let begun = done.iter().map(|([begun, _], _)| *begun).min().unwrap_or(0);
        let ended = done.iter().map(|([_, ended], _)| *ended).max().unwrap_or(0);
        let tries = done.iter().map(|(_, tries)| tries).sum();
        let ticks = ended.saturating_sub(begun);
        Ok(ContentionPoint { processors: processors as u32, changes, ticks, tries })
    }

    fn ways(&self) -> (Vec<(Waiting, Option<u32>)>, bool) {
        waits::ways(self.clock.invariant)
    }

    fn wake(&mut self, way: (Waiting, Option<u32>), to: usize) -> Result<Vec<u64>, String> {
        let (waiting, hint) = way;
        let (patience, apic_id) = (self.patience, self.places[to].apic_id);
        let settle = self.clock.hz / 1_000_000 * SETTLE_US;
        let mut samples = vec![0; self.effort.wakes + 1];
        let rounds = samples.len() as u64;
        let own = spin::Mutex::new(&mut samples[..]);
        waits::prepare();
        let work = |place| match place {
            0 => waits::ask(waiting, apic_id, &mut own.lock()[..], settle, &patience),
            _ => {
                waits::answer(waiting, hint.unwrap_or(0), rounds);
                true
            }
        };
        let done = smp::on_some(|place| place == 0 || place == to, work).expect(BOOT);
        if done.into_iter().flatten().all(|came| came) {
            samples.remove(0);
            return Ok(samples);
        }
        Err(self.silent(0, to, &format!("waking by {}", waiting.name())))
    }

    fn beat(&mut self) {
        reset::reload(tsc::now(), self.clock.hz);
    }
}
