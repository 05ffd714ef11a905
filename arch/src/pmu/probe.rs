//! Whether the announced PMU exists.
//!
//! QEMU's TCG and KVM without a vPMU answer reads of the first counters with 0 and swallow writes, so
//! neither CPUID nor the absence of a fault is proof. A counter has to hold a written pattern.

use super::{Enumeration, enumerate};
use crate::cpu::{Identity, Vendor, native};
use crate::msr::{self, Absent, Msr};
use thiserror::Error;

/// Why there is no PMU.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum Missing {
    /// CPUID announces none.
    #[error("CPUID announces no performance counters")]
    NotAnnounced,
    /// Announced, but the first counter's register faults.
    #[error("CPUID announces counters, but MSR {0:#x} does not exist")]
    Faults(u32),
    /// Announced, but the register does not hold a value.
    #[error(
        "CPUID announces counters, but MSR {msr:#x} reads {found:#x} after {written:#x} was written"
    )]
    DoesNotHold {
        /// The register.
        msr: u32,
        /// What was written.
        written: u64,
        /// What was read.
        found: u64,
    },
}

/// Enumerates the PMU and makes sure that its first counter holds a value. The counter and its select
/// are left as they were found.
///
/// # Errors
/// Says why there is none.
///
/// # Safety
/// Ring 0, interrupt table loaded.
pub unsafe fn find(identity: &Identity) -> Result<Enumeration, Missing> {
    let seen =
        enumerate(&native(), identity.vendor, identity.family).ok_or(Missing::NotAnnounced)?;
    let (select, counter) = match identity.vendor {
        Vendor::Amd => (msr::AMD_PERF_LEGACY_CTL0, msr::AMD_PERF_LEGACY_CTR0),
        _ => (msr::IA32_PERFEVTSEL0, msr::IA32_PMC0),
    };
    // SAFETY: guarded accesses to registers of the PMU, which the firmware owns.
    unsafe { hold(select, counter) }?;
    Ok(seen)
}

/// Bits below 31, so that a legacy write's sign extension does not change them. Two patterns, the second
/// with each bit flipped.
const PATTERNS: [u64; 2] = [0x2a5a_5a5a, 0x15a5_a5a5];

/// # Safety
/// Both registers must be the PMU's; ring 0, interrupt table loaded.
unsafe fn hold(select: Msr, counter: Msr) -> Result<(), Missing> {
    let faults = |msr: Msr| move |Absent| Missing::Faults(msr.0);
    // SAFETY: the caller's promise. The counter is stopped while it holds the patterns.
    unsafe {
        let selected = msr::try_read(select).map_err(faults(select))?;
        msr::try_write(select, 0).map_err(faults(select))?;
        let counted = msr::try_read(counter).map_err(faults(counter))?;
        let mut result = Ok(());
        for written in PATTERNS {
            msr::try_write(counter, written).map_err(faults(counter))?;
            let found = msr::try_read(counter).map_err(faults(counter))?;
            if found != written {
                result = Err(Missing::DoesNotHold { msr: counter.0, written, found });
                break;
            }
        }
        let _ = msr::try_write(counter, counted);
        let _ = msr::try_write(select, selected);
        result
    }
}
