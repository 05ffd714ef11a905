//! Whether the announced PMU exists.
//!
//! QEMU's TCG and KVM without a vPMU answer reads of the first counters with 0 and swallow writes, so
//! neither CPUID nor the absence of a fault is proof. A counter has to hold a written pattern.

use super::access::Registers;
use super::capabilities::{Capabilities, Counter, Wrong};
use super::driver::Layout;
use crate::msr::{Absent, Msr};
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
    /// Announced, and its registers hold values, but no counter counts as it should.
    #[error("CPUID announces counters, but none can be relied on: {counter}: {why}")]
    Unreliable {
        /// The first one.
        counter: Counter,
        /// What is wrong with it.
        why: Wrong,
    },
}

/// Enumerates the PMU and makes sure that its first counter holds a value. The counter and its select
/// are left as they were found.
///
/// # Errors
/// Says why there is none.
pub fn find(registers: &mut dyn Registers) -> Result<Capabilities, Missing> {
    let seen = Capabilities::read(registers).ok_or(Missing::NotAnnounced)?;
    let first = seen.general.trailing_zeros() as u8;
    if !seen.has(Counter::General(first)) {
        return Err(Missing::NotAnnounced);
    }
    let layout = Layout::of(&seen);
    hold(registers, layout.select(first), layout.counter(Counter::General(first)))?;
    Ok(seen)
}

/// Bits below 31, so that a legacy write's sign extension does not change them. Two patterns, the second
/// with each bit flipped.
const PATTERNS: [u64; 2] = [0x2a5a_5a5a, 0x15a5_a5a5];

fn hold(registers: &mut dyn Registers, select: Msr, counter: Msr) -> Result<(), Missing> {
    let faults = |msr: Msr| move |Absent| Missing::Faults(msr.0);
    // The counter is stopped while it holds the patterns.
    let selected = registers.rdmsr(select).map_err(faults(select))?;
    registers.wrmsr(select, 0).map_err(faults(select))?;
    let counted = registers.rdmsr(counter).map_err(faults(counter))?;
    let mut result = Ok(());
    for written in PATTERNS {
        registers.wrmsr(counter, written).map_err(faults(counter))?;
        let found = registers.rdmsr(counter).map_err(faults(counter))?;
        if found != written {
            result = Err(Missing::DoesNotHold { msr: counter.0, written, found });
            break;
        }
    }
    let _ = registers.wrmsr(counter, counted);
    let _ = registers.wrmsr(select, selected);
    result
}
