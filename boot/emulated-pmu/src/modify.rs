//! Instructions that change 32 bits of memory by what is there: for registers of devices that the hypervisor answers for.

use iced_x86::Mnemonic;

/// RFLAGS (SDM vol. 1, 3.4.3): carry, parity, adjust, zero, sign, overflow.
const CF: u64 = 1 << 0;
const PF: u64 = 1 << 2;
const AF: u64 = 1 << 4;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const OF: u64 = 1 << 11;

/// What `mnemonic` makes of `old` and the other operand, and RFLAGS after it. `None`: it is none of these.
#[must_use]
pub const fn modified(
    mnemonic: Mnemonic,
    old: u32,
    operand: u32,
    flags: u64,
) -> Option<(u32, u64)> {
    let bit = 1u32 << (operand & 31);
    Some(match mnemonic {
        Mnemonic::Or => logical(old | operand, flags),
        Mnemonic::And => logical(old & operand, flags),
        Mnemonic::Xor => logical(old ^ operand, flags),
        Mnemonic::Add => {
            let (new, carry) = old.overflowing_add(operand);
            let overflow = (old ^ new) & (operand ^ new) >> 31 << 31;
            (new, arithmetic(new, [old, operand], carry, overflow >> 31 != 0, flags))
        }
        Mnemonic::Sub => {
            let (new, borrow) = old.overflowing_sub(operand);
            let overflow = (old ^ operand) & (old ^ new);
            (new, arithmetic(new, [old, operand], borrow, overflow >> 31 != 0, flags))
        }
        Mnemonic::Not => (!old, flags),
        Mnemonic::Bts => (old | bit, carried(old & bit != 0, flags)),
        Mnemonic::Btr => (old & !bit, carried(old & bit != 0, flags)),
        Mnemonic::Btc => (old ^ bit, carried(old & bit != 0, flags)),
        _ => return None,
    })
}

const fn put(flags: u64, bit: u64, on: bool) -> u64 {
    if on { flags | bit } else { flags & !bit }
}

const fn of_result(new: u32, flags: u64) -> u64 {
    let parity = (new as u8).count_ones().is_multiple_of(2);
    put(put(put(flags, ZF, new == 0), SF, new >> 31 != 0), PF, parity)
}

/// AF is undefined; QEMU clears it.
const fn logical(new: u32, flags: u64) -> (u32, u64) {
    (new, of_result(new, flags & !(CF | OF | AF)))
}

const fn arithmetic(new: u32, of: [u32; 2], carry: bool, overflow: bool, flags: u64) -> u64 {
    let adjust = (of[0] ^ of[1] ^ new) & 1 << 4 != 0;
    of_result(new, put(put(put(flags, CF, carry), OF, overflow), AF, adjust))
}

const fn carried(carry: bool, flags: u64) -> u64 {
    put(flags, CF, carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the processor of the test makes of it.
    macro_rules! real {
        ($name:literal, $old:expr, $operand:expr) => {{
            let (mut new, flags): (u32, u64) = ($old, 0);
            let mut flags = flags;
            // SAFETY: registers and the stack alone; the flags are those of the instruction.
            unsafe {
                core::arch::asm!(
                    concat!($name, " {new:e}, {operand:e}"), "pushfq", "pop {flags}",
                    new = inout(reg) new, operand = in(reg) $operand, flags = inout(reg) flags,
                );
            }
            (new, flags)
        }};
    }

    #[test]
    fn s1_results_and_flags_are_those_of_the_processor() {
        const VALUES: [u32; 8] = [0, 1, 0xf, 0x10, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0400];
        const ALL: u64 = CF | PF | AF | ZF | SF | OF;
        for old in VALUES {
            for operand in VALUES {
                // AF of logical instructions, and all but CF of those of bits, are not defined.
                for (mnemonic, (new, flags), defined) in [
                    (Mnemonic::Or, real!("or", old, operand), ALL & !AF),
                    (Mnemonic::And, real!("and", old, operand), ALL & !AF),
                    (Mnemonic::Xor, real!("xor", old, operand), ALL & !AF),
                    (Mnemonic::Add, real!("add", old, operand), ALL),
                    (Mnemonic::Sub, real!("sub", old, operand), ALL),
                    (Mnemonic::Bts, real!("bts", old, operand), CF),
                    (Mnemonic::Btr, real!("btr", old, operand), CF),
                    (Mnemonic::Btc, real!("btc", old, operand), CF),
                ] {
                    let (seen, behind) = modified(mnemonic, old, operand, 0x202).unwrap();
                    let what = format!("{mnemonic:?} {old:#x} {operand:#x}");
                    assert_eq!((seen, behind & defined), (new, flags & defined), "{what}");
                    assert_eq!(behind & !ALL, 0x202, "{what}: other flags stay");
                }
            }
        }
        assert_eq!(modified(Mnemonic::Not, 1, 0, 0x246), Some((!1, 0x246)));
        assert_eq!(modified(Mnemonic::Mov, 1, 2, 0), None);
    }
}
