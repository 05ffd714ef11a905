//! Store forwarding and the store buffer.
//!
//! A chain of loads, each with its address from the load before it, and a store of the loaded value before each: loads that read the
//! stored bytes against loads of the same width that read others. And stores to lines that no cache holds, which were flushed before the
//! clock was read: as many as the buffer has entries take a cycle or so each, and one more waits for memory.

use super::code::{MOST_STORES, Pair, Program, ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{ForwardFact, StoresFact};

/// Samples of each case.
const SAMPLES: usize = 5;
/// Bytes by which loads that find no store lie beside it.
const BESIDE: i32 = 512;
/// Stores and loads: bytes that are stored and loaded, by how much the load's address is greater, and whether the store crosses a line.
const CASES: [(u32, u32, i32, bool); 8] = [
    (8, 8, 0, false),
    (8, 4, 0, false),
    (8, 4, 4, false),
    (8, 1, 5, false),
    (4, 8, 0, false),
    (8, 8, 4, false),
    (8, 8, 0, true),
    (8, 8, 4096, false),
];

const NO_STEP: &str = "144 stores to lines that no cache holds take hardly longer than fewer: the buffer has more entries, or its stores are as quick as memory";
const UNCLEAR: &str = "stores become slower at several numbers of them";
const LATE: &str = "where stores become slower the first of them had long been written: memory is quicker than the buffer is deep";
/// Numbers of stores behind the step that tell what one after it takes.
const TAIL: usize = 8;

/// Measures both.
pub fn measure(probe: &mut impl CodeProbe) -> StoresFact {
    let forward = CASES.iter().map(|case| forward(probe, *case)).collect();
    probe.beat();
    StoresFact { forward, ..buffer(probe) }
}

fn forward(probe: &mut impl CodeProbe, case: (u32, u32, i32, bool)) -> ForwardFact {
    let (store, load, offset, crosses) = case;
    let mut sample = || {
        let mut of = |beside| {
            let pair = Pair { store, load, offset: offset + beside, crosses };
            probe.cycles(&Program::Forward(pair), TRIES) as i64
        };
        let beyond = of(0) - of(BESIDE);
        beyond * 10 / (ROUNDS * Pair::REPEATED) as i64
    };
    let mut all: [i64; SAMPLES] = core::array::from_fn(|_| sample());
    all.sort_unstable();
    let tenths = [all[0], all[SAMPLES / 2], all[SAMPLES - 1]];
    ForwardFact { store, load, offset, crosses, tenths }
}

/// The entries of the buffer: where the first rise is that is a quarter of the greatest one.
fn buffer(probe: &mut impl CodeProbe) -> StoresFact {
    let mut of = |stores| {
        if stores % 16 == 0 {
            probe.beat();
        }
        let cycles = probe.cycles(&Program::Stores { stores }, TRIES);
        [i64::from(stores), (cycles * 10) as i64]
    };
    let evidence: Vec<[i64; 2]> = (1..=MOST_STORES).map(&mut of).collect();
    let rises: Vec<i64> = evidence.windows(2).map(|pair| pair[1][1] - pair[0][1]).collect();
    let most = rises.iter().copied().max().unwrap_or(0);
    let step = rises.iter().position(|rise| *rise * 4 >= most).unwrap_or(0);
    // What one store more takes while there is room, at least a cycle; the step must be clearly more, and eight cycles.
    let before = rises[..step].iter().map(|rise| rise.abs()).sum::<i64>() / step.max(1) as i64;
    let is_flat = most < 80 || rises[step] < 4 * before.max(10);
    // Before it none may rise by an eighth.
    let doubtful = rises[..step].iter().filter(|rise| **rise * 8 > most).count() as u32;
    // If lines come one after the other, the store that found no entry waited for the first line, and no more.
    let tail = &rises[step + 1..];
    let mean = tail.iter().sum::<i64>() / tail.len().max(1) as i64;
    let passed = rises[..=step].iter().sum::<i64>();
    let is_late = mean * 2 >= most && passed * 4 > mean * 5;
    let (entries, reason) = match (is_flat || tail.len() < TAIL, doubtful) {
        (true, _) => (None, Some(NO_STEP)),
        _ if is_late => (None, Some(LATE)),
        (_, 3..) => (None, Some(UNCLEAR)),
        _ => (Some(step as u32 + 1), None),
    };
    let reason = reason.map(ToString::to_string);
    StoresFact { forward: Vec::new(), entries, reason, doubtful, evidence }
}
