//! The address of a memory operand.

use super::registers::Reg;
use std::fmt;

/// A base register and a displacement from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Address {
    /// A general register.
    pub base: Reg,
    /// Bytes from there.
    pub displacement: u32,
}

impl Address {
    /// Where a register points to.
    pub const fn at(base: Reg) -> Self {
        Self { base, displacement: 0 }
    }
}

/// R14 points to the memory of a snippet.
pub const MEMORY: Address = Address::at(Reg::general(14));

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base.name(64))?;
        match self.displacement {
            0 => Ok(()),
            bytes => write!(f, " + {bytes}"),
        }
    }
}
