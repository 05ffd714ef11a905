//! Exact mode: a snippet stepped instruction by instruction, and which of its instructions count.
//!
//! The filters are the qualifiers that Itanium's counters have and those of x86 lack: instruction address range, opcode,
//! data address range, instruction set (Itanium SDM vol. 2, 7.2.3). All that are given have to hold at once.

use crate::bits::Bits;
use crate::job::Snippet;
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A snippet to step through.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Exact<'a> {
    /// The snippet. Its warm-up and number of runs matter to [`Exact::verify`] alone: stepping is done once for each of
    /// the two code sizes.
    #[serde(borrow)]
    pub snippet: Snippet<'a>,
    /// What counts.
    #[serde(borrow)]
    pub filter: Filter<'a>,
    /// Whether the snippet is also measured with the PMU, and the two compared. Without a filter only.
    pub verify: bool,
    /// Instructions after which stepping through one code size ends, those of the measuring code among them.
    pub steps: u64,
}

/// [`Exact::steps`] of a job that does not say: some seconds, also where a hypervisor sees each of the exceptions.
pub const DEFAULT_STEPS: u64 = 250_000;

/// What stepping counts, in the order of the report.
pub const EVENTS: [&str; 13] = [
    "instructions",
    "branches",
    "conditional_branches",
    "conditional_taken",
    "taken_branches",
    "near_jumps",
    "near_calls",
    "near_returns",
    "far_branches",
    "loads",
    "stores",
    "bytes_loaded",
    "bytes_stored",
];

/// Which instructions count, and which of their accesses. Empty: all.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Filter<'a> {
    /// Mnemonics in lower case, without size suffix, as `imul`: an instruction has to be one of them. Empty: any.
    #[serde(borrow)]
    pub opcodes: Vec<Cow<'a, str>>,
    /// Where the instruction's first byte lies within a copy of the body.
    pub instructions: Option<AddressRange>,
    /// Where the instruction has to load or store. Accesses elsewhere do not count.
    pub data: Option<AddressRange>,
    /// What the processor has to execute it as: 64-bit code, or 32-bit code.
    pub bits: Option<Bits>,
}

impl Filter<'_> {
    /// Whether everything counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A range of addresses: `FROM..TO`, the end left out, or `REGISTER:FROM..TO`, counted from the address that the
/// register points to when the snippet starts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AddressRange {
    /// What the two are counted from; absent: from 0.
    pub base: Option<Base>,
    /// First address.
    pub from: i64,
    /// First address behind it.
    pub to: i64,
}

/// A register that points to the middle of a memory area when a snippet starts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are the registers' own")]
pub enum Base {
    Rsp,
    Rbp,
    Rdi,
    Rsi,
    R14,
}

const BASES: [(&str, Base); 5] = [
    ("rsp", Base::Rsp),
    ("rbp", Base::Rbp),
    ("rdi", Base::Rdi),
    ("rsi", Base::Rsi),
    ("r14", Base::R14),
];

impl AddressRange {
    /// Whether any of `bytes` bytes from `address` on lies in the range, if `base` is the address of its base.
    #[must_use]
    pub fn overlaps(&self, base: u64, address: u64, bytes: u64) -> bool {
        // In 128 bits nothing overflows.
        let from = i128::from(base) + i128::from(self.from);
        let to = i128::from(base) + i128::from(self.to);
        let (first, end) = (i128::from(address), i128::from(address) + i128::from(bytes));
        first < to && end > from
    }
}

/// Text that is no range of addresses.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum NoRange {
    /// It is written differently.
    #[error(
        "`{0}` is not a range: it must be FROM..TO or REGISTER:FROM..TO, with numbers like 16, 0x10 or -0x10"
    )]
    Form(String),
    /// The register points nowhere.
    #[error(
        "`{0}` is counted from `{1}`; only rsp, rbp, rdi, rsi and r14 point to memory at the start"
    )]
    Base(String, String),
    /// Nothing lies in it.
    #[error("the range `{0}` is empty: its end must be greater than its start")]
    Empty(String),
}

impl FromStr for AddressRange {
    type Err = NoRange;

    fn from_str(text: &str) -> Result<Self, NoRange> {
        let (base, range) = match text.split_once(':') {
            None => (None, text),
            Some((name, range)) => {
                let base = BASES.iter().find(|(known, _)| *known == name.trim());
                let unknown = || NoRange::Base(text.to_string(), name.trim().to_string());
                (Some(base.ok_or_else(unknown)?.1), range)
            }
        };
        let ends = range.split_once("..").and_then(|(from, to)| Some((number(from)?, number(to)?)));
        let (from, to) = ends.ok_or_else(|| NoRange::Form(text.to_string()))?;
        if from >= to {
            return Err(NoRange::Empty(text.to_string()));
        }
        Ok(Self { base, from, to })
    }
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let magnitude = match digits.strip_prefix("0x") {
        // A sign stands in front of 0x.
        Some(hex) if !hex.starts_with(['+', '-']) => i64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(base) = self.base {
            let name = BASES.iter().find(|(_, known)| *known == base);
            write!(f, "{}:", name.map_or("", |(name, _)| name))?;
        }
        for (value, end) in [(self.from, ".."), (self.to, "")] {
            let sign = if value < 0 { "-" } else { "" };
            write!(f, "{sign}{:#x}{end}", value.unsigned_abs())?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t1_t3_ranges_are_read_and_bad_ones_named() {
        let range = |base, from, to| Ok(AddressRange { base, from, to });
        assert_eq!("0x10..0x20".parse(), range(None, 16, 32));
        assert_eq!("r14:-8..0x40".parse(), range(Some(Base::R14), -8, 64));
        assert_eq!("rsp: -0x10 .. -1".parse(), range(Some(Base::Rsp), -16, -1));
        for text in ["0x0..0x4", "r14:-0x8..0x0", "rsp:-0x10..-0x1"] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), text);
        }
        for (bad, part) in [
            ("", "FROM..TO"),
            ("5", "FROM..TO"),
            ("1...3", "FROM..TO"),
            ("0x+1..3", "FROM..TO"),
            ("r14:0x-8..8", "FROM..TO"),
            ("-0x-8000000000000000..0", "FROM..TO"),
            ("0..0x", "FROM..TO"),
            ("--1..3", "FROM..TO"),
            ("9223372036854775808..0", "FROM..TO"),
            ("rax:1..2", "counted from `rax`"),
            ("2..2", "empty"),
            ("r14:3..-3", "empty"),
        ] {
            let error = bad.parse::<AddressRange>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(&alloc::format!("`{bad}`")), "{error}");
        }
    }

    #[test]
    fn t3_an_access_overlaps_with_its_last_byte_too() {
        let range: AddressRange = "r14:-8..8".parse().unwrap();
        let seen = [0xff0, 0xff1, 0x1007, 0x1008].map(|at| range.overlaps(0x1000, at, 8));
        assert_eq!(seen, [false, true, true, false]);
        assert!(!range.overlaps(0, u64::MAX - 7, 8), "addresses do not wrap");
    }

    prop_compose! {
        pub fn any_range()(
            base in prop::sample::select(&[None, Some(Base::Rsp), Some(Base::Rbp), Some(Base::Rdi), Some(Base::Rsi), Some(Base::R14)][..]),
            from in -i64::MAX..i64::MAX, length in 1..i64::MAX,
        ) -> AddressRange {
            AddressRange { base, from, to: from.saturating_add(length) }
        }
    }

    proptest! {
        #[test]
        fn a_range_is_read_as_it_is_written(range in any_range()) {
            prop_assert_eq!(range.to_string().parse(), Ok(range));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9:.x+-]{0,20}") {
            let _ = text.parse::<AddressRange>();
        }
    }
}
