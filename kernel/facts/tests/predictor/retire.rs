//! What is determined of the width of retirement, by a core that issues and retires so many instructions in a cycle.

use super::{Modelled, numbers};
use facts::pipeline::retire;
use pmu_model::uarch::Parameters;

/// In place of a latency: it waits for all before it.
pub const FENCE: u64 = u64::MAX;
/// Why nothing is counted.
pub const NO_COUNTER: &str = "there is no counter here";

/// A core, and how its counter of retired instructions counts.
#[derive(Clone, Copy, Debug)]
pub struct Retirement {
    pub issue: u64,
    pub width: u64,
    /// Instructions in flight.
    pub rob: usize,
    pub counter: Counter,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counter {
    Right,
    /// It takes no notice of its counter mask.
    Unmasked,
    /// It never counts.
    Dead,
}

impl Retirement {
    /// Cycles in which at least so many retire; loads that take longer than a cycle wait for each other.
    pub fn cycles(self, latencies: &[u64], at_least: u8) -> u64 {
        match self.counter {
            Counter::Right => {}
            Counter::Unmasked => return latencies.len() as u64,
            Counter::Dead => return 0,
        }
        let (mut cycle, mut slots, mut chain) = (0, 0, 0);
        let mut retired: Vec<u64> = Vec::new();
        for (at, &latency) in latencies.iter().enumerate() {
            let last = retired.last().copied().unwrap_or(0);
            let room = at.checked_sub(self.rob).map_or(0, |at| retired[at]);
            let earliest = if latency == FENCE { room.max(last) } else { room };
            if slots == self.issue || earliest > cycle {
                (cycle, slots) = (earliest.max(cycle + 1), 0);
            }
            slots += 1;
            let done = match latency {
                FENCE | 1 => cycle + 1,
                _ => {
                    chain = cycle.max(chain) + latency;
                    chain
                }
            };
            let with_last = retired.iter().rev().take_while(|cycle| **cycle == last).count() as u64;
            let full = done <= last && with_last >= self.width;
            retired.push(done.max(last + u64::from(full)));
        }
        let same = retired.chunk_by(|one, next| one == next);
        same.filter(|all| all.len() >= at_least.into()).count() as u64
    }
}

fn told(retirement: Option<Retirement>, memory_cycles: u32) -> (Option<u32>, String) {
    let parameters = Parameters { memory_cycles, ..Parameters::DEFAULT };
    let fact = retire(&mut Modelled { retirement, ..Modelled::new(&parameters) });
    assert_eq!(fact.width.is_none(), fact.reason.is_some(), "{fact:?}");
    (fact.width, fact.reason.unwrap_or_default())
}

#[test]
fn d1_blind_recovery_of_200_random_widths_of_retirement() {
    let mut draw = numbers(9);
    for _ in 0..200 {
        let width = 1 + draw(16);
        let issue = 1 + draw(width);
        let rob = 2 * width as usize + 16 + draw(500) as usize;
        let retirement = Retirement { issue, width, rob, counter: Counter::Right };
        let memory = 100 + draw(400) as u32;
        let told = told(Some(retirement), memory);
        assert_eq!(told, (Some(width as u32), String::new()), "{retirement:?}, {memory}");
    }
}

#[test]
fn d1_no_width_of_retirement_is_told_where_no_counter_shows_it() {
    let of = |counter| Some(Retirement { issue: 4, width: 8, rob: 224, counter });
    let reason = |retirement| {
        let (width, reason) = told(retirement, 200);
        assert_eq!(width, None);
        reason
    };
    assert_eq!(reason(None), NO_COUNTER);
    assert!(reason(of(Counter::Unmasked)).contains("counter mask has no effect"));
    assert!(reason(of(Counter::Dead)).contains("does not count"));
}
