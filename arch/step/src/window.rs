//! What an instruction is to the window of the emulated PMU.

use crate::{Maintenance, maintenance};
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use pmu_model::uarch::window::Step;

/// Its general registers, whether it writes a vector register, whether it loads, and whether it serialises.
#[must_use]
pub fn window(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Step {
    let info = factory.info(instruction);
    let mut step = Step { waits: serialises(instruction), ..Step::default() };
    for used in info.used_registers() {
        let register = used.register();
        step.vector |= register.is_vector_register() && directions(used.access()).1;
        if !register.is_gpr() || register.full_register() == Register::RSP {
            continue;
        }
        let bit = 1 << register.full_register().number();
        let (reads, writes) = directions(used.access());
        step.reads |= if reads { bit } else { 0 };
        step.writes |= if writes { bit } else { 0 };
    }
    // A flush is checked as a load is, and loads nothing.
    let flushes = matches!(maintenance(instruction), Some(Maintenance::FlushLine { .. }));
    step.loads = !flushes && info.used_memory().iter().any(|one| directions(one.access()).0);
    step
}

const fn directions(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

/// Serialising instructions (SDM vol. 3, 9.3), and fences that wait for all loads.
fn serialises(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let fences = matches!(instruction.mnemonic(), Lfence | Mfence);
    let serialises = matches!(
        instruction.mnemonic(),
        Cpuid | Serialize | Iret | Iretd | Iretq | Rsm | Wrmsr | Wbinvd | Invd | Invlpg | Invpcid
    ) || matches!(instruction.mnemonic(), Lgdt | Lidt | Lldt | Ltr)
        || matches!(
            instruction.code(),
            Code::Mov_cr_r64 | Code::Mov_cr_r32 | Code::Mov_dr_r64 | Code::Mov_dr_r32
        );
    fences || serialises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    const RAX: u16 = 1;
    const RCX: u16 = 1 << 1;
    const RSI: u16 = 1 << 6;
    const R8: u16 = 1 << 8;
    const R9: u16 = 1 << 9;

    #[test]
    fn d1_registers_loads_and_fences_are_those_of_the_instruction() {
        let of = |bytes: &[u8]| {
            let one = decode(bytes, 0x1000, 64).unwrap();
            let step = window(&mut InstructionInfoFactory::new(), &one);
            (step.reads, step.writes, step.loads, step.waits)
        };
        for (bytes, step) in [
            // mov eax, [rsi + rax]; mov r8d, [rsi + r8]
            (&[0x8b, 0x04, 0x06][..], (RAX | RSI, RAX, true, false)),
            (&[0x46, 0x8b, 0x04, 0x06], (R8 | RSI, R8, true, false)),
            // lea r9d, [rax + rax]; nop [rax]; dec ecx; xor eax, eax
            (&[0x44, 0x8d, 0x0c, 0x00], (RAX, R9, false, false)),
            (&[0x0f, 0x1f, 0x40, 0], (0, 0, false, false)),
            (&[0xff, 0xc9], (RCX, RCX, false, false)),
            (&[0x31, 0xc0], (0, RAX, false, false)),
            // mov [rsi], eax; add [rsi], eax; clflush [rsi]
            (&[0x89, 0x06], (RAX | RSI, 0, false, false)),
            (&[0x01, 0x06], (RAX | RSI, 0, true, false)),
            (&[0x0f, 0xae, 0x3e], (RSI, 0, false, false)),
            // pop rax; ret; lfence; mfence; mov cr3, rax
            (&[0x58], (0, RAX, true, false)),
            (&[0xc3], (0, 0, true, false)),
            (&[0x0f, 0xae, 0xe8], (0, 0, false, true)),
            (&[0x0f, 0xae, 0xf0], (0, 0, false, true)),
            (&[0x0f, 0x22, 0xd8], (RAX, 0, false, true)),
        ] {
            assert_eq!(of(bytes), step, "{bytes:x?}");
        }
        assert!(of(&[0x0f, 0xa2]).3, "cpuid");
        let vector = |bytes: &[u8]| {
            window(&mut InstructionInfoFactory::new(), &decode(bytes, 0x1000, 64).unwrap()).vector
        };
        // pshufd xmm1, xmm2, 0; vorps ymm1, ymm2, ymm3; movq xmm1, rax; movups xmm1, [rsi]
        assert!(vector(&[0x66, 0x0f, 0x70, 0xca, 0]) && vector(&[0xc5, 0xec, 0x56, 0xcb]));
        assert!(vector(&[0x66, 0x48, 0x0f, 0x6e, 0xc8]) && vector(&[0x0f, 0x10, 0x0e]));
        // movups [rsi], xmm1; movq rax, xmm1; ucomiss xmm1, xmm2; emms
        assert!(!vector(&[0x0f, 0x11, 0x0e]) && !vector(&[0x66, 0x48, 0x0f, 0x7e, 0xc8]));
        assert!(!vector(&[0x0f, 0x2e, 0xca]) && !vector(&[0x0f, 0x77]));
    }
}
