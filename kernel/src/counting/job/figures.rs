//! The machine's own figures beside the counts.

use crate::counting::session::Session;
use crate::counting::snapshot::{Clocks, Events, Snapshot, Sources};
use crate::counting::{CountingError, Counts, Platform};
use protocol::record::{CountSnapshot, VectorCount};

/// The machine's own figures beside a session's counts.
pub(crate) struct Beside<'a> {
    pub session: &'a mut Session,
    pub platform: &'a mut dyn Platform,
    pub switches: u64,
    /// Which registers there are.
    pub clocks: Clocks,
}

impl Sources for Beside<'_> {
    fn sequence(&mut self) -> u64 {
        self.switches.wrapping_add(self.platform.taken_in_all())
    }

    fn tsc(&mut self) -> u64 {
        self.platform.tsc()
    }

    fn clocks(&mut self) -> Clocks {
        self.clocks.again(self.platform)
    }

    fn smi_count(&mut self) -> Option<u64> {
        self.clocks.smi_count_again(self.platform)
    }

    fn events(&mut self, to: &mut Events) {
        self.platform.taken(&mut to.taken);
        to.context_switches = self.switches;
    }

    fn counts(&mut self, counts: &mut Counts) -> Result<(), CountingError> {
        self.session.sample(self.platform, counts)
    }
}

/// What lies between two snapshots.
pub(super) fn between(first: &Snapshot, last: &Snapshot) -> CountSnapshot {
    let since = |read: fn(&Clocks) -> Option<u64>| {
        Some(read(&last.clocks)?.wrapping_sub(read(&first.clocks)?))
    };
    let both = first.events.taken.iter().zip(&last.events.taken);
    let taken = (0..=255)
        .zip(both)
        .map(|(vector, (first, last))| VectorCount { vector, count: last.wrapping_sub(*first) });
    CountSnapshot {
        tsc: last.tsc[0].wrapping_sub(first.tsc[1]),
        width: last.tsc[1].wrapping_sub(last.tsc[0]),
        aperf: since(|clocks| clocks.aperf),
        mperf: since(|clocks| clocks.mperf),
        smis: since(|clocks| clocks.smi_count),
        interrupts: taken.filter(|taken| taken.count > 0).collect(),
        switches: last.events.context_switches.wrapping_sub(first.events.context_switches),
        retries: first.retries + last.retries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::snapshot::VECTORS;

    #[test]
    fn i10_a_snapshot_says_what_lies_between_two_and_not_the_other_way_round() {
        let snapshot = |tsc, clock: u64, taken, retries| Snapshot {
            tsc,
            clocks: Clocks {
                aperf: Some(clock),
                mperf: Some(3 * clock),
                smi_count: Some(clock / 10),
            },
            events: Events { taken: [taken; VECTORS], context_switches: 2 * taken },
            retries,
        };
        let (first, last) = (snapshot([100, 130], 50, 4, 1), snapshot([530, 570], 250, 9, 2));
        let seen = between(&first, &last);
        assert_eq!((seen.tsc, seen.width, seen.retries), (400, 40, 3));
        assert_eq!((seen.aperf, seen.mperf, seen.smis), (Some(200), Some(600), Some(20)));
        assert_eq!(seen.switches, 10);
        assert!(seen.interrupts.len() == 256 && seen.interrupts.iter().all(|one| one.count == 5));
        let mut last = last;
        last.events.taken[3] = first.events.taken[3];
        let numbers = between(&first, &last).interrupts;
        assert!(numbers.len() == 255 && numbers.iter().all(|one| one.vector != 3), "none came");
        let none = Snapshot { clocks: Clocks::default(), ..first };
        assert_eq!(between(&none, &last).aperf, None, "not there at the start");
    }
}
