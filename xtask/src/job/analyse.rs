//! Looking into a snippet's machine code.

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory,
    Mnemonic, Register,
};
use protocol::bits::Bits;
use protocol::job::LoopCounter;

/// Where the loop around the copies can keep its count: in R15 if the snippet's codes leave that alone, which 32-bit code
/// does not have. Code that does not decode may do anything.
#[must_use]
pub fn loop_counter(codes: &[&[u8]], bits: Bits) -> LoopCounter {
    let is_free = || codes.iter().all(|code| leaves(code, Register::R15));
    if bits == Bits::SixtyFour && is_free() { LoopCounter::R15 } else { LoopCounter::Memory }
}

/// Of 64-bit code.
fn leaves(code: &[u8], other: Register) -> bool {
    all(code, Bits::SixtyFour, |_, register| register.full_register() != other)
}

/// Whether the code leaves alone what no-memory mode keeps in registers. `counter`: the loop's.
///
/// # Errors
/// Names the code and the register.
pub fn no_memory(
    init: &[u8],
    late: &[u8],
    body: &[u8],
    counter: Option<Register>,
) -> Result<(), String> {
    use Register::{R9, R10, R11, R12, R13};
    let parts: [(_, _, &[_]); 3] = [
        ("init code", init, &[R9, R10, R11, R12, R13]),
        ("late init code", late, &[R12, R13]),
        ("body", body, &[R12, R13]),
    ];
    for (part, code, kept) in parts {
        if let Some(taken) = kept.iter().chain(&counter).find(|&&register| !leaves(code, register))
        {
            let name = format!("{taken:?}").to_uppercase();
            return Err(format!(
                "no-memory is set, but the {part} uses {name}, which then holds a value of the measuring code"
            ));
        }
    }
    Ok(())
}

/// Whether the code may touch registers beyond the general ones. Code that does not decode may.
#[must_use]
pub fn uses_extended_state(code: &[u8], bits: Bits) -> bool {
    // What an encoding needs says more than its operands: FXRSTOR and EMMS name no register.
    let plain = |instruction: &Instruction| {
        let encoding = instruction.code().encoding();
        matches!(encoding, EncodingKind::Legacy)
            && instruction.mnemonic() != Mnemonic::Ldmxcsr
            && !instruction.cpuid_features().iter().any(|feature| EXTENDED.contains(feature))
    };
    !all(code, bits, |instruction, register| {
        plain(instruction) && !register.is_vector_register() && !is_x87(register)
    })
}

/// Features whose instructions change extended state without naming a register of it.
const EXTENDED: [CpuidFeature; 9] = [
    CpuidFeature::FPU,
    CpuidFeature::FPU287,
    CpuidFeature::FPU387,
    CpuidFeature::MMX,
    CpuidFeature::FXSR,
    CpuidFeature::XSAVE,
    CpuidFeature::XSAVEC,
    CpuidFeature::XSAVES,
    CpuidFeature::PKU,
];

fn is_x87(register: Register) -> bool {
    register.is_st()
        || register.is_mm()
        || register.is_k()
        || register.is_bnd()
        || register.is_tmm()
}

/// Whether the code decodes and `holds` for each instruction with each register that it uses.
fn all(code: &[u8], bits: Bits, holds: impl Fn(&Instruction, Register) -> bool) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let decoder = Decoder::with_ip(bits.number().into(), code, 0, DecoderOptions::NONE);
    decoder.into_iter().all(|instruction| {
        let used = factory.info(&instruction).used_registers();
        // An instruction without registers is asked about once.
        let registers = used.iter().map(iced_x86::UsedRegister::register).chain([Register::None]);
        !instruction.is_invalid()
            && registers.into_iter().all(|register| holds(&instruction, register))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_state_is_told_by_registers_and_by_features() {
        for code in [
            &[0x0f, 0x58, 0xc1][..], // addps xmm0, xmm1
            &[0xc5, 0xf8, 0x77],     // vzeroupper
            &[0xd9, 0xe8],           // fld1
            &[0x0f, 0x77],           // emms
            &[0x0f, 0xae, 0x08],     // fxrstor [rax]
            &[0x0f, 0xae, 0x10],     // ldmxcsr [rax]
            &[0x06],                 // undecodable
        ] {
            assert!(uses_extended_state(code, Bits::SixtyFour), "{code:x?}");
        }
        for code in [
            &[0x48, 0x01, 0xd8][..],         // add rax, rbx
            &[0x0f, 0xae, 0xe8],             // lfence
            &[0x0f, 0x31],                   // rdtsc
            &[0xf3, 0x48, 0x0f, 0xb8, 0xc1], // popcnt rax, rcx
            &[],
        ] {
            assert!(!uses_extended_state(code, Bits::SixtyFour), "{code:x?}");
        }
    }

    #[test]
    fn n1_no_memory_mode_refuses_code_that_uses_its_registers() {
        let (add_r12d_eax, mov_r9_rax) = ([0x41, 0x01, 0xc4], [0x49, 0x89, 0xc1]);
        let add_r15_rbx = [0x49, 0x01, 0xdf];
        assert_eq!(no_memory(&[0x90], &mov_r9_rax, &add_r15_rbx, None), Ok(()));
        for (error, named) in [
            (no_memory(&mov_r9_rax, &[], &[], None), "init code uses R9"),
            (no_memory(&[], &add_r12d_eax, &[], None), "late init code uses R12"),
            (no_memory(&[], &[], &add_r12d_eax, None), "body uses R12"),
            (no_memory(&[], &[], &add_r15_rbx, Some(Register::R15)), "body uses R15"),
        ] {
            let text = error.unwrap_err();
            assert!(text.contains(named), "{text}");
        }
    }

    #[test]
    fn a_snippet_that_touches_r15_moves_the_count_to_memory() {
        let add_rax_rbx = [0x48, 0x01, 0xd8];
        let add_r15_rbx = [0x49, 0x01, 0xdf];
        let mov_r15b_al = [0x41, 0x88, 0xc7];
        let load_from_r15 = [0x49, 0x8b, 0x07];
        let counter = |code: &[u8]| loop_counter(&[&add_rax_rbx, code], Bits::SixtyFour);
        assert_eq!(counter(&add_rax_rbx), LoopCounter::R15);
        for code in [&add_r15_rbx, &mov_r15b_al, &load_from_r15] {
            assert_eq!(counter(code), LoopCounter::Memory);
        }
        assert_eq!(counter(&[0x06]), LoopCounter::Memory, "no instruction in 64-bit mode");
    }

    #[test]
    fn t6_32_bit_code_counts_in_memory_and_is_decoded_as_such() {
        assert_eq!(loop_counter(&[&[0x90]], Bits::Compatibility), LoopCounter::Memory);
        // push es; inc eax; les eax, [eax]: 0x06 and 0xc4 are no instructions of 64-bit mode, or other ones.
        for code in [&[0x06][..], &[0x40], &[0xc4, 0x00]] {
            assert!(!uses_extended_state(code, Bits::Compatibility), "{code:x?}");
        }
        // movaps xmm0, [eax + eax]
        assert!(uses_extended_state(&[0x0f, 0x28, 0x04, 0x00], Bits::Compatibility));
    }
}
