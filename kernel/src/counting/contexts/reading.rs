//! What tasks and the kernel came to under a claim.

use super::Contexts;
use super::error::ContextError;
use crate::counting::owner::{Claim, OwnerError};
use crate::counting::{Count, Counts, Platform, Session};

impl Contexts {
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
}
