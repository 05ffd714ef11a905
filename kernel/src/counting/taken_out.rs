//! What counters of ring 0 see of the kernel each time that counting between addresses is interrupted.
//!
//! Everything by which the kernel comes into a task stops the counters after a few instructions, and starts them again as few
//! before it goes back ([`arch::pmu::Deferred`]): always the same ones. What an event comes to in them is measured before the
//! tasks run: counting is started and stopped by breakpoints around one NOP and around two, and what the NOPs themselves
//! come to falls out of the difference.

use super::{Platform, Set, SetError};
use crate::snippet::events::Counted;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::{Driver, PmuError, Registers};

/// Starts and stops around each of the two pieces of code: more than one, as the first may come to something that the others
/// do not.
const TIMES: u64 = 16;

/// Of each group, what is taken out of each request; nothing, where nothing of the kernel is counted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TakenOut(Vec<Vec<Option<u64>>>);

impl TakenOut {
    /// Measures it for the groups of `set`. The counters are the caller's, and free again afterwards.
    ///
    /// # Errors
    /// The PMU refuses a request.
    pub fn measure(
        set: &Set,
        driver: &Driver,
        platform: &mut dyn Platform,
    ) -> Result<Self, SetError> {
        let mut driver = driver.clone();
        let mut all = Vec::new();
        for group in set.groups() {
            let mut own = vec![None; set.requests().len()];
            driver.reset(platform)?;
            for (_, counted) in group {
                for (counter, selection) in counted.programs() {
                    driver.program(platform, counter, &selection)?;
                }
            }
            let mut seen = Vec::new();
            for nops in [1, 2] {
                for (_, counted) in group {
                    driver.write(platform, counted.counter, 0)?;
                }
                platform.windows(&driver.gate(), nops, TIMES);
                let read =
                    |(_, counted): &(_, Counted)| read_of(&driver, counted.counter, platform);
                seen.push(group.iter().map(read).collect::<Result<Vec<u64>, _>>()?);
            }
            for (place, (request, _)) in group.iter().enumerate() {
                own[*request] = Some(each(seen[0][place], seen[1][place]));
            }
            driver.reset(platform)?;
            all.push(own);
        }
        platform.closings();
        Ok(Self(all))
    }

    /// Of the requests of group `group`.
    #[must_use]
    pub fn of(&self, group: usize) -> &[Option<u64>] {
        self.0.get(group).map_or(&[], |own| own)
    }

    /// Of a request, in the first group that has it.
    #[must_use]
    pub fn request(&self, request: usize) -> Option<u64> {
        self.0.iter().find_map(|own| *own.get(request)?)
    }
}

fn read_of(
    driver: &Driver,
    counter: arch::pmu::Counter,
    platform: &mut dyn Platform,
) -> Result<u64, PmuError> {
    let registers: &mut dyn Registers = platform;
    driver.read(registers, counter)
}

/// What lies around a piece of code that was run [`TIMES`] times, and `twice` that with two of them; to the nearest whole
/// number, and never less than nothing.
fn each(once: u64, twice: u64) -> u64 {
    (2 * once).saturating_sub(twice).saturating_add(TIMES / 2) / TIMES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_around_a_nop_is_what_does_not_grow_with_it() {
        // 45 around each NOP, which is one, and three of a NOP of two.
        assert_eq!(each(16 * 46, 16 * 47), 45);
        assert_eq!(each(16 * 47 + 5, 16 * 49 + 9), 45);
        // To the nearest: 45.75, and 45.25.
        assert_eq!((each(16 * 46 + 12, 16 * 47 + 12), each(16 * 46 + 4, 16 * 47 + 4)), (46, 45));
        assert_eq!((each(0, 0), each(3, 40)), (0, 0));
    }
}
