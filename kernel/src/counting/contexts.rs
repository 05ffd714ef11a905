//! Counts that follow tasks.
//!
//! The scheduler tells of what happens, interrupts off, and each set's counts between two switches go to the task that
//! ran. Hardware counters are given from one set to another at a switch only if the two tasks are counted by different
//! sets; else they run on, and a switch costs one read of each.

mod assigned;
mod control;

pub use control::Standing;

use super::charged::Charged;
use super::owner::{Ask, Claim, Force, Owner, OwnerError, Right, Scope};
use super::{Count, CountingError, Counts, Platform, Run, Session, Set, SetError};
use crate::tasks::Family;
use alloc::vec::Vec;
use arch::pmu::Driver;
use thiserror::Error;

/// Why a binding's counts cannot be had.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ContextError {
    /// Somebody else holds the counters, or holds them now.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The counting itself.
    #[error(transparent)]
    Counting(#[from] CountingError),
    /// Something came into each try of a snapshot.
    #[error("there is no consistent snapshot: system management interrupts come too fast")]
    Unsettled,
}

impl From<SetError> for ContextError {
    fn from(error: SetError) -> Self {
        Self::Counting(error.into())
    }
}

/// A set that counts for somebody.
#[derive(Clone, Debug)]
struct Binding {
    session: Session,
    claim: Claim,
    /// Whether the claim holds, as of the last change of owners: a switch does not ask them all.
    valid: bool,
    /// Whether it may get the counters and lose them while tasks run ([`Contexts::prepare`]).
    is_prepared: bool,
    /// Whether each task is counted; for the system, all are.
    counted: Vec<bool>,
    /// What each task came to, its children that have exited included, and after them what ran in no task.
    counts: Vec<Counts>,
    /// How much of that each task has from others that have exited.
    inherited: Vec<Counts>,
    /// Whether children of tasks that are counted are left out.
    alone: bool,
    /// Whether it was told to stand still.
    stopped: bool,
    /// Up to here everything has gone to somebody.
    last: Charged,
    scratch: Counts,
}

/// In place of a binding's number: none has the counters.
const NOBODY: usize = usize::MAX;

/// The contexts of all tasks on one processor.
#[derive(Clone, Debug)]
pub struct Contexts {
    owner: Owner,
    tasks: u16,
    bindings: Vec<Binding>,
    current: Option<u16>,
    /// The binding that has the counters, or [`NOBODY`].
    loaded: usize,
    /// The binding that is to have them while each task runs, or after these the kernel; likewise.
    holders: Vec<usize>,
    family: Family,
    switches: u64,
    /// Whether nobody is to have the counters.
    halted: bool,
}

impl Contexts {
    /// Contexts for so many tasks.
    #[must_use]
    pub fn new(owner: Owner, tasks: u16) -> Self {
        let holders = alloc::vec![NOBODY; usize::from(tasks) + 1];
        let (current, loaded) = (None, NOBODY);
        let (bindings, family) = (Vec::new(), Family::new(tasks));
        Self {
            owner,
            tasks,
            bindings,
            current,
            loaded,
            holders,
            family,
            switches: 0,
            halted: false,
        }
    }

    /// Switches between tasks, and between tasks and the kernel, that were told.
    #[must_use]
    pub const fn switches(&self) -> u64 {
        self.switches
    }

    /// Lets `set` count from here on, with the counters of `driver`, for whom `ask` says. A child of a task that is
    /// counted is counted as well, if it is created later.
    ///
    /// # Errors
    /// Somebody is in the way, and counts on; or the PMU refuses the set. Whoever was evicted for it stays so.
    pub fn bind(
        &mut self,
        set: Set,
        run: Run,
        driver: Driver,
        ask: Ask,
        platform: &mut dyn Platform,
    ) -> Result<Claim, ContextError> {
        let Ask { scope, right, force } = ask;
        // A task that is counted as another's child has no claim of its own.
        if let Scope::Task(task) = scope {
            let heir = |binding: &&mut Binding| {
                let held = binding.claim.scope();
                binding.valid
                    && held != scope
                    && held != Scope::System
                    && binding.counts(Some(task))
            };
            if let Some(binding) = self.bindings.iter_mut().find(heir) {
                match (force, right) {
                    (Force::Evict, Right::Any) => binding.counted[usize::from(task)] = false,
                    _ => return Err(OwnerError::TaskCounted(task).into()),
                }
            }
        }
        let claim = self.owner.acquire(scope, self.current, right, force)?;
        // The registers are free while the set is tried on them.
        self.flush(platform)?;
        if let Some(binding) = self.bindings.get_mut(self.loaded) {
            self.loaded = NOBODY;
            binding.session.suspend(platform)?;
        }
        let bound = self.try_on(set, run, driver, claim, platform);
        let done = match bound {
            Ok(binding) => {
                self.bindings.push(binding);
                Ok(claim)
            }
            Err(error) => {
                self.owner.release(&claim)?;
                Err(error)
            }
        };
        self.owners_changed();
        self.switch_to(self.current, platform)?;
        done
    }

    /// A session that stands still and holds no counter.
    fn try_on(
        &self,
        set: Set,
        run: Run,
        driver: Driver,
        claim: Claim,
        platform: &mut dyn Platform,
    ) -> Result<Binding, ContextError> {
        let mut session = Session::bind(set, run, driver, platform)?;
        session.suspend(platform)?;
        let counts = Counts::new(session.set());
        let mut start = counts.clone();
        session.sample(platform, &mut start)?;
        let counted = (0..self.tasks).map(|task| match claim.scope() {
            Scope::System => true,
            Scope::Task(one) => one == task,
        });
        Ok(Binding {
            claim,
            valid: true,
            is_prepared: false,
            counted: counted.collect(),
            inherited: alloc::vec![counts.clone(); usize::from(self.tasks)],
            alone: false,
            stopped: false,
            counts: alloc::vec![counts; self.holders.len()],
            scratch: start.clone(),
            last: Charged::new(start),
            session,
        })
    }

    /// Gives the counters of a claim back.
    ///
    /// # Errors
    /// It was evicted, or a register refuses.
    pub fn unbind(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.owner.check(claim)?;
        self.owner.release(claim)?;
        self.owners_changed();
        Ok(self.switch_to(self.current, platform)?)
    }

    /// A task has begun. Its counts are zero; if its parent is counted, so is the task.
    pub fn created(&mut self, task: u16, parent: Option<u16>) {
        if task >= self.tasks {
            return;
        }
        self.family.created(task, parent);
        // A set of its own comes before the parent's.
        let own = self.bindings.iter().any(|binding| binding.valid && binding.counts(Some(task)));
        for binding in &mut self.bindings {
            // A binding that may get the counters later is one then of the children that exist by that time.
            let may_count = binding.is_prepared || (binding.valid && !own);
            let inherits = may_count
                && !binding.alone
                && parent.is_some_and(|parent| binding.counts(Some(parent)));
            let index = usize::from(task);
            if binding.claim.scope() != Scope::System {
                binding.counted[index] |= inherits;
            }
            binding.counts[index].zero();
            binding.inherited[index].zero();
        }
        self.find_holders();
    }

    /// `from` ran until now, `to` runs from here on; `None` is the kernel.
    ///
    /// # Errors
    /// A register refuses.
    pub fn switched(
        &mut self,
        from: Option<u16>,
        to: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        self.current = from;
        self.switches += 1;
        self.switch_to(to, platform)
    }

    /// The same of two tasks, if both are counted by the set that has the counters and nothing has overflowed. Returns whether
    /// that is so; else [`Contexts::switched`] is to be told.
    #[inline]
    pub fn switched_planned(&mut self, from: u16, to: u16, platform: &mut impl Platform) -> bool {
        let [from, place] = [usize::from(from), usize::from(to)];
        let Some(&holder) = self.holders.get(place) else { return false };
        if holder != self.loaded {
            return false;
        }
        let Some(Binding { session, counts, last, .. }) = self.bindings.get_mut(holder) else {
            return false;
        };
        let Some(ran) = counts.get_mut(from) else { return false };
        if !platform.charge(session, last, ran) {
            return false;
        }
        self.switches += 1;
        self.current = Some(to);
        true
    }

    /// Who runs.
    #[must_use]
    pub const fn current(&self) -> Option<u16> {
        self.current
    }

    /// Where `task` is among the tasks; `None` is behind them.
    #[inline]
    fn place(&self, task: Option<u16>) -> usize {
        place(self.tasks, task)
    }

    /// A task is gone: its counts are added to its heir's.
    ///
    /// # Errors
    /// A register refuses.
    pub fn exited(
        &mut self,
        task: u16,
        heir: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        if self.current == Some(task) {
            self.flush(platform)?;
        }
        self.family.gone(task, heir);
        for binding in &mut self.bindings {
            let Some(heir) = heir.filter(|&heir| binding.counts(Some(heir))) else {
                continue;
            };
            let places = [usize::from(task), usize::from(heir)];
            if let Ok([child, heir]) = binding.counts.get_disjoint_mut(places) {
                heir.add(child)?;
                binding.inherited[places[1]].add(child)?;
            }
        }
        Ok(())
    }

    /// Leaves out children of the tasks of a claim that come into being from here on, or counts them.
    ///
    /// # Errors
    /// The claim was evicted.
    pub fn leave_children_out(&mut self, claim: &Claim, alone: bool) -> Result<(), ContextError> {
        self.held(claim)?.alone = alone;
        Ok(())
    }

    /// The claim under which a task is counted now, if there is one.
    #[must_use]
    pub fn counts_of(&self, task: u16) -> Option<Claim> {
        let holder = *self.holders.get(usize::from(task))?;
        Some(self.bindings.get(holder)?.claim)
    }

    /// What a task came to by itself under a claim, and what its descendants did, those that have exited and those that are
    /// there: the count of one request. `None`: the set has no such request, or there is no such task.
    ///
    /// # Errors
    /// The claim was evicted, or a register refuses.
    pub fn family(
        &mut self,
        claim: &Claim,
        task: u16,
        request: usize,
        platform: &mut dyn Platform,
    ) -> Result<Option<[Count; 2]>, ContextError> {
        self.flush(platform)?;
        self.owner.check(claim)?;
        let binding = self.bindings.iter().find(|binding| binding.claim == *claim);
        let binding = binding.ok_or(OwnerError::Released)?;
        Ok(binding.family(task, self.family.descendants(task), request))
    }

    /// The timer has ticked while `task` ran: the next of the requests that take turns, of whoever has the counters, or
    /// else of whoever is to have them when the task goes on.
    ///
    /// # Errors
    /// A register refuses.
    pub fn tick(
        &mut self,
        task: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        if let Some(binding) = self.bindings.get_mut(self.loaded) {
            return Ok(binding.session.slice(platform)?);
        }
        let own = self.bindings.iter_mut().find(|binding| binding.valid && binding.counts(task));
        if let Some(Binding { session, stopped, .. }) = own
            && session.set().groups().len() > 1
            && !session.has_ended()
            && !*stopped
        {
            session.next(platform)?;
            session.suspend(platform)?;
        }
        Ok(())
    }

    /// The PMU's interrupt, after the handler.
    ///
    /// # Errors
    /// A register refuses.
    pub fn interrupt(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        match self.bindings.get_mut(self.loaded) {
            Some(binding) => Ok(binding.session.interrupt(platform)?),
            None => Ok(()),
        }
    }

    /// What a task came to under a claim, its exited children included.
    ///
    /// # Errors
    /// The claim was evicted: the reader is told, and gets no counts that somebody else's events are in.
    pub fn task(
        &mut self,
        claim: &Claim,
        task: u16,
        platform: &mut dyn Platform,
    ) -> Result<&Counts, ContextError> {
        self.flush(platform)?;
        let tasks = self.tasks;
        let counts = &self.held(claim)?.counts[..usize::from(tasks)];
        Ok(counts.get(usize::from(task)).ok_or(OwnerError::NoTask { task, count: tasks })?)
    }

    /// What each task came to under a claim, by their numbers; read once.
    ///
    /// # Errors
    /// The claim was evicted.
    pub fn tasks(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<&[Counts], ContextError> {
        self.flush(platform)?;
        let tasks = usize::from(self.tasks);
        Ok(&self.held(claim)?.counts[..tasks])
    }

    /// What the kernel itself came to under a claim on the system.
    ///
    /// # Errors
    /// The claim was evicted.
    pub fn kernel(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<&Counts, ContextError> {
        self.flush(platform)?;
        let kernel = self.place(None);
        Ok(&self.held(claim)?.counts[kernel])
    }

    /// The session of a claim: what it counted in all.
    ///
    /// # Errors
    /// The claim was evicted.
    pub fn session(&mut self, claim: &Claim) -> Result<&mut Session, ContextError> {
        Ok(&mut self.held(claim)?.session)
    }

    fn owners_changed(&mut self) {
        for binding in &mut self.bindings {
            binding.valid = self.owner.check(&binding.claim).is_ok();
        }
        self.find_holders();
    }

    /// Which binding is to have the counters when. To be called when one comes or goes, or counts a task more or less.
    fn find_holders(&mut self) {
        for (place, holder) in self.holders.iter_mut().enumerate() {
            let task = Some(place as u16).filter(|&task| task < self.tasks);
            // A set of its own comes before the parent's.
            let own = |binding: &Binding| {
                binding.valid && task.is_some_and(|task| binding.claim.scope() == Scope::Task(task))
            };
            let counts = |binding: &Binding| binding.valid && binding.counts(task);
            let mut all = self.bindings.iter();
            let found = all.position(own).or_else(|| self.bindings.iter().position(counts));
            *holder = found.unwrap_or(NOBODY);
        }
    }

    fn held(&mut self, claim: &Claim) -> Result<&mut Binding, OwnerError> {
        self.owner.check(claim)?;
        let found = self.bindings.iter_mut().find(|binding| binding.claim == *claim);
        found.ok_or(OwnerError::Released)
    }

    /// What was counted since the last time goes to whom it is due.
    fn flush(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        let ran = self.place(self.current);
        let Some(binding) = self.bindings.get_mut(self.loaded) else { return Ok(()) };
        let Binding { session, counts, last, scratch, .. } = binding;
        let ran = &mut counts[ran];
        if platform.charge(session, last, ran) {
            return Ok(());
        }
        session.sample(platform, scratch)?;
        ran.add_between(last.counts(), scratch);
        Ok(last.up_to(scratch)?)
    }

    /// Gives the counters to whoever counts `to`, and what was counted up to here to who ran. Bindings that were evicted
    /// have the counters no more.
    fn switch_to(
        &mut self,
        to: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        let next = self.holders[self.place(to)];
        if next == self.loaded {
            self.flush(platform)?;
            self.current = to;
            return Ok(());
        }
        self.take_counters(platform)?;
        self.current = to;
        if self.halted {
            return Ok(());
        }
        if let Some(Binding { session, stopped, .. }) = self.bindings.get_mut(next)
            && !session.has_ended()
            && !*stopped
        {
            session.start(platform)?;
            self.loaded = next;
        }
        Ok(())
    }
}

/// The place of `task` among so many; of the kernel, which `None` is, after them.
#[inline]
fn place(tasks: u16, task: Option<u16>) -> usize {
    usize::from(task.unwrap_or(tasks))
}

impl Binding {
    /// The counts of a task alone and of its descendants.
    fn family(
        &self,
        task: u16,
        descendants: impl Iterator<Item = u16>,
        request: usize,
    ) -> Option<[Count; 2]> {
        let of = |counts: &[Counts], task: u16| {
            counts.get(usize::from(task))?.counts().get(request).copied()
        };
        let mut children = of(&self.inherited, task)?;
        let mut own = Count::default();
        own.add_between(&children, &of(&self.counts, task)?);
        for descendant in descendants {
            children.add_between(&Count::default(), &of(&self.counts, descendant)?);
        }
        Some([own, children])
    }

    fn counts(&self, task: Option<u16>) -> bool {
        match task {
            None => self.claim.scope() == Scope::System,
            Some(task) => self.counted.get(usize::from(task)).copied().unwrap_or(false),
        }
    }
}
