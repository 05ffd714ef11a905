//! The two kinds of code that a processor in long mode executes.

use alloc::string::{String, ToString};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Width of code: what the processor decodes it as.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub enum Bits {
    /// 64-bit mode.
    #[default]
    SixtyFour,
    /// Compatibility mode: 32-bit code.
    Compatibility,
}

impl Bits {
    /// As a number, 64 or 32.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::SixtyFour => 64,
            Self::Compatibility => 32,
        }
    }
}

impl From<Bits> for u64 {
    fn from(bits: Bits) -> Self {
        bits.number().into()
    }
}

impl TryFrom<u64> for Bits {
    type Error = NoBits;

    fn try_from(number: u64) -> Result<Self, NoBits> {
        match number {
            64 => Ok(Self::SixtyFour),
            32 => Ok(Self::Compatibility),
            _ => Err(NoBits(number.to_string())),
        }
    }
}

impl FromStr for Bits {
    type Err = NoBits;

    fn from_str(text: &str) -> Result<Self, NoBits> {
        let number: u64 = text.parse().map_err(|_| NoBits(text.to_string()))?;
        number.try_into()
    }
}

/// A width that code does not have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("bits is {0}; code has 64 (64-bit mode) or 32 (compatibility mode)")]
pub struct NoBits(String);

/// In records, where absent means 64.
pub(crate) mod record {
    pub const fn usual() -> u8 {
        64
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub const fn is_usual(bits: &u8) -> bool {
        *bits == 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_a_width_is_64_or_32_and_any_other_is_named() {
        for bits in [Bits::SixtyFour, Bits::Compatibility] {
            assert_eq!(Bits::try_from(u64::from(bits)), Ok(bits));
            assert_eq!(bits.number().to_string().parse(), Ok(bits));
        }
        for bad in ["16", "", "-32", "wide"] {
            let error = bad.parse::<Bits>().unwrap_err().to_string();
            assert!(error.contains(&alloc::format!("bits is {bad};")), "{error}");
            assert!(error.contains("64") && error.contains("32"), "{error}");
        }
    }

    /// A record without a width is of 64-bit code, and one of 64-bit code names none.
    #[test]
    fn t6_a_record_of_64_bit_code_names_no_width() {
        assert_eq!(record::usual(), Bits::SixtyFour.number());
        assert!(record::is_usual(&64) && !record::is_usual(&32));
    }
}
