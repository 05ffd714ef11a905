//! Pieces of code whose architectural counts are known, because they were counted by hand.
//!
//! Each piece of ring 0 is a function that takes a number of turns; its RET is part of its counts. The pieces of
//! ring 3 are copied to a page that ring 3 may execute, and leave it with `int 0x88`.

mod ring0;
mod ring3;

pub use ring0::{CallsSites, Ring0Code, STRAIGHT_INSTRUCTIONS, calls_sites};
pub use ring3::{Ring3Code, fault_bytes, user_code};

/// What happens architecturally.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: u64,
    /// Branches retired, taken or not.
    pub branches: u64,
    /// Branches taken.
    pub taken: u64,
    /// Conditional branches, taken or not.
    pub conditional: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            branches: self.branches + other.branches,
            taken: self.taken + other.taken,
            conditional: self.conditional + other.conditional,
        }
    }
}

const fn counts(instructions: u64, branches: u64, taken: u64, conditional: u64) -> Counts {
    Counts { instructions, branches, taken, conditional }
}

#[cfg(test)]
mod tests;
