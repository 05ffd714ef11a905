//! Last-branch records.
//!
//! | kind | order | switched on by | filter |
//! | --- | --- | --- | --- |
//! | legacy (Intel to Ice Lake) | newest at LBR_TOS | DEBUGCTL\[0\] | LBR_SELECT, 1 suppresses |
//! | architectural (Intel) | newest at 0 | ARCH_LBR_CTL\[0\] | ARCH_LBR_CTL, 1 records |
//! | AMD LBRv2 | newest at 0 | DebugExtnCtl\[6\] | LbrSelect, 1 suppresses |
//! | AMD before | one | DEBUGCTL\[0\] | none |
//!
//! The privilege filter looks at the ring in which a branch ends. In call-stack mode near calls
//! push, near returns pop and clear what they pop, and nothing else is recorded.

mod filter;
mod format;
mod registers;

use crate::branch::{Branch, BranchKind};
use crate::model::{LbrKind, Spec};
use crate::mutation::{Mutation, Planted};

/// Entries that the state has room for.
const MAX_ENTRIES: usize = 32;
/// AMD's DebugExtnCtl\[6\].
const AMD_LBR_ENABLE: u64 = 1 << 6;

/// One record, as the registers show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    from: u64,
    to: u64,
    info: u64,
}

/// The records and their control.
#[derive(Clone, Debug)]
pub(crate) struct Lbr {
    records: [Record; MAX_ENTRIES],
    /// What was newest when an interrupt or exception was delivered.
    before_event: Record,
    top: u8,
    depth: u8,
    select: u64,
    /// ARCH_LBR_CTL, or AMD's DebugExtnCtl.
    control: u64,
}

impl Lbr {
    pub(crate) const RESET: Self = Self {
        records: [Record { from: 0, to: 0, info: 0 }; MAX_ENTRIES],
        before_event: Record { from: 0, to: 0, info: 0 },
        top: 0,
        depth: 0,
        select: 0,
        control: 0,
    };

    /// The state after RESET.
    pub(crate) fn reset(spec: &Spec) -> Self {
        Self {
            depth: match &spec.lbr {
                LbrKind::None => 0,
                LbrKind::Legacy(legacy) => legacy.entries,
                LbrKind::Arch(arch) => arch.entries,
                LbrKind::AmdV2 { entries } => *entries,
                LbrKind::AmdSingle => 1,
            },
            ..Self::RESET
        }
    }

    /// The switch of the two kinds that have one of their own.
    pub(crate) fn is_on(&self) -> bool {
        self.control & (1 | AMD_LBR_ENABLE) != 0
    }

    /// Records a taken branch if the filters let it through.
    pub(crate) fn record(&mut self, spec: &Spec, branch: &Branch, planted: Planted) -> bool {
        if !planted.is(Mutation::LbrFilterIgnored) && !self.passes(spec, branch) {
            return false;
        }
        if self.call_stack(spec) {
            match branch.kind {
                BranchKind::RelativeCall | BranchKind::IndirectCall => {}
                BranchKind::Return => {
                    if !planted.is(Mutation::LbrReturnsStay) {
                        self.pop(spec);
                    }
                    return false;
                }
                _ => return false,
            }
        }
        let record = format::record(spec, branch, planted);
        self.push(spec, record, planted);
        true
    }

    /// An interrupt or exception is delivered.
    pub(crate) fn deliver_event(&mut self, spec: &Spec) {
        self.before_event = self.newest(spec);
    }

    /// FROM, TO and INFO of the record before which `older` newer ones came.
    pub(crate) fn behind(&self, spec: &Spec, older: usize) -> [u64; 3] {
        let depth = usize::from(self.depth);
        let record = match spec.lbr {
            _ if older >= depth => Record::default(),
            LbrKind::Legacy(_) => self.records[(usize::from(self.top) + depth - older) % depth],
            _ => self.records[older],
        };
        [record.from, record.to, record.info]
    }

    /// FROM, TO and INFO of what was newest when an interrupt or exception was delivered.
    pub(crate) const fn before_event(&self) -> [u64; 3] {
        let record = self.before_event;
        [record.from, record.to, record.info]
    }

    /// ARCH_LBR_CTL, or AMD's DebugExtnCtl.
    pub(crate) const fn control(&self) -> u64 {
        self.control
    }

    /// Entries in use.
    pub(crate) fn depth(&self) -> usize {
        self.depth.into()
    }

    fn newest(&self, spec: &Spec) -> Record {
        match spec.lbr {
            LbrKind::Legacy(_) => self.records[usize::from(self.top)],
            _ => self.records[0],
        }
    }

    /// So many branches pass the filters of which nothing will be seen, because as many as there are entries follow: only
    /// where the newest one lies reports them.
    pub(crate) fn skip(&mut self, spec: &Spec, count: u64, planted: Planted) {
        if let LbrKind::Legacy(_) = spec.lbr {
            // Less than the depth, which is 32 at most.
            (0..count % u64::from(self.depth)).for_each(|_| self.advance(planted));
        }
    }

    /// A further record comes, where they are a ring.
    fn advance(&mut self, planted: Planted) {
        let step = if planted.is(Mutation::LbrOrderReversed) { self.depth - 1 } else { 1 };
        self.top = (self.top + step) % self.depth;
    }

    fn push(&mut self, spec: &Spec, record: Record, planted: Planted) {
        let reversed = planted.is(Mutation::LbrOrderReversed);
        let depth = usize::from(self.depth);
        if let LbrKind::Legacy(_) = spec.lbr {
            self.advance(planted);
            self.records[usize::from(self.top)] = record;
        } else if reversed {
            self.records[..depth].rotate_left(1);
            self.records[depth - 1] = record;
        } else {
            self.records[..depth].rotate_right(1);
            self.records[0] = record;
        }
    }

    fn pop(&mut self, spec: &Spec) {
        let depth = usize::from(self.depth);
        if let LbrKind::Legacy(_) = spec.lbr {
            self.records[usize::from(self.top)] = Record::default();
            self.top = (self.top + self.depth - 1) % self.depth;
        } else {
            self.records[..depth].rotate_left(1);
            self.records[depth - 1] = Record::default();
        }
    }
}
