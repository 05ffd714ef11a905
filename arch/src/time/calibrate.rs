//! The rate of the TSC, from the most trustworthy source that the machine has.

use super::{PmTimer, pit, pm_timer, tsc};
use crate::cpu::{Cpuid, has_leaf};

/// Where a rate comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Leaf 0x15.
    Cpuid,
    /// The hypervisor's leaf 0x40000010.
    Hypervisor,
    /// Measured against the ACPI timer.
    AcpiPmTimer,
    /// Measured against the 8254.
    Pit,
}

/// The TSC as a clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Clock {
    /// Rate in Hz.
    pub hz: u64,
    /// Where the rate comes from.
    pub source: Source,
    /// Leaf 0x80000007 EDX bit 8.
    pub invariant: bool,
}

/// How long a measurement of the rate lasts at least, as a part of a second: 1 ms. The ACPI timer then
/// resolves 1 in 3,500.
const MEASURE_PART: u64 = 1_000;
/// First length of the loop between two looks at the reference, in iterations.
const FIRST_SPIN: u64 = 1 << 12;
/// A reference that has not moved after this many doublings is dead.
const MAX_DOUBLINGS: u32 = 24;

impl Clock {
    /// Finds the rate. `None` only if neither CPUID tells nor any reference timer moves.
    ///
    /// # Safety
    /// Ring 0; nobody else uses channel 2 of the 8254.
    pub unsafe fn find(cpuid: &impl Cpuid, pm_timer: Option<PmTimer>) -> Option<Self> {
        let invariant = has_leaf(cpuid, 0x8000_0007) && cpuid.cpuid1(0x8000_0007).edx & 1 << 8 != 0;
        let told = || Some((from_cpuid(cpuid)?, Source::Cpuid));
        let hypervisor = || Some((from_hypervisor(cpuid)?, Source::Hypervisor));
        let acpi = || Some((against_pm_timer(pm_timer?)?, Source::AcpiPmTimer));
        let pit = || Some((against_pit()?, Source::Pit));
        let (hz, source) = told().or_else(hypervisor).or_else(acpi).or_else(pit)?;
        Some(Self { hz, source, invariant })
    }

    /// Ticks of `microseconds`.
    #[must_use]
    pub fn ticks_of_us(&self, microseconds: u64) -> u64 {
        (u128::from(self.hz) * u128::from(microseconds) / 1_000_000) as u64
    }
}

/// Leaf 0x15: TSC rate = crystal (ECX, Hz) times EBX / EAX. Some processors leave ECX 0; then the
/// crystal would have to be guessed from the model, so it counts as not told.
fn from_cpuid(cpuid: &impl Cpuid) -> Option<u64> {
    if !has_leaf(cpuid, 0x15) {
        return None;
    }
    let leaf = cpuid.cpuid1(0x15);
    if leaf.eax == 0 || leaf.ebx == 0 || leaf.ecx == 0 {
        return None;
    }
    Some(u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax))
}

/// VMware's and KVM's timing leaf: EAX = TSC rate in kHz.
fn from_hypervisor(cpuid: &impl Cpuid) -> Option<u64> {
    const HYPERVISOR: u32 = 1 << 31;
    if cpuid.cpuid1(1).ecx & HYPERVISOR == 0 {
        return None;
    }
    let highest = cpuid.cpuid1(0x4000_0000).eax;
    if !(0x4000_0010..=0x4000_ffff).contains(&highest) {
        return None;
    }
    let khz = cpuid.cpuid1(0x4000_0010).eax;
    (khz != 0).then_some(u64::from(khz) * 1000)
}

fn against_pm_timer(timer: PmTimer) -> Option<u64> {
    let start = timer.read();
    measure(pm_timer::HZ, || timer.between(start, timer.read()))
}

fn against_pit() -> Option<u64> {
    let mut countdown = pit::Countdown::start();
    measure(pit::HZ, || countdown.elapsed())
}

/// Compares the TSC with a reference of `hz` that `elapsed` reads.
///
/// Between two looks the processor runs a plain loop that is doubled until the measurement is long
/// enough: reading a timer in a loop would cost an exit per read under a hypervisor.
fn measure(hz: u64, mut elapsed: impl FnMut() -> u64) -> Option<u64> {
    let mut spin = FIRST_SPIN;
    let first = (elapsed(), tsc::now());
    for _ in 0..MAX_DOUBLINGS {
        idle(spin);
        let (reference, ticks) = (elapsed() - first.0, tsc::now() - first.1);
        if reference >= hz / MEASURE_PART {
            return Some((u128::from(ticks) * u128::from(hz) / u128::from(reference)) as u64);
        }
        spin *= 2;
    }
    None
}

/// Spends time without touching memory or devices.
fn idle(iterations: u64) {
    for i in 0..iterations {
        core::hint::black_box(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::{INTEL, table};

    #[test]
    fn leaf_0x15_is_believed_only_when_complete() {
        let cpu = table(&[
            (0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]),
            (0x15, 0, [2, 188, 24_000_000, 0]),
        ]);
        assert_eq!(from_cpuid(&cpu), Some(2_256_000_000));
        let cpu = table(&[(0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]), (0x15, 0, [2, 188, 0, 0])]);
        assert_eq!(from_cpuid(&cpu), None);
    }

    #[test]
    fn the_hypervisors_leaf_counts_in_khz() {
        let cpu = table(&[
            (0, 0, [1, INTEL[0], INTEL[1], INTEL[2]]),
            (1, 0, [0, 0, 1 << 31, 0]),
            (0x4000_0000, 0, [0x4000_0010, 0, 0, 0]),
            (0x4000_0010, 0, [2_000_000, 0, 0, 0]),
        ]);
        assert_eq!(from_hypervisor(&cpu), Some(2_000_000_000));
    }

    #[test]
    fn the_loop_is_doubled_until_the_reference_has_moved_enough() {
        let mut looks = 0;
        let rate = measure(1000, || {
            looks += 1;
            if looks > 8 { 1_000_000 } else { 0 }
        });
        assert!(rate.is_some());
        assert_eq!(looks, 9);
    }
}
