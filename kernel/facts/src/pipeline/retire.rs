//! How many instructions the core retires in a cycle at most.
//!
//! Retirement is at least as wide as issue, so no program takes longer because of it, and only the PMU sees it. While a load misses,
//! the instructions after it are done, and wait for it. Then they retire as fast as the core can. A counter of retired instructions
//! with a counter mask counts the cycles in which at least as many retire.

use super::CodeProbe;
use super::code::{Filler, Program, WINDOW_ROUNDS};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::RetireFact;

/// Instructions that wait for a load: fewer than every reorder buffer has, but for those of the smallest cores, which fill up.
const WAITING: u32 = 60;
/// The greatest counter mask that is tried; no processor retires as many.
const MOST: u8 = 24;
/// Tries of each; the greatest number counts: whatever comes in between, no cycle has more than the core can retire.
const TRIES: u32 = 3;

const NO_MASK: &str = "the counter mask has no effect on the counter of retired instructions";
const NOTHING: &str = "the counter of retired instructions does not count";
const RISES: &str = "a greater counter mask counts more cycles";

/// Measures it.
pub fn measure(probe: &mut impl CodeProbe) -> RetireFact {
    let program = Program::Window { filler: Filler::Registers, between: WAITING, chained: true };
    let mut evidence: Vec<[u64; 2]> = Vec::new();
    let untold = |reason: &str, evidence| {
        let reason = Some(reason.to_string());
        RetireFact { width: None, reason, evidence }
    };
    for at_least in 1..=MOST {
        let mut most = 0;
        for _ in 0..TRIES {
            match probe.retiring(&program, at_least) {
                Ok(cycles) => most = cycles.max(most),
                Err(reason) => return untold(reason, evidence),
            }
        }
        evidence.push([at_least.into(), most]);
        if most == 0 {
            break;
        }
    }
    probe.beat();
    let is_seen = |[_, cycles]: &&[u64; 2]| *cycles >= u64::from(WINDOW_ROUNDS);
    let width = evidence.iter().take_while(is_seen).count() as u32;
    if width == 0 {
        return untold(NOTHING, evidence);
    }
    if width == u32::from(MOST) {
        return untold(NO_MASK, evidence);
    }
    let rises = evidence.windows(2).any(|two| two[1][1] > two[0][1]);
    if rises {
        return untold(RISES, evidence);
    }
    RetireFact { width: Some(width), reason: None, evidence }
}
