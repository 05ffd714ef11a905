//! Counting that begins and ends at addresses of one task, for as long as that task has the processor.

use super::address::{Act, AddressError, AddressGate};
use super::{Platform, Session, Set, SetError};
use alloc::vec::Vec;
use arch::pmu::Rings;
use protocol::count::{Count, GateAct};
use protocol::record::CountGate;

/// Why an event is not counted between addresses.
pub const IN_RING_0: &str = "between addresses only ring 3 is counted (`:u`): in ring 0 the handler that starts and stops \
                             would be counted as well";

/// The gate of a job, and what became of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gate {
    task: u16,
    /// From the beginning of the task.
    offsets: Vec<(u64, Act)>,
    addresses: AddressGate,
    /// It counted when its task was switched away from.
    suspended: bool,
    starts: u64,
    stops: u64,
}

impl Gate {
    /// The gate that `item` asks for, if it does; no address is known yet.
    #[must_use]
    pub fn of(item: &Count) -> Option<Self> {
        let task = item.gate.first()?.task;
        let offsets = item.gate.iter().map(|point| {
            let act = match point.act {
                GateAct::Start => Act::Start,
                GateAct::Stop => Act::Stop,
            };
            (point.offset, act)
        });
        Some(Self { task, offsets: offsets.collect(), ..Self::default() })
    }

    /// The task that it belongs to.
    #[must_use]
    pub const fn task(&self) -> u16 {
        self.task
    }

    /// The task begins at `begin`. Returns what the debug registers are to have.
    ///
    /// # Errors
    /// The addresses cannot be watched.
    pub fn place(&mut self, begin: u64) -> Result<AddressGate, AddressError> {
        let points: Vec<_> =
            self.offsets.iter().map(|&(offset, act)| (begin + offset, act)).collect();
        self.addresses = AddressGate::new(&points)?;
        Ok(self.addresses)
    }

    /// The debug exception's handler: as [`AddressGate::trapped`].
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(
        &mut self,
        dr6: u64,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<bool, SetError> {
        let before = session.is_running();
        let done = self.addresses.trapped(dr6, session, platform);
        match (before, session.is_running()) {
            (false, true) => self.starts += 1,
            (true, false) => self.stops += 1,
            _ => {}
        }
        done
    }

    /// `task` is about to lose the processor.
    ///
    /// # Errors
    /// A register refuses.
    pub fn suspend(
        &mut self,
        task: Option<u16>,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        if task == Some(self.task) {
            self.suspended = session.is_running();
            session.stop(platform)?;
        }
        Ok(())
    }

    /// `task` gets the processor; counting goes on if it did before.
    ///
    /// # Errors
    /// A register refuses.
    pub fn resume(
        &mut self,
        task: Option<u16>,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        let resumes = task == Some(self.task) && core::mem::take(&mut self.suspended);
        if resumes && !session.has_ended() { session.start(platform) } else { Ok(()) }
    }

    /// For the record.
    #[must_use]
    pub fn result(&self) -> CountGate {
        CountGate { task: self.task, starts: self.starts, stops: self.stops }
    }
}

/// A request of `set` that would count the handler.
#[must_use]
pub fn in_ring_0(set: &Set) -> Option<usize> {
    let mut all = set.groups().iter().flatten();
    let found = all.find(|(_, counted)| counted.selection.rings.contains(Rings::KERNEL))?;
    Some(found.0)
}
