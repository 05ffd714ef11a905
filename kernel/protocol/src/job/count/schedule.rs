//! When a set of a count has the counters.

use serde::{Deserialize, Serialize};

/// Something that happens while tasks run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum When {
    /// The first tick at which so many microseconds are over since counting began.
    Microseconds(u64),
    /// A task has executed `int 0x86` with this number in EAX.
    Marker(u32),
}

impl When {
    /// The number of the tick at which it happens, counted from 1, if ticks come every `tick_ns`. `None`: it is none.
    #[must_use]
    pub const fn tick(&self, tick_ns: u64) -> Option<u64> {
        match *self {
            Self::Microseconds(us) if tick_ns > 0 => {
                Some((us as u128 * 1_000).div_ceil(tick_ns as u128) as u64)
            }
            _ => None,
        }
    }
}

/// When a set wants the counters. The default: from before the tasks start to their end, and only if they are free then.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Schedule {
    /// It asks for them then, each time that this happens; `None`: before the tasks start.
    pub at: Option<When>,
    /// It gives them back then, each time; `None`: with the end of the tasks.
    pub until: Option<When>,
    /// If somebody else has them, or takes them, it gets them when they are given back.
    pub wait: bool,
}

impl Schedule {
    /// What happens at its moments, where it has any.
    pub fn moments(&self) -> impl Iterator<Item = When> {
        [self.at, self.until].into_iter().flatten()
    }

    /// Whether it says anything.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
