//! What passes the qualifiers, of what a vCPU executes.

use super::Vcpu;
use crate::facts::Branch;
use crate::tally::{QUALIFIED, QUALIFIED_INSTRUCTIONS};
use pmu_model::Occurrence;
use pmu_model::uarch::Access;

/// Whether an instruction holds the qualifiers, as far as that is known when it is translated.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Passes {
    /// It does not.
    #[default]
    No,
    /// It does, and it is counted with its block.
    Always,
    /// Its accesses decide.
    ByData,
}

impl Passes {
    /// Whether its accesses are to be looked at.
    #[inline]
    pub fn may(self) -> bool {
        self != Self::No
    }
}

impl Vcpu {
    /// Whether an access passes, of an instruction that may.
    pub(super) fn passes(&mut self, access: &Access, may: bool) -> bool {
        let passes = may
            && match self.memory.in_string {
                true => self.qualifiers.touches_line(access.linear),
                false => self.qualifiers.touches(access.linear, access.bytes),
            };
        self.memory.touched |= passes;
        passes
    }

    /// The accesses of an instruction begin to be counted.
    pub fn begin_qualified(&mut self) {
        self.memory.touched = false;
    }

    /// They were, and the instruction is done.
    pub fn end_qualified(&mut self, may: bool) {
        if may && self.qualifiers.checks_data() && self.memory.touched {
            self.pass_one();
        }
    }

    /// A repeated string instruction that may pass is done.
    pub fn end_qualified_string(&mut self) {
        if self.string_passes() {
            self.pass_one();
        }
    }

    /// Whether a repeated string instruction that may pass does.
    pub fn string_passes(&self) -> bool {
        !self.qualifiers.checks_data() || self.memory.string_touched
    }

    fn pass_one(&mut self) {
        let sum = &mut self.sums.0[QUALIFIED_INSTRUCTIONS];
        *sum = sum.wrapping_add(1);
    }

    /// A branch is done that was counted as this.
    #[inline]
    pub fn pass_branch(&mut self, branch: &Branch, occurrence: Occurrence) {
        let passes = match branch.passes {
            Passes::No => return,
            Passes::Always => true,
            Passes::ByData => core::mem::take(&mut self.memory.touched),
        };
        let sum = &mut self.sums.0[QUALIFIED + occurrence as usize];
        *sum = sum.wrapping_add(passes.into());
    }
}
