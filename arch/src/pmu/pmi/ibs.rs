//! Samples of AMD's instruction-based sampling. They come through an interrupt of their own, beside that of the counters.

use super::ControlBlock;
use super::accesses::Outcome;
use super::handling::Around;
use super::service::{Interrupted, MOST_SPURIOUS, Raw, note, put_all};
use crate::pmu::data_source::{Datum, ibs_datum};
use crate::pmu::driver::Write;
use crate::pmu::ibs::{OP_DATA_2, OpData, OpData3, Period, Unit};

/// Vector of its interrupt, if it comes as a fixed one.
pub const IBS_VECTOR: u8 = 0xe2;

/// Which operations are kept of those that are sampled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Filter {
    /// Loads that waited longer than this for what the first level did not have; 0: all loads.
    Loads {
        /// Cycles.
        beyond: u32,
    },
    /// Stores.
    Stores,
}

impl Filter {
    fn keeps(self, access: OpData3, datum: &Datum) -> bool {
        match self {
            Self::Loads { beyond } => access.loads() && (beyond == 0 || datum.latency > beyond),
            Self::Stores => access.stores(),
        }
    }
}

/// Periods of random length.
#[derive(Clone, Copy, Debug)]
struct RandomPeriods {
    seed: u32,
    state: u32,
    /// Where the current period started, as bits of the control register, and how long it is.
    start: u64,
    length: u64,
    /// What those that ended come to.
    ended: u64,
}

impl RandomPeriods {
    const fn new(seed: u32, period: &Period) -> Self {
        // Xorshift never leaves 0.
        let seed = if seed == 0 { 1 } else { seed };
        Self { seed, state: seed, start: 0, length: 0, ended: 0 }.next(period)
    }

    /// The next number of a xorshift generator (Marsaglia, "Xorshift RNGs", 13, 17, 5) begins a period.
    const fn next(mut self, period: &Period) -> Self {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        (self.start, self.length) = period.start(self.state);
        self
    }
}

/// A unit that samples.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    period: Period,
    /// Whose samples they are: the slot of a counter that counts beside.
    slot: u8,
    /// Entry of the extended local vector table.
    pub(super) entry: u8,
    /// A sample may say that its address is none.
    checks_address: bool,
    /// Family 10h: see [`Period::off_in_two`].
    clears_maximum: bool,
    /// The current count can be written, so that a period goes on where it was stopped.
    keeps_count: bool,
    /// The count where the unit was stopped, as bits of the control register.
    stopped_at: u64,
    /// A sample was taken where the unit was stopped, and its interrupt, which waits, will find none.
    awaited: bool,
    /// Which samples are kept; `None`: all.
    filter: Option<Filter>,
    /// Random periods, if they are.
    random: Option<RandomPeriods>,
    /// Samples without an address.
    pub invalid: u64,
    /// Samples that the filter kept out.
    pub filtered: u64,
}

impl Sampling {
    /// Samples of `period` that are the counter's of number `slot`, by way of `entry`.
    #[must_use]
    pub const fn new(period: Period, slot: u8, entry: u8) -> Self {
        Self {
            period,
            slot: slot & 63,
            entry,
            checks_address: false,
            clears_maximum: false,
            keeps_count: false,
            stopped_at: 0,
            awaited: false,
            filter: None,
            random: None,
            invalid: 0,
            filtered: 0,
        }
    }

    /// Some samples are kept alone.
    #[must_use]
    pub const fn filtered_by(self, filter: Option<Filter>) -> Self {
        Self { filter, ..self }
    }

    /// Its periods, which are random ([`Period::randomised`]), are those of this seed.
    #[must_use]
    pub const fn randomised_from(self, seed: u32) -> Self {
        let random = RandomPeriods::new(seed, &self.period);
        Self { random: Some(random), stopped_at: random.start, ..self }
    }

    /// What all periods that ended come to, if they are random. Unknown where the unit keeps operations away by itself, as it begins
    /// a period then that nobody sees.
    #[must_use]
    pub fn ended(&self) -> Option<u64> {
        self.random.filter(|_| !self.period.is_filtered()).map(|random| random.ended)
    }

    /// A period ended, and the next one begins.
    fn end_period(&mut self) {
        if let Some(random) = &mut self.random {
            random.ended += random.length;
            *random = random.next(&self.period);
        }
        self.stopped_at = self.start();
    }

    /// Where the current period starts, as bits of the control register.
    const fn start(&self) -> u64 {
        match self.random {
            Some(random) => random.start,
            None => 0,
        }
    }

    /// Samples may say that they have no address.
    #[must_use]
    pub const fn checking_address(self, checks_address: bool) -> Self {
        Self { checks_address, ..self }
    }

    /// The unit goes off as family 10h needs it ([`Period::off_in_two`]).
    #[must_use]
    pub const fn clearing_maximum(self, clears_maximum: bool) -> Self {
        Self { clears_maximum, ..self }
    }

    /// Switches the unit off.
    #[inline]
    fn switch_off(&self, raw: &mut impl Raw) {
        let control = self.period.unit().control().0;
        if self.clears_maximum {
            for value in self.period.off_in_two() {
                raw.wrmsr(control, value);
            }
        } else {
            raw.wrmsr(control, self.period.off());
        }
    }

    /// The current count can be written.
    #[must_use]
    pub const fn keeping_count(self, keeps_count: bool) -> Self {
        Self { keeps_count, ..self }
    }

    /// What was counted of the period that was not over when the unit was stopped.
    #[must_use]
    pub const fn rest(&self) -> u64 {
        let unit = self.period.unit();
        unit.count(self.stopped_at).saturating_sub(unit.count(self.start()))
    }

    /// Forgets what was sampled.
    pub(super) fn clear(&mut self) {
        self.random = self.random.map(|random| RandomPeriods::new(random.seed, &self.period));
        (self.stopped_at, self.awaited) = (self.start(), false);
        (self.invalid, self.filtered) = (0, 0);
    }

    /// Lets the unit begin a new period.
    pub(super) const fn begin(&self) -> Write {
        Write::new(self.period.unit().control(), self.period.on() | self.start())
    }
}

impl ControlBlock {
    /// Takes the samples of `sampling` beside the overflows of counters.
    pub fn sample_by(&mut self, sampling: Sampling) {
        self.ibs = Some(sampling);
    }

    /// The unit that samples, if one does.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.ibs.as_ref()
    }
}

/// Takes the sample out, if there is one, and leaves the unit off. Says whether there was.
fn take(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    let Some(ibs) = block.ibs else { return false };
    let unit = ibs.period.unit();
    let control = raw.rdmsr(unit.control().0);
    if control & unit.valid() == 0 {
        return false;
    }
    let rip = raw.rdmsr(unit.address().0);
    let (mut kept, mut what) = (true, OpData::default());
    let (invalid, datum) = match unit {
        Unit::Op => {
            what = OpData(raw.rdmsr(OpData::MSR.0));
            let access = OpData3(raw.rdmsr(OpData3::MSR.0));
            let data = if access.has_address() { raw.rdmsr(OpData3::LINEAR.0) } else { 0 };
            let datum = ibs_datum(raw.rdmsr(OP_DATA_2.0), access.0, data).unwrap_or_default();
            kept = ibs.filter.is_none_or(|filter| filter.keeps(access, &datum));
            (ibs.checks_address && what.address_is_invalid(), datum)
        }
        // Erratum 1197: the address may read 0.
        Unit::Fetch => (rip == 0, Datum::default()),
    };
    ibs.switch_off(raw);
    if let Some(ibs) = &mut block.ibs {
        ibs.end_period();
    }
    if invalid {
        if let Some(ibs) = &mut block.ibs {
            ibs.invalid += 1;
        }
        return true;
    }
    if !kept {
        if let Some(ibs) = &mut block.ibs {
            ibs.filtered += 1;
        }
        return true;
    }
    block.slots[usize::from(ibs.slot)].overflows += 1;
    // The sample does not tell its ring: that of what ran, but for addresses of the upper half, which is the kernel's.
    let cs = if rip >> 63 == 0 { from.cs } else { 0 };
    let place = Interrupted { rip, cs, registers: from.registers };
    let task = block.task;
    if let Some(outcomes) = block.outcomes.as_mut().filter(|_| what.is_branch()) {
        outcomes.take(&Outcome {
            address: rip,
            task,
            count: 1,
            taken: what.is_taken().into(),
            mispredicted: what.is_mispredicted().into(),
            returns: what.is_return().into(),
        });
    }
    note(block, raw, &place, 1 << ibs.slot, None, datum);
    true
}

/// Stops the unit because other code than what is sampled goes on; its period goes on with [`resume`].
#[inline]
pub(super) fn pause(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let Some(ibs) = block.ibs else { return };
    let unit = ibs.period.unit();
    let taken = take(block, raw, from);
    let count = if taken {
        block.ibs.map_or(0, |ibs| ibs.start())
    } else {
        let control = raw.rdmsr(unit.control().0);
        ibs.switch_off(raw);
        control & unit.count_bits()
    };
    if let Some(ibs) = &mut block.ibs {
        (ibs.stopped_at, ibs.awaited) = (count, ibs.awaited | taken);
    }
}

/// Lets the unit go on that [`pause`] stopped.
#[inline]
pub(super) fn resume(block: &mut ControlBlock, raw: &mut impl Raw) {
    let Some(ibs) = block.ibs else { return };
    let count = if ibs.keeps_count { ibs.stopped_at } else { ibs.start() };
    raw.wrmsr(ibs.period.unit().control().0, ibs.period.on() | count);
}

/// Handles one interrupt of the unit: stops the counters as the handler of overflows does, takes the sample, and lets all go on.
#[inline]
pub fn sampled(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let mut around = Around::of_sample(block);
    put_all(raw, around.before());
    if handle(block, raw, from) {
        around.begin(block);
        put_all(raw, around.after());
    }
}

/// The part of [`sampled`] between the writes. Says whether those after it are due.
#[inline]
pub(super) fn handle(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    let found = take(block, raw, from);
    let awaited = block.ibs.as_mut().is_some_and(|ibs| core::mem::take(&mut ibs.awaited));
    if found {
        block.pmis += 1;
    } else if !awaited {
        block.spurious += 1;
        if let Some(ibs) = block.ibs.filter(|_| block.spurious >= MOST_SPURIOUS) {
            raw.mask_extended(ibs.entry);
        }
    }
    if block.nmi == 0 {
        raw.end();
    }
    if block.stopped {
        put_all(raw, block.gate.off());
        return false;
    }
    if block.shut != 0 || block.is_closed_at(from.rip) {
        return false;
    }
    if !found {
        // The sample was taken where the unit was stopped, and a new period runs: it is not begun again.
        put_all(raw, Around::of_tick(block).after());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::driver::Gate;
    use crate::pmu::ibs::Features;
    use crate::pmu::pmi::{Bucket, Sample, pause, resume};
    use std::collections::BTreeMap;

    const CONTROL: u32 = 0xc001_1033;
    const GLOBAL: crate::msr::Msr = crate::msr::Msr(0xc000_0301);

    /// Registers that hold what is written, and the order of the writes.
    #[derive(Default)]
    struct Machine {
        registers: BTreeMap<u32, u64>,
        writes: Vec<(u32, u64)>,
        ended: u32,
        masked: Option<u8>,
    }

    impl Raw for Machine {
        fn rdmsr(&mut self, msr: u32) -> u64 {
            self.registers.get(&msr).copied().unwrap_or(0)
        }
        fn wrmsr(&mut self, msr: u32, value: u64) {
            self.registers.insert(msr, value);
            self.writes.push((msr, value));
        }
        fn unmask(&mut self) {}
        fn mask_extended(&mut self, entry: u8) {
            self.masked = Some(entry);
        }
        fn end(&mut self) {
            self.ended += 1;
        }
        fn tsc(&mut self) -> u64 {
            77
        }
    }

    impl Machine {
        /// An operation was tagged: a load, where `data` says from where.
        fn tags(&mut self, rip: u64, data: Option<u64>) {
            *self.registers.entry(CONTROL).or_default() |= 1 << 18;
            self.registers.insert(0xc001_1034, rip);
            self.registers.insert(0xc001_1037, if data.is_some() { 1 << 17 | 1 } else { 0 });
            self.registers.insert(0xc001_1038, data.unwrap_or(0xdead));
        }
    }

    fn period(length: u64) -> Period {
        Period::new(Unit::Op, true, length, Features::all()).unwrap()
    }

    fn block(log: &mut [Sample], data: &mut [Datum], sampling: Sampling) -> ControlBlock {
        let mut block = ControlBlock::EMPTY;
        block.gate = Gate::EMPTY.with(GLOBAL, 3, 0);
        block.resume = Write::new(GLOBAL, 3);
        block.stop = Write::new(GLOBAL, 0);
        block.log_to(log);
        block.data_to(data);
        block.sample_by(sampling);
        block
    }

    #[test]
    fn s1_a_sample_is_of_the_tagged_instruction_with_its_data() {
        let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
        let mut block = block(&mut log, &mut data, Sampling::new(period(64), 2, 0));
        let mut machine = Machine::default();
        let from = Interrupted { rip: 0x1050, cs: 3, ..Interrupted::default() };
        machine.tags(0x1040, Some(0x7008));
        sampled(&mut block, &mut machine, &from);
        machine.tags(0x1044, None);
        sampled(&mut block, &mut machine, &from);
        let logged = block.logged(log.as_ptr());
        let seen: Vec<_> = log[..logged].iter().map(|one| (one.rip, one.status, one.cs)).collect();
        assert_eq!(seen, [(0x1040, 1 << 2, 3), (0x1044, 1 << 2, 3)]);
        assert_eq!(data.map(|one| one.address), [0x7008, 0, 0, 0]);
        assert_eq!((block.slot(2).overflows, block.pmis, block.spurious), (2, 2, 0));
        // The counters stop first; the unit goes off with its sample, and on last.
        let on = period(64).on();
        let writes = [(GLOBAL.0, 0), (CONTROL, on & !(1 << 17)), (GLOBAL.0, 3), (CONTROL, on)];
        assert_eq!(machine.writes, [writes, writes].concat());
        assert_eq!(machine.ended, 2);
    }

    #[test]
    fn s1_a_period_goes_on_where_it_was_stopped() {
        let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
        let sampling = Sampling::new(period(64), 0, 0).keeping_count(true);
        let mut block = block(&mut log, &mut data, sampling);
        let mut machine = Machine::default();
        resume(&mut block, &mut machine);
        assert_eq!(machine.registers[&CONTROL], period(64).on());
        *machine.registers.get_mut(&CONTROL).unwrap() |= 40 << 32;
        pause(&mut block, &mut machine, &Interrupted::default());
        assert_eq!(machine.registers[&CONTROL], period(64).off());
        assert_eq!(block.sampling().unwrap().rest(), 40);
        resume(&mut block, &mut machine);
        assert_eq!(machine.registers[&CONTROL], period(64).on() | 40 << 32);
        // A sample that waits where the task stops is taken there; its interrupt finds none, and begins no new period.
        machine.tags(0x1000, None);
        pause(&mut block, &mut machine, &Interrupted::default());
        resume(&mut block, &mut machine);
        *machine.registers.get_mut(&CONTROL).unwrap() |= 7 << 32;
        sampled(&mut block, &mut machine, &Interrupted::default());
        assert_eq!((block.slot(0).overflows, block.spurious), (1, 0), "it was awaited");
        assert_eq!(machine.registers[&CONTROL], period(64).on() | 7 << 32);
        assert_eq!(machine.registers[&GLOBAL.0], 3, "the counters go on");
        // Another one is not, and too many are kept out.
        for _ in 0..MOST_SPURIOUS {
            assert_eq!(machine.masked, None);
            sampled(&mut block, &mut machine, &Interrupted::default());
        }
        assert_eq!((block.spurious, machine.masked), (MOST_SPURIOUS, Some(0)));
        // Where the count cannot be written the period begins anew.
        block.sample_by(Sampling { keeps_count: false, ..*block.sampling().unwrap() });
        pause(&mut block, &mut machine, &Interrupted::default());
        resume(&mut block, &mut machine);
        assert_eq!(machine.registers[&CONTROL], period(64).on());
    }

    #[test]
    fn s1_random_periods_start_each_from_a_count_of_its_own_and_add_up() {
        let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
        let random = period(256).randomised(Features::all()).unwrap();
        let sampling = Sampling::new(random, 0, 0).keeping_count(true).randomised_from(7);
        let mut block = block(&mut log, &mut data, sampling);
        let mut machine = Machine::default();
        resume(&mut block, &mut machine);
        let start = |machine: &Machine| machine.registers[&CONTROL] >> 32;
        let (mut starts, mut sum) = (vec![], 0);
        for _ in 0..500 {
            assert_eq!(machine.registers[&CONTROL] & 0xffff_ffff, random.on());
            starts.push(start(&machine));
            sum += 320 - start(&machine);
            machine.tags(0x1000, None);
            sampled(&mut block, &mut machine, &Interrupted::default());
            assert_eq!(block.sampling().unwrap().ended(), Some(sum));
        }
        assert!((127_000..=129_000).contains(&sum), "500 of 256 come to 128,000: {sum}");
        let mut different = starts.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 110, "{} of 127", different.len());
        assert!(different[0] >= 1 && different[different.len() - 1] <= 127);
        // What was counted of a period is without where it started.
        *machine.registers.get_mut(&CONTROL).unwrap() += 9 << 32;
        pause(&mut block, &mut machine, &Interrupted::default());
        assert_eq!(block.sampling().unwrap().rest(), 9);
        // A sample that is taken there begins a period from its own start.
        machine.tags(0x1000, None);
        pause(&mut block, &mut machine, &Interrupted::default());
        assert_eq!(block.sampling().unwrap().rest(), 0);
        resume(&mut block, &mut machine);
        assert!((1..128).contains(&start(&machine)), "{}", start(&machine));
        // The same again from the same seed.
        block.clear();
        resume(&mut block, &mut machine);
        assert_eq!((start(&machine), block.sampling().unwrap().ended()), (starts[0], Some(0)));
    }

    /// Erratum 420 of family 10h: the maximum count goes first, then the enable, and only then all comes back.
    #[test]
    fn s1_the_unit_of_family_10h_goes_off_in_two_writes() {
        let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
        let sampling = Sampling::new(period(64), 0, 0).clearing_maximum(true);
        let mut block = block(&mut log, &mut data, sampling);
        let mut machine = Machine::default();
        machine.tags(0x1000, None);
        sampled(&mut block, &mut machine, &Interrupted::default());
        let control = machine.writes.iter().filter(|(msr, _)| *msr == CONTROL);
        let written: Vec<u64> = control.map(|(_, value)| *value).collect();
        let (enable, maximum) = (1 << 17, 64 >> 4);
        assert_eq!(written[..2], [1 << 19 | enable, 1 << 19]);
        assert_eq!(written.last().unwrap() & (enable | 0xffff), enable | maximum);
        machine.writes.clear();
        pause(&mut block, &mut machine, &Interrupted::default());
        let written: Vec<u64> = machine.writes.iter().map(|(_, value)| *value).collect();
        assert!(written.ends_with(&[1 << 19 | enable, 1 << 19]), "{written:x?}");
    }

    #[test]
    fn s1_a_sample_without_an_address_is_lost_and_counted_so() {
        let (mut log, mut data) = ([Sample::default(); 4], [Datum::default(); 4]);
        let sampling = Sampling::new(period(64), 0, 0).checking_address(true);
        let mut block = block(&mut log, &mut data, sampling);
        let mut machine = Machine::default();
        machine.tags(0x1000, None);
        machine.registers.insert(0xc001_1035, 1 << 38);
        sampled(&mut block, &mut machine, &Interrupted::default());
        assert_eq!((block.sampling().unwrap().invalid, block.slot(0).overflows), (1, 0));
        assert_eq!(block.logged(log.as_ptr()), 0);
        // It goes on all the same.
        assert_eq!(machine.registers[&CONTROL], period(64).on());
        block.clear();
        assert_eq!(block.sampling().unwrap().invalid, 0);
    }

    #[test]
    fn s1_branches_are_counted_with_what_became_of_them() {
        let (mut log, mut data) = ([Sample::default(); 8], [Datum::default(); 8]);
        let mut outcomes = [Outcome::default(); 4];
        let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
        block.count_outcomes(&mut outcomes);
        let mut machine = Machine::default();
        const BRANCH: u64 = 1 << 37;
        // The flags mean nothing of what is no branch.
        for (rip, what) in [
            (0x1000, BRANCH | 1 << 35),
            (0x1000, BRANCH | 1 << 36 | 1 << 35),
            (0x1000, BRANCH),
            (0x1008, 1 << 34 | 1 << 35 | 1 << 36),
            (0x1010, BRANCH | 1 << 34 | 1 << 35),
        ] {
            machine.tags(rip, None);
            machine.registers.insert(0xc001_1035, what);
            sampled(&mut block, &mut machine, &Interrupted::default());
        }
        let mut seen: Vec<_> = block
            .outcomes()
            .unwrap()
            .used()
            .map(|one| (one.address, [one.count, one.taken, one.mispredicted, one.returns]))
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [(0x1000, [3, 2, 1, 0]), (0x1010, [1, 1, 0, 1])]);
    }

    #[test]
    fn s1_m5_a_filter_keeps_slow_loads_or_stores_and_counts_the_rest() {
        let of = |filter, accesses: &[(u64, u64)]| {
            let (mut log, mut data) = ([Sample::default(); 8], [Datum::default(); 8]);
            let sampling = Sampling::new(period(64), 0, 0).filtered_by(Some(filter));
            let mut block = block(&mut log, &mut data, sampling);
            let mut machine = Machine::default();
            for &(flags, latency) in accesses {
                machine.tags(0x1000, Some(0x7000));
                machine.registers.insert(0xc001_1037, flags | latency << 32 | 1 << 17);
                sampled(&mut block, &mut machine, &Interrupted::default());
            }
            let kept = block.logged(log.as_ptr());
            let latencies = data[..kept].iter().map(|one| one.latency).collect::<Vec<_>>();
            (latencies, block.sampling().unwrap().filtered, block.pmis)
        };
        const MISS: u64 = 1 << 7;
        let seen = [(1 | MISS, 30), (1 | MISS, 31), (1, 200), (2, 0), (0, 0)];
        assert_eq!(of(Filter::Loads { beyond: 30 }, &seen), (vec![31], 4, 5));
        assert_eq!(of(Filter::Loads { beyond: 0 }, &seen), (vec![30, 31, 0], 2, 5));
        assert_eq!(of(Filter::Stores, &seen), (vec![0], 4, 5));
    }

    #[test]
    fn s1_a_full_log_stops_the_unit_with_the_counters() {
        let (mut log, mut data) = ([Sample::default(); 1], [Datum::default(); 1]);
        let mut block = block(&mut log, &mut data, Sampling::new(period(64), 0, 0));
        block.stop_when_full();
        let mut machine = Machine::default();
        machine.tags(0x1000, None);
        sampled(&mut block, &mut machine, &Interrupted::default());
        assert!(block.stopped);
        assert_eq!(
            [machine.registers[&CONTROL], machine.registers[&GLOBAL.0]],
            [period(64).off(), 0]
        );
        resume(&mut block, &mut machine);
        assert_eq!(machine.registers[&CONTROL], period(64).off());
    }

    #[test]
    fn s1_fetches_have_an_address_of_their_own() {
        let fetch = Period::new(Unit::Fetch, false, 64, Features::all()).unwrap();
        let mut buckets = [Bucket::default(); 4];
        let mut block = ControlBlock::EMPTY;
        block.count_addresses(&mut buckets);
        block.sample_by(Sampling::new(fetch, 1, 0));
        let mut machine = Machine::default();
        // Erratum 1197: the second one's address reads 0.
        for address in [0x1040, 0] {
            machine.registers.insert(0xc001_1030, fetch.on() | 1 << 49);
            machine.registers.insert(0xc001_1031, address);
            sampled(&mut block, &mut machine, &Interrupted::default());
        }
        let seen: Vec<_> = block.histogram().unwrap().used().map(|one| one.address).collect();
        assert_eq!((seen, block.sampling().unwrap().invalid), (vec![0x1040], 1));
    }
}
