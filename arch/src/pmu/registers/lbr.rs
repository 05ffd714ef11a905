//! Controls of the branch records.

use bitflags::bitflags;

bitflags! {
    /// MSR_LBR_SELECT and AMD's LbrSelect: a set bit keeps such branches out (SDM vol. 3, table 18-6).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct LbrSelect: u64 {
        /// Branches that end in ring 0.
        const NOT_KERNEL = 1 << 0;
        /// Branches that end above ring 0.
        const NOT_USER = 1 << 1;
        /// Conditional jumps.
        const NOT_CONDITIONAL = 1 << 2;
        /// Near relative calls.
        const NOT_RELATIVE_CALL = 1 << 3;
        /// Near indirect calls.
        const NOT_INDIRECT_CALL = 1 << 4;
        /// Near returns.
        const NOT_RETURN = 1 << 5;
        /// Near indirect jumps.
        const NOT_INDIRECT_JUMP = 1 << 6;
        /// Near relative jumps.
        const NOT_RELATIVE_JUMP = 1 << 7;
        /// Far branches.
        const NOT_FAR = 1 << 8;
        /// Intel: calls push and returns pop. Switches on, unlike the others.
        const CALL_STACK = 1 << 9;
    }

    /// IA32_LBR_CTL: a set bit records such branches (SDM vol. 3, 19.1).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ArchLbrControl: u64 {
        /// On.
        const ENABLE = 1 << 0;
        /// Ring 0.
        const OS = 1 << 1;
        /// Above ring 0.
        const USR = 1 << 2;
        /// Calls push and returns pop.
        const CALL_STACK = 1 << 3;
        /// Conditional jumps.
        const CONDITIONAL = 1 << 16;
        /// Near relative jumps.
        const RELATIVE_JUMP = 1 << 17;
        /// Near indirect jumps.
        const INDIRECT_JUMP = 1 << 18;
        /// Near relative calls.
        const RELATIVE_CALL = 1 << 19;
        /// Near indirect calls.
        const INDIRECT_CALL = 1 << 20;
        /// Near returns.
        const RETURN = 1 << 21;
        /// Everything else.
        const OTHER = 1 << 22;
    }
}

impl From<LbrSelect> for ArchLbrControl {
    /// The same choice in the form that names what is wanted; [`ArchLbrControl::ENABLE`] is left off.
    fn from(select: LbrSelect) -> Self {
        const PAIRS: [(LbrSelect, ArchLbrControl); 9] = [
            (LbrSelect::NOT_KERNEL, ArchLbrControl::OS),
            (LbrSelect::NOT_USER, ArchLbrControl::USR),
            (LbrSelect::NOT_CONDITIONAL, ArchLbrControl::CONDITIONAL),
            (LbrSelect::NOT_RELATIVE_CALL, ArchLbrControl::RELATIVE_CALL),
            (LbrSelect::NOT_INDIRECT_CALL, ArchLbrControl::INDIRECT_CALL),
            (LbrSelect::NOT_RETURN, ArchLbrControl::RETURN),
            (LbrSelect::NOT_INDIRECT_JUMP, ArchLbrControl::INDIRECT_JUMP),
            (LbrSelect::NOT_RELATIVE_JUMP, ArchLbrControl::RELATIVE_JUMP),
            (LbrSelect::NOT_FAR, ArchLbrControl::OTHER),
        ];
        let wanted = PAIRS.iter().filter(|(not, _)| !select.contains(*not));
        let mut control: Self = wanted.map(|&(_, wanted)| wanted).collect();
        control.set(Self::CALL_STACK, select.contains(LbrSelect::CALL_STACK));
        control
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_filters_are_each_others_opposite() {
        assert_eq!(ArchLbrControl::from(LbrSelect::empty()).bits(), 0x7f_0006);
        let no_jumps = LbrSelect::NOT_RELATIVE_JUMP | LbrSelect::NOT_USER;
        assert_eq!(ArchLbrControl::from(no_jumps).bits(), 0x7d_0002);
    }
}
