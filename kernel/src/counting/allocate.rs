//! Which of an item's sets get the counters.
//!
//! A set may want the counters of several processors. It gets all of them or none: [`Owner`] decides on each, in the order
//! of the sets, and a set that loses one processor's counters gives the others back.

use super::owner::{Ask, Claim, Force, Owner, OwnerError, Right, Scope};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a set asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SetRequest {
    /// Numbers of processors, and for whom there. None: nothing is to be counted.
    pub places: Vec<(u16, Scope)>,
    /// Whether those in the way are evicted.
    pub force: bool,
    /// Whether children of its tasks are left out.
    pub alone: bool,
}

/// What comes of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Allocation {
    /// It has the counters.
    Counts,
    /// It did not get them.
    Refused {
        /// The processor on which somebody was in the way.
        cpu: u16,
        /// Why, with who has the counters.
        error: OwnerError,
    },
    /// It had them, and lost them.
    Evicted {
        /// The set that took them, by its number.
        by: usize,
        /// The processor on which that was.
        cpu: u16,
        /// The generation in which it had acquired them.
        acquired: u64,
        /// The generation that began with the eviction.
        evicted: u64,
    },
}

impl Allocation {
    /// Why it was refused, in a sentence.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Refused { cpu: 0, error } => Some(error.to_string()),
            Self::Refused { cpu, error } => Some(alloc::format!("on processor {cpu}: {error}")),
            Self::Counts | Self::Evicted { .. } => None,
        }
    }
}

/// A set with what it holds.
struct Holder {
    claims: Vec<(u16, Claim)>,
    allocation: Allocation,
}

/// Decides for all sets, one after the other. `tasks`: how many there are.
#[must_use]
pub fn allocate(requests: &[SetRequest], tasks: u16) -> Vec<Allocation> {
    let mut owners: Vec<(u16, Owner)> = Vec::new();
    let mut holders: Vec<Holder> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        for &(cpu, _) in &request.places {
            if !owners.iter().any(|(known, _)| *known == cpu) {
                owners.push((cpu, Owner::new(Ok(()), tasks)));
            }
        }
        let mut holder = Holder { claims: Vec::new(), allocation: Allocation::Counts };
        for &(cpu, scope) in &request.places {
            let force = if request.force { Force::Evict } else { Force::Ask };
            let ask = Ask { scope, right: Right::Any, force };
            match of(&mut owners, cpu).acquire(ask.scope, None, ask.right, ask.force) {
                Ok(claim) => holder.claims.push((cpu, claim)),
                Err(error) => {
                    holder.allocation = Allocation::Refused { cpu, error };
                    break;
                }
            }
        }
        if holder.allocation != Allocation::Counts {
            give_back(&mut owners, &mut holder);
        }
        holders.push(holder);
        notice(&mut owners, &mut holders, number);
    }
    holders.into_iter().map(|holder| holder.allocation).collect()
}

/// Who lost something to set `by`.
fn notice(owners: &mut [(u16, Owner)], holders: &mut [Holder], by: usize) {
    for holder in holders.iter_mut() {
        let lost = holder.claims.iter().find_map(|(cpu, claim)| {
            let OwnerError::Stale { acquired, evicted } = of(owners, *cpu).check(claim).err()?
            else {
                return None;
            };
            Some(Allocation::Evicted { by, cpu: *cpu, acquired, evicted })
        });
        if let Some(allocation) = lost {
            holder.allocation = allocation;
            give_back(owners, holder);
        }
    }
}

fn give_back(owners: &mut [(u16, Owner)], holder: &mut Holder) {
    for (cpu, claim) in holder.claims.drain(..) {
        // What was evicted has nothing to give back.
        let _ = of(owners, cpu).release(&claim);
    }
}

fn of(owners: &mut [(u16, Owner)], cpu: u16) -> &mut Owner {
    let found = owners.iter_mut().find(|(known, _)| *known == cpu);
    &mut found.expect("each processor of a request has an owner").1
}
