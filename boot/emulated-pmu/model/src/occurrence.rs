//! What can be counted: amounts that follow from the number of instructions ([`Bulk`]), and single
//! occurrences that somebody has to see ([`Occurrence`]). An event of a processor is a
//! [`Selection`](crate::Selection) of both. Occurrences are cut so fine that every event is a plain
//! sum of them, and so that the unit mask bits of one event never count the same occurrence twice.

use strum::{EnumCount, VariantArray};

use crate::branch::{Branch, BranchKind};

/// An amount that the model works out itself from retired instructions and their stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bulk {
    /// Retired instructions.
    Instructions,
    /// Unhalted core cycles.
    Cycles,
    /// Core cycles in ring 1 to 3, whatever the counter's ring bits say.
    UserCycles,
    /// Core cycles in ring 0, whatever the counter's ring bits say.
    KernelCycles,
    /// Ticks of the reference clock (the TSC's rate) while not halted.
    ReferenceClock,
    /// Ticks of the bus or crystal clock while not halted.
    BusClock,
    /// Issue slots: cycles times the model's width.
    Slots,
    /// Slots lost to a mispredicted branch.
    BadSpeculationSlots,
    /// Slots in which the backend took nothing.
    BackendSlots,
    /// The part of the backend slots that waited for memory.
    MemorySlots,
    /// Micro-operations: one for each instruction, or those of a port map (see [`crate::uarch::ports`]).
    Uops,
}

/// One thing that happened, seen by whoever steps the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the definition; groups are explained")]
pub enum Occurrence {
    // Retired branches that went where the predictor said, by kind.
    JccNotTaken,
    JccTakenForward,
    JccTakenBackward,
    RelativeCall,
    IndirectCall,
    Return,
    RelativeJump,
    IndirectJump,
    /// Far transfers: INT n, SYSCALL, SYSRET, IRET, far CALL, JMP and RET. Never mispredicted.
    FarBranch,
    // The same kinds, mispredicted.
    MissedJccNotTaken,
    MissedJccTakenForward,
    MissedJccTakenBackward,
    MissedRelativeCall,
    MissedIndirectCall,
    MissedReturn,
    MissedRelativeJump,
    MissedIndirectJump,
    // Data accesses of retired instructions, by direction.
    Load,
    Store,
    /// One operation that loads from and stores to the same address.
    LoadStore,
    /// An access with LOCK semantics; reported in addition to its direction.
    Locked,
    // Where the data of an access was found: first level, last level, memory.
    LoadL1Hit,
    LoadLlcHit,
    LoadLlcMiss,
    StoreL1Hit,
    StoreLlcHit,
    StoreLlcMiss,
    // Accesses that cross a cache line.
    SplitLoad,
    SplitStore,
    // Cache lines, of loads and stores together.
    /// A line brought into the first-level data cache.
    L1Fill,
    /// A line looked for in the last-level cache.
    LlcReference,
    /// A line not found there.
    LlcMiss,
    // Translations: first-level misses that the second level had, and page walks.
    LoadStlbHit,
    StoreStlbHit,
    LoadWalk,
    StoreWalk,
    /// A hardware interrupt taken.
    Interrupt,
    /// A record written to the last-branch stack.
    LbrInsert,
    /// A CLFLUSH retired.
    ClFlush,
    /// A CPUID retired.
    Cpuid,
    // Only with parameters of the caches (see [`crate::uarch::Parameters`]).
    LoadL2Hit,
    StoreL2Hit,
    /// A cycle that a load took beyond that of its instruction.
    MemoryStall,
    // Only with a port map (see [`crate::uarch::ports`]): micro-operations by port, and cycles.
    Port0,
    Port1,
    Port2,
    Port3,
    Port4,
    Port5,
    Port6,
    Port7,
    Port8,
    Port9,
    PortA,
    PortB,
    PortCycle,
}

/// Number of [`Occurrence`]s.
pub const OCCURRENCES: usize = Occurrence::COUNT;

impl Occurrence {
    /// Every occurrence, in the order of its discriminant.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// A micro-operation on each port.
    pub const PORTS: [Self; crate::uarch::PORTS] = {
        use Occurrence::*;
        [Port0, Port1, Port2, Port3, Port4, Port5, Port6, Port7, Port8, Port9, PortA, PortB]
    };

    /// What a retired branch counts as. `branch.taken` matters for conditional jumps alone.
    #[must_use]
    pub const fn of_branch(branch: &Branch) -> Self {
        Self::of(branch.kind, branch.taken, branch.to <= branch.from, branch.mispredicted)
    }

    /// The same by what it depends on. `taken` and `backward` matter for conditional jumps alone.
    #[must_use]
    #[inline]
    pub const fn of(kind: BranchKind, taken: bool, backward: bool, mispredicted: bool) -> Self {
        match (kind, mispredicted) {
            (BranchKind::Conditional, false) => match (taken, backward) {
                (false, _) => Self::JccNotTaken,
                (true, false) => Self::JccTakenForward,
                (true, true) => Self::JccTakenBackward,
            },
            (BranchKind::Conditional, true) => match (taken, backward) {
                (false, _) => Self::MissedJccNotTaken,
                (true, false) => Self::MissedJccTakenForward,
                (true, true) => Self::MissedJccTakenBackward,
            },
            (BranchKind::RelativeCall, false) => Self::RelativeCall,
            (BranchKind::RelativeCall, true) => Self::MissedRelativeCall,
            (BranchKind::IndirectCall, false) => Self::IndirectCall,
            (BranchKind::IndirectCall, true) => Self::MissedIndirectCall,
            (BranchKind::Return, false) => Self::Return,
            (BranchKind::Return, true) => Self::MissedReturn,
            (BranchKind::RelativeJump, false) => Self::RelativeJump,
            (BranchKind::RelativeJump, true) => Self::MissedRelativeJump,
            (BranchKind::IndirectJump, false) => Self::IndirectJump,
            (BranchKind::IndirectJump, true) => Self::MissedIndirectJump,
            (BranchKind::Far, _) => Self::FarBranch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ring;

    #[test]
    fn all_is_in_order_and_complete() {
        for (index, occurrence) in Occurrence::ALL.into_iter().enumerate() {
            assert_eq!(occurrence as usize, index);
        }
        const { assert!(OCCURRENCES <= 64, "a selection holds 64 bits") };
    }

    #[test]
    fn each_branch_is_one_occurrence() {
        let mut branch = Branch {
            from: 0x1000,
            to: 0x1010,
            kind: BranchKind::Conditional,
            taken: true,
            mispredicted: false,
            ring: Ring::User,
            cycles: 0,
        };
        assert_eq!(Occurrence::of_branch(&branch), Occurrence::JccTakenForward);
        branch.to = 0x1000;
        assert_eq!(Occurrence::of_branch(&branch), Occurrence::JccTakenBackward);
        branch.taken = false;
        branch.mispredicted = true;
        assert_eq!(Occurrence::of_branch(&branch), Occurrence::MissedJccNotTaken);
        branch.kind = BranchKind::Far;
        assert_eq!(Occurrence::of_branch(&branch), Occurrence::FarBranch);
    }
}
