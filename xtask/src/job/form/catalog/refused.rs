//! Encodings that no item measures, because of what they are.

use iced_x86::{Code, CpuidFeature, DecoderOptions, Mnemonic};

const NOT_OF_THESE: &str = "no processor of 64 bits is documented to have it";

/// Why an encoding is not measured.
pub fn reason(code: Code) -> Option<&'static str> {
    // SDM vol. 2, group 3 has no /1; AMD's manual has TEST there, as /0.
    let doubled = [
        Code::Test_rm8_imm8_F6r1,
        Code::Test_rm16_imm16_F7r1,
        Code::Test_rm32_imm32_F7r1,
        Code::Test_rm64_imm32_F7r1,
    ];
    if doubled.contains(&code) {
        return Some("it is a second encoding of TEST that Intel's manual does not have");
    }
    // Intel's processors ignore the prefix, AMD's do not.
    let cut = [
        Code::Retnw,
        Code::Retnw_imm16,
        Code::Jmp_rm16,
        Code::Call_rm16,
        Code::Jmp_rel16,
        Code::Call_rel16,
    ];
    if cut.contains(&code) {
        return Some("its target is cut to 16 bits");
    }
    if code.mnemonic() == Mnemonic::Reservednop {
        return Some("it is a reserved NOP, in whose place processors have other instructions");
    }
    if matches!(code, Code::Wrfsbase_r32 | Code::Wrgsbase_r32) {
        return Some("it would cut the base address that is there");
    }
    if matches!(code, Code::Ltr_rm16 | Code::Ltr_r32m16 | Code::Ltr_r64m16) {
        return Some("the segment that it would load again is busy, which it refuses");
    }
    let reason = code.cpuid_features().iter().find_map(|&feature| of_feature(feature));
    // A decoder of these processors' code takes the bytes for another instruction.
    let other = !code.op_code().mode64() && code.op_code().decoder_option() != DecoderOptions::NONE;
    reason.or(other.then_some(NOT_OF_THESE))
}

fn of_feature(feature: CpuidFeature) -> Option<&'static str> {
    use CpuidFeature as F;
    Some(match feature {
        F::PKU | F::LWP | F::CET_SS | F::CET_IBT | F::UINTR | F::FRED | F::LKGS => {
            "an operating system has to enable it"
        }
        F::KL | F::AESKLE | F::WIDE_KL => "it needs a key that an operating system loads",
        F::VMX
        | F::SVM
        | F::SKINIT
        | F::SEV_ES
        | F::SEV_SNP
        | F::SMX
        | F::SGX1
        | F::TDX
        | F::SMM
        | F::TSE => "it belongs to hypervisors, enclaves and firmware",
        F::HLE | F::HLE_or_RTM | F::RTM | F::TSXLDTRK => {
            "it is about transactions, which end elsewhere"
        }
        F::PADLOCK_ACE
        | F::PADLOCK_PHE
        | F::PADLOCK_PMM
        | F::PADLOCK_RNG
        | F::PADLOCK_GMI
        | F::PADLOCK_UNDOC => "it is one of PadLock's, whose operands lie where registers point to",
        F::MPX => "it works on bounds registers, which MPX has to enable",
        F::CYRIX_FPU
        | F::CYRIX_SMM
        | F::CYRIX_SMINT
        | F::CYRIX_SHR
        | F::CYRIX_DDI
        | F::CYRIX_EMMI
        | F::CYRIX_DMI
        | F::CYRIX_D3NOW
        | F::CENTAUR_AIS
        | F::UDBG => NOT_OF_THESE,
        _ => return None,
    })
}
