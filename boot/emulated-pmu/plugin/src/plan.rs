//! What is put next to the instructions of a block: pure logic, which [`crate::apply`] hands to QEMU.
//!
//! An instruction counts once it is done. Sums of instructions are added up until one that may leave the block
//! starts: then all before it are done, and the sum is counted there. What the last instruction of a block adds is counted
//! after its access; if QEMU makes accesses of its own for it, it is counted before it begins, and taken back if the guest
//! leaves at it.

use crate::bound::Bound;
use crate::facts::{Branch, Facts};
use crate::leaves::End;
use crate::opened::{Opened, key};
use crate::shape::Shape;
use crate::tally::{self, Tally};
use crate::vcpu::Passes;
use plugin_channel::Mode;
use pmu_model::BranchKind;

#[cfg(test)]
mod tests;

/// Where in a block an action is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum At {
    /// At the block's start.
    Start,
    /// Before an instruction, by its index.
    Before(usize),
    /// After the load of an instruction.
    Loaded(usize),
    /// After its store.
    Stored(usize),
}

/// What is done there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// If what is open has this block's key, it has fallen through.
    FellThrough(u64),
    /// If what is open has this key, it is the block's first instruction, which begins once more: QEMU lets a store that
    /// changes its own block begin again by itself.
    Restarted(u64),
    /// If something is open, it is decided by this block's offset.
    Resolve(u16),
    /// Nothing is open.
    Close,
    /// The block may have as many occurrences as this.
    Spend(Bound),
    /// The block's address is noted.
    NoteStart,
    /// An IRET is executed.
    Returned,
    /// The guest leaves after the instruction.
    Leave,
    /// Counts.
    Count(Tally),
    /// Something is open now.
    Open(Opened),
    /// The same where a callback decides all that is open.
    OpenSettled(Opened),
    /// The element of the repeated string operation is done, or the call's store.
    Iterated,
    /// If an element of a repeated string operation began, or something that may raise a page fault, this block's offset decides
    /// what became of it.
    Unfinished(u16),
    /// The same for a block that is an element of this repeated string operation, unless the element before is known to be done.
    Continued(Opened),
    /// An element of a repeated string operation begins.
    Begin(Opened),
    /// It is done: the word that says what is open.
    Done(u64),
    /// RCX is noted.
    NoteCount,
    /// An element of the repeated string operation may be done: the accesses are noted.
    Element,
    /// The accesses go to the caches, with their addresses, and what the instruction flushes.
    Trace,
    /// What the accesses of the instruction before were is known, and it is done.
    Commit,
}

/// Modes with those that they include.
pub fn complete(mode: Mode) -> Mode {
    let mut mode = mode;
    if mode.contains(Mode::RECORDS) {
        mode |= Mode::PREDICTOR | Mode::INSTRUCTIONS;
    }
    if mode.contains(Mode::PREDICTOR) {
        mode |= Mode::BRANCHES | Mode::TAKEN;
    }
    if mode.contains(Mode::MEMORY) {
        mode |= Mode::ACCESSES;
    }
    mode
}

/// The plan for a block, in the order in which it is to be requested. `mode` is [`complete`].
pub fn plan(block: &[Facts], mode: Mode) -> Vec<(At, Action)> {
    let mut plan = Plan { mode, actions: Vec::new() };
    let Some(first) = block.first() else { return plan.actions };
    plan.start(block, first.ip);
    let mut pending = Tally::NONE;
    for (index, facts) in block.iter().enumerate() {
        plan.before(block, index);
        let own = plan.own(facts);
        if facts.end != End::Always {
            plan.count(At::Before(index), core::mem::replace(&mut pending, Tally::NONE));
        }
        let is_last = index + 1 == block.len();
        match facts.end {
            End::Load if is_last => plan.count(At::Loaded(index), own),
            End::Store if is_last => plan.count(At::Stored(index), own),
            End::Unknown if is_last => plan.early(index, facts, first.ip, own),
            _ => match pending.plus(&own) {
                Some(sum) => pending = sum,
                // Only what cannot leave is added to something, so all of it is done or will be.
                None => plan.count(At::Before(index), core::mem::replace(&mut pending, own)),
            },
        }
        if is_last {
            plan.count(At::Before(index), pending);
        }
        plan.open(facts, index, first.ip);
    }
    plan.actions
}

struct Plan {
    mode: Mode,
    actions: Vec<(At, Action)>,
}

impl Plan {
    fn push(&mut self, at: At, action: Action) {
        self.actions.push((at, action));
    }

    fn count(&mut self, at: At, tally: Tally) {
        if !tally.is_none() {
            self.push(at, Action::Count(tally));
        }
    }

    /// Whether a callback decides everything that is open.
    fn resolves(&self) -> bool {
        self.mode.intersects(Mode::PREDICTOR | Mode::MEMORY)
    }

    fn open_at(&mut self, index: usize, opened: Opened) {
        let resolved = self.resolves();
        let action = if resolved { Action::OpenSettled(opened) } else { Action::Open(opened) };
        self.push(At::Before(index), action);
        if opened.notes_store() {
            self.push(At::Stored(index), Action::Iterated);
        }
    }

    /// Whether it is a branch that a callback counts when it is known where it went.
    fn is_settled(&self, branch: &Branch) -> bool {
        let direct = matches!(branch.kind, BranchKind::RelativeJump | BranchKind::Far);
        self.mode.contains(Mode::RECORDS) || self.mode.contains(Mode::PREDICTOR) && !direct
    }

    fn start(&mut self, block: &[Facts], ip: u16) {
        let nothing = self.mode.difference(Mode::LIMITS).is_empty();
        if self.mode.sees_deliveries() {
            // A string instruction nearly always continues after an element that is done.
            let continued = block[0].opened_string().map(Action::Continued);
            self.push(At::Start, continued.unwrap_or(Action::Unfinished(ip)));
            self.push(At::Start, Action::Close);
        } else if self.resolves() {
            self.push(At::Start, Action::Resolve(ip));
        } else if !nothing {
            if let Some(opened) = self.restarting(&block[0]) {
                self.push(At::Start, Action::Restarted(opened.key()));
            }
            if self.mode.contains(Mode::TAKEN) || self.counts_strings() {
                self.push(At::Start, Action::FellThrough(key(ip)));
            }
            self.push(At::Start, Action::Close);
        }
        let is_ambiguous = |facts: &Facts| facts.branch.is_some_and(|branch| branch.ambiguous);
        let wants = self.mode.contains(Mode::TAKEN) && block.iter().any(is_ambiguous)
            || !nothing && block.iter().any(Facts::may_restart);
        if wants || self.mode.contains(Mode::RECORDS) {
            self.push(At::Start, Action::NoteStart);
        }
        let bound = Bound::of(block, self.mode);
        if self.mode.contains(Mode::LIMITS) && !bound.is_none() {
            self.push(At::Start, Action::Spend(bound));
        }
    }

    /// What the first instruction of a block would have left open, if it stores, and began and did not come through.
    fn restarting(&self, first: &Facts) -> Option<Opened> {
        let own = self.own(first);
        if first.may_restart() && !own.is_none() {
            return Some(first.opened_early(first.ip, own, first.may_page_fault()));
        }
        first.opened_string().filter(|opened| {
            self.counts_strings() && matches!(opened, Opened::Repeat { stores: true, .. })
        })
    }

    fn counts_strings(&self) -> bool {
        self.mode.intersects(Mode::STRINGS | Mode::INSTRUCTIONS | Mode::ACCESSES)
    }

    /// What the instruction adds, but for what callbacks count.
    fn own(&self, facts: &Facts) -> Tally {
        let branch = facts.branch.filter(|branch| !self.is_settled(branch));
        facts.tally(self.mode, branch)
    }

    /// Callbacks on accesses, and on their being done.
    fn before(&mut self, block: &[Facts], index: usize) {
        let shape = block[index].shape;
        if block[index].is_interrupt_return {
            self.push(At::Before(index), Action::Returned);
        }
        if block[index].repeated.is_some() && self.mode.contains(Mode::ACCESSES) {
            self.push(At::Before(index), Action::Element);
        }
        if !self.mode.contains(Mode::MEMORY) {
            return;
        }
        if index > 0 && block[index - 1].shape.is_deferred() {
            self.push(At::Before(index), Action::Commit);
        }
        if shape != Shape::None {
            self.push(At::Before(index), Action::Trace);
        }
    }

    fn early(&mut self, index: usize, facts: &Facts, start: u16, own: Tally) {
        self.count(At::Before(index), own);
        // A branch that a callback resolves is open itself, and has this with it.
        let resolved = facts.branch.is_some_and(|branch| self.is_settled(&branch));
        if !own.is_none() && !resolved {
            self.open_at(index, facts.opened_early(start, own, facts.may_page_fault()));
        }
    }

    /// An element of a repeated string instruction, whose faults nobody but this code sees.
    fn begin(&mut self, index: usize, opened: Opened) {
        match (opened, opened.element_word()) {
            (Opened::Repeat { stores: true, .. }, Some(word)) => {
                self.push(At::Stored(index), Action::Done(word));
            }
            (_, Some(word)) => self.push(At::Loaded(index), Action::Done(word)),
            (_, None) => self.push(At::Before(index), Action::NoteCount),
        }
        self.push(At::Before(index), Action::Begin(opened));
    }

    fn open(&mut self, facts: &Facts, index: usize, start: u16) {
        if let Some(opened) = facts.opened_string().filter(|_| self.counts_strings()) {
            self.count(At::Before(index), Tally::one(tally::STRING_STARTS));
            if self.mode.sees_deliveries() {
                self.begin(index, opened);
            } else {
                self.open_at(index, opened);
            }
        }
        let Some(branch) = facts.branch else { return };
        let is_jump = branch.kind == BranchKind::Conditional;
        // Whether it passes is known when its access is.
        let by_data = branch.passes == Passes::ByData && self.mode.contains(Mode::BRANCHES);
        if self.is_settled(&branch) || by_data || self.mode.contains(Mode::TAKEN) && is_jump {
            let bytes = facts.next.wrapping_sub(start) & 0xfff;
            let early = if facts.end == End::Unknown { self.own(facts) } else { Tally::NONE };
            let counted = !self.is_settled(&branch);
            let stores = facts.stores();
            let opened = Opened::Branch { branch, bytes, stores, early, counted };
            self.open_at(index, opened);
            if branch.undecided.is_some() {
                self.push(At::Before(index), Action::Leave);
            }
        }
    }
}
