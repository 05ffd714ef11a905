//! What the instructions of a job need of the processor.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A bit of CPUID without which some items cannot run. The host finds it out of the assembled code.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Requirement<'a> {
    /// What the bit stands for, in the manuals' name.
    #[serde(borrow)]
    pub feature: Cow<'a, str>,
    /// The leaf.
    pub leaf: u32,
    /// The subleaf.
    pub subleaf: u32,
    /// The register: 0 is EAX, 3 is EDX.
    pub register: u8,
    /// The bit in it.
    pub bit: u8,
    /// Items that need it, by their index, in ascending order.
    pub items: Vec<u32>,
}

/// Names of the registers.
pub const REGISTERS: [&str; 4] = ["EAX", "EBX", "ECX", "EDX"];

impl Requirement<'_> {
    /// Whether item `index` needs it.
    #[must_use]
    pub fn is_of(&self, index: u32) -> bool {
        self.items.binary_search(&index).is_ok()
    }

    /// Whether the four registers of the leaf have the bit. One that no register has is missing.
    #[must_use]
    pub fn holds(&self, registers: [u32; 4]) -> bool {
        let register = registers.get(usize::from(self.register));
        let mask = 1u32.checked_shl(self.bit.into()).unwrap_or(0);
        register.is_some_and(|register| register & mask != 0)
    }

    /// What is to be said where it does not hold.
    #[must_use]
    pub fn reason(&self) -> alloc::string::String {
        let register = REGISTERS.get(usize::from(self.register)).unwrap_or(&"no register");
        let subleaf = match self.subleaf {
            0 => alloc::string::String::new(),
            number => alloc::format!(", subleaf {number}"),
        };
        alloc::format!(
            "this processor has no {} (CPUID leaf {:#x}{subleaf}, {register} bit {})",
            self.feature,
            self.leaf,
            self.bit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popcnt(register: u8, bit: u8) -> Requirement<'static> {
        let (feature, items) = (Cow::Borrowed("POPCNT"), alloc::vec![1, 4]);
        Requirement { feature, leaf: 1, subleaf: 0, register, bit, items }
    }

    #[test]
    fn a_requirement_is_a_bit_of_a_register_and_belongs_to_items() {
        assert!(popcnt(2, 23).holds([0, 0, 1 << 23, 0]));
        assert!(!popcnt(2, 23).holds([!0, !0, !(1 << 23), !0]));
        assert!(popcnt(2, 23).is_of(4) && !popcnt(2, 23).is_of(3));
        let text = "this processor has no POPCNT (CPUID leaf 0x1, ECX bit 23)";
        assert_eq!(popcnt(2, 23).reason(), text);
        assert!(
            Requirement { subleaf: 1, ..popcnt(2, 23) }.reason().contains("0x1, subleaf 1, ECX")
        );
    }

    #[test]
    fn a_bit_that_there_cannot_be_does_not_hold() {
        for (register, bit) in [(4, 0), (0, 32), (255, 255)] {
            assert!(!popcnt(register, bit).holds([!0; 4]));
            assert!(popcnt(register, bit).reason().contains("POPCNT"));
        }
    }
}
