//! The address of a memory operand.

use super::registers::Reg;
use protocol::bits::Bits;
use std::fmt;

/// A base register and a displacement from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Address {
    /// A general register.
    pub base: Reg,
    /// Bytes from there.
    pub displacement: u32,
    /// Of the code that has it.
    pub bits: Bits,
}

impl Address {
    /// The width of its base.
    pub fn width(self) -> u16 {
        self.bits.number().into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base.name(self.width()))?;
        match self.displacement {
            0 => Ok(()),
            bytes => write!(f, " + {bytes}"),
        }
    }
}
