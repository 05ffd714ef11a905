//! Putting the numbers that names stand for into the code.

use object::{Relocation, RelocationEncoding, RelocationKind};

/// Puts `value`, which `name` stands for, to where `relocation` wants it, at `offset` of `code`.
///
/// # Errors
/// It does not fit, or is taken relative to the code, whose place is not known yet. The text says what to write instead.
pub(super) fn relocate(
    code: &mut [u8],
    offset: u64,
    relocation: &Relocation,
    name: &str,
    value: u64,
) -> Result<(), String> {
    let kind = relocation.kind();
    if kind != RelocationKind::Absolute {
        return Err(format!(
            "`{name}` stands for a number, and this takes it relative to RIP: `mov rax, offset {name}` takes it as it is"
        ));
    }
    let bits = u32::from(relocation.size());
    let sum = i128::from(value) + i128::from(relocation.addend());
    let signed = relocation.encoding() == RelocationEncoding::X86Signed;
    let range = if signed { -(1 << (bits - 1))..1 << (bits - 1) } else { 0..1i128 << bits };
    let place = code.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..bits as usize / 8));
    let Some(place) = place.filter(|_| range.contains(&sum)) else {
        return Err(format!(
            "`{name}` stands for {value:#x}, which does not fit into {bits} bits here; `movabs rax, offset {name}` has 64"
        ));
    };
    let bytes = sum.to_le_bytes();
    place.copy_from_slice(&bytes[..place.len()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::job::assemble::{Failed, Part, Source, Syntax, assemble};
    use protocol::bits::Bits;

    /// The code of one text that knows some names.
    fn code(text: &str, bits: Bits, syntax: Syntax) -> Result<Vec<u8>, String> {
        let symbols =
            [("memory_low", 0x7020_0000), ("memory_low_size", 1 << 26), ("memory_high", 1 << 45)]
                .map(|(name, value)| (name.to_string(), value));
        let source = Source { part: Part::Body, text, syntax, bits, symbols: &symbols };
        match assemble(&[source]) {
            Ok(codes) => Ok(codes[0].clone()),
            Err(Failed::Messages(messages)) => {
                let [message] = &messages[..] else { panic!("{messages:?}") };
                Err(format!("{}:{}: {}", message.line, message.column, message.text))
            }
            Err(failed) => panic!("{failed:?}"),
        }
    }

    #[test]
    fn n5_names_of_memory_are_numbers_wherever_one_may_stand() {
        let wide = |text| code(text, Bits::SixtyFour, Syntax::Intel).unwrap();
        assert_eq!(wide("mov rax, offset memory_low"), *b"\x48\xc7\xc0\x00\x00\x20\x70");
        assert_eq!(wide("mov rax, offset memory_low+64"), *b"\x48\xc7\xc0\x40\x00\x20\x70");
        assert_eq!(wide("nop; mov eax, offset memory_low_size - 8"), *b"\x90\xb8\xf8\xff\xff\x03");
        assert_eq!(wide("mov rbx, [memory_low+rcx*8]"), *b"\x48\x8b\x1c\xcd\x00\x00\x20\x70");
        assert_eq!(
            wide("movabs rax, offset memory_high+1"),
            *b"\x48\xb8\x01\x00\x00\x00\x00\x20\x00\x00"
        );
        let att = code("movq $memory_low, %rax", Bits::SixtyFour, Syntax::Att).unwrap();
        assert_eq!(att, *b"\x48\xc7\xc0\x00\x00\x20\x70");
        let narrow =
            code("mov eax, [memory_low+ecx*4]", Bits::Compatibility, Syntax::Intel).unwrap();
        assert_eq!(narrow, *b"\x8b\x04\x8d\x00\x00\x20\x70");
    }

    #[test]
    fn n5_what_a_name_of_memory_cannot_be_is_told_with_its_place() {
        let wrong = |text| code(text, Bits::SixtyFour, Syntax::Intel).unwrap_err();
        assert_eq!(
            wrong("nop\nmov rax, offset memory_high"),
            "2:17: `memory_high` stands for 0x200000000000, which does not fit into 32 bits here; \
             `movabs rax, offset memory_high` has 64"
        );
        assert!(wrong("lea rax, [rip + memory_low]").contains("relative to RIP"));
        assert!(wrong("mov rax, offset memory_none").contains("`memory_none` is neither"));
    }
}
