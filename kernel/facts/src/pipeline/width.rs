//! How many instructions the core issues in a cycle: loops of NOPs, which wait for nothing and take no port.

use super::code::Program;
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use core::ops::Range;
use protocol::record::WidthFact;

/// Instructions of the shorter loops: several lengths, as a round takes whole cycles.
const FEW: Range<u32> = 16..32;
/// So many more are in the longer ones: a multiple of most widths.
const MORE: u32 = 240;
/// The same where the loop buffer holds no longer ones, at least.
const LEAST_MORE: u32 = 16;
/// NOPs in 32 bytes: of four bytes each, as decoders take no denser ones.
const IN_BLOCK: u32 = 8;
/// Rounds until a loop's time repeats, and rounds whose time is taken.
const BEFORE: u32 = 8;
const ROUNDS: u32 = 16;

const TICKS: &str = "the clock is the TSC, whose ticks are not cycles of the core";
const FREE: &str = "more NOPs take no longer";
const PART: &str = "NOPs in a cycle are no whole number: something else than the width limits them";
const SHORT: &str = "what the loop buffer holds is quicker, but it is too short to tell";

/// Measures it.
pub fn measure(probe: &mut impl CodeProbe) -> WidthFact {
    of_loops(probe, MORE)
}

/// The same where loops of more instructions than the loop buffer has come slower than they could be issued.
pub fn of_loop_buffer(probe: &mut impl CodeProbe, entries: u32) -> WidthFact {
    match (entries + 1).checked_sub(FEW.end).filter(|more| *more >= LEAST_MORE) {
        Some(more) => of_loops(probe, more),
        None => WidthFact { reason: Some(SHORT.to_string()), ..WidthFact::default() },
    }
}

fn of_loops(probe: &mut impl CodeProbe, more: u32) -> WidthFact {
    let [mut few, mut many] = [0; 2];
    for instructions in FEW {
        few += steady(probe, (instructions, IN_BLOCK), (BEFORE, ROUNDS), TRIES);
        many += steady(probe, (instructions + more, IN_BLOCK), (BEFORE, ROUNDS), TRIES);
    }
    probe.beat();
    let cycles = many.saturating_sub(few);
    let nops = u64::from(ROUNDS * (FEW.end - FEW.start) * more);
    let hundredths = (nops * 100 + cycles / 2).checked_div(cycles);
    let nearest = hundredths.map_or(0, |all| (all + 50) / 100);
    // A twentieth for what the loop and its branch take.
    let is_whole = |all: u64| nearest > 0 && all.abs_diff(nearest * 100) * 20 <= nearest * 100;
    let (width, reason) = match hundredths {
        None => (None, Some(FREE)),
        Some(_) if !probe.counts_core_cycles() => (None, Some(TICKS)),
        Some(all) if !is_whole(all) => (None, Some(PART)),
        Some(_) => (Some(nearest as u32), None),
    };
    let reason = reason.map(ToString::to_string);
    WidthFact { width, reason, nops, cycles }
}

/// Cycles of rounds of a loop of instructions, so many in a block, after those until its time repeats.
pub(super) fn steady(
    probe: &mut impl CodeProbe,
    (instructions, in_block): (u32, u32),
    (before, rounds): (u32, u32),
    tries: u32,
) -> u64 {
    let mut of = |rounds| probe.cycles(&Program::Loop { instructions, in_block, rounds }, tries);
    of(before + rounds).saturating_sub(of(before))
}
