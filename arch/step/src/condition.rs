//! What decides a conditional jump.

use iced_x86::{Code, ConditionCode, Instruction};

/// Registers after an instruction. A conditional jump changes none of the flags, and LOOP looks at its count when it has
/// decreased it: so they state whether it was taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Behind {
    /// RIP, linear.
    pub rip: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// RCX.
    pub rcx: u64,
}

/// When a conditional jump is taken.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Condition {
    /// Bits of RCX that are looked at, and whether they must be 0.
    count: Option<(u64, bool)>,
    flags: ConditionCode,
}

/// Bits of RFLAGS: SDM vol. 1, 3.4.3.
const CF: u64 = 1 << 0;
const PF: u64 = 1 << 2;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const OF: u64 = 1 << 11;

impl Condition {
    /// Of a conditional jump; `None` of anything else.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Option<Self> {
        use Code::*;
        const BITS_16: u64 = 0xffff;
        const BITS_32: u64 = 0xffff_ffff;
        // The address size says how much of RCX counts: SDM vol. 2, Jcc and LOOP/LOOPcc.
        let count = match instruction.code() {
            Jcxz_rel8_16 | Jcxz_rel8_32 => Some((BITS_16, true)),
            Jecxz_rel8_16 | Jecxz_rel8_32 | Jecxz_rel8_64 => Some((BITS_32, true)),
            Jrcxz_rel8_16 | Jrcxz_rel8_64 => Some((u64::MAX, true)),
            Loop_rel8_16_CX | Loop_rel8_32_CX | Loope_rel8_16_CX | Loope_rel8_32_CX
            | Loopne_rel8_16_CX | Loopne_rel8_32_CX => Some((BITS_16, false)),
            Loop_rel8_16_ECX | Loop_rel8_32_ECX | Loop_rel8_64_ECX | Loope_rel8_16_ECX
            | Loope_rel8_32_ECX | Loope_rel8_64_ECX | Loopne_rel8_16_ECX | Loopne_rel8_32_ECX
            | Loopne_rel8_64_ECX => Some((BITS_32, false)),
            Loop_rel8_16_RCX | Loop_rel8_64_RCX | Loope_rel8_16_RCX | Loope_rel8_64_RCX
            | Loopne_rel8_16_RCX | Loopne_rel8_64_RCX => Some((u64::MAX, false)),
            _ if instruction.is_jcc_short_or_near() => None,
            _ => return None,
        };
        Some(Self { count, flags: instruction.condition_code() })
    }

    /// Whether it was taken.
    #[must_use]
    pub fn holds(&self, behind: &Behind) -> bool {
        let count = |(mask, zero)| (behind.rcx & mask == 0) == zero;
        self.count.is_none_or(count) && flags_hold(self.flags, behind.rflags)
    }
}

/// SDM vol. 1, appendix B, table B-1.
fn flags_hold(condition: ConditionCode, rflags: u64) -> bool {
    let is = |flag: u64| rflags & flag != 0;
    let is_less = is(SF) != is(OF);
    match condition {
        ConditionCode::None => true,
        ConditionCode::o => is(OF),
        ConditionCode::no => !is(OF),
        ConditionCode::b => is(CF),
        ConditionCode::ae => !is(CF),
        ConditionCode::e => is(ZF),
        ConditionCode::ne => !is(ZF),
        ConditionCode::be => is(CF) || is(ZF),
        ConditionCode::a => !is(CF) && !is(ZF),
        ConditionCode::s => is(SF),
        ConditionCode::ns => !is(SF),
        ConditionCode::p => is(PF),
        ConditionCode::np => !is(PF),
        ConditionCode::l => is_less,
        ConditionCode::ge => !is_less,
        ConditionCode::le => is(ZF) || is_less,
        ConditionCode::g => !is(ZF) && !is_less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    fn condition(bytes: &[u8]) -> Option<Condition> {
        Condition::of(&decode(bytes, 0x1000, 64).expect("an instruction"))
    }

    /// The processor that the tests run on executes each jump with all flags.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn conditions_of_flags_are_the_processors() {
        use core::arch::asm;
        macro_rules! jumps {
            ($rflags:expr, $($opcode:literal $name:literal),*) => {[$(($opcode, {
                let taken: u64;
                // SAFETY: sets arithmetic flags alone, and uses the stack as a function does.
                unsafe {
                    asm!("push {flags}", "popfq", "mov {taken}, 1", concat!($name, " 2f"), "mov {taken}, 0", "2:",
                        flags = in(reg) $rflags, taken = out(reg) taken);
                }
                taken == 1
            })),*]};
        }
        for bits in 0..1 << 5 {
            let flag = |bit: u64, flag: u64| if bits >> bit & 1 != 0 { flag } else { 0 };
            // Bit 1 is always set.
            let rflags = flag(0, CF) | flag(1, PF) | flag(2, ZF) | flag(3, SF) | flag(4, OF) | 2;
            let jumps = jumps!(rflags, 0x70 "jo", 0x71 "jno", 0x72 "jb", 0x73 "jae", 0x74 "je", 0x75 "jne", 0x76 "jbe",
                0x77 "ja", 0x78 "js", 0x79 "jns", 0x7a "jp", 0x7b "jnp", 0x7c "jl", 0x7d "jge", 0x7e "jle", 0x7f "jg");
            for (opcode, taken) in jumps {
                let short = condition(&[opcode, 0]).expect("a jump");
                let near = condition(&[0x0f, opcode + 0x10, 0, 0, 0, 0]).expect("a jump");
                let behind = Behind { rip: 0, rflags, rcx: 0 };
                assert_eq!(
                    [short, near].map(|it| it.holds(&behind)),
                    [taken; 2],
                    "{opcode:#x} {rflags:#x}"
                );
            }
        }
    }

    #[test]
    fn counts_are_those_behind_the_jump() {
        let holds = |bytes: &[u8], rcx, rflags| {
            condition(bytes).expect("a jump").holds(&Behind { rip: 0, rflags, rcx })
        };
        let (jrcxz, jecxz) = (&[0xe3, 0][..], &[0x67, 0xe3, 0][..]);
        assert_eq!(
            [holds(jrcxz, 0, 0), holds(jrcxz, 1 << 32, 0), holds(jecxz, 1 << 32, 0)],
            [true, false, true]
        );
        let (all, low) = (&[0xe2, 0][..], &[0x67, 0xe2, 0][..]);
        assert_eq!(
            [holds(all, 0, 0), holds(all, 1 << 32, 0), holds(low, 1 << 32, 0)],
            [false, true, false]
        );
        let (equal, unequal) = (&[0xe1, 0][..], &[0xe0, 0][..]);
        for (rcx, rflags, expected) in
            [(1, ZF, [true, false]), (1, 0, [false, true]), (0, ZF, [false; 2]), (0, 0, [false; 2])]
        {
            assert_eq!(
                [holds(equal, rcx, rflags), holds(unequal, rcx, rflags)],
                expected,
                "{rcx} {rflags:#x}"
            );
        }
    }

    #[test]
    fn other_instructions_have_none() {
        for bytes in [&[0xeb, 0][..], &[0x90], &[0x0f, 0x44, 0xc1], &[0xc3]] {
            assert_eq!(condition(bytes), None, "{bytes:x?}");
        }
    }
}
