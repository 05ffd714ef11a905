//! Which of an item's sets have the counters, from before its tasks start to their end.
//!
//! A set may want the counters of several processors. It gets all of them or none: [`Owner`] decides on each, in the order
//! of the sets, and a set that loses one processor's counters gives the others back. One that waits gets them when they are
//! free, in the order in which they began to wait.
//!
//! Each processor has a [`Ledger`] of its own, of all sets. All are told of the same moments in the same order, so that they
//! agree without asking each other: times are the same on all, and sets that markers are for have one processor each.

use super::allocate::{Allocation, Evicted, SetRequest};
use super::owner::{Claim, Force, Owner, OwnerError, Right, Scope};
use alloc::vec::Vec;
use protocol::job::count::When;

/// A set with what it holds.
#[derive(Clone, Debug)]
struct Holder {
    request: SetRequest,
    /// Room for all of its places.
    claims: Vec<(u16, Claim)>,
    allocation: Allocation,
    /// How it lost them last, if it has not had them since.
    evicted: Option<Evicted>,
}

/// Who has the counters of which processors.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    owners: Vec<(u16, Owner)>,
    holders: Vec<Holder>,
    /// Those that wait, who came first first.
    queue: Vec<usize>,
}

impl Ledger {
    /// Nobody has asked yet. `tasks`: how many there are. Nothing allocates from here on.
    #[must_use]
    pub fn new(requests: Vec<SetRequest>, tasks: u16) -> Self {
        let mut owners: Vec<(u16, Owner)> = Vec::new();
        for &(cpu, _) in requests.iter().flat_map(|request| &request.places) {
            if !owners.iter().any(|(known, _)| *known == cpu) {
                owners.push((cpu, Owner::new(Ok(()), tasks)));
            }
        }
        let holder = |request: SetRequest| Holder {
            claims: Vec::with_capacity(request.places.len()),
            request,
            allocation: Allocation::Awaited,
            evicted: None,
        };
        let queue = Vec::with_capacity(requests.len());
        Self { owners, holders: requests.into_iter().map(holder).collect(), queue }
    }

    /// The tasks are about to start: sets without another moment ask, in their order.
    pub fn begin(&mut self) {
        for number in 0..self.holders.len() {
            if self.holders[number].request.schedule.at.is_none() {
                self.ask(number);
            }
        }
        self.serve();
    }

    /// Something happens, on the processor `here` alone if it says one. Sets that end give their counters back, those that
    /// wait get them, and those that begin ask, in this order. Returns whether it was any set's moment.
    pub fn happens(&mut self, is_now: impl Fn(When) -> bool, here: Option<u16>) -> bool {
        let concerns = |request: &SetRequest, when: Option<When>| {
            let there = |(cpu, _): &(u16, Scope)| here.is_none_or(|here| here == *cpu);
            when.is_some_and(&is_now) && request.places.iter().all(there)
        };
        let mut any = false;
        for number in 0..self.holders.len() {
            let Holder { request, claims, allocation, evicted } = &mut self.holders[number];
            if concerns(request, request.schedule.until) {
                any = true;
                self.queue.retain(|waits| *waits != number);
                if matches!(allocation, Allocation::Counts | Allocation::Waits { .. }) {
                    (*allocation, *evicted) = (Allocation::Released, None);
                }
                give_back(&mut self.owners, claims);
            }
        }
        if any {
            self.serve();
        }
        for number in 0..self.holders.len() {
            let request = &self.holders[number].request;
            if concerns(request, request.schedule.at) {
                any = true;
                self.ask(number);
            }
        }
        if any {
            self.serve();
        }
        any
    }

    /// The owner of a processor's counters. Nobody wants any there: `None`.
    #[must_use]
    pub fn owner(&self, cpu: u16) -> Option<&Owner> {
        self.owners.iter().find(|(known, _)| *known == cpu).map(|(_, owner)| owner)
    }

    /// What a set asks for.
    #[must_use]
    pub fn request(&self, number: usize) -> &SetRequest {
        &self.holders[number].request
    }

    /// What a set holds on a processor, in the order of its places there; nothing while it has no counters.
    pub fn claims(&self, number: usize, cpu: u16) -> impl Iterator<Item = Claim> + '_ {
        let claims = self.holders[number].claims.iter();
        claims.filter(move |(place, _)| *place == cpu).map(|(_, claim)| *claim)
    }

    /// How it stands with a set.
    #[must_use]
    pub fn allocation(&self, number: usize) -> &Allocation {
        &self.holders[number].allocation
    }

    /// How a set lost the counters last, if it has not had them since.
    #[must_use]
    pub fn evicted(&self, number: usize) -> Option<Evicted> {
        self.holders[number].evicted
    }

    /// Whether a set has or may get counters.
    #[must_use]
    pub fn may_count(&self, number: usize) -> bool {
        let Holder { request, allocation, .. } = &self.holders[number];
        let later = request.schedule.at.is_some() || request.schedule.wait;
        !request.places.is_empty() && (*allocation == Allocation::Counts || later)
    }

    /// A set asks for the counters. One that has them has asked before, as has one that waits, unless it can do more than wait.
    fn ask(&mut self, number: usize) {
        let force = self.holders[number].request.force;
        let queued = self.queue.iter().position(|waits| *waits == number);
        if self.holders[number].allocation == Allocation::Counts || queued.is_some() && !force {
            return;
        }
        if let Some(place) = queued {
            self.queue.remove(place);
        }
        let force = if force { Force::Evict } else { Force::Ask };
        match self.acquire(number, force) {
            Ok(()) => self.notice(number),
            Err((cpu, error)) if self.holders[number].request.schedule.wait => {
                self.holders[number].allocation = Allocation::Waits { cpu, error };
                self.queue.push(number);
            }
            Err((cpu, error)) => {
                self.holders[number].allocation = Allocation::Refused { cpu, error };
            }
        }
    }

    /// All places of a set, or none.
    fn acquire(&mut self, number: usize, force: Force) -> Result<(), (u16, OwnerError)> {
        let Holder { request, claims, allocation, evicted } = &mut self.holders[number];
        for &(cpu, scope) in &request.places {
            match of(&mut self.owners, cpu).acquire(scope, None, Right::Any, force) {
                Ok(claim) => claims.push((cpu, claim)),
                Err(error) => {
                    give_back(&mut self.owners, claims);
                    return Err((cpu, error));
                }
            }
        }
        (*allocation, *evicted) = (Allocation::Counts, None);
        Ok(())
    }

    /// Who lost something to set `by`.
    fn notice(&mut self, by: usize) {
        let (owners, queue) = (&mut self.owners, &mut self.queue);
        for (number, holder) in self.holders.iter_mut().enumerate() {
            let lost = holder.claims.iter().find_map(|(cpu, claim)| {
                let error = of(owners, *cpu).check(claim).err()?;
                let OwnerError::Stale { acquired, evicted } = error else { return None };
                Some((Evicted { by, cpu: *cpu, acquired, evicted }, error))
            });
            let Some((lost, error)) = lost else { continue };
            holder.evicted = Some(lost);
            holder.allocation = Allocation::Evicted(lost);
            if holder.request.schedule.wait {
                holder.allocation = Allocation::Waits { cpu: lost.cpu, error };
                queue.push(number);
            }
            give_back(owners, &mut holder.claims);
        }
    }

    /// Those that wait get what is free.
    fn serve(&mut self) {
        let mut place = 0;
        while let Some(&number) = self.queue.get(place) {
            match self.acquire(number, Force::Ask) {
                Ok(()) => {
                    self.queue.remove(place);
                }
                Err((cpu, error)) => {
                    self.holders[number].allocation = Allocation::Waits { cpu, error };
                    place += 1;
                }
            }
        }
    }
}

fn give_back(owners: &mut [(u16, Owner)], claims: &mut Vec<(u16, Claim)>) {
    for (cpu, claim) in claims.drain(..) {
        // What was evicted has nothing to give back.
        let _ = of(owners, cpu).release(&claim);
    }
}

fn of(owners: &mut [(u16, Owner)], cpu: u16) -> &mut Owner {
    let found = owners.iter_mut().find(|(known, _)| *known == cpu);
    &mut found.expect("each processor of a request has an owner").1
}
