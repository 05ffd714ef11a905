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
        self.platform.taken().into_iter().fold(self.switches, u64::wrapping_add)
    }

    fn tsc(&mut self) -> u64 {
        self.platform.tsc()
    }

    fn clocks(&mut self) -> Clocks {
        self.clocks.again(self.platform)
    }

    fn events(&mut self) -> Events {
        let taken = self.platform.taken();
        Events { taken, context_switches: self.switches }
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
