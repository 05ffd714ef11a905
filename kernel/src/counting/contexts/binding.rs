//! A set that counts for somebody.

use crate::counting::charged::Charged;
use crate::counting::owner::{Claim, Scope};
use crate::counting::{Count, Counts, Session};
use alloc::vec::Vec;

/// A set that counts for somebody.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) session: Session,
    pub(super) claim: Claim,
    /// Whether the claim holds, as of the last change of owners: a switch does not ask them all.
    pub(super) valid: bool,
    /// Whether it may get the counters and lose them while tasks run ([`Contexts::prepare`](super::Contexts::prepare)).
    pub(super) is_prepared: bool,
    /// Whether each task is counted; for the system, all are.
    pub(super) counted: Vec<bool>,
    /// What each task came to, its children that have exited included, and after them what ran in no task.
    pub(super) counts: Vec<Counts>,
    /// How much of that each task has from others that have exited.
    pub(super) inherited: Vec<Counts>,
    /// Whether children of tasks that are counted are left out.
    pub(super) alone: bool,
    /// Whether it was told to stand still.
    pub(super) stopped: bool,
    /// Up to here everything has gone to somebody.
    pub(super) last: Charged,
    pub(super) scratch: Counts,
}

impl Binding {
    /// The counts of a task alone and of its descendants.
    pub(super) fn family(
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

    pub(super) fn counts(&self, task: Option<u16>) -> bool {
        match task {
            None => self.claim.scope() == Scope::System,
            Some(task) => self.counted.get(usize::from(task)).copied().unwrap_or(false),
        }
    }
}
