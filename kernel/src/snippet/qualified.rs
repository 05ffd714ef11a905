//! A snippet's events counted of some instructions only: what the emulated PMU's qualifiers are set to.

use super::Emitted;
use crate::exact::Refusal;
use crate::exact::filter::{base, opcode};
use alloc::string::String;
use alloc::vec::Vec;
use iced_x86::Mnemonic;
use pmu_model::Qualifiers;
use pmu_model::qualify::{self, WORDS};
use protocol::job::exact::{AddressRange, Filter};
use thiserror::Error;

/// What the qualifiers cannot hold.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Unqualified {
    /// There is no such opcode.
    #[error("only: {0}")]
    Opcode(#[from] Refusal),
    /// They do not tell it.
    #[error("only: qualifiers do not tell 64-bit from 32-bit code; exact = {{ bits = … }} does")]
    Bits,
}

/// How many opcodes the decoder knows.
#[must_use]
pub fn opcodes() -> u32 {
    Mnemonic::values().count() as u32
}

/// The registers. `counters`: those that are qualified, as in the global control; `pointers`: what RSP, RBP, RDI, RSI and R14
/// hold when the snippet starts.
///
/// # Errors
/// What they cannot hold.
pub fn registers(
    filter: &Filter,
    emitted: &Emitted,
    is_call: bool,
    pointers: [u64; 5],
    counters: u64,
) -> Result<[u64; WORDS], Unqualified> {
    if filter.bits.is_some() {
        return Err(Unqualified::Bits);
    }
    let known = |name| opcode(name).map(|one| one as u16);
    let opcodes = filter.opcodes.iter().map(|name| known(name));
    let opcodes: Vec<u16> = opcodes.collect::<Result<_, _>>()?;
    let code = filter.instructions.map(|range| code(&range, emitted, is_call));
    let data = filter
        .data
        .map(|range| [range.from, range.to].map(|offset| address(base(&range, pointers), offset)));
    let checks = u64::from(code.is_some())
        | u64::from(!opcodes.is_empty()) << 1
        | u64::from(data.is_some()) << 2;
    let [start, end, part] = code.unwrap_or_default();
    let [from, to] = data.unwrap_or_default();
    let [a, b, c, d] = qualify::pack(&opcodes);
    let words = [counters, checks, start, end, part, from, to, a, b, c, d];
    Ok(Qualifiers::of_words(words).words())
}

/// A range of bytes of each copy of the body: start, end, and which bytes of which number recur.
fn code(range: &AddressRange, emitted: &Emitted, is_call: bool) -> [u64; 3] {
    let [from, to] = [range.from, range.to].map(|offset| address(0, offset));
    if is_call {
        return [from, to, 0];
    }
    let (body, bytes) = (&emitted.body, emitted.copy_bytes);
    let to = to.min(bytes);
    if from >= to {
        return [body.start, body.start, 0];
    }
    // A body has at most some MiB.
    [body.start + from, body.end.max(body.start + from), bytes << 32 | (to - from)]
}

/// An address; what would be outside of the address space is at its end.
fn address(base: u64, offset: i64) -> u64 {
    let sum = i128::from(base) + i128::from(offset);
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}

/// The filter as a job writes it.
#[must_use]
pub fn text(filter: &Filter) -> String {
    let mut parts = Vec::new();
    if !filter.opcodes.is_empty() {
        parts.push(filter.opcodes.join("+"));
    }
    if let Some(range) = filter.instructions {
        parts.push(alloc::format!("bytes {range}"));
    }
    if let Some(range) = filter.data {
        parts.push(alloc::format!("data {range}"));
    }
    alloc::format!("only={}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn emitted() -> Emitted {
        Emitted { body: 0x1000..0x1030, copy_bytes: 16, ..Emitted::default() }
    }

    fn of(filter: &Filter) -> Qualifiers {
        let words = registers(filter, &emitted(), false, [0x8000, 0, 0, 0, 0x9000], 1);
        Qualifiers::of_words(words.unwrap())
    }

    #[test]
    fn t1_a_range_of_bytes_is_one_of_each_copy() {
        let range = |text: &str| Filter { instructions: text.parse().ok(), ..Filter::default() };
        let taken = |text: &str| {
            let all = of(&range(text));
            (0xff0..0x1040).filter(|ip| all.takes(*ip, 1)).collect::<Vec<_>>()
        };
        assert_eq!(taken("2..4"), [0x1002, 0x1003, 0x1012, 0x1013, 0x1022, 0x1023]);
        assert_eq!(taken("-5..1"), [0x1000, 0x1010, 0x1020]);
        assert_eq!(taken("15..100"), [0x100f, 0x101f, 0x102f]);
        assert!(taken("16..20").is_empty());
    }

    #[test]
    fn t2_t3_t8_opcodes_and_data_are_those_of_the_job() {
        let filter = Filter {
            opcodes: Vec::from(["imul".into(), "add".into()]),
            data: "r14:-8..8".parse().ok(),
            ..Filter::default()
        };
        let all = of(&filter);
        assert!(all.takes(0, Mnemonic::Imul as u16) && all.takes(0, Mnemonic::Add as u16));
        assert!(!all.takes(0, Mnemonic::Sub as u16));
        assert!(all.touches(0x8ff8, 1) && !all.touches(0x9008, 1) && !all.touches(0x8ff7, 1));
        assert_eq!(text(&filter), "only=imul+add, data r14:-0x8..0x8");
        let unknown = Filter { opcodes: Vec::from(["imull".into()]), ..Filter::default() };
        let error = registers(&unknown, &emitted(), false, [0; 5], 1).unwrap_err();
        assert_eq!(error.to_string(), "only: the filter's opcode `imull` does not exist");
    }
}
