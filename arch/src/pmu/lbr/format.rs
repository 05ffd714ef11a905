//! What the bits of a record mean.

use super::Branch;
use crate::pmu::capabilities::LbrKind;

/// FROM and INFO: mispredicted; AMD's FROM likewise.
const MISPREDICTED: u64 = 1 << 63;
/// AMD's TO: the record holds a branch that retired.
const AMD_VALID: u64 = 1 << 63;
/// AMD's TO: reserved. Zen 4 sets it in records that are not branches (Linux, `amd_pmu_lbr_read`: "discard erroneous branch entries").
const AMD_RESERVED: u64 = 1 << 61;
/// AMD: addresses have 58 bits.
const AMD_ADDRESS_BITS: u32 = 58;

/// IA32_LBR_x_INFO: the cycles are valid (Linux, `LBR_INFO_CYC_CNT_VALID`).
const CYCLES_VALID: u64 = 1 << 60;

/// PERF_CAPABILITIES\[5:0\] 3: a flag in FROM\[63\].
const FLAGS: u8 = 3;
/// 4: flags in FROM\[63:61\].
const FLAGS_TSX: u8 = 4;
/// 5: INFO registers.
const INFO: u8 = 5;
/// 6: cycles in TO\[63:48\], the flag in FROM\[63\].
const TIME: u8 = 6;
/// 7: INFO registers, the flag there.
const INFO_2: u8 = 7;

/// Whether a legacy format has INFO registers.
pub(super) const fn has_info(format: u8) -> bool {
    matches!(format, INFO | INFO_2)
}

/// The low `bits` bits with the sign of the highest of them.
const fn extend(value: u64, bits: u32) -> u64 {
    let shift = 64 - bits;
    ((value << shift) as i64 >> shift) as u64
}

/// What to write to FROM so that it reads `from` again. Where a processor has TSX switched off, Haswell's and Broadwell's format
/// takes bits 62:61 as the sign, and raises #GP if they are not (Linux, `lbr_from_signext_quirk_wr`).
pub(super) const fn from_to_write(kind: LbrKind, from: u64) -> u64 {
    const SIGN: u64 = 3 << 59;
    match kind {
        LbrKind::Legacy { format: FLAGS_TSX, .. } => from | (from & SIGN) << 2,
        _ => from,
    }
}

/// The branch in an entry, if there is one.
pub(super) fn branch(kind: LbrKind, from: u64, to: u64, info: Option<u64>) -> Option<Branch> {
    let flag = |value: u64| Some(value & MISPREDICTED != 0);
    if let LbrKind::AmdV2 { .. } = kind {
        return (to & (AMD_VALID | AMD_RESERVED) == AMD_VALID).then(|| Branch {
            from: extend(from, AMD_ADDRESS_BITS),
            to: extend(to, AMD_ADDRESS_BITS),
            mispredicted: flag(from),
            cycles: None,
        });
    }
    if from == 0 && to == 0 {
        return None;
    }
    let plain = Branch { from, to, mispredicted: None, cycles: None };
    let info_mispredict = info.and_then(flag);
    let tells_cycles =
        |info: &u64| !matches!(kind, LbrKind::Architectural { .. }) || info & CYCLES_VALID != 0;
    let cycles = info.filter(tells_cycles).map(|info| info as u16);
    Some(match kind {
        LbrKind::Legacy { format: FLAGS, .. } => {
            Branch { from: extend(from, 63), mispredicted: flag(from), ..plain }
        }
        LbrKind::Legacy { format: FLAGS_TSX, .. } => {
            Branch { from: extend(from, 61), mispredicted: flag(from), ..plain }
        }
        LbrKind::Legacy { format: TIME, .. } => Branch {
            from: extend(from, 63),
            to: extend(to, 48),
            mispredicted: flag(from),
            cycles: Some((to >> 48) as u16),
        },
        LbrKind::Architectural { mispredict: false, .. } => Branch { cycles, ..plain },
        LbrKind::Legacy { .. } | LbrKind::Architectural { .. } => {
            Branch { mispredicted: info_mispredict, cycles, ..plain }
        }
        LbrKind::None | LbrKind::AmdV2 { .. } | LbrKind::Single => plain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8000_1000;

    fn legacy(format: u8) -> LbrKind {
        LbrKind::Legacy { entries: 16, format, old_place: false, filter: true }
    }

    #[test]
    fn flags_are_not_part_of_the_address() {
        for format in [FLAGS, FLAGS_TSX] {
            // Not mispredicted: the flag differs from the address's sign.
            let seen = branch(legacy(format), KERNEL & !MISPREDICTED, KERNEL, None).unwrap();
            assert_eq!((seen.from, seen.mispredicted), (KERNEL, Some(false)));
            let seen = branch(legacy(format), 0x1000 | MISPREDICTED, 0x2000, None).unwrap();
            assert_eq!((seen.from, seen.mispredicted), (0x1000, Some(true)));
        }
    }

    #[test]
    fn the_time_format_keeps_cycles_in_to() {
        let seen = branch(legacy(TIME), 0x1000, 7 << 48 | KERNEL & 0xffff_ffff_ffff, None).unwrap();
        assert_eq!((seen.to, seen.cycles), (KERNEL, Some(7)));
    }

    #[test]
    fn amd_records_say_whether_they_are_valid() {
        let kind = LbrKind::AmdV2 { entries: 16 };
        assert_eq!(branch(kind, 0x1000, 0x2000, None), None);
        assert_eq!(branch(kind, 0x1000, AMD_VALID | AMD_RESERVED | 0x2000, None), None);
        let seen = branch(kind, KERNEL & ((1 << 58) - 1), AMD_VALID | 0x2000, None).unwrap();
        assert_eq!((seen.from, seen.to, seen.mispredicted), (KERNEL, 0x2000, Some(false)));
    }

    #[test]
    fn s2_a_source_is_written_back_with_the_sign_that_it_needs() {
        let read = KERNEL & !(7 << 61);
        assert_eq!(from_to_write(legacy(FLAGS_TSX), read), KERNEL & !MISPREDICTED);
        assert_eq!(from_to_write(legacy(FLAGS_TSX), MISPREDICTED | 0x1000), MISPREDICTED | 0x1000);
        assert_eq!(from_to_write(legacy(FLAGS_TSX), KERNEL), KERNEL, "the sign is there already");
        assert_eq!(from_to_write(legacy(INFO), read), read);
    }

    #[test]
    fn an_empty_entry_is_no_branch() {
        assert_eq!(branch(legacy(INFO), 0, 0, Some(0)), None);
    }

    /// A branch from or to address 0 is one: code that jumped through a null pointer.
    #[test]
    fn an_entry_with_one_address_is_a_branch() {
        for (from, to) in [(0, 0x2000), (0x1000, 0)] {
            let seen = branch(legacy(INFO), from, to, Some(0)).unwrap();
            assert_eq!((seen.from, seen.to), (from, to));
        }
    }

    /// What each kind of record states in addition to the addresses.
    #[test]
    fn flags_and_cycles_stand_where_the_kind_has_them() {
        let architectural =
            |mispredict| LbrKind::Architectural { depth: 32, mispredict, filter: true };
        let info = Some(MISPREDICTED | 9);
        let timed = Some(MISPREDICTED | CYCLES_VALID | 9);
        let [missed, right] = [Some(true), Some(false)];
        for (kind, from, info, mispredicted, cycles) in [
            (legacy(0), 0x1000, None, None, None),
            (legacy(FLAGS), 0x1000, None, right, None),
            (legacy(TIME), 0x1000, None, right, Some(0)),
            (legacy(TIME), 0x1000 | MISPREDICTED, None, missed, Some(0)),
            (legacy(INFO), 0x1000, info, missed, Some(9)),
            (legacy(INFO_2), 0x1000, Some(3), right, Some(3)),
            (architectural(true), 0x1000, timed, missed, Some(9)),
            (architectural(false), 0x1000, timed, None, Some(9)),
            (architectural(true), 0x1000, info, missed, None),
            (architectural(false), 0x1000, info, None, None),
            (LbrKind::Single, 0x1000, None, None, None),
        ] {
            let seen = branch(kind, from, 0x2000, info).unwrap();
            let expected = Branch { from: 0x1000, to: 0x2000, mispredicted, cycles };
            assert_eq!(seen, expected, "{kind:?} {from:#x}");
        }
    }

    /// SDM vol. 4, MSR_LASTBRANCH_0_FROM_IP; Linux, `struct branch_entry` of amd/lbr.c.
    #[test]
    fn the_flags_are_the_top_bits() {
        assert_eq!((MISPREDICTED, AMD_VALID), (0x8000_0000_0000_0000, 0x8000_0000_0000_0000));
    }
}
