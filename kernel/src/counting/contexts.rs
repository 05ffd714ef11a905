//! Counts that follow tasks.
//!
//! The scheduler tells of what happens, interrupts off, and each set's counts between two switches go to the task that
//! ran. Hardware counters are given from one set to another at a switch only if the two tasks are counted by different
//! sets; else they run on, and a switch costs one read of each.

mod assigned;
mod binding;
mod control;
mod error;
mod owners;
mod reading;

pub use control::Standing;
pub use error::ContextError;

use super::owner::{Owner, Scope};
use super::{CountingError, Platform};
use crate::tasks::Family;
use alloc::vec::Vec;
use binding::Binding;

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
    #[inline(always)]
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
        if let Some(Binding { session, stopped, .. }) = self.bindings.get_mut(self.loaded) {
            session.slice(platform)?;
            *stopped |= session.was_stopped_by_overflow();
            return Ok(());
        }
        let own = self.holders[self.place(task)];
        if let Some(Binding { session, stopped, .. }) = self.bindings.get_mut(own)
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
            Some(Binding { session, stopped, .. }) => {
                session.interrupt(platform)?;
                // Not even when the task, or another one of the set's, has the processor again.
                *stopped |= session.was_stopped_by_overflow();
                Ok(())
            }
            None => Ok(()),
        }
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
