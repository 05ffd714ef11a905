//! Records as a processor writes them, for tests and the fuzz target.

use super::{Architectural, LATENCY_VALID, STATE_WORDS};
use crate::pmu::pebs::{Access, Contents, General, Snapshot};

impl Architectural<'_> {
    /// The record in one piece, with a header of its groups.
    #[must_use]
    pub fn encode(&self) -> alloc::vec::Vec<u64> {
        let common = &self.common;
        let mut contents = Contents::BASIC;
        let mut words = alloc::vec![0, 0, common.ip, common.counters, common.tsc];
        let latency = common.retire_latency.map_or(0, |cycles| LATENCY_VALID | u64::from(cycles));
        words.extend([latency, 0, 0]);
        if let Some(Access { address, source, latency, transaction }) = common.access {
            contents |= Contents::MEMORY;
            words.extend([address, 0, 0, 0, 0, source, latency, transaction]);
        }
        if let Some(General { flags, next, registers }) = common.general {
            contents |= Contents::GENERAL;
            words.extend([flags, next]);
            words.extend(registers);
            words.extend([self.shadow_stack.unwrap_or(0), 0]);
        }
        let vectors = self.beyond.with(common.vectors);
        if vectors.iter().any(Option::is_some) {
            words.extend([0; STATE_WORDS]);
        }
        for ((_, group), all) in Contents::OF_VECTORS.into_iter().zip(vectors) {
            contents.set(group, all.is_some());
            words.extend(all.into_iter().flatten());
        }
        if !common.branches.is_empty() {
            contents |= Contents::BRANCHES;
            words.extend([0, 0, common.branches.len() as u64, 0, 0, 0]);
            words.extend(common.branches.iter().flatten());
        }
        if let Some(Snapshot { general, fixed, values, metrics }) = common.snapshot {
            contents.set(Contents::COUNTERS, general != 0);
            contents.set(Contents::FIXED, fixed != 0);
            contents.set(Contents::METRICS, metrics.is_some());
            let masks = u64::from(fixed) << 32 | u64::from(general);
            words.extend([masks, if metrics.is_some() { 3 } else { 0 }]);
            words.extend(values);
            words.extend(metrics.into_iter().flatten());
        }
        if words.len() % 2 != 0 {
            words.push(0);
        }
        words[0] = contents.bits() | (8 * words.len() as u64);
        words
    }
}
