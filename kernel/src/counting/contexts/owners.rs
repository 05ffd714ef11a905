//! Who has the counters when: binding and unbinding.

use super::binding::Binding;
use super::error::ContextError;
use super::{Contexts, NOBODY};
use crate::counting::charged::Charged;
use crate::counting::owner::{Ask, Claim, Force, OwnerError, Right, Scope};
use crate::counting::{Counts, Platform, Run, Session, Set};
use arch::pmu::Driver;

impl Contexts {
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
    pub(super) fn try_on(
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

    pub(super) fn owners_changed(&mut self) {
        for binding in &mut self.bindings {
            binding.valid = self.owner.check(&binding.claim).is_ok();
        }
        self.find_holders();
    }

    /// Which binding is to have the counters when. To be called when one comes or goes, or counts a task more or less.
    pub(super) fn find_holders(&mut self) {
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

    pub(super) fn held(&mut self, claim: &Claim) -> Result<&mut Binding, OwnerError> {
        self.owner.check(claim)?;
        let found = self.bindings.iter_mut().find(|binding| binding.claim == *claim);
        found.ok_or(OwnerError::Released)
    }
}
