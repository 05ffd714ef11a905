//! What some code costs because of what comes before it, or of its operands: differences of two programs with as many instructions.

use super::code::{Hazard, Program, ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::HazardFact;

/// Samples of each.
const SAMPLES: usize = 5;

const NO_AVX: &str = "the processor has no AVX, or it is not enabled";
const NO_LOCK: &str =
    "a locked access that crosses a line may raise an exception here, or stop the guest";

/// Measures them.
pub fn measure(probe: &mut impl CodeProbe) -> Vec<HazardFact> {
    let all = [Hazard::Denormal, Hazard::SseAfterAvx, Hazard::SelfModified, Hazard::SplitLock];
    all.into_iter().map(|hazard| one(probe, hazard)).collect()
}

fn one(probe: &mut impl CodeProbe, hazard: Hazard) -> HazardFact {
    let (name, refused) = match hazard {
        Hazard::Denormal => ("denormal result", None),
        Hazard::SseAfterAvx => ("SSE after AVX", Some(NO_AVX).filter(|_| !probe.has_avx())),
        Hazard::SelfModified => ("self-modified code", None),
        Hazard::SplitLock | Hazard::SplitAdd => {
            ("split lock", Some(NO_LOCK).filter(|_| !probe.splits_locks()))
        }
    };
    let name = name.to_string();
    if let Some(reason) = refused {
        return HazardFact { name, tenths: None, reason: Some(reason.to_string()) };
    }
    let mut beyond = |hazard| {
        let mut of = |hit| probe.cycles(&Program::Hazard { hazard, hit }, TRIES) as i64;
        of(true) - of(false)
    };
    let mut sample = || {
        let mut cycles = beyond(hazard);
        if hazard == Hazard::SplitLock {
            // Without what crossing a line costs by itself.
            cycles -= beyond(Hazard::SplitAdd);
        }
        cycles * 10 / (ROUNDS * Hazard::REPEATED) as i64
    };
    let mut all: [i64; SAMPLES] = core::array::from_fn(|_| sample());
    all.sort_unstable();
    probe.beat();
    HazardFact { name, tenths: Some([all[0], all[SAMPLES / 2], all[SAMPLES - 1]]), reason: None }
}
