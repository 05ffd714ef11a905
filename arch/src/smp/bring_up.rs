//! INIT-SIPI-SIPI: Intel SDM vol. 3, 8.4.4.1; AMD APM vol. 2, 16.2.
//!
//! All processors are woken together, so that their waiting times do not add up.

use alloc::vec::Vec;
use thiserror::Error;

/// What the sequence needs of the machine.
pub trait Signals {
    /// Sends INIT.
    ///
    /// # Errors
    /// The processor cannot be addressed.
    fn init(&mut self, apic_id: u32) -> Result<(), Silent>;
    /// Sends a startup interrupt.
    fn startup(&mut self, apic_id: u32);
    /// Whether the processor has come.
    fn has_come(&mut self, apic_id: u32) -> bool;
    /// Waits so many microseconds, or less if `until` holds earlier.
    fn wait(&mut self, us: u64, until: &mut dyn FnMut(&mut Self) -> bool)
    where
        Self: Sized;
}

/// Why a processor is not in use.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum Silent {
    /// The MADT says that it is switched off.
    #[error("the machine's firmware did not enable it")]
    NotEnabled,
    /// Its number does not fit the interrupt command.
    #[error("APIC id {0} cannot be addressed in xAPIC mode, which ends at 254")]
    OutOfReach(u32),
    /// It did not answer.
    #[error("it did not start within {0} ms of its startup interrupts")]
    NoAnswer(u64),
    /// It came, and then something on it did not work.
    #[error("it started, but its local APIC does not work")]
    Apic,
    /// Everything else was there, but no memory.
    #[error("there is no memory for its stacks")]
    NoMemory,
    /// No page below 1 MiB is free for the code that it begins with.
    #[error("there is no free memory below 1 MiB for its trampoline")]
    NoLowMemory,
    /// There are more than [`super::MAX_PROCESSORS`].
    #[error("{} processors are already in use", super::MAX_PROCESSORS)]
    TooMany,
}

/// From the first startup interrupt to the second, for those that need it: the manual's 200 µs.
const SECOND_US: u64 = 200;
/// From then until a processor counts as missing. Machines answer within a millisecond; an emulator on a busy host may
/// take longer.
pub const PATIENCE_MS: u64 = 200;

/// Wakes the processors of `apic_ids`. `init_us`: from INIT to the first startup interrupt. Returns what became of each.
pub fn bring_up(
    signals: &mut impl Signals,
    apic_ids: &[u32],
    init_us: u64,
) -> Vec<Result<(), Silent>> {
    let sent: Vec<_> = apic_ids.iter().map(|&id| signals.init(id)).collect();
    let reached = |index: &usize| sent[*index].is_ok();
    let waiting: Vec<u32> =
        (0..apic_ids.len()).filter(reached).map(|index| apic_ids[index]).collect();
    if waiting.is_empty() {
        return sent;
    }
    signals.wait(init_us, &mut |_| false);
    for us in [SECOND_US, PATIENCE_MS * 1000] {
        for &id in &waiting {
            if !signals.has_come(id) {
                signals.startup(id);
            }
        }
        signals.wait(us, &mut |signals| waiting.iter().all(|&id| signals.has_come(id)));
    }
    let answer = |(&id, sent): (&u32, Result<(), Silent>)| {
        sent?;
        if signals.has_come(id) { Ok(()) } else { Err(Silent::NoAnswer(PATIENCE_MS)) }
    };
    apic_ids.iter().zip(sent).map(answer).collect()
}

/// From INIT to the startup interrupt, in microseconds: 10 ms in the manuals, which processors before the first 64-bit ones needed, and
/// perhaps the Pentium 4 (family 15 of Intel); Linux (arch/x86/kernel/smpboot.c) keeps them for all whose makers it does not know, too.
#[must_use]
pub fn init_us(vendor: &str, family: u32) -> u64 {
    match (vendor, family) {
        ("GenuineIntel", 6 | 16..) | ("AuthenticAMD" | "HygonGenuine", _) => 10,
        _ => 10_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Processors that come after so many startup interrupts.
    #[derive(Default)]
    struct Made {
        needs: BTreeMap<u32, u32>,
        startups: BTreeMap<u32, u32>,
        order: Vec<(char, u32)>,
        waited_us: u64,
    }

    impl Signals for Made {
        fn init(&mut self, id: u32) -> Result<(), Silent> {
            self.order.push(('i', id));
            if id > 254 { Err(Silent::OutOfReach(id)) } else { Ok(()) }
        }
        fn startup(&mut self, id: u32) {
            self.order.push(('s', id));
            *self.startups.entry(id).or_default() += 1;
        }
        fn has_come(&mut self, id: u32) -> bool {
            let sent = self.startups.get(&id).copied().unwrap_or(0);
            self.needs.get(&id).is_some_and(|&needs| sent >= needs)
        }
        fn wait(&mut self, us: u64, until: &mut dyn FnMut(&mut Self) -> bool) {
            if !until(self) {
                self.waited_us += us;
            }
        }
    }

    #[test]
    fn i7_processors_of_makers_that_are_not_known_get_the_manuals_time() {
        let quick =
            [("GenuineIntel", 6), ("GenuineIntel", 18), ("AuthenticAMD", 15), ("HygonGenuine", 24)];
        assert!(quick.iter().all(|(vendor, family)| init_us(vendor, *family) == 10));
        let slow = [("GenuineIntel", 15), ("CentaurHauls", 7), ("  Shanghai  ", 7), ("", 6)];
        assert!(slow.iter().all(|(vendor, family)| init_us(vendor, *family) == 10_000));
    }

    #[test]
    fn i7_who_comes_at_once_gets_one_startup_and_who_does_not_gets_two() {
        let mut made = Made { needs: [(1, 1), (5, 2)].into_iter().collect(), ..Default::default() };
        assert_eq!(bring_up(&mut made, &[1, 5], 10), [Ok(()), Ok(())]);
        assert_eq!(made.order, [('i', 1), ('i', 5), ('s', 1), ('s', 5), ('s', 5)]);
        assert_eq!(made.waited_us, 10 + SECOND_US);
    }

    #[test]
    fn i7_a_processor_that_does_not_come_is_named_and_the_others_go_on() {
        let mut made = Made { needs: [(2, 1)].into_iter().collect(), ..Default::default() };
        let found = bring_up(&mut made, &[2, 3, 300], 0);
        assert_eq!(
            found,
            [Ok(()), Err(Silent::NoAnswer(PATIENCE_MS)), Err(Silent::OutOfReach(300))]
        );
        assert_eq!(made.waited_us, SECOND_US + PATIENCE_MS * 1000);
        let texts = [found[1].unwrap_err().to_string(), found[2].unwrap_err().to_string()];
        assert!(texts[0].contains("200 ms") && texts[1].contains("300"), "{texts:?}");
    }

    #[test]
    fn without_other_processors_nothing_is_sent_and_no_time_goes_by() {
        let mut made = Made::default();
        assert_eq!(bring_up(&mut made, &[], 10_000), []);
        assert_eq!((made.order.len(), made.waited_us), (0, 0));
    }
}
