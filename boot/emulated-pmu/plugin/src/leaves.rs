//! Whether an instruction may leave its block before it is done, and by what one sees that it is done.

use iced_x86::{CpuidFeature, Instruction, Mnemonic, OpKind, Register};
use pmu_model::BranchKind;
use pmu_model::uarch::AccessKind;
use step::{Kind, Touch};

/// How it is known that the last instruction of a block is done. Of the others, the next one that may leave tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// It cannot fail.
    Always,
    /// QEMU makes one load for it, which is the last thing that can fail.
    Load,
    /// The same with a store.
    Store,
    /// QEMU has a function for it, which makes as many accesses as it likes.
    Unknown,
}

/// Most bytes that QEMU accesses at once.
const MAX_AT_ONCE: u32 = 16;

/// How it is known that `instruction`, with the accesses that the model sees, is done.
pub fn end(instruction: &Instruction, touches: &[Touch], branch: Option<BranchKind>) -> End {
    if !may_leave(instruction, touches, branch) {
        return End::Always;
    }
    let is_store = |touch: &&Touch| touch.kind != AccessKind::Load;
    let (stores, loads): (Vec<&Touch>, Vec<&Touch>) = touches.iter().partition(is_store);
    let simple = instruction.cpuid_features().iter().all(|it| is_integer(*it) || is_sse(*it))
        && !is_system(instruction, branch);
    match (&stores[..], &loads[..]) {
        _ if !simple => End::Unknown,
        ([store], [] | [_]) if store.bytes <= MAX_AT_ONCE => End::Store,
        ([], [load]) if load.bytes <= MAX_AT_ONCE => End::Load,
        _ => End::Unknown,
    }
}

fn may_leave(instruction: &Instruction, touches: &[Touch], branch: Option<BranchKind>) -> bool {
    !touches.is_empty()
        || !instruction.cpuid_features().iter().all(|it| is_integer(*it))
        || is_system(instruction, branch)
}

/// Whether it can fail, or be intercepted, for another reason than an access.
pub fn is_system(instruction: &Instruction, branch: Option<BranchKind>) -> bool {
    use Mnemonic::*;
    instruction.is_privileged()
        || branch == Some(BranchKind::Far)
        || !matches!(step::kind(instruction), Kind::Plain | Kind::PushFlags)
        || step::maintenance(instruction).is_some()
        || loads_segment(instruction)
        || matches!(instruction.mnemonic(), Div | Idiv | Aam | Bound | Into | Enter | Xlatb)
        || matches!(instruction.mnemonic(), In | Out | Insb | Insw | Insd | Outsb | Outsw | Outsd)
        || matches!(instruction.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq)
        || matches!(instruction.mnemonic(), Pusha | Pushad | Popa | Popad | Cmpxchg16b)
        || matches!(instruction.mnemonic(), Cli | Sti | Hlt | Lar | Lsl | Verr | Verw | Sldt | Str)
        || matches!(instruction.mnemonic(), Smsw | Sgdt | Sidt | Maskmovdqu | Maskmovq | Arpl)
        || matches!(instruction.mnemonic(), Ldmxcsr | Fxsave | Fxsave64 | Fxrstor | Fxrstor64)
        || matches!(instruction.mnemonic(), Ud0 | Ud1 | Ud2 | Pause | Int | Int1 | Int3)
}

fn loads_segment(instruction: &Instruction) -> bool {
    use Mnemonic::{Lds, Les, Lfs, Lgs, Lss};
    let to_segment = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_segment_register();
    // PUSH of one has it there as well, and only reads it.
    to_segment && instruction.mnemonic() != Mnemonic::Push
        || matches!(instruction.mnemonic(), Lds | Les | Lfs | Lgs | Lss)
        || instruction.op1_register() == Register::CR8
}

/// Integer instructions of user mode, which QEMU translates into code of its own and which raise nothing but faults of
/// their accesses.
fn is_integer(feature: CpuidFeature) -> bool {
    use CpuidFeature::*;
    matches!(
        feature,
        INTEL8086
            | INTEL8086_ONLY
            | INTEL186
            | INTEL286
            | INTEL386
            | INTEL486
            | X64
            | CMOV
            | MULTIBYTENOP
            | CET_IBT
            | POPCNT
            | BMI1
            | BMI2
            | LZCNT
            | ADX
    )
}

/// Vector instructions of 128 bits.
fn is_sse(feature: CpuidFeature) -> bool {
    use CpuidFeature::*;
    matches!(feature, SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2)
}
