//! Architectural records: fragments, each with a header that says how long it is, which groups it has, and whether another one
//! follows (Linux, `struct arch_pebs_header` and those after it in `asm/perf_event.h`; `setup_arch_pebs_sample_data` in `ds.c`).

use super::gate::Which;
use super::pebs::{Retirement, STATE};
use super::{MAX_COUNTERS, MAX_FIXED, Pmu};
use crate::model::{Pebs, arch};
use crate::mutation::Mutation;

/// A header: size in bytes at 15:0, 64-bit mode, another fragment follows, and the groups where CFG_C has them.
const MODE_64: u64 = 1 << 30;
const CONTINUED: u64 = 1 << 31;
const HEADER: usize = 2;
/// What a fragment has at most, in words: so that a record with 32 branches and all registers takes two. A rule of this
/// machine's; what makes processors begin a fragment is not known.
const MOST: usize = 1024 / 8;
/// Basic group: the retire latency in bits 15:0 is valid.
const LATENCY_VALID: u64 = 1 << 16;
/// Words of the groups, less those that depend on what there is.
const BASIC: usize = 6;
const AUXILIARY: usize = 8;
const REGISTERS: usize = 20;
const VECTORS: usize = 2 + 2 * STATE;
const BRANCHES: usize = 6;
const COUNTERS: usize = 2;
/// Branch records for each step of their field, and what it has for all of them.
const BRANCHES_A_STEP: usize = 8;
const ALL_BRANCHES: u64 = 3;
/// The states of the vector groups: XMM, and the upper halves of YMM, as components of XSAVE's.
const SSE: u64 = 1 << 1;
const AVX: u64 = 1 << 2;
/// What the counters' header says of metrics that are there.
const BOTH_METRICS: u64 = 3;
/// Most words of a record: two fragments, with all groups, 32 branches, every counter and the metrics, and one to fill up with.
const MAX_WORDS: usize = 2 * HEADER
    + BASIC
    + AUXILIARY
    + REGISTERS
    + VECTORS
    + BRANCHES
    + 3 * 32
    + COUNTERS
    + MAX_COUNTERS
    + MAX_FIXED
    + 2
    + 2;

/// A record in the making.
pub(super) struct Fragments {
    words: [u64; MAX_WORDS],
    count: usize,
    /// Where the fragment begins that is being written.
    start: usize,
    mode: u64,
}

impl Fragments {
    fn new(mode: u64) -> Self {
        Self { words: [0; MAX_WORDS], count: HEADER, start: 0, mode }
    }

    /// A group of so many words comes, which these bits of the header stand for.
    fn group(&mut self, bits: u64, words: usize, continued: u64) {
        if self.count - self.start + words > MOST {
            self.close(continued);
            self.start = self.count;
            self.count += HEADER;
        }
        self.words[self.start] |= bits;
    }

    fn put(&mut self, words: &[u64]) {
        self.words[self.count..][..words.len()].copy_from_slice(words);
        self.count += words.len();
    }

    /// Ends a fragment, which is a multiple of 16 bytes, as the write offset is.
    fn close(&mut self, continued: u64) {
        self.count += (self.count - self.start) % 2;
        let size = 8 * (self.count - self.start) as u64;
        self.words[self.start] |= size | self.mode | continued;
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl Pmu {
    /// The record of the counters `due`. It has the groups that any of them requests.
    pub(super) fn architectural_record(
        &self,
        pebs: &Pebs,
        due: u64,
        retired: &Retirement,
    ) -> Fragments {
        let config = self.groups_of(due);
        let mode = if retired.outside_64_bit_mode { 0 } else { MODE_64 };
        let continued = if self.is(Mutation::ApebsContinuationLost) { 0 } else { CONTINUED };
        let mut record = Fragments::new(mode);
        let late = self.is(Mutation::ApebsAddressWrong);
        let ip = if late { retired.next } else { retired.ip };
        let counters = if self.is(Mutation::ApebsCountersLost) { 0 } else { due };
        record.group(arch::ENABLE, BASIC, continued);
        let latency = LATENCY_VALID | u64::from(self.seen().retire_latency);
        record.put(&[ip, counters, retired.tsc, latency, 0, 0]);
        if config & arch::AUXILIARY != 0 {
            // Transactions are 0: this machine has none.
            let [source, latency] = self.source_of(pebs, due);
            let address = self.data_of(pebs, due, retired);
            record.group(arch::AUXILIARY, AUXILIARY, continued);
            record.put(&[address, 0, 0, 0, 0, source, latency, 0]);
        }
        if config & arch::REGISTERS != 0 {
            record.group(arch::REGISTERS, REGISTERS, continued);
            record.put(&[retired.flags, retired.next]);
            record.put(&retired.registers);
            // There is no shadow stack.
            record.put(&[0, 0]);
        }
        if config & (arch::VECTORS | arch::YMM_UPPER) != 0 {
            self.put_vectors(config, retired, continued, &mut record);
        }
        if config & arch::BRANCHES != 0 {
            self.put_branches(config & arch::BRANCHES, continued, &mut record);
        }
        let values = arch::GENERAL | arch::FIXED | arch::METRICS;
        if config & values != 0 {
            self.put_values(config & values, due, continued, &mut record);
        }
        record.close(0);
        if self.is(Mutation::ApebsSizeWrong) {
            record.words[0] -= 16;
        }
        record
    }

    fn groups_of(&self, due: u64) -> u64 {
        let first = self.is(Mutation::ApebsGroupsOfFirst);
        let missing = if self.is(Mutation::ApebsGroupMissing) { arch::REGISTERS } else { 0 };
        let asking = self.each().filter(|which| due & which.bit() != 0);
        let config = match first {
            true => self.arch_pebs.config(Which::General(0)),
            false => asking.fold(0, |groups, which| groups | self.arch_pebs.config(which)),
        };
        config & !missing
    }

    /// The vector registers: which states they are, and the registers. Upper halves that software has not enabled are 0, and no state.
    fn put_vectors(
        &self,
        config: u64,
        retired: &Retirement,
        continued: u64,
        record: &mut Fragments,
    ) {
        let lost = self.is(Mutation::ApebsUpperHalvesLost);
        let missing = if lost { arch::YMM_UPPER } else { 0 };
        let groups = config & (arch::VECTORS | arch::YMM_UPPER) & !missing;
        if groups == 0 {
            return;
        }
        record.group(groups, 2 + groups.count_ones() as usize * STATE, continued);
        let (xmm, upper) = (groups & arch::VECTORS != 0, groups & arch::YMM_UPPER != 0);
        let sse = if xmm { SSE } else { 0 };
        let avx = if upper && retired.ymm_upper.is_some() { AVX } else { 0 };
        record.put(&[sse | avx, 0]);
        if xmm {
            record.put(&retired.vectors);
        }
        if upper {
            record.put(&retired.ymm_upper.unwrap_or([0; STATE]));
        }
    }

    /// The branch records: their control and depth, the last one before an interrupt, and the newest ones first.
    fn put_branches(&self, field: u64, continued: u64, record: &mut Fragments) {
        let steps = field >> arch::BRANCHES_AT;
        let depth = self.lbr.depth();
        let count = match steps {
            ALL_BRANCHES => depth,
            steps => BRANCHES_A_STEP * steps as usize,
        };
        record.group(field, BRANCHES + 3 * count, continued);
        let [from, to, info] = self.lbr.before_event();
        record.put(&[0, self.lbr.control(), depth as u64, from, to, info]);
        let stale = usize::from(self.is(Mutation::ApebsBranchesStale));
        for older in 0..count {
            record.put(&self.lbr.behind(self.spec(), older + stale));
        }
    }

    /// The counters' group: those that let their value into records, as they are before the reload.
    fn put_values(&self, config: u64, due: u64, continued: u64, record: &mut Fragments) {
        let wanted = |which: &Which| {
            let kind = match which {
                Which::General(_) => arch::GENERAL,
                Which::Fixed(_) => arch::FIXED,
                Which::IbsFetch | Which::IbsOp => 0,
            };
            config & kind != 0 && self.arch_pebs.config(*which) & arch::ALLOW != 0
        };
        let bits: u64 = self.each().filter(wanted).map(Which::bit).sum();
        let metrics = if config & arch::METRICS != 0 { BOTH_METRICS } else { 0 };
        let words = COUNTERS + bits.count_ones() as usize + metrics.count_ones() as usize;
        record.group(config, words, continued);
        record.put(&[bits, metrics]);
        let reloaded = self.is(Mutation::ApebsValuesReloaded);
        for which in self.each().filter(wanted) {
            let value = match reloaded && due & which.bit() != 0 {
                true => self.reload(which),
                false => self.counter(which).value,
            };
            record.put(&[value]);
        }
        if metrics != 0 {
            record.put(&[self.counter(Which::Fixed(3)).value, self.metrics_value()]);
        }
    }
}
