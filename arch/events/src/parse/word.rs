//! Function words, as OpenBSD's pctr(4) has them: the value of the event select register, written
//! as a number or put together from the flags of `machine/pctr.h` with `|` and `<<`.

use super::ParseErrorKind as Kind;
use super::number::number;
use alloc::string::ToString;

/// The flags of `machine/pctr.h`, by their names without `PCTR_`.
const FLAGS: [(&str, u64); 11] = [
    ("U", 1 << 16),
    ("K", 1 << 17),
    ("E", 1 << 18),
    ("EN", 1 << 22),
    ("I", 1 << 23),
    ("UM_M", 0x0800),
    ("UM_E", 0x0400),
    ("UM_S", 0x0200),
    ("UM_I", 0x0100),
    ("UM_MESI", 0x0f00),
    ("UM_A", 0x2000),
];
const SHIFTS: [(&str, u32); 2] = [("UM_SHIFT", 8), ("CM_SHIFT", 24)];

fn lookup<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let bare = match name.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("PCTR_") => &name[5..],
        _ => name,
    };
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(bare)).map(|(_, value)| *value)
}

/// One operand of `|`: a number, a flag, or either shifted left.
fn operand(text: &str) -> Result<u64, Kind> {
    let unknown = |text: &str| Kind::UnknownFlag(text.to_string());
    let plain =
        |text: &str| number(text).or_else(|| lookup(&FLAGS, text)).ok_or_else(|| unknown(text));
    let Some((value, shift)) = text.split_once("<<") else {
        return plain(text);
    };
    let (value, shift_text) = (plain(value.trim())?, shift.trim());
    let shift = lookup(&SHIFTS, shift_text)
        .or_else(|| number(shift_text).and_then(|n| u32::try_from(n).ok()))
        .ok_or_else(|| unknown(shift_text))?;
    if shift >= 32 || value > u64::from(u32::MAX) >> shift {
        return Err(Kind::WordOverflow { value, shift });
    }
    Ok(value << shift)
}

/// Reads a function word. Positions in errors are relative to `text`.
///
/// # Errors
/// The part that is not understood, and where it starts.
pub(super) fn word(text: &str) -> Result<u64, (usize, Kind)> {
    let mut value = 0;
    let mut at = 0;
    for part in text.split('|') {
        let blank = part.len() - part.trim_start().len();
        value |= operand(part.trim()).map_err(|kind| (at + blank, kind))?;
        at += part.len() + 1;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p2_every_flag_of_a_function_word_is_reachable() {
        for (text, value) in [
            ("0x4300c0", 0x4300c0),
            ("0xc0|U", 0x1_00c0),
            ("0xc0|K", 0x2_00c0),
            ("0xc0 | PCTR_E", 0x4_00c0),
            ("0xc0|EN", 0x40_00c0),
            ("0xc0|pctr_i", 0x80_00c0),
            ("0x2e|0x4f<<UM_SHIFT|U|K|EN", 0x43_4f2e),
            ("0x0e|2<<PCTR_CM_SHIFT|U|EN", 0x0241_000e),
            ("0x29|UM_MESI|UM_A|U|K|EN", 0x43_2f29),
            ("0x29|UM_M|UM_E|UM_S|UM_I", 0x0f29),
            ("0xc0|1<<20", 0x10_00c0),
            ("0xff<<CM_SHIFT", 0xff00_0000),
        ] {
            assert_eq!(word(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn wrong_parts_are_named_with_their_place() {
        assert_eq!(word("0xc0| X").unwrap_err(), (6, Kind::UnknownFlag("X".into())));
        assert_eq!(word("0xc0|").unwrap_err().0, 5);
        let (at, kind) = word("1|256<<CM_SHIFT").unwrap_err();
        assert_eq!(at, 2);
        assert_eq!(kind, Kind::WordOverflow { value: 256, shift: 24 });
        assert!(word("1<<99999999999").is_err());
    }
}
