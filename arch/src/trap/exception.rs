//! The 32 exception vectors: Intel SDM vol. 3, table 6-1; AMD APM vol. 2, table 8-1.

use core::fmt;

/// An exception vector.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exception(pub u8);

/// Divide error.
pub const DIVIDE_ERROR: Exception = Exception(0);
/// Debug exception.
pub const DEBUG: Exception = Exception(1);
/// Non-maskable interrupt.
pub const NMI: Exception = Exception(2);
/// Invalid opcode.
pub const INVALID_OPCODE: Exception = Exception(6);
/// Double fault.
pub const DOUBLE_FAULT: Exception = Exception(8);
/// General protection.
pub const GENERAL_PROTECTION: Exception = Exception(13);
/// Page fault.
pub const PAGE_FAULT: Exception = Exception(14);
/// Machine check.
pub const MACHINE_CHECK: Exception = Exception(18);

impl Exception {
    /// The manuals' mnemonic; vectors without one are `#` and their number.
    #[must_use]
    pub fn mnemonic(self) -> &'static str {
        match self.0 {
            0 => "#DE",
            1 => "#DB",
            2 => "NMI",
            3 => "#BP",
            4 => "#OF",
            5 => "#BR",
            6 => "#UD",
            7 => "#NM",
            8 => "#DF",
            10 => "#TS",
            11 => "#NP",
            12 => "#SS",
            13 => "#GP",
            14 => "#PF",
            16 => "#MF",
            17 => "#AC",
            18 => "#MC",
            19 => "#XM",
            20 => "#VE",
            21 => "#CP",
            28 => "#HV",
            29 => "#VC",
            30 => "#SX",
            _ => "reserved",
        }
    }

    /// The manuals' name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            0 => "divide error",
            1 => "debug exception",
            2 => "non-maskable interrupt",
            3 => "breakpoint",
            4 => "overflow",
            5 => "BOUND range exceeded",
            6 => "invalid opcode",
            7 => "device not available",
            8 => "double fault",
            10 => "invalid TSS",
            11 => "segment not present",
            12 => "stack-segment fault",
            13 => "general protection",
            14 => "page fault",
            16 => "x87 floating-point error",
            17 => "alignment check",
            18 => "machine check",
            19 => "SIMD floating-point exception",
            20 => "virtualization exception",
            21 => "control protection exception",
            28 => "hypervisor injection exception",
            29 => "VMM communication exception",
            30 => "security exception",
            _ => "reserved vector",
        }
    }

    /// Whether the processor pushes an error code.
    #[must_use]
    pub fn has_error_code(self) -> bool {
        matches!(self.0, 8 | 10..=14 | 17 | 21 | 29 | 30)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.mnemonic(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_with_an_error_code_are_those_of_the_manuals() {
        let with: Vec<u8> = (0..32).filter(|&v| Exception(v).has_error_code()).collect();
        assert_eq!(with, [8, 10, 11, 12, 13, 14, 17, 21, 29, 30]);
        assert_eq!(PAGE_FAULT.to_string(), "#PF (page fault)");
    }
}
