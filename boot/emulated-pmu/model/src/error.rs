//! What an access to a register can come back with.

use thiserror::Error;

/// Why an access did not go through.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MsrError {
    /// No register of the PMU: the caller passes the access on to the hardware.
    #[error("MSR {msr:#x} is not a register of the PMU; pass it on to the hardware")]
    NotMine {
        /// The MSR's number.
        msr: u32,
    },
    /// The guest gets #GP(0).
    #[error(transparent)]
    GeneralProtection(#[from] Fault),
}

/// An access that raises #GP(0), with what a debug port should print.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Fault {
    /// The model has no such register.
    #[error("MSR {msr:#x} does not exist on this model")]
    Absent { msr: u32 },
    /// Bits that the register does not have, or not on this model.
    #[error("MSR {msr:#x}: {value:#x} has the reserved bits {reserved:#x}")]
    Reserved { msr: u32, value: u64, reserved: u64 },
    /// An address that is not a canonical 48-bit linear address.
    #[error("MSR {msr:#x}: {value:#x} is not a canonical linear address")]
    NotCanonical { msr: u32, value: u64 },
    /// A write to a register that can only be read.
    #[error("MSR {msr:#x} is read-only; {value:#x} cannot be written")]
    ReadOnly { msr: u32, value: u64 },
    /// A read-only bit with another value than it has.
    #[error("MSR {msr:#x}: {value:#x} changes the read-only bits {bits:#x}")]
    ReadOnlyBits { msr: u32, value: u64, bits: u64 },
    /// A depth of the architectural LBR that leaf 0x1C does not list.
    #[error("MSR {msr:#x}: {value} is not a depth that CPUID leaf 0x1C lists")]
    Depth { msr: u32, value: u64 },
    /// An index of RDPMC that names no counter.
    #[error("RDPMC with ECX = {ecx:#x} names no counter of this model")]
    Rdpmc { ecx: u32 },
    /// RDPMC above CPL 0 with CR4.PCE clear.
    #[error("RDPMC at CPL {cpl} with CR4.PCE clear")]
    Privilege { cpl: u8 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_thing_value_and_reason() {
        let error =
            MsrError::from(Fault::Reserved { msr: 0x186, value: 0x20_0000, reserved: 0x20_0000 });
        assert_eq!(error.to_string(), "MSR 0x186: 0x200000 has the reserved bits 0x200000");
    }
}
