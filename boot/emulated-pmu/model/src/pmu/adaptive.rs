//! Adaptive records: a basic group, and after it those that MSR_PEBS_DATA_CFG requests (Intel SDM volume 3, 20.9.2).

use super::gate::Which;
use super::pebs::MAX_WORDS;
use super::{Pmu, Retirement};
use crate::model::Pebs;
use crate::mutation::Mutation;

/// MSR_PEBS_DATA_CFG, and the contents that a record states of itself.
const MEMORY: u64 = 1 << 0;
const GENERAL: u64 = 1 << 1;
const VECTORS: u64 = 1 << 2;
const BRANCHES: u64 = 1 << 3;
const COUNTERS: u64 = 1 << 4;
const METRICS: u64 = 1 << 5;
const GROUPS: u64 = 0x3F;
/// How many branches, less one, at 31:24; which general-purpose counters at 47:32, which fixed ones at 55:48.
const ENTRIES_AT: u32 = 24;
const GENERAL_AT: u32 = 32;
const FIXED_AT: u32 = 48;
/// The retire latency, at 47:32 of a record's first word, where there is one.
const LATENCY_AT: u32 = 32;
/// The record's size in bytes, at 63:48 of its first word.
const SIZE_AT: u32 = 48;
/// What the counters' header says of metrics that are there.
const BOTH_METRICS: u64 = 3;

/// A record in the making.
struct Words<'a> {
    words: &'a mut [u64; MAX_WORDS],
    count: usize,
}

impl Words<'_> {
    fn put(&mut self, words: &[u64]) {
        self.words[self.count..][..words.len()].copy_from_slice(words);
        self.count += words.len();
    }
}

impl Pmu {
    /// Whether records hold the vector registers.
    #[must_use]
    pub fn records_vectors(&self) -> bool {
        self.pebs_data_config & VECTORS != 0 || self.asks_for_vectors()
    }

    /// The bit of the counter that requests more than the basic group: 34 of its event select, 32 + 4n of
    /// IA32_FIXED_CTR_CTRL.
    fn asks_for_groups(&self, which: Which) -> bool {
        match which {
            Which::General(n) => self.counters[n].selector >> 34 & 1 != 0,
            Which::Fixed(n) => self.fixed_control >> (32 + 4 * n) & 1 != 0,
            Which::IbsFetch | Which::IbsOp => false,
        }
    }

    /// The words of a record of the counters `due`, and how many there are. One that requests groups gives them to all.
    pub(super) fn adaptive_record(
        &self,
        pebs: &Pebs,
        due: u64,
        retired: &Retirement,
        words: &mut [u64; MAX_WORDS],
    ) -> usize {
        let asked = self.each().any(|one| due & one.bit() != 0 && self.asks_for_groups(one));
        let asked = asked || self.is(Mutation::PebsAdaptiveIgnored);
        let missing = if self.is(Mutation::PebsGroupMissing) { GENERAL } else { 0 };
        let config = if asked { self.pebs_data_config & !missing } else { 0 };
        let late = self.is(Mutation::PebsAddressWrong);
        let ip = if late { retired.next } else { retired.ip };
        let mut record = Words { words, count: 0 };
        record.put(&[0, ip, due, retired.tsc]);
        if config & MEMORY != 0 {
            // Transactions are 0: this machine has none.
            let [source, latency] = self.source_of(pebs, due);
            record.put(&[self.data_of(pebs, due, retired), source, latency, 0]);
        }
        if config & GENERAL != 0 {
            record.put(&[retired.flags, retired.next]);
            record.put(&retired.registers);
        }
        if config & VECTORS != 0 {
            record.put(&retired.vectors);
        }
        let mut contents = config & GROUPS;
        if config & BRANCHES != 0 {
            // No more than there are registers.
            let entries = (config >> ENTRIES_AT & 0xFF).min(self.lbr.depth() as u64 - 1);
            let stale = usize::from(self.is(Mutation::PebsBranchesStale));
            for older in 0..=entries as usize {
                record.put(&self.lbr.behind(self.spec(), older + stale));
            }
            contents |= entries << ENTRIES_AT;
        }
        if config & (COUNTERS | METRICS) != 0 {
            self.put_counters(config, &mut record);
        }
        let size = 8 * record.count as u64 - if self.is(Mutation::PebsSizeWrong) { 8 } else { 0 };
        let latency = match pebs.states_retirement() {
            true => u64::from(self.seen().retire_latency),
            false => 0,
        };
        record.words[0] = contents | latency << LATENCY_AT | size << SIZE_AT;
        record.count
    }

    /// The counters' group: which are in it, and their values as they are before the reset value comes.
    fn put_counters(&self, config: u64, record: &mut Words) {
        let wanted = |which| match which {
            Which::General(n) => config & COUNTERS != 0 && config >> GENERAL_AT >> n & 1 != 0,
            Which::Fixed(n) => config & COUNTERS != 0 && config >> FIXED_AT >> n & 1 != 0,
            Which::IbsFetch | Which::IbsOp => false,
        };
        let bits = self.each().filter(|&which| wanted(which)).map(Which::bit).sum();
        let metrics = if config & METRICS != 0 { BOTH_METRICS } else { 0 };
        record.put(&[bits, metrics]);
        for which in self.each().filter(|&which| wanted(which)) {
            record.put(&[self.counter(which).value]);
        }
        if metrics != 0 {
            record.put(&[self.counter(Which::Fixed(3)).value, self.metrics_value()]);
        }
    }
}
