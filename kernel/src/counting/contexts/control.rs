//! What somebody at the console does with bindings while tasks run. Told in the kernel, between two tasks.

use super::{Binding, ContextError, Contexts, NOBODY};
use crate::counting::owner::{Claim, OwnerError};
use crate::counting::{Count, CountingError, Platform, Request, SetError};
use crate::events::Known;

/// Whether a binding may have the counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It counts whenever what it is bound to runs.
    Counts,
    /// It was stopped.
    Stopped,
    /// It has ended.
    Ended,
}

impl Contexts {
    /// Nothing counts until [`Contexts::go_on`], whoever is switched to.
    ///
    /// # Errors
    /// A register refuses.
    pub fn halt(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.halted = true;
        self.take_counters(platform)
    }

    /// Counting goes on where it halted.
    ///
    /// # Errors
    /// A register refuses.
    pub fn go_on(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.halted = false;
        self.switch_to(self.current, platform)
    }

    /// What a claim's binding does.
    ///
    /// # Errors
    /// The claim was evicted.
    pub fn standing(&mut self, claim: &Claim) -> Result<Standing, ContextError> {
        let binding = self.held(claim)?;
        Ok(match (binding.session.has_ended(), binding.stopped) {
            (true, _) => Standing::Ended,
            (false, true) => Standing::Stopped,
            (false, false) => Standing::Counts,
        })
    }

    /// A claim's binding counts no more until [`Contexts::start`].
    ///
    /// # Errors
    /// The claim was evicted, or a register refuses.
    pub fn stop(&mut self, claim: &Claim, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.set_stopped(claim, true, platform)
    }

    /// It counts again.
    ///
    /// # Errors
    /// The claim was evicted, its set has ended, or a register refuses.
    pub fn start(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        if self.held(claim)?.session.has_ended() {
            return Err(SetError::Ended.into());
        }
        self.set_stopped(claim, false, platform)
    }

    fn set_stopped(
        &mut self,
        claim: &Claim,
        stopped: bool,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.held(claim)?;
        self.take_counters(platform)?;
        self.held(claim)?.stopped = stopped;
        Ok(self.switch_to(self.current, platform)?)
    }

    /// The next group of a claim's set has the counters, when it counts.
    ///
    /// # Errors
    /// The claim was evicted, its set has ended, or a register refuses.
    pub fn next(&mut self, claim: &Claim, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.change(claim, platform, |binding, platform| {
            binding.session.next(platform)?;
            // One that has ended has given the counters back itself.
            Ok(binding.session.suspend(platform)?)
        })
    }

    /// A claim's set has ended.
    ///
    /// # Errors
    /// The claim was evicted, or a register refuses.
    pub fn terminate(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.change(claim, platform, |binding, platform| Ok(binding.session.terminate(platform)?))
    }

    /// Another request in the place of number `index` of a claim's set. Its counts begin anew, those of each task too, and the
    /// others go on.
    ///
    /// # Errors
    /// The claim was evicted, its set has ended, or the request cannot be counted: then all goes on as it was.
    pub fn modify(
        &mut self,
        claim: &Claim,
        index: usize,
        request: Request,
        known: &Known,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.change(claim, platform, |binding, platform| {
            let Binding { session, counts, inherited, scratch, last, .. } = binding;
            if session.has_ended() {
                return Err(SetError::Ended.into());
            }
            let done = session.modify(index, request, known, platform);
            session.suspend(platform)?;
            done?;
            for counts in counts.iter_mut().chain(inherited) {
                counts.counts_mut()[index] = Count::default();
            }
            session.sample(platform, scratch)?;
            Ok(last.up_to(scratch).map_err(CountingError::from)?)
        })
    }

    /// What `with` does with a claim's binding, while nobody has the counters.
    fn change(
        &mut self,
        claim: &Claim,
        platform: &mut dyn Platform,
        with: impl FnOnce(&mut Binding, &mut dyn Platform) -> Result<(), ContextError>,
    ) -> Result<(), ContextError> {
        self.held(claim)?;
        self.take_counters(platform)?;
        let binding = self.bindings.iter_mut().find(|binding| binding.claim == *claim);
        let done = with(binding.ok_or(OwnerError::Released)?, platform);
        self.switch_to(self.current, platform)?;
        done
    }

    /// Takes the counters from whoever has them, with what was counted up to here.
    pub(super) fn take_counters(
        &mut self,
        platform: &mut dyn Platform,
    ) -> Result<(), CountingError> {
        if let Some(binding) = self.bindings.get_mut(self.loaded) {
            // Read when it stands, so that nothing comes after.
            binding.session.stop(platform)?;
            binding.stopped |= binding.session.was_stopped_by_overflow();
            self.flush(platform)?;
            let before = core::mem::replace(&mut self.loaded, NOBODY);
            self.bindings[before].session.suspend(platform)?;
        }
        Ok(())
    }
}
