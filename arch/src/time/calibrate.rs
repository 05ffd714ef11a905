//! The rate of the TSC, from the most trustworthy source that the machine has.

use super::hpet::Hpet;
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
    /// Measured against the HPET.
    Hpet,
    /// Measured against the 8254.
    Pit,
    /// Leaf 0x16: the nominal rate, where leaf 0x15 leaves the crystal out and no timer moves.
    BaseFrequency,
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
    /// What CPUID or the hypervisor says, if a timer contradicts it.
    pub told_hz: Option<u64>,
}

/// A rate and where it comes from.
type Rate = (u64, Source);

/// How far a measurement may be from what CPUID says, as a part of it: 1 in 50. A crystal is good to a thousandth, and
/// a measurement of 10 ms to 1 in 5,000, unless the firmware's own interrupts or a hypervisor come in between.
const TOLERANCE_PART: u64 = 50;
/// So often must measurements contradict what CPUID says, one after another.
const CONTRADICTIONS: u32 = 3;

/// How long a measurement of the rate lasts at least, as a part of a second: 10 ms. The ACPI timer then
/// resolves 1 in 35,000, the 8254 1 in 11,000.
const MEASURE_PART: u64 = 100;
/// And how long at most, as a part of a second: the 8254 counts 55 ms, and the loop doubles.
const LONGEST_PART: u64 = 64;
/// The looks at its two ends may be uncertain by this part of it together, or it continues.
const UNCERTAIN_PART: u64 = 5_000;
/// So often the reference is read at either end. The host or the firmware may take the processor away between the two
/// counters, for milliseconds; the reading that took least is the one that counts.
const LOOKS: u32 = 4;
/// First length of the loop between two looks at the reference, in iterations.
const FIRST_SPIN: u64 = 1 << 12;
/// A reference that has not moved after this many doublings, 5 * 10^8 iterations, is dead: some tenths of a second.
const MAX_DOUBLINGS: u32 = 17;

impl Clock {
    /// Finds the rate. `None` only if neither CPUID tells nor any reference timer moves. `hpet`: the physical address of the one
    /// that ACPI names.
    ///
    /// # Safety
    /// Ring 0; nobody else uses channel 2 of the 8254, or the HPET; physical memory is mapped.
    pub unsafe fn find(
        cpuid: &impl Cpuid,
        pm_timer: Option<PmTimer>,
        hpet: Option<u64>,
    ) -> Option<Self> {
        let invariant = has_leaf(cpuid, 0x8000_0007) && cpuid.cpuid1(0x8000_0007).edx & 1 << 8 != 0;
        let hypervisor = || Some((from_hypervisor(cpuid)?, Source::Hypervisor));
        let told = from_cpuid(cpuid).map(|hz| (hz, Source::Cpuid)).or_else(hypervisor);
        let acpi = || Some((against_pm_timer(pm_timer?)?, Source::AcpiPmTimer));
        let pit = || Some((against_pit()?, Source::Pit));
        // SAFETY: passed on.
        let hpet = || Some((unsafe { against_hpet(hpet?) }?, Source::Hpet));
        let measured = || acpi().or_else(hpet).or_else(pit);
        let nominal = || Some(((from_base_frequency(cpuid)?, Source::BaseFrequency), None));
        let ((hz, source), told_hz) = decide(told, measured).or_else(nominal)?;
        Some(Self { hz, source, invariant, told_hz })
    }

    /// Ticks of `microseconds`.
    #[must_use]
    pub fn ticks_of_us(&self, microseconds: u64) -> u64 {
        (u128::from(self.hz) * u128::from(microseconds) / 1_000_000) as u64
    }
}

/// The rate to go by, and the one that CPUID states if that is not it: measurements that agree with each other, and not
/// with it, are believed. Without a timer, CPUID is.
fn decide(
    told: Option<Rate>,
    mut measure: impl FnMut() -> Option<Rate>,
) -> Option<(Rate, Option<u64>)> {
    let Some(told) = told else { return Some((measure()?, None)) };
    let agree = |one: u64, other: u64| one.abs_diff(other) <= other / TOLERANCE_PART;
    let mut first: Option<Rate> = None;
    for _ in 0..CONTRADICTIONS {
        let Some(measured) = measure() else { return Some((told, None)) };
        let first = *first.get_or_insert(measured);
        if agree(measured.0, told.0) || !agree(measured.0, first.0) {
            return Some((told, None));
        }
    }
    Some((first?, Some(told.0)))
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

/// Leaf 0x16: the base frequency, in MHz in EAX, which is the TSC's nominal rate (Linux, `native_calibrate_tsc`).
fn from_base_frequency(cpuid: &impl Cpuid) -> Option<u64> {
    let mhz = has_leaf(cpuid, 0x16).then(|| cpuid.cpuid1(0x16).eax & 0xffff)?;
    (mhz != 0).then_some(u64::from(mhz) * 1_000_000)
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
    measure(pm_timer::HZ, || timer.between(start, timer.read()), tsc::now, idle)
}

/// # Safety
/// ACPI says that there is an HPET, physical memory is mapped, and nobody else uses it.
unsafe fn against_hpet(address: u64) -> Option<u64> {
    // SAFETY: passed on.
    let hpet = unsafe { Hpet::start(address) }?;
    let (begin, mask) = (hpet.count(), hpet.mask());
    let elapsed = || hpet.count().wrapping_sub(begin) & mask;
    let rate = measure(hpet.told_hz(), elapsed, tsc::now, idle);
    hpet.stop();
    rate
}

fn against_pit() -> Option<u64> {
    let mut countdown = pit::Countdown::start();
    measure(pit::HZ, || countdown.elapsed(), tsc::now, idle)
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Look {
    reference: u64,
    /// The TSC before the reference was read.
    tsc: u64,
    /// TSC ticks that reading took: so much later the moment may be.
    took: u64,
}

impl Look {
    fn take(elapsed: &mut impl FnMut() -> u64, clock: &mut impl FnMut() -> u64) -> Self {
        let tsc = clock();
        let reference = elapsed();
        Self { reference, tsc, took: clock().saturating_sub(tsc) }
    }

    /// The most certain of several.
    fn best(elapsed: &mut impl FnMut() -> u64, clock: &mut impl FnMut() -> u64) -> Self {
        let first = Self::take(elapsed, clock);
        (1..LOOKS).fold(first, |best, _| {
            let next = Self::take(elapsed, clock);
            if next.took < best.took { next } else { best }
        })
    }
}

/// Compares the clock with a reference of `hz` that `elapsed` reads.
///
/// Between two looks the processor runs a plain loop that is doubled until the measurement is nearly long enough, and then is what is
/// left of it: reading a timer in a loop would cost an exit per read under a hypervisor.
fn measure(
    hz: u64,
    mut elapsed: impl FnMut() -> u64,
    mut clock: impl FnMut() -> u64,
    mut idle: impl FnMut(u64),
) -> Option<u64> {
    let (mut spin, mut spent, mut wanted) = (FIRST_SPIN, 0, hz / MEASURE_PART);
    let first = Look::best(&mut elapsed, &mut clock);
    for doublings in 1..=MAX_DOUBLINGS {
        idle(spin);
        spent += spin;
        let passed = elapsed() - first.reference;
        if passed < wanted {
            spin = (FIRST_SPIN << doublings).min(left(passed, wanted, spent));
            continue;
        }
        let last = Look::best(&mut elapsed, &mut clock);
        let (reference, ticks) = (last.reference - first.reference, last.tsc - first.tsc);
        let certain = (first.took + last.took).saturating_mul(UNCERTAIN_PART) <= ticks;
        if certain || reference >= hz / LONGEST_PART {
            return Some((u128::from(ticks) * u128::from(hz) / u128::from(reference)) as u64);
        }
        wanted = hz / LONGEST_PART;
        spin = (FIRST_SPIN << doublings).min(left(passed, wanted, spent));
    }
    None
}

/// Iterations until `wanted` has passed, and a few more, if `passed` took `spent`.
fn left(passed: u64, wanted: u64, spent: u64) -> u64 {
    let left =
        u128::from(wanted.saturating_sub(passed)) * u128::from(spent) / u128::from(passed.max(1));
    (left as u64).saturating_add(FIRST_SPIN)
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
    fn the_base_frequency_is_the_nominal_rate() {
        let told =
            table(&[(0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]), (0x16, 0, [2400, 4000, 100, 0])]);
        assert_eq!(from_base_frequency(&told), Some(2_400_000_000));
        let zero = table(&[(0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]), (0x16, 0, [0; 4])]);
        let older =
            table(&[(0, 0, [0x15, INTEL[0], INTEL[1], INTEL[2]]), (0x16, 0, [2400, 4000, 100, 0])]);
        assert_eq!([from_base_frequency(&zero), from_base_frequency(&older)], [None; 2]);
    }

    #[test]
    fn a_reference_that_stands_still_is_given_up_within_a_second() {
        let mut iterations = 0;
        assert_eq!(measure(1_000_000, || 7, || 0, |more| iterations += more), None);
        assert!(iterations < 600_000_000, "{iterations}");
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
    fn a_rate_that_a_timer_contradicts_is_reported_and_the_measured_one_used() {
        let (told, timer) = ((2_000_000_000, Source::Cpuid), Source::AcpiPmTimer);
        let with = |rates: &'static [u64]| {
            let mut rates = rates.iter();
            decide(Some(told), move || Some((*rates.next()?, timer)))
        };
        let believed = Some((told, None));
        assert_eq!(with(&[2_030_000_000]), believed, "within the tolerance");
        assert_eq!(with(&[]), believed, "there is no timer");
        // Disturbed once or twice; or each time differently.
        assert_eq!(with(&[2_500_000_000, 1_999_000_000]), believed);
        assert_eq!(with(&[2_500_000_000, 2_501_000_000, 2_000_000_000]), believed);
        assert_eq!(with(&[2_500_000_000, 3_000_000_000, 2_500_000_000]), believed);
        let measured = Some(((64_000_000, timer), Some(2_000_000_000)));
        assert_eq!(with(&[64_000_000, 64_100_000, 63_900_000]), measured);
        assert_eq!(decide(None, || Some((5, Source::Pit))), Some(((5, Source::Pit), None)));
        assert_eq!(decide(None, || None), None);
    }

    #[test]
    fn the_loop_is_doubled_until_the_reference_has_moved_enough() {
        let mut looks = 0;
        let mut clock = 0;
        let rate = measure(
            1000,
            || {
                looks += 1;
                if looks > 8 { 1_000_000 } else { 0 }
            },
            || {
                clock += 1_000_000;
                clock
            },
            |_| {},
        );
        assert!(rate.is_some());
        // Four at the beginning, one for each of five loops, four at the end.
        assert_eq!(looks, 13);
    }

    #[test]
    fn the_loop_ends_soon_after_the_reference_has_moved_enough() {
        // Ticks of 1 ns for each.
        for iteration in [1, 4, 50] {
            let now = std::cell::Cell::new(0u64);
            let pass = |ticks: u64| {
                now.set(now.get() + ticks);
                now.get()
            };
            let elapsed = || pass(20) * pm_timer::HZ / 1_000_000_000;
            let idle = |iterations: u64| _ = pass(iterations * iteration);
            let rate = measure(pm_timer::HZ, elapsed, || pass(1), idle).expect("it moves");
            assert!(rate.abs_diff(1_000_000_000) < 100_000, "{rate}");
            let took = now.get();
            let most = 10_200_000 + 2 * FIRST_SPIN * iteration;
            assert!((10_000_000..most).contains(&took), "{iteration}: {took}");
        }
    }

    /// A machine of 2 GHz with a reference of 1 MHz, which a host takes the processor away from.
    fn disturbed(mut stolen: impl FnMut(u64) -> u64) -> u64 {
        let now = std::cell::Cell::new(0u64);
        let pass = |ticks: u64| {
            now.set(now.get() + ticks);
            now.get()
        };
        let mut reads = 0;
        let elapsed = || {
            // Reading takes 2 us.
            reads += 1;
            let seen = pass(2_000) / 2_000;
            pass(2_000 + stolen(reads));
            seen
        };
        let idle = |iterations| _ = pass(iterations);
        measure(1_000_000, elapsed, || pass(100), idle).expect("the reference moves")
    }

    #[test]
    fn a_host_that_takes_the_processor_away_between_the_two_clocks_changes_nothing() {
        let within = |hz: u64| hz.abs_diff(2_000_000_000) <= 2_000_000_000 / 200;
        let calm = disturbed(|_| 0);
        assert!(within(calm), "{calm}");
        // Two milliseconds at three of four looks.
        let busy = disturbed(|read| if read % 4 == 2 { 0 } else { 4_000_000 });
        assert!(within(busy), "{busy}");
    }
}
