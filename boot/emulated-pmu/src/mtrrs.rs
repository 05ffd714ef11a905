//! Which memory type range registers a processor has: SDM vol. 3, 13.11.

/// IA32_MTRRCAP.
pub const CAPABILITIES: u32 = 0xfe;
/// Bits 7:0 of it: pairs of registers for variable ranges. Bit 8: those for fixed ones.
const PAIRS: u64 = 0xff;
const HAS_FIXED: u64 = 1 << 8;
/// IA32_MTRR_PHYSBASE0.
const FIRST_VARIABLE: u32 = 0x200;
/// Of 64, 16 and 4 KiB.
const FIXED: [u32; 11] =
    [0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f];
/// IA32_MTRR_DEF_TYPE, which switches them on.
const DEFAULT_TYPE: u32 = 0x2ff;

/// The registers of a processor with these capabilities, that which switches the others on after them.
pub fn registers(capabilities: u64) -> impl Iterator<Item = u32> {
    let variable = (FIRST_VARIABLE..).take(2 * (capabilities & PAIRS) as usize);
    let fixed = FIXED.into_iter().filter(move |_| capabilities & HAS_FIXED != 0);
    variable.chain(fixed).chain([DEFAULT_TYPE])
}

#[cfg(test)]
mod tests {
    use super::*;
    use handover::startup::MAX_MTRRS;

    #[test]
    fn capabilities_tell_which_there_are() {
        let all: Vec<u32> = registers(0x508).collect();
        assert_eq!(all.len(), 16 + 11 + 1);
        assert_eq!((all[0], all[15], all[16]), (0x200, 0x20f, 0x250));
        assert_eq!(all.last(), Some(&0x2ff));
        assert!(registers(0x402).eq([0x200, 0x201, 0x202, 0x203, 0x2ff]));
    }

    #[test]
    fn there_is_room_for_those_of_16_pairs() {
        assert_eq!(registers(0x110).count(), MAX_MTRRS);
    }
}
