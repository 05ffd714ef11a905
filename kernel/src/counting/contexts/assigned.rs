//! Bindings that a plan gives the counters to and takes them from while tasks run.

use super::{Binding, ContextError, Contexts, NOBODY};
use crate::counting::owner::{Claim, Owner, OwnerError, Scope};
use crate::counting::{CountingError, Counts, Platform, Run, Session, Set};
use arch::pmu::Driver;

impl Contexts {
    /// A set that is to have the counters later, for `scope`. What takes memory, or may be refused by the PMU, is done here.
    /// Returns the number of the binding.
    ///
    /// # Errors
    /// The PMU refuses the set.
    pub fn prepare(
        &mut self,
        set: Set,
        run: Run,
        driver: Driver,
        (scope, alone): (Scope, bool),
        platform: &mut dyn Platform,
    ) -> Result<usize, ContextError> {
        let mut binding = self.try_on(set, run, driver, Claim::nobodys(scope), platform)?;
        (binding.valid, binding.is_prepared, binding.alone) = (false, true, alone);
        self.bindings.push(binding);
        Ok(self.bindings.len() - 1)
    }

    /// From here on the counters are whose `owner` says, and bindings have the `claims`, by their numbers. Those that lost
    /// them keep their counts. Allocates nothing.
    ///
    /// # Errors
    /// A register refuses.
    pub fn assign(
        &mut self,
        owner: &Owner,
        claims: impl Iterator<Item = (usize, Claim)>,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        self.owner.clone_from(owner);
        for (number, claim) in claims {
            if let Some(binding) = self.bindings.get_mut(number) {
                binding.claim = claim;
            }
        }
        self.owners_changed();
        self.switch_to(self.current, platform)
    }

    /// The claim of a binding, valid or not.
    #[must_use]
    pub fn claim(&self, number: usize) -> Option<Claim> {
        Some(self.bindings.get(number)?.claim)
    }

    /// The claim on the system that holds, if there is one.
    #[must_use]
    pub fn system(&self) -> Option<Claim> {
        let holder = *self.holders.last()?;
        Some(self.bindings.get(holder)?.claim)
    }

    /// The generations of a claim that does not count any more: of its acquisition, and of its eviction; if nobody evicted it,
    /// the one now.
    #[must_use]
    pub fn ended(&self, claim: &Claim) -> [u64; 2] {
        match self.owner.check(claim) {
            Err(OwnerError::Stale { acquired, evicted }) => [acquired, evicted],
            _ => [claim.generation, self.owner.generation()],
        }
    }

    /// The session of a binding, which may have no counters.
    #[must_use]
    pub fn session_of(&mut self, number: usize) -> Option<&mut Session> {
        Some(&mut self.bindings.get_mut(number)?.session)
    }

    /// What each task came to under a binding, while that had the counters, and after them the kernel.
    ///
    /// # Errors
    /// A register refuses.
    pub fn counts(
        &mut self,
        number: usize,
        platform: &mut dyn Platform,
    ) -> Result<&[Counts], CountingError> {
        self.flush(platform)?;
        Ok(self.bindings.get(number).map_or(&[], |binding| &binding.counts))
    }

    /// Adds what each request of a binding came to in all to `to`.
    ///
    /// # Errors
    /// A register refuses.
    pub fn add_raw(
        &mut self,
        number: usize,
        to: &mut [u64],
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        self.flush(platform)?;
        let Some(Binding { session, scratch, .. }) = self.bindings.get_mut(number) else {
            return Ok(());
        };
        session.sample(platform, scratch)?;
        for (to, count) in to.iter_mut().zip(scratch.counts()) {
            *to = to.wrapping_add(count.raw);
        }
        Ok(())
    }

    /// Nobody has the counters.
    ///
    /// # Errors
    /// A register refuses.
    pub fn give_up(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.bindings.iter_mut().for_each(|binding| binding.valid = false);
        self.holders.fill(NOBODY);
        self.switch_to(self.current, platform)
    }
}
