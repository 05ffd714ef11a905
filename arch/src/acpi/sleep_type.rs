//! Finding the package `\_S5` in AML code: ACPI specification, 20.2.
//!
//! `NameOp "_S5_" PackageOp PkgLength NumElements TypeA TypeB ...`, the types being small integers.

const NAME_OP: u8 = 0x08;
const ROOT: u8 = b'\\';
const PACKAGE_OP: u8 = 0x12;
const ZERO_OP: u8 = 0x00;
const ONE_OP: u8 = 0x01;
const BYTE_PREFIX: u8 = 0x0a;
const WORD_PREFIX: u8 = 0x0b;
const DWORD_PREFIX: u8 = 0x0c;

/// The values for the two sleep registers.
#[must_use]
pub fn find(code: &[u8]) -> Option<[u8; 2]> {
    let name = b"_S5_";
    code.windows(name.len()).enumerate().filter(|(_, window)| window == name).find_map(|(at, _)| {
        let named = match *code.get(at.checked_sub(1)?)? {
            NAME_OP => true,
            ROOT => at >= 2 && code[at - 2] == NAME_OP,
            _ => false,
        };
        if named { package(&code[at + name.len()..]) } else { None }
    })
}

fn package(code: &[u8]) -> Option<[u8; 2]> {
    let (&op, code) = code.split_first()?;
    // The upper two bits of the length say how many more bytes it has.
    let following = usize::from(*code.first()? >> 6);
    let elements = code.get(1 + following + 1..)?;
    let (first, rest) = integer(elements)?;
    let second = integer(rest).map_or(0, |(value, _)| value);
    (op == PACKAGE_OP).then_some([first, second])
}

/// One integer's lowest byte, and what follows it.
fn integer(code: &[u8]) -> Option<(u8, &[u8])> {
    let (&op, rest) = code.split_first()?;
    let bytes = match op {
        ZERO_OP | ONE_OP => return Some((op, rest)),
        BYTE_PREFIX => 1,
        WORD_PREFIX => 2,
        DWORD_PREFIX => 4,
        _ => return None,
    };
    Some((*rest.first()?, rest.get(bytes..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_forms_are_found() {
        // Name (_S5, Package (4) { 0x05, 0x05, Zero, Zero }), once with a root prefix and a word.
        let plain = b"\x10\x08_S5_\x12\x08\x04\x0a\x05\x0a\x05\x00\x00\x14";
        assert_eq!(find(plain), Some([5, 5]));
        let rooted = b"\x08\\_S5_\x12\x0a\x04\x0b\x07\x00\x01\x00\x00";
        assert_eq!(find(rooted), Some([7, 1]));
        // QEMU's pc machine: both zero.
        assert_eq!(find(b"\x08_S5_\x12\x06\x04\x00\x00\x00\x00"), Some([0, 0]));
        let long = b"\x08_S5_\x12\x48\x00\x04\x0a\x06\x0a\x06";
        assert_eq!(find(long), Some([6, 6]));
    }

    #[test]
    fn a_mention_or_a_method_is_not_taken_for_the_package() {
        assert_eq!(find(b"\x70\x00_S5_\x12\x08\x04\x0a\x05"), None);
        assert_eq!(find(b"\x14\x0a_S5_\x00\xa4"), None);
        assert_eq!(find(b"\x08_S5_\x11\x08\x04\x0a\x05"), None);
        assert_eq!(find(b""), None);
    }

    proptest! {
        #[test]
        fn no_code_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = find(&bytes);
            let _ = find(&[b"\x08_S5_", &bytes[..]].concat());
        }
    }
}
