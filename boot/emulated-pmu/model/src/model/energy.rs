//! What a processor reports its energy (RAPL), and the rule by which the model's use some.
//!
//! Registers: SDM volume 3, 15.10.1 to 15.10.5, and volume 4; AMD PPR of family 17h model 31h, MSRC001_0299 to MSRC001_029B. Which
//! processor has which, and that Sapphire Rapids counts the platform's energy in joules: Linux, `arch/x86/events/rapl.c`.
//! Values of the unit register: turbostat's output of such machines.

/// Facts of RAPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Energy {
    /// The register with the units.
    pub unit_register: u32,
    /// What it reads; bits 12:8 are the unit of energy, as the exponent of 1/2.
    pub unit: u64,
    /// The registers that count, of 32 bits each.
    pub domains: &'static [Domain],
}

/// A part of the machine whose energy is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The register.
    pub register: u32,
    /// Its unit: 14 means 2^-14 J.
    pub unit: u8,
    /// What it uses from one update to the next, in 2^-16 J.
    pub per_update: u32,
}

/// Ticks of the TSC from one update of the registers to the next, as a power of two: 1.05 ms at QEMU's 1 GHz (SDM: "approximately
/// 1 msec").
pub const UPDATE: u32 = 20;
/// The update at which every register goes through 0.
pub const WRAP: u64 = 4096;

/// Where the unit stands among the registers; the domains have the numbers after it.
const UNIT: usize = 0;

impl Energy {
    /// The number of a register among those of energy.
    pub(crate) fn place(&self, msr: u32) -> Option<usize> {
        match msr == self.unit_register {
            true => Some(UNIT),
            false => Some(1 + self.domains.iter().position(|domain| domain.register == msr)?),
        }
    }
}

impl Domain {
    /// What the register reads after so many updates.
    #[must_use]
    pub const fn value(&self, updates: u64) -> u32 {
        self.units(updates).wrapping_sub(self.units(WRAP)) as u32
    }

    /// Units in so many updates. What is lost of those beyond 2^48 J is not seen in 32 bits.
    const fn units(&self, updates: u64) -> u64 {
        updates.wrapping_mul(self.per_update as u64) >> (16 - self.unit)
    }
}

/// 2^-6 J in an update, 14.9 W at 1 GHz; half of it the cores'.
const PACKAGE: u32 = 1024;
const CORES: u32 = 512;
const GRAPHICS: u32 = 64;
const MEMORY: u32 = 128;
const PLATFORM: u32 = 1536;

const fn at(register: u32, unit: u8, per_update: u32) -> Domain {
    Domain { register, unit, per_update }
}

/// Haswell for desktops.
pub(super) const HASWELL: Energy = Energy {
    unit_register: crate::msr::RAPL_POWER_UNIT,
    unit: 0xA_0E03,
    domains: &[
        at(crate::msr::PKG_ENERGY, 14, PACKAGE),
        at(crate::msr::DRAM_ENERGY, 14, MEMORY),
        at(crate::msr::PP0_ENERGY, 14, CORES),
        at(crate::msr::PP1_ENERGY, 14, GRAPHICS),
    ],
};

/// Haswell to Ice Lake for servers, whose memory has a unit of its own (15.3 microjoules).
pub(crate) const SERVER: Energy = Energy {
    domains: &[
        at(crate::msr::PKG_ENERGY, 14, PACKAGE),
        at(crate::msr::DRAM_ENERGY, 16, MEMORY),
        at(crate::msr::PP0_ENERGY, 14, CORES),
    ],
    ..HASWELL
};

/// Skylake and later for desktops.
pub(super) const SKYLAKE: Energy = Energy {
    domains: &[
        at(crate::msr::PKG_ENERGY, 14, PACKAGE),
        at(crate::msr::DRAM_ENERGY, 14, MEMORY),
        at(crate::msr::PP0_ENERGY, 14, CORES),
        at(crate::msr::PP1_ENERGY, 14, GRAPHICS),
        at(crate::msr::PLATFORM_ENERGY, 14, PLATFORM),
    ],
    ..HASWELL
};

/// Sapphire Rapids.
pub(super) const SAPPHIRE_RAPIDS: Energy = Energy {
    domains: &[
        at(crate::msr::PKG_ENERGY, 14, PACKAGE),
        at(crate::msr::DRAM_ENERGY, 14, MEMORY),
        at(crate::msr::PP0_ENERGY, 14, CORES),
        at(crate::msr::PLATFORM_ENERGY, 0, PLATFORM),
    ],
    ..HASWELL
};

/// Zen.
pub(super) const ZEN: Energy = Energy {
    unit_register: crate::msr::AMD_RAPL_POWER_UNIT,
    unit: 0xA_1003,
    domains: &[
        at(crate::msr::AMD_CORE_ENERGY, 16, CORES),
        at(crate::msr::AMD_PKG_ENERGY, 16, PACKAGE),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_every_register_goes_through_0_at_the_same_update() {
        for domain in
            [HASWELL, SERVER, SKYLAKE, SAPPHIRE_RAPIDS, ZEN].iter().flat_map(|one| one.domains)
        {
            assert_eq!(domain.value(WRAP), 0, "{domain:x?}");
            assert!(domain.value(WRAP - 1) > u32::MAX - 1024, "{domain:x?}");
        }
        let [package, cores] = [SKYLAKE.domains[0], SKYLAKE.domains[2]];
        assert_eq!(package.value(1).wrapping_sub(package.value(0)), 256);
        assert_eq!(cores.value(WRAP + 3), 3 * 128);
        // 1,536 times 2^-16 J in each: 43 updates make a joule.
        let platform = SAPPHIRE_RAPIDS.domains[3];
        assert_eq!([platform.value(WRAP + 42), platform.value(WRAP + 43)], [0, 1]);
    }
}
