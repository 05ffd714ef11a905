//! Which exceptions an instruction can raise.

use iced_x86::{Code, CpuidFeature, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Whether exception `vector` can come from the code around an address: from the instruction whose bytes are `at`, if it is a
/// fault, or from the one that ends there with the bytes `before`, if it is a trap (SDM vol. 3, table 6-1). In doubt it can.
///
/// `at` may be cut short, or empty if nothing can be read there. `bits`: 64, or 32 in compatibility mode.
#[must_use]
pub fn can_raise(vector: u8, at: &[u8], before: &[u8], bits: u32) -> bool {
    // INT n.
    if before.ends_with(&[0xcd, vector]) {
        return true;
    }
    match vector {
        // Reserved ones, the NMI, and those of the breakpoint and overflow instructions, which are traps.
        2 | 9 | 15 | 22..=27 | 31 => false,
        3 => before.ends_with(&[0xcc]),
        4 => bits < 64 && before.ends_with(&[0xce]),
        0 | 5 | 16 | 17 | 19 => {
            let mut decoder = Decoder::with_ip(bits, at, 0, DecoderOptions::NONE);
            let instruction = decoder.decode();
            // Nothing to go by.
            instruction.code() == Code::INVALID || fault(vector, &instruction)
        }
        _ => true,
    }
}

/// Whether executing the instruction can raise one of the faults that few instructions can.
fn fault(vector: u8, instruction: &Instruction) -> bool {
    let is = |wanted: &[Mnemonic]| wanted.contains(&instruction.mnemonic());
    match vector {
        0 => is(&[Mnemonic::Div, Mnemonic::Idiv, Mnemonic::Aam]),
        5 => is(&[Mnemonic::Bound, Mnemonic::Bndcl, Mnemonic::Bndcu, Mnemonic::Bndcn]),
        // An x87 exception is raised by the x87 or MMX instruction after the one that caused it.
        16 => is(&[Mnemonic::Wait]) || !is_integer(instruction),
        19 => !is_integer(instruction),
        17 => {
            let memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
            instruction.is_stack_instruction()
                || (0..instruction.op_count()).any(memory)
                || instruction.is_string_instruction()
        }
        _ => true,
    }
}

/// Whether it is one of the integer instructions, which raise no floating-point exception.
fn is_integer(instruction: &Instruction) -> bool {
    let integer = |feature: &CpuidFeature| {
        matches!(
            feature,
            CpuidFeature::INTEL8086
                | CpuidFeature::INTEL8086_ONLY
                | CpuidFeature::INTEL186
                | CpuidFeature::INTEL286
                | CpuidFeature::INTEL286_ONLY
                | CpuidFeature::INTEL386
                | CpuidFeature::INTEL386_ONLY
                | CpuidFeature::INTEL486
                | CpuidFeature::X64
                | CpuidFeature::CMOV
                | CpuidFeature::CPUID
                | CpuidFeature::TSC
                | CpuidFeature::MSR
                | CpuidFeature::RDPMC
                | CpuidFeature::MULTIBYTENOP
                | CpuidFeature::PAUSE
        )
    };
    instruction.cpuid_features().iter().all(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: &[u8] = &[0x90];
    const DIV: &[u8] = &[0x48, 0xf7, 0xf1];

    #[test]
    fn only_what_divides_raises_a_divide_error() {
        assert!(can_raise(0, DIV, &[0x90, 0x90], 64));
        assert!(can_raise(0, &[0xf6, 0x39], &[], 64), "idiv byte ptr [rcx]");
        assert!(can_raise(0, &[0xd4, 0x00], &[], 32), "aam 0");
        for other in [NOP, &[0x48, 0xff, 0xc8], &[0x0f, 0x30], &[0x75, 0xfb]] {
            assert!(!can_raise(0, other, &[0x90, 0x90], 64), "{other:x?}");
        }
        // INT 0, after which the address is.
        assert!(can_raise(0, NOP, &[0xcd, 0x00], 64));
        assert!(!can_raise(0, NOP, &[0xcd, 0x01], 64));
    }

    #[test]
    fn what_cannot_be_read_or_decoded_is_no_stray() {
        for vector in [0, 5, 16, 17, 19] {
            assert!(can_raise(vector, &[], &[], 64), "{vector}");
            assert!(can_raise(vector, &[0x06], &[], 64), "{vector}");
        }
    }

    #[test]
    fn nothing_raises_a_reserved_vector_or_an_nmi_but_int() {
        for vector in [2, 9, 15, 22, 27, 31] {
            assert!(!can_raise(vector, NOP, &[], 64), "{vector}");
            assert!(can_raise(vector, NOP, &[0xcd, vector], 64), "{vector}");
        }
    }

    #[test]
    fn traps_are_told_by_what_lies_in_front() {
        assert!(can_raise(3, NOP, &[0x90, 0xcc], 64));
        assert!(!can_raise(3, &[0xcc], &[0x90, 0x90], 64), "it has not been executed yet");
        assert!(can_raise(4, NOP, &[0x90, 0xce], 32));
        assert!(!can_raise(4, NOP, &[0x90, 0xce], 64), "64-bit mode has no INTO");
    }

    #[test]
    fn floating_point_exceptions_come_from_floating_point_instructions() {
        let (addps, fadd, load) = (&[0x0f, 0x58, 0xc1][..], &[0xd8, 0xc1][..], &[0x8b, 0x03][..]);
        assert!(can_raise(19, addps, &[], 64) && !can_raise(19, NOP, &[], 64));
        assert!(can_raise(16, fadd, &[], 64) && can_raise(16, &[0x9b], &[], 64));
        assert!(!can_raise(16, load, &[], 64));
        assert!(can_raise(17, load, &[], 64) && !can_raise(17, NOP, &[], 64));
        for any in [1, 6, 7, 8, 10, 11, 12, 13, 14, 18, 20, 21, 28, 29, 30] {
            assert!(can_raise(any, NOP, &[], 64), "{any}");
        }
    }
}
