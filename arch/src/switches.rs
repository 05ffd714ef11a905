//! Switches of the processor that change how fast code runs: prefetchers, turbo, the clock.
//!
//! Each is flipped and read back. A register that is absent, refuses the value or does not hold it (hypervisors tend to
//! swallow such writes) makes the switch not available, with the reason.

mod frequency;

use crate::cpu::{Identity, Vendor, has_leaf};
use crate::msr::Msr;
use crate::pmu::{Registers, leaves};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// MISC_ENABLE: bits 9, 19, 37 and 39 switch Core 2's prefetchers off, 38 turbo (SDM vol. 4, table 2-3).
const MISC_ENABLE: Msr = Msr(0x1a0);
const CORE_2_PREFETCHERS: u64 = 1 << 9 | 1 << 19 | 1 << 37 | 1 << 39;
const TURBO_DISABLE: u64 = 1 << 38;
/// MSR_MISC_FEATURE_CONTROL: bits 0 to 3 switch off the L2 streamer, the L2 adjacent line, the L1 streamer and the L1
/// IP prefetcher (SDM vol. 4, MSRs in processors based on Nehalem, Sandy Bridge and so on).
const MISC_FEATURE_CONTROL: Msr = Msr(0x1a4);
const PREFETCHERS: u64 = 0xf;
/// AMD, PrefetchControl: bits 0 to 3 and 5; announced by CPUID leaf 0x80000021 EAX\[13\] (AMD APM vol. 2, PREFETCH_CONTROL).
const AMD_PREFETCH_CONTROL: Msr = Msr(0xc000_0108);
const AMD_PREFETCHERS: u64 = 0x2f;
/// AMD family 10h, DC_CFG: bit 13, DisHwPf (BKDG for family 10h, MSRC001_1022).
const AMD_DC_CFG: Msr = Msr(0xc001_1022);
const DIS_HW_PF: u64 = 1 << 13;
/// AMD, HWCR: bit 25, CpbDis (AMD APM vol. 2, 17.2).
const AMD_HWCR: Msr = Msr(0xc001_0015);
const CPB_DIS: u64 = 1 << 25;
/// Ratio in bits 15:8 (SDM vol. 3, 15.1).
const PERF_CTL: Msr = Msr(0x199);
const PM_ENABLE: Msr = Msr(0x770);
const HWP_CAPABILITIES: Msr = Msr(0x771);
const HWP_REQUEST: Msr = Msr(0x774);
const MPERF: Msr = Msr(0xe7);
const APERF: Msr = Msr(0xe8);

/// Models of family 6 whose manuals have MISC_FEATURE_CONTROL with these four bits: Nehalem to Granite Rapids, without
/// the Atoms.
const WITH_FEATURE_CONTROL: [u32; 43] = [
    0x1a, 0x1e, 0x1f, 0x2e, 0x25, 0x2c, 0x2f, 0x2a, 0x2d, 0x3a, 0x3e, 0x3c, 0x3f, 0x45, 0x46, 0x3d,
    0x47, 0x4f, 0x56, 0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, 0x66, 0x6a, 0x6c, 0x7d, 0x7e, 0x8c,
    0x8d, 0xa7, 0x97, 0x9a, 0xb7, 0xba, 0xbf, 0x8f, 0xcf, 0xad, 0xae,
];
const CORE_2: [u32; 3] = [0xf, 0x17, 0x1d];

/// What was flipped, to be flipped back.
#[derive(Debug, Default)]
pub struct Switches {
    saved: Vec<(Msr, u64)>,
}

/// APERF and MPERF at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Clocks {
    aperf: u64,
    mperf: u64,
}

impl Clocks {
    /// Reads both; `None` if there are none (CPUID leaf 6 ECX\[0\]).
    pub fn read(registers: &mut dyn Registers) -> Option<Self> {
        let offered = {
            let cpuid = leaves(registers);
            has_leaf(&cpuid, 6) && registers.cpuid(6, 0).ecx & 1 != 0
        };
        if !offered {
            return None;
        }
        Some(Self { aperf: registers.rdmsr(APERF).ok()?, mperf: registers.rdmsr(MPERF).ok()? })
    }

    /// Core cycles for each reference cycle since `before`, both unhalted. `None` if none passed.
    #[must_use]
    pub fn ratio_since(self, before: Self) -> Option<f64> {
        let mperf = self.mperf.wrapping_sub(before.mperf);
        (mperf > 0).then(|| self.aperf.wrapping_sub(before.aperf) as f64 / mperf as f64)
    }
}

impl Switches {
    /// Switches the hardware prefetchers off. Returns by which means.
    ///
    /// # Errors
    /// Why not.
    pub fn prefetchers_off(&mut self, registers: &mut dyn Registers) -> Result<String, String> {
        let identity = Identity::read(&leaves(registers));
        let announced = {
            let cpuid = leaves(registers);
            has_leaf(&cpuid, 0x8000_0021) && registers.cpuid(0x8000_0021, 0).eax & 1 << 13 != 0
        };
        let (msr, bits) = match (identity.vendor, identity.family) {
            (Vendor::Intel, 6) if WITH_FEATURE_CONTROL.contains(&identity.model) => {
                (MISC_FEATURE_CONTROL, PREFETCHERS)
            }
            (Vendor::Intel, 6) if CORE_2.contains(&identity.model) => {
                (MISC_ENABLE, CORE_2_PREFETCHERS)
            }
            (Vendor::Amd, _) if announced => (AMD_PREFETCH_CONTROL, AMD_PREFETCHERS),
            (Vendor::Amd, 0x10) => (AMD_DC_CFG, DIS_HW_PF),
            _ => {
                return Err(
                    "no switch for prefetchers is documented for this processor".to_string()
                );
            }
        };
        self.flip(registers, msr, bits, bits)
    }

    /// Switches turbo, or core performance boost, off. Returns by which means.
    ///
    /// # Errors
    /// Why not.
    pub fn turbo_off(&mut self, registers: &mut dyn Registers) -> Result<String, String> {
        let identity = Identity::read(&leaves(registers));
        let boosts = {
            let cpuid = leaves(registers);
            has_leaf(&cpuid, 0x8000_0007) && registers.cpuid(0x8000_0007, 0).edx & 1 << 9 != 0
        };
        match identity.vendor {
            // Leaf 6 EAX[1] reports turbo only while it is on, so it is the register that decides.
            Vendor::Intel => self.flip(registers, MISC_ENABLE, TURBO_DISABLE, TURBO_DISABLE),
            Vendor::Amd if boosts => self.flip(registers, AMD_HWCR, CPB_DIS, CPB_DIS),
            Vendor::Amd => {
                Err("CPUID leaf 0x80000007 announces no core performance boost".to_string())
            }
            Vendor::Other => {
                Err("no switch for turbo is documented for this processor".to_string())
            }
        }
    }

    /// Asks for a core clock of `mhz`. Returns by which means.
    ///
    /// # Errors
    /// Why not.
    pub fn frequency(&mut self, registers: &mut dyn Registers, mhz: u32) -> Result<String, String> {
        let identity = Identity::read(&leaves(registers));
        if identity.vendor != Vendor::Intel {
            return Err(
                "it can be set only on Intel processors: AMD's P-states do not state a clock"
                    .to_string(),
            );
        }
        let (leaf_6, hybrid) = {
            let cpuid = leaves(registers);
            let leaf_6 = if has_leaf(&cpuid, 6) { registers.cpuid(6, 0).eax } else { 0 };
            (leaf_6, has_leaf(&cpuid, 7) && registers.cpuid(7, 0).edx & 1 << 15 != 0)
        };
        let hwp = leaf_6 & 1 << 7 != 0 && registers.rdmsr(PM_ENABLE).is_ok_and(|on| on & 1 != 0);
        let ratio = frequency::number(&identity, hwp, hybrid, mhz)?;
        if hwp {
            let limits = registers.rdmsr(HWP_CAPABILITIES).map_err(|_| absent(HWP_CAPABILITIES))?;
            // Highest performance in bits 7:0, lowest in 31:24 (SDM vol. 3, 15.4.3).
            let (highest, lowest) = (limits & 0xff, limits >> 24 & 0xff);
            if !(lowest..=highest).contains(&ratio) {
                return Err(format!("HWP offers levels {lowest} to {highest}, not {ratio}"));
            }
            // Minimum, maximum and desired performance.
            return self.flip(registers, HWP_REQUEST, ratio * 0x01_0101, 0xff_ffff);
        }
        let enhanced = registers.cpuid(1, 0).ecx & 1 << 7 != 0;
        if !enhanced {
            return Err("CPUID leaf 1 announces no Enhanced SpeedStep".to_string());
        }
        self.flip(registers, PERF_CTL, ratio << 8, 0xff00)
    }

    /// Puts `bits` into the places of `mask`, and looks whether they stay.
    fn flip(
        &mut self,
        registers: &mut dyn Registers,
        msr: Msr,
        bits: u64,
        mask: u64,
    ) -> Result<String, String> {
        let before = registers.rdmsr(msr).map_err(|_| absent(msr))?;
        let wanted = before & !mask | bits;
        let refused = || format!("MSR {:#x} refuses {wanted:#x}", msr.0);
        registers.wrmsr(msr, wanted).map_err(|_| refused())?;
        let now = registers.rdmsr(msr).map_err(|_| absent(msr))?;
        if now & mask != bits {
            let _ = registers.wrmsr(msr, before);
            return Err(format!("MSR {:#x} does not keep {wanted:#x}, it reads {now:#x}", msr.0));
        }
        self.saved.push((msr, before));
        Ok(format!("MSR {:#x}: {wanted:#x}", msr.0))
    }

    /// Everything as it was.
    pub fn restore(&mut self, registers: &mut dyn Registers) {
        while let Some((msr, value)) = self.saved.pop() {
            let _ = registers.wrmsr(msr, value);
        }
    }
}

fn absent(msr: Msr) -> String {
    format!("there is no MSR {:#x}", msr.0)
}

#[cfg(test)]
mod tests;
