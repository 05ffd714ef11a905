//! Branches as the model tells them apart.

use crate::{Behind, Condition};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use pmu_model::{Branch, BranchKind, Ring};

/// The branch that `instruction` made, with these registers `behind` it, in `ring`, if it is a branch.
#[must_use]
pub fn branch(instruction: &Instruction, behind: &Behind, ring: Ring) -> Option<Branch> {
    let kind = kind(instruction)?;
    let rip = behind.rip;
    let taken = match undecided(instruction) {
        Some(condition) => condition.holds(behind),
        None => kind != BranchKind::Conditional || rip != instruction.next_ip(),
    };
    // Where a jump that fell through would have gone.
    let to = if taken { rip } else { instruction.near_branch_target() };
    Some(Branch { from: instruction.ip(), to, kind, taken, mispredicted: false, ring, cycles: 0 })
}

/// The condition of a conditional jump to the very next instruction: where the guest continues does not state whether it was taken.
#[must_use]
pub fn undecided(instruction: &Instruction) -> Option<Condition> {
    let leads_on = instruction.near_branch_target() == instruction.next_ip();
    Condition::of(instruction).filter(|_| leads_on)
}

fn kind(instruction: &Instruction) -> Option<BranchKind> {
    if matches!(
        instruction.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Sysret
            | Mnemonic::Sysretq
            | Mnemonic::Sysenter
            | Mnemonic::Sysexit
            | Mnemonic::Sysexitq
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
    ) {
        return Some(BranchKind::Far);
    }
    let far = instruction.is_jmp_far()
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect()
        || instruction.mnemonic() == Mnemonic::Retf;
    match instruction.flow_control() {
        _ if far => Some(BranchKind::Far),
        FlowControl::ConditionalBranch => Some(BranchKind::Conditional),
        FlowControl::UnconditionalBranch => Some(BranchKind::RelativeJump),
        FlowControl::IndirectBranch => Some(BranchKind::IndirectJump),
        // The decoder takes VMCALL and VMMCALL for calls; they are left by an exit, and come back after themselves.
        FlowControl::Call if !instruction.is_call_near() => None,
        FlowControl::Call => Some(BranchKind::RelativeCall),
        FlowControl::IndirectCall => Some(BranchKind::IndirectCall),
        FlowControl::Return => Some(BranchKind::Return),
        FlowControl::Interrupt => Some(BranchKind::Far),
        FlowControl::Next | FlowControl::Exception | FlowControl::XbeginXabortXend => None,
    }
}
