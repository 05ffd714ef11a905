//! How many instructions are in flight at once: of two loads that miss, the second begins before the first is done only if all that
//! lies between them is in flight as well.
//!
//! What is determined is a saving: by how much two loads are quicker than as many of which the second waits for the first, with the same
//! between them. Instructions of several kinds each use up something else, and what is used up first is determined.

use super::code::{Filler, MOST_BETWEEN, Program, WINDOW_ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::WindowFact;

/// Between the numbers that are tried first.
const COARSE: u32 = 32;
/// So far from where the saving ends it is nearly whole, or nearly gone.
const SHARP: u32 = 2;

const NEVER: &str =
    "two loads that miss take as long as one after the other, with nothing between them";
const FADES: &str = "the saving does not end at a number: memory is too quick for what there is, or there is more than 1024 of it";
const UNCLEAR: &str = "the loads overlap now at more, now at fewer of them";
const FULL: &str = "the reorder buffer is full before that";
const BEFORE: &str = "the reorder buffer is full, or registers are used up, before that";

/// Measures it, by all kinds.
pub fn measure(probe: &mut impl CodeProbe) -> Vec<WindowFact> {
    let mut of = |filler| {
        let fact = one(probe, filler);
        probe.beat();
        fact
    };
    let rob = of(Filler::Nops);
    let most = rob.entries.unwrap_or(u32::MAX);
    let registers = within(of(Filler::Registers), most, FULL);
    // The loads need entries of the reorder buffer, and no vector registers.
    let vectors = within(of(Filler::Vectors), most.saturating_sub(2), FULL);
    let most = most.min(registers.entries.unwrap_or(u32::MAX));
    let loads = within(of(Filler::Loads), most, BEFORE);
    // The second load needs an entry as well, but the first one has left its own.
    let scheduler = within(of(Filler::Waiting), most.saturating_sub(1), BEFORE);
    [rob, registers, vectors, loads, scheduler].into()
}

/// The same if it is less than what is determined of others that its instructions use up.
fn within(fact: WindowFact, most: u32, reason: &str) -> WindowFact {
    match fact.entries {
        Some(entries) if entries >= most => {
            WindowFact { entries: None, reason: Some(reason.to_string()), ..fact }
        }
        _ => fact,
    }
}

fn one(probe: &mut impl CodeProbe, filler: Filler) -> WindowFact {
    let (name, own) = match filler {
        Filler::Nops => ("reorder buffer", 1_i32),
        Filler::Registers => ("registers in flight", 1),
        // Neither load writes one, so one more than there are has to wait.
        Filler::Vectors => ("vector registers in flight", -1),
        Filler::Loads => ("load queue", 1),
        Filler::Waiting => ("scheduler", 0),
    };
    let mut of = |between, chained| {
        let cycles = probe.cycles(&Program::Window { filler, between, chained }, TRIES) as i64;
        cycles * 10 / i64::from(WINDOW_ROUNDS)
    };
    let alone = of(0, true);
    let mut saving = |between| of(between, true) - of(between, false);
    let whole = saving(0);
    let name = name.to_string();
    let untold = |reason: &str, evidence| {
        let reason = Some(reason.to_string());
        WindowFact { name: name.clone(), entries: None, reason, doubtful: 0, evidence }
    };
    // Overlapping saves nearly half.
    if whole * 8 < alone.max(1) {
        return untold(NEVER, Vec::from([[0, whole]]));
    }
    let mut evidence = Vec::from([[0, whole]]);
    for between in (COARSE..MOST_BETWEEN).step_by(COARSE as usize) {
        evidence.push([i64::from(between), saving(between)]);
        // Twice next to nothing: it has ended.
        if evidence.iter().rev().take(2).all(|[_, saved]| saved * 16 < whole) {
            break;
        }
    }
    let drop = |at: &usize| evidence[*at][1] - evidence[at + 1][1];
    let Some(at) = (0..evidence.len() - 1).max_by_key(drop) else {
        return untold(FADES, evidence);
    };
    let [[from, above], [to, below]] = [evidence[at], evidence[at + 1]];
    let middle = i64::midpoint(above, below);
    if (above - below) * 4 < whole {
        return untold(FADES, evidence);
    }
    let is_wrong = |[between, saved]: &&[i64; 2]| match *between <= from {
        true => *saved < middle,
        false => *saved > middle,
    };
    let mut doubtful = evidence.iter().filter(is_wrong).count() as u32;
    let near = (from - i64::from(SHARP + 1)).max(0)..=to + i64::from(SHARP);
    let fine: Vec<[i64; 2]> = near.map(|between| [between, saving(between as u32)]).collect();
    let is_above = |[_, saved]: &[i64; 2]| *saved >= middle;
    // At the steepest step: the saving fades before it as well, by what the instructions themselves take.
    let step = |at: &usize| fine[at - 1][1] - fine[*at][1];
    let ends = (1..fine.len()).max_by_key(step).unwrap_or(0);
    doubtful += fine[ends..].iter().filter(|point| is_above(point)).count() as u32;
    let first = fine[ends][0];
    let sharp = SHARP as usize;
    let before = fine[ends.saturating_sub(sharp + 1)][1];
    let after = fine[(ends + sharp).min(fine.len() - 1)][1];
    evidence.extend(fine);
    evidence.sort_unstable();
    evidence.dedup_by_key(|point| point[0]);
    // What fades ends nowhere.
    if (before - after) * 2 < above - below {
        return untold(FADES, evidence);
    }
    if doubtful > 3 {
        return WindowFact { doubtful, ..untold(UNCLEAR, evidence) };
    }
    let entries = (first as u32).checked_add_signed(own);
    WindowFact { name: name.clone(), entries, reason: None, doubtful, evidence }
}
