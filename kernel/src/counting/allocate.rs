//! What an item's sets ask for, and what comes of it.

use super::owner::{OwnerError, Scope};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::count::Schedule;

/// What a set asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SetRequest {
    /// Numbers of processors, and for whom there. None: nothing is to be counted.
    pub places: Vec<(u16, Scope)>,
    /// Whether those in the way are evicted.
    pub force: bool,
    /// Whether children of its tasks are left out.
    pub alone: bool,
    /// When.
    pub schedule: Schedule,
}

/// What comes of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Allocation {
    /// It has not asked yet.
    Awaited,
    /// It has the counters.
    Counts,
    /// It did not get them.
    Refused {
        /// The processor on which somebody was in the way.
        cpu: u16,
        /// Why, with who has the counters.
        error: OwnerError,
    },
    /// It waits until they are given back.
    Waits {
        /// The processor on which somebody is in the way.
        cpu: u16,
        /// Who has the counters.
        error: OwnerError,
    },
    /// It had them, and lost them.
    Evicted(Evicted),
    /// It had them, and gave them back.
    Released,
}

/// How a set lost the counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Evicted {
    /// The set that took them, by its number.
    pub by: usize,
    /// The processor on which that was.
    pub cpu: u16,
    /// The generation in which it had acquired them.
    pub acquired: u64,
    /// The generation that began with the eviction.
    pub evicted: u64,
}

impl Allocation {
    /// Why it does not count, in a sentence, if nobody has evicted it.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let on = |cpu, error: &OwnerError| match cpu {
            0 => error.to_string(),
            _ => alloc::format!("on processor {cpu}: {error}"),
        };
        match self {
            Self::Refused { cpu, error } => Some(on(*cpu, error)),
            Self::Waits { cpu, error } => {
                Some(alloc::format!("it waited to the end; {}", on(*cpu, error)))
            }
            Self::Awaited => Some("its time or marker never came on its processor".to_string()),
            Self::Counts | Self::Evicted(_) | Self::Released => None,
        }
    }
}
