//! How many instructions the core issues in a cycle: NOPs, which wait for nothing and take no port.

use super::code::{Program, ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use protocol::record::WidthFact;

/// NOPs of the shorter programs: several lengths, as a round takes whole cycles.
const FEW: core::ops::Range<u32> = 16..32;
/// So many more are in the longer ones: a multiple of most widths.
const MORE: u32 = 240;

const TICKS: &str = "the clock is the TSC, whose ticks are not cycles of the core";
const FREE: &str = "more NOPs take no longer";
const PART: &str = "NOPs in a cycle are no whole number: something else than the width limits them";

/// Measures it.
pub fn measure(probe: &mut impl CodeProbe) -> WidthFact {
    let [mut few, mut many] = [0; 2];
    for nops in FEW {
        few += probe.cycles(&Program::Nops { nops }, TRIES);
        many += probe.cycles(&Program::Nops { nops: nops + MORE }, TRIES);
    }
    probe.beat();
    let cycles = many.saturating_sub(few);
    let nops = ROUNDS * u64::from(FEW.end - FEW.start) * u64::from(MORE);
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
