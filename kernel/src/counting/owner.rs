//! Who may count: one party for the whole processor, or any number of tasks, never both.

use arch::pmu::Missing;
use thiserror::Error;

/// For whom the counters are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// Everything that the processor does.
    System,
    /// One task, by its number.
    Task(u16),
}

/// What a party may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Right {
    /// Count itself.
    Own,
    /// Count the system, or another task, and evict others.
    Any,
}

/// How the counters are asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Force {
    /// Only if nobody else is in the way.
    Ask,
    /// Evicts whoever is in the way.
    Evict,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ask {
    /// For whom the counters are to be.
    pub scope: Scope,
    /// What the asking party may do.
    pub right: Right,
    /// Whether others are to make room.
    pub force: Force,
}

/// The right to count, until it is given back or evicted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    scope: Scope,
    number: u64,
    /// The generation in which it was acquired.
    pub generation: u64,
}

impl Claim {
    /// A claim that nobody has acquired yet.
    pub(crate) const fn nobodys(scope: Scope) -> Self {
        Self { scope, number: 0, generation: 0 }
    }

    /// For whom.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }
}

/// Why somebody may not count, in the terms of the systems before.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum OwnerError {
    /// ENODEV.
    #[error("no such device: {0}")]
    NoDevice(Missing),
    /// EINVAL.
    #[error("invalid argument: task {task} does not exist; there are {count}")]
    NoTask { task: u16, count: u16 },
    /// EPERM.
    #[error("not permitted: {0}")]
    NotPermitted(&'static str),
    /// EBUSY: tasks count.
    #[error("busy: {0} tasks count; the system can be counted when they are done, or by force")]
    TasksCount(usize),
    /// EBUSY: the system is counted.
    #[error("busy: the whole system is counted, which excludes counting of tasks")]
    SystemCounted,
    /// EBUSY: the task is counted already.
    #[error("busy: task {0} is counted already")]
    TaskCounted(u16),
    /// The counts are not of what they seem to be.
    #[error(
        "stale: the counters were acquired in generation {acquired}, and taken away in generation {evicted}"
    )]
    Stale { acquired: u64, evicted: u64 },
    /// A claim that was given back.
    #[error("the counters were given back before")]
    Released,
}

/// Most parties at a time.
pub const MAX_CLAIMS: usize = 64;

/// The owner of one processor's counters.
#[derive(Clone, Debug)]
pub struct Owner {
    available: Result<(), Missing>,
    /// Tasks that exist.
    tasks: u16,
    claims: [Option<Claim>; MAX_CLAIMS],
    last_number: u64,
    generation: u64,
    /// The last claims that were evicted, and the generation of their eviction. Older ones are told that they were
    /// given back.
    evictions: [(u64, u64); MAX_CLAIMS],
    next_eviction: usize,
}

impl Owner {
    /// Counters that nobody holds; or the reason why there are none.
    #[must_use]
    pub const fn new(available: Result<(), Missing>, tasks: u16) -> Self {
        Self {
            available,
            tasks,
            claims: [None; MAX_CLAIMS],
            last_number: 0,
            generation: 0,
            evictions: [(0, 0); MAX_CLAIMS],
            next_eviction: 0,
        }
    }

    /// How often somebody was evicted.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes the counters for `scope`, in the name of `task` (`None`: the kernel).
    ///
    /// # Errors
    /// No PMU, no such task, no right to, or somebody else holds them.
    pub fn acquire(
        &mut self,
        scope: Scope,
        by: Option<u16>,
        right: Right,
        force: Force,
    ) -> Result<Claim, OwnerError> {
        self.available.map_err(OwnerError::NoDevice)?;
        if let Scope::Task(task) = scope
            && task >= self.tasks
        {
            return Err(OwnerError::NoTask { task, count: self.tasks });
        }
        if right == Right::Own {
            match scope {
                Scope::System => {
                    return Err(OwnerError::NotPermitted("counting the system needs the right to"));
                }
                Scope::Task(task) if by != Some(task) => {
                    let what = "counting another task needs the right to";
                    return Err(OwnerError::NotPermitted(what));
                }
                Scope::Task(_) if force == Force::Evict => {
                    return Err(OwnerError::NotPermitted("evicting others needs the right to"));
                }
                Scope::Task(_) => {}
            }
        }
        let in_the_way = |claim: &Claim| match (claim.scope, scope) {
            (Scope::Task(held), Scope::Task(wanted)) => held == wanted,
            _ => true,
        };
        let hindering = self.claims.iter().flatten().filter(|claim| in_the_way(claim));
        if let Some(first) = hindering.clone().next() {
            match (force, first.scope, scope) {
                (Force::Evict, ..) => {}
                (_, Scope::System, _) => return Err(OwnerError::SystemCounted),
                (_, Scope::Task(_), Scope::System) => {
                    return Err(OwnerError::TasksCount(hindering.count()));
                }
                (_, Scope::Task(task), _) => return Err(OwnerError::TaskCounted(task)),
            }
            self.generation += 1;
            for slot in &mut self.claims {
                if let Some(claim) = slot.filter(in_the_way) {
                    self.evictions[self.next_eviction] = (claim.number, self.generation);
                    self.next_eviction = (self.next_eviction + 1) % MAX_CLAIMS;
                    *slot = None;
                }
            }
        }
        let free = self.claims.iter_mut().find(|slot| slot.is_none());
        let slot = free.ok_or(OwnerError::TasksCount(MAX_CLAIMS))?;
        self.last_number += 1;
        let claim = Claim { scope, number: self.last_number, generation: self.generation };
        *slot = Some(claim);
        Ok(claim)
    }

    /// Whether the claim still holds: to be asked before and after its counts are read.
    ///
    /// # Errors
    /// It was evicted, and when; or given back.
    pub fn check(&self, claim: &Claim) -> Result<(), OwnerError> {
        if self.claims.contains(&Some(*claim)) {
            return Ok(());
        }
        let evicted = self.evictions.iter().find(|(number, _)| *number == claim.number);
        Err(evicted.map_or(OwnerError::Released, |&(_, evicted)| OwnerError::Stale {
            acquired: claim.generation,
            evicted,
        }))
    }

    /// Gives the counters back.
    ///
    /// # Errors
    /// As for [`Owner::check`].
    pub fn release(&mut self, claim: &Claim) -> Result<(), OwnerError> {
        self.check(claim)?;
        let slot = self.claims.iter_mut().find(|slot| **slot == Some(*claim));
        *slot.ok_or(OwnerError::Released)? = None;
        Ok(())
    }

    /// Gives back whatever `task` holds, as when it dies.
    pub fn task_exits(&mut self, task: u16) {
        for slot in &mut self.claims {
            if slot.is_some_and(|claim| claim.scope == Scope::Task(task)) {
                *slot = None;
            }
        }
    }
}
