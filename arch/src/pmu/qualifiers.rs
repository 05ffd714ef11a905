//! The qualifiers of the emulated PMU: registers that no processor has, by which a counter counts only some instructions.

use super::access::Registers;
use super::emulated::Emulated;
use crate::msr::Msr;
use thiserror::Error;

/// Words of the registers: see `pmu_model::qualify`.
pub const WORDS: usize = 11;
/// The leaf that describes them.
const LEAF: u32 = 0x4000_0102;

/// Where the registers are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Qualifiers {
    first: u32,
}

/// Why there are none.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoQualifiers {
    /// The PMU is another one.
    #[error("this PMU has no qualifiers; only barecount's emulated one has")]
    NotEmulated,
    /// The emulated one has none: an old one, or they are switched off.
    #[error("this emulated PMU has no qualifiers (CPUID leaf 0x40000102)")]
    Off,
    /// It numbers opcodes otherwise.
    #[error(
        "the emulated PMU numbers {theirs} opcodes, this firmware {own}: they are of different versions"
    )]
    Numbers {
        /// How many it knows.
        theirs: u32,
        /// How many the firmware knows.
        own: u32,
    },
}

impl Qualifiers {
    /// Asks CPUID. `opcodes`: how many the decoder in use knows.
    ///
    /// # Errors
    /// Why there are none.
    pub fn detect(registers: &dyn Registers, opcodes: u32) -> Result<Self, NoQualifiers> {
        Emulated::detect(registers).ok_or(NoQualifiers::NotEmulated)?;
        let highest = registers.cpuid(0x4000_0100, 0).eax;
        let leaf = registers.cpuid(LEAF, 0);
        if highest < LEAF || leaf.eax == 0 {
            return Err(NoQualifiers::Off);
        }
        if leaf.ebx != opcodes {
            return Err(NoQualifiers::Numbers { theirs: leaf.ebx, own: opcodes });
        }
        Ok(Self { first: leaf.ecx })
    }

    /// Writes all registers; which counters are qualified comes last.
    ///
    /// # Errors
    /// The number of the register that cannot be written.
    pub fn write(&self, registers: &mut dyn Registers, words: &[u64; WORDS]) -> Result<(), u32> {
        for (place, word) in words.iter().enumerate().rev() {
            let number = self.first + place as u32;
            registers.wrmsr(Msr(number), *word).map_err(|_| number)?;
        }
        Ok(())
    }

    /// No counter is qualified from now on.
    ///
    /// # Errors
    /// As [`Qualifiers::write`].
    pub fn clear(&self, registers: &mut dyn Registers) -> Result<(), u32> {
        registers.wrmsr(Msr(self.first), 0).map_err(|_| self.first)
    }
}
