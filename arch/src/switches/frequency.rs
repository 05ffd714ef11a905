//! What number a processor wants for a clock: the ratio of PERF_CTL, or the level of HWP.

use crate::cpu::{CoreType, Identity};
use alloc::format;
use alloc::string::String;

/// kHz of a ratio from Sandy Bridge on (SDM vol. 3, 16.1), and of a level of HWP where not stated otherwise.
const COMMON: u32 = 100_000;
/// The same on Nehalem and Westmere.
const NEHALEM: u32 = 133_333;

/// The number for `mhz`. `hwp`: as a level of HWP; `hybrid`: the package has cores of several kinds (CPUID leaf 7 EDX bit 15).
///
/// # Errors
/// Why the processor takes no such clock, or that its numbers are not known.
pub(super) fn number(
    identity: &Identity,
    hwp: bool,
    hybrid: bool,
    mhz: u32,
) -> Result<u64, String> {
    let khz = if hwp { of_level(identity, hybrid) } else { of_ratio(identity.model) };
    let khz = khz.ok_or_else(|| {
        format!("how processors of model {:#x} number their clocks is not known", identity.model)
    })?;
    let wanted = u64::from(mhz) * 1_000;
    let number = (wanted + u64::from(khz) / 2) / u64::from(khz);
    // Where levels are no whole MHz, the nearest one; else exactly.
    let tolerance = if khz == COMMON { 0 } else { u64::from(khz) / 2 };
    let off = (number * u64::from(khz)).abs_diff(wanted);
    if off > tolerance || !(1..=0xff).contains(&number) {
        let most = 255 * u64::from(khz) / 1_000;
        return Err(format!(
            "{mhz} MHz is no multiple of {} MHz up to {most}",
            f64::from(khz) / 1e3
        ));
    }
    Ok(number)
}

/// kHz of a level of HWP: on the large cores of hybrid packages less than 100 MHz, so that levels of both kinds compare (Linux,
/// `intel_hybrid_scaling_factor`; Arrow Lake's come from ACPI).
fn of_level(identity: &Identity, hybrid: bool) -> Option<u32> {
    let is_large = identity.core_type == Some(CoreType::Core);
    match identity.model {
        0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xd7 if is_large => Some(78_741),
        0xaa if is_large => Some(80_000),
        0xbd if is_large => Some(86_957),
        _ if is_large && hybrid => None,
        _ => Some(COMMON),
    }
}

/// kHz of a ratio. Core 2, and Atoms before Goldmont, have the bus clock of their board, and a voltage beside the ratio.
fn of_ratio(model: u32) -> Option<u32> {
    match model {
        0x1a | 0x1e | 0x1f | 0x2e | 0x25 | 0x2c | 0x2f => Some(NEHALEM),
        0x0e | 0x0f | 0x16 | 0x17 | 0x1d => None,
        0x1c | 0x26 | 0x27 | 0x35 | 0x36 => None,
        0x37 | 0x4a | 0x4c | 0x4d | 0x5a | 0x5d | 0x75 => None,
        _ => Some(COMMON),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::{INTEL, table};

    fn processor(model: u32, core_type: Option<CoreType>) -> Identity {
        let cpuid = table(&[(0, 0, [1, INTEL[0], INTEL[1], INTEL[2]]), (1, 0, [0x506e3, 0, 0, 0])]);
        Identity { model, core_type, ..Identity::read(&cpuid) }
    }

    #[test]
    fn a_level_of_hwp_is_less_than_100_mhz_on_the_large_cores_of_hybrid_packages() {
        let level = |model, core, hybrid, mhz| number(&processor(model, core), true, hybrid, mhz);
        let (core, atom) = (Some(CoreType::Core), Some(CoreType::Atom));
        assert_eq!(level(0x97, core, true, 3000), Ok(38));
        assert_eq!(level(0xaa, core, true, 3000), Ok(38));
        assert_eq!(level(0xbd, core, true, 3000), Ok(34), "2,957 MHz; 35 are 3,043");
        assert_eq!(level(0x97, atom, true, 3000), Ok(30));
        assert_eq!(level(0x8f, None, false, 3000), Ok(30));
        assert!(level(0x8f, None, false, 3050).unwrap_err().contains("no multiple of 100 MHz"));
        assert!(level(0xc6, core, true, 3000).unwrap_err().contains("0xc6"), "Arrow Lake");
    }

    #[test]
    fn a_ratio_is_of_100_mhz_from_sandy_bridge_on_and_of_a_third_more_before() {
        let ratio = |model, mhz| number(&processor(model, None), false, false, mhz);
        assert_eq!(ratio(0x5e, 3000), Ok(30));
        assert_eq!(ratio(0x1a, 2400), Ok(18));
        assert_eq!(ratio(0x2c, 2666), Ok(20));
        for model in [0x0f, 0x1c, 0x37] {
            assert!(ratio(model, 1600).unwrap_err().contains("is not known"), "{model:#x}");
        }
        assert!(ratio(0x5e, 0).is_err() && ratio(0x5e, 25_600).is_err());
    }
}
