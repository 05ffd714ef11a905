//! What the hypervisor asks of the plugin in QEMU's translator: with what code is translated ([`mode`], [`Modes`]), which
//! parts of the model see it ([`parts`]), and how far the guest may run ([`Plan`]).

use crate::options::Keeping;
use plugin_channel::{Limit, MAX_LIMITS, Mode, Parts};
use pmu_model::{Needs, Occurrence, Ring, Selection};

/// What the plugin does not see, because the hypervisor emulates it or adds it.
const ELSEWHERE: Selection =
    Selection::of(&[Occurrence::Interrupt, Occurrence::Cpuid, Occurrence::LbrInsert]);

/// Occurrences of one instruction that are not branches, at most: the bytes of the longest area of XSAVE in lines, and each
/// of them in several ways.
const MOST: u64 = 256;

/// With at least so many occurrences left until its overflow, a counter needs no look at each block: the clock states that too
/// few instructions have passed. In [`MOST`] occurrences an instruction, that is a look in a million instructions; perf's counters
/// that do not sample begin 2^31 or 2^47 away.
const FAR: u64 = 1 << 28;

/// Whether blocks have to count towards the overflow of this counter.
#[must_use]
pub const fn is_near(limit: &pmu_model::Limit) -> bool {
    limit.most.is_none() && limit.left < FAR
}

/// What code must be translated with for these needs. `overflows`: a counter of occurrences can overflow soon.
#[must_use]
pub fn mode(needs: &Needs, overflows: bool) -> Mode {
    let mut mode = Mode::empty();
    if needs.bulk | needs.stepped == 0 && !needs.free_running && !needs.branch_records {
        return mode;
    }
    mode |= Mode::STRINGS;
    mode.set(Mode::BRANCHES, needs.branches());
    mode.set(Mode::TAKEN, needs.taken());
    mode.set(Mode::PREDICTOR, needs.predictor());
    mode.set(Mode::RECORDS, needs.branch_records);
    mode.set(Mode::ACCESSES, needs.accesses() || needs.occurrences.has(Occurrence::ClFlush));
    mode.set(Mode::MEMORY, needs.memory() || needs.splits() || needs.qualified_data);
    mode.set(Mode::QUALIFIED, needs.qualified);
    mode.set(Mode::PORTS, needs.ports());
    mode.set(Mode::LIMITS, overflows);
    mode
}

/// The mode that code is translated with now. A change throws all translated code away, so modes only grow, until what was
/// requested has been less for long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    keeping: Keeping,
    current: Mode,
    /// All that was requested since the mode last changed or was needed in full.
    recent: Mode,
    /// Stays since then.
    stays: u32,
    /// The clock then, in instructions.
    since: u64,
}

impl Modes {
    /// So many instructions take the translator as long as a change does: a second or two of a kernel's work. A kernel that
    /// switches tasks a thousand times a second, with counters of their own, has needed them all by then.
    pub const PATIENCE: u64 = 1 << 28;
    /// And at least so many stays, as the clock passes over the time in which a kernel waits.
    pub const STAYS: u32 = 1 << 10;

    /// None yet, which change like this.
    #[must_use]
    pub fn new(keeping: Keeping) -> Self {
        Self { keeping, ..Self::default() }
    }

    /// A stay for which `wanted` is needed comes, at this time in instructions. The new mode, if it changes.
    pub fn plan(&mut self, wanted: Mode, now: u64) -> Option<Mode> {
        if self.keeping == Keeping::Exact {
            let changes = self.current != wanted;
            self.current = wanted;
            return changes.then_some(wanted);
        }
        self.recent |= wanted;
        self.stays = self.stays.saturating_add(1);
        let grows = !self.current.contains(wanted);
        let waited = self.stays >= Self::STAYS && now.wrapping_sub(self.since) >= Self::PATIENCE;
        if !grows && !waited {
            return None;
        }
        let new = if grows { self.current | wanted } else { self.recent };
        (self.recent, self.stays, self.since) = (wanted, 0, now);
        let changes = new != self.current;
        self.current = new;
        changes.then_some(new)
    }

    /// What code is translated with.
    #[must_use]
    pub const fn current(&self) -> Mode {
        self.current
    }
}

/// The parts of the model that see what runs in `ring`.
#[must_use]
pub fn parts(needs: &Needs, ring: Ring) -> Parts {
    let mut parts = Parts::empty();
    if needs.stepping_in(ring) {
        parts.set(Parts::MEMORY, needs.memory());
        parts.set(Parts::PREDICTOR, needs.predictor());
        parts.set(Parts::RECORDS, needs.branch_records);
    }
    parts
}

/// How the guest may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// One instruction at a time.
    Step,
    /// At full speed.
    Run {
        /// Limits for the plugin.
        limits: [Limit; MAX_LIMITS],
        /// Instructions after which it has to leave, where the plugin cannot see to that.
        instructions: Option<u64>,
    },
}

impl Plan {
    /// By the counters that may overflow in the ring that comes. `stops`: the plugin can make the guest leave. `lead`: see
    /// [`plugin_channel::Limit`].
    #[must_use]
    pub fn of(counters: impl Iterator<Item = pmu_model::Limit>, stops: bool, lead: u64) -> Self {
        let mut limits = [Limit { selection: 0, left: 0 }; MAX_LIMITS];
        let (mut instructions, mut free) = (None::<u64>, limits.iter_mut());
        for counter in counters {
            let seen = counter.selection.occurrence_bits() & !ELSEWHERE.occurrence_bits();
            if counter.selection.has(Occurrence::LbrInsert) {
                return Self::Step;
            }
            if seen == 0 {
                // Each is an exit.
                continue;
            }
            if let Some(most) = counter.most {
                // Near it the runs become short, and then steps.
                let left = counter.left / most;
                instructions = Some(instructions.map_or(left, |least| least.min(left)));
                continue;
            }
            let branches = counter.selection.is_branches();
            let near = if branches { 0 } else { lead };
            if counter.left <= near && (stops || counter.left == 0) {
                return Self::Step;
            }
            if stops && is_near(&counter) {
                let Some(limit) = free.next() else { return Self::Step };
                *limit = Limit { selection: seen, left: counter.left };
            } else {
                let left = if branches { counter.left } else { counter.left / MOST };
                instructions = Some(instructions.map_or(left, |least| least.min(left)));
            }
        }
        Self::Run { limits, instructions }
    }
}

#[cfg(test)]
mod tests;
