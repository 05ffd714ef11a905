//! Energy (RAPL): what a processor reports it, and how it is read.
//!
//! Intel, from Sandy Bridge on: SDM vol. 3, 15.10.1 to 15.10.5, and vol. 4. No bit of CPUID reports it, so the registers are tried. AMD,
//! from Zen on: PPR of family 17h, MSRC001_0299 to MSRC001_029B; CPUID states. Each register counts in 32 bits and starts over at 0; it
//! moves about once in a millisecond, by all that was used meanwhile.

mod interval;
mod meter;
mod place;

pub use interval::{Interval, Part, Source, Still};
pub use meter::Meter;
pub use place::{Located, Place, Shared, shared};

use super::access::{Registers, leaves};
use crate::cpu::{Identity, Vendor, has_leaf};
use crate::msr::Msr;
use raw_cpuid::CpuIdReader as _;
use thiserror::Error;

/// A part of the machine whose energy is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Domain {
    /// The package.
    Package,
    /// Intel: all cores of the package (power plane 0). AMD: the core that reads the register.
    Cores,
    /// The graphics (power plane 1).
    Graphics,
    /// The memory.
    Memory,
    /// The whole platform.
    Platform,
}

impl Domain {
    /// Each.
    pub const ALL: [Self; 5] =
        [Self::Package, Self::Cores, Self::Graphics, Self::Memory, Self::Platform];

    /// The register that counts it on Intel's processors, or on AMD's.
    #[must_use]
    pub const fn register(self, amd: bool) -> Option<Msr> {
        Some(Msr(match (self, amd) {
            (Self::Package, false) => 0x611,
            (Self::Memory, false) => 0x619,
            (Self::Cores, false) => 0x639,
            (Self::Graphics, false) => 0x641,
            (Self::Platform, false) => 0x64d,
            (Self::Cores, true) => 0xc001_029a,
            (Self::Package, true) => 0xc001_029b,
            (_, true) => return None,
        }))
    }
}

/// MSR_RAPL_POWER_UNIT.
const UNIT: Msr = Msr(0x606);
/// RAPL_PWR_UNIT.
const AMD_UNIT: Msr = Msr(0xc001_0299);
/// CPUID leaf 0x80000007 EDX: RAPL (APM vol. 3, E.4.7).
const AMD_LEAF: (u32, u32) = (0x8000_0007, 1 << 14);
/// Silvermont and Airmont state their unit in another way, and so small that the register wraps within seconds (SDM vol. 4,
/// "MSR_RAPL_POWER_UNIT" of those).
const OTHER_UNIT: [u32; 6] = [0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d];
/// Servers from Haswell to Ice Lake, and Xeon Phi: the memory's unit is 15.3 microjoules, 2^-16 J, whatever the register of units says
/// (datasheet 330784 of the Xeon E5 v3, vol. 2; Linux, `arch/x86/events/rapl.c`).
const FIXED_MEMORY: [u32; 8] = [0x3f, 0x4f, 0x55, 0x56, 0x57, 0x6a, 0x6c, 0x85];
const FIXED_MEMORY_UNIT: u8 = 16;
/// Sapphire Rapids and Emerald Rapids count the platform in joules (there); Granite Rapids too (Linux, `turbostat.c`).
const FIXED_PLATFORM: [u32; 4] = [0x8f, 0xcf, 0xad, 0xae];

/// What a processor reports its energy: found out once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Energy {
    amd: bool,
    /// Units of energy, 1/2 to this power of a joule: of most domains, of memory and of the platform.
    units: [u8; 3],
    /// Domains with a register that reads something else than 0, by their numbers.
    has: u8,
    /// Those whose register reads 0.
    silent: u8,
    /// Energy filtering is on.
    filtered: bool,
}

/// IA32_ARCH_CAPABILITIES, which leaf 7 EDX\[29\] announces: bit 11 says that the filtering can be asked about.
const ARCH_CAPABILITIES: (Msr, u32, u64) = (Msr(0x10a), 1 << 29, 1 << 11);
/// IA32_MISC_PACKAGE_CTLS: bit 0, the processor adds random amounts to what the registers say (SDM vol. 4; Intel, "Running Average
/// Power Limit Energy Reporting").
const PACKAGE_CONTROLS: (Msr, u64) = (Msr(0xbc), 1);

fn is_filtered(registers: &mut dyn Registers) -> bool {
    let announced = {
        let cpuid = leaves(registers);
        has_leaf(&cpuid, 7) && cpuid.cpuid2(7, 0).edx & ARCH_CAPABILITIES.1 != 0
    };
    let mut bit = |msr: Msr, bit| registers.rdmsr(msr).is_ok_and(|value| value & bit != 0);
    announced
        && bit(ARCH_CAPABILITIES.0, ARCH_CAPABILITIES.2)
        && bit(PACKAGE_CONTROLS.0, PACKAGE_CONTROLS.1)
}

/// Why energy cannot be told at all.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoEnergy {
    /// The maker is neither Intel nor AMD.
    #[error("only Intel's and AMD's processors report energy")]
    OtherMaker,
    /// AMD's CPUID denies it.
    #[error("CPUID does not announce RAPL (leaf 0x80000007 EDX[14])")]
    Denied,
    /// The register of units raises #GP.
    #[error("this processor has no RAPL: MSR {0:#x} does not exist")]
    Faults(u32),
    /// The register of units reads 0.
    #[error("MSR {0:#x}, the unit of energy, reads 0: RAPL is hidden, as by a hypervisor")]
    NoUnit(u32),
    /// Nothing reads energy here.
    #[error(
        "energy is only read before and after a whole [[snippet]], [[processors]], [[run]] or [[count]]"
    )]
    NotHere,
    /// Silvermont or Airmont.
    #[error("Silvermont and Airmont report energy in other units, which are not supported")]
    OtherUnit,
}

/// Why one domain cannot be told.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoDomain {
    /// There is no such register on this maker's processors.
    #[error("AMD's processors have no register for it")]
    OfIntel,
    /// Reading it raises #GP.
    #[error("this processor has no MSR {0:#x}")]
    Faults(u32),
    /// It reads 0.
    #[error("MSR {0:#x} reads 0")]
    Silent(u32),
}

impl Energy {
    /// Tries the registers.
    ///
    /// # Errors
    /// Why there are none.
    pub fn probe(registers: &mut dyn Registers) -> Result<Self, NoEnergy> {
        let (identity, denied) = {
            let cpuid = leaves(registers);
            let said =
                has_leaf(&cpuid, AMD_LEAF.0) && cpuid.cpuid1(AMD_LEAF.0).edx & AMD_LEAF.1 != 0;
            (Identity::read(&cpuid), !said)
        };
        let amd = match identity.vendor {
            Vendor::Intel => false,
            Vendor::Amd if denied => return Err(NoEnergy::Denied),
            Vendor::Amd => true,
            Vendor::Other => return Err(NoEnergy::OtherMaker),
        };
        let is = |list: &[u32]| !amd && identity.family == 6 && list.contains(&identity.model);
        if is(&OTHER_UNIT) {
            return Err(NoEnergy::OtherUnit);
        }
        let register = if amd { AMD_UNIT } else { UNIT };
        let units = registers.rdmsr(register).map_err(|_| NoEnergy::Faults(register.0))?;
        // Bits 12:8.
        let unit = (units >> 8 & 0x1f) as u8;
        if unit == 0 {
            return Err(NoEnergy::NoUnit(register.0));
        }
        let memory = if is(&FIXED_MEMORY) { FIXED_MEMORY_UNIT } else { unit };
        let platform = if is(&FIXED_PLATFORM) { 0 } else { unit };
        let mut energy = Self {
            amd,
            units: [unit, memory, platform],
            has: 0,
            silent: 0,
            filtered: !amd && is_filtered(registers),
        };
        for domain in Domain::ALL {
            let read = domain.register(amd).map(|register| registers.rdmsr(register));
            match read {
                // The register has 32 bits. One in joules may not have come to the first yet.
                Some(Ok(reads)) if reads as u32 == 0 && energy.unit(domain) != 0 => {
                    energy.silent |= 1 << domain as u8;
                }
                Some(Ok(_)) => energy.has |= 1 << domain as u8,
                Some(Err(_)) | None => {}
            }
        }
        Ok(energy)
    }

    /// Whether the processor adds random amounts to its figures, so that they do not tell of the data (energy filtering).
    #[must_use]
    pub const fn is_filtered(&self) -> bool {
        self.filtered
    }

    /// The unit of a domain: 14 means 2^-14 J.
    #[must_use]
    pub const fn unit(&self, domain: Domain) -> u8 {
        match domain {
            Domain::Memory => self.units[1],
            Domain::Platform => self.units[2],
            _ => self.units[0],
        }
    }

    /// Whether the registers are AMD's.
    #[must_use]
    pub const fn is_amd(&self) -> bool {
        self.amd
    }

    /// The register of a domain.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn register(&self, domain: Domain) -> Result<Msr, NoDomain> {
        let register = domain.register(self.amd).ok_or(NoDomain::OfIntel)?;
        match 1 << domain as u8 {
            bit if self.has & bit != 0 => Ok(register),
            bit if self.silent & bit != 0 => Err(NoDomain::Silent(register.0)),
            _ => Err(NoDomain::Faults(register.0)),
        }
    }

    /// The domains that can be told.
    pub fn domains(&self) -> impl Iterator<Item = Domain> {
        let has = self.has;
        Domain::ALL.into_iter().filter(move |domain| has & 1 << *domain as u8 != 0)
    }
}

#[cfg(test)]
mod tests;
