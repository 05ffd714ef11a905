//! Programmed counters, and the memory that their handler writes to.

use super::{Armed, Besides, branches, ibs, memory, precise};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::data_source::Datum;
use arch::pmu::lbr::Saved;
use arch::pmu::pebs::{Drain, Store};
use arch::pmu::pmi::{
    Bucket, Chain, ControlBlock, Edge, REGISTERS, Retired, RetiredByCounter, Sample, Throttle,
};
use arch::pmu::{Driver, FreezeKind, PmuError, Registers};
use protocol::job::sampling::{self, Keep, OnFull, Sampling};

/// A set of sampling counters. Holds the log that the block names, so it has to outlive the block's use.
#[derive(Debug)]
pub struct Session {
    /// What is sampled by.
    pub events: Vec<Armed>,
    log: Vec<Sample>,
    registers: Vec<[u64; REGISTERS]>,
    buckets: Vec<Bucket>,
    times: Vec<u64>,
    /// Where PEBS records go.
    store: Option<Store>,
    /// What records state of retirement, by counter.
    retired: Box<RetiredByCounter>,
    /// Their data addresses: counted, or one for each sample of the log.
    data_buckets: Vec<Bucket>,
    data: Vec<Datum>,
    /// What is told of those accesses, counted.
    memory: memory::Places,
    /// What else records have, and that of each sample of the log.
    pub(super) besides: Besides,
    pub(super) groups: Vec<u64>,
    /// Branches that were recorded before the samples, counted.
    edges: Vec<Edge>,
    /// Calls that led to the samples, counted.
    chains: Vec<Chain>,
    /// Branch records of tasks that do not run.
    saved: Vec<Saved>,
}

/// Ticks of the timer whose times are kept.
const KEPT_TIMES: usize = 256;

impl Session {
    /// Programs the counters of `events`, each at its preset, stopped, and those of `besides`; and makes the block for the
    /// handler. `tsc_hz` is for the limit of the rate.
    ///
    /// # Errors
    /// The PMU refuses.
    pub fn arm(
        registers: &mut dyn Registers,
        driver: &mut Driver,
        item: &Sampling,
        (events, besides): (Vec<Armed>, Besides),
        tsc_hz: u64,
    ) -> Result<(Self, Box<ControlBlock>), PmuError> {
        driver.reset(registers)?;
        let precise = events.iter().any(|one| one.selection.precise);
        let format = driver.capabilities().pebs_format().filter(|_| precise);
        let entries = driver.capabilities().lbr.entries();
        let branches = if branches::are_recorded(item) { entries } else { 0 };
        let groups = driver.capabilities().record_groups();
        let mut store = format.map(|format| precise::store((format, groups), branches, &besides));
        if let Some(store) = &mut store {
            for one in events.iter().filter(|one| one.selection.precise) {
                store.set_reset(one.counter, driver.preset(one.counter, one.distance())?);
            }
            driver.use_store(registers, store)?;
        }
        for one in &events {
            memory::program(registers, driver, one)?;
            driver.program(registers, one.counter, &one.selection)?;
            if let Some((witness, selection)) = &one.witness {
                driver.program(registers, *witness, selection)?;
            }
        }
        besides.program(registers, driver)?;
        let edges = branches::start(registers, driver, item)?;
        let mut block = Box::new(ControlBlock::of(driver));
        let by_processor = driver.capabilities().freeze != FreezeKind::None;
        match item.freeze {
            _ if events.is_empty() => {}
            sampling::Freeze::Auto if by_processor => {
                match driver.set_freeze(registers, branches::freeze(item)) {
                    Ok(()) => block.resume_in_handler(driver),
                    // It held at the start: somebody else has the register now.
                    Err(PmuError::Freeze { .. }) => {
                        // One of both bits may have held.
                        driver.no_freeze(registers)?;
                        block.stop_in_handler(driver)?;
                    }
                    Err(error) => return Err(error),
                }
            }
            sampling::Freeze::Auto | sampling::Freeze::Software => block.stop_in_handler(driver)?,
            sampling::Freeze::Off => {}
        }
        for one in events.iter().filter(|one| one.selection.interrupt) {
            block.reload(driver, one.counter, driver.preset(one.counter, one.period)?)?;
        }
        for one in &events {
            ibs::arm(registers, driver, one, &mut block)?;
        }
        let mut session = Self::new(events, store, besides);
        if let Some(kind) = edges {
            session.edges = vec![Edge::default(); branches::edges(item)];
            session.chains = vec![Chain::default(); branches::chains(item)];
            block.count_chains(&mut session.chains);
            branches::count(registers, driver, kind, &mut session.edges, &mut block)?;
            if let Some(tasks) = branches::apart(item) {
                session.saved = vec![Saved::EMPTY; tasks];
                block.keep_apart(&mut session.saved);
            }
        }
        if let Some(store) = &mut session.store {
            block.take_records(Drain::new(store, driver.recording()));
            if driver.capabilities().states_retirement() {
                block.sum_retired(&mut session.retired);
            }
        }
        let has = driver.capabilities();
        let capacity = item.capacity as usize;
        memory::count(&mut session.memory, &session.events, has, capacity, &mut block);
        session.keep(item, &mut block, tsc_hz);
        session.restart(registers, driver, &mut block)?;
        Ok((session, block))
    }

    /// The same without any counter, for a timer alone: it takes no PMU.
    #[must_use]
    pub fn without_counters(item: &Sampling, tsc_hz: u64) -> (Self, Box<ControlBlock>) {
        let (mut session, mut block) =
            (Self::new(Vec::new(), None, Besides::default()), Box::new(ControlBlock::EMPTY));
        session.keep(item, &mut block, tsc_hz);
        block.clear();
        (session, block)
    }

    fn new(events: Vec<Armed>, store: Option<Store>, besides: Besides) -> Self {
        Self {
            events,
            log: Vec::new(),
            registers: Vec::new(),
            buckets: Vec::new(),
            times: vec![0; KEPT_TIMES],
            store,
            retired: Box::new([Retired::default(); 64]),
            data_buckets: Vec::new(),
            data: Vec::new(),
            memory: memory::Places::default(),
            besides,
            groups: Vec::new(),
            edges: Vec::new(),
            chains: Vec::new(),
            saved: Vec::new(),
        }
    }

    /// Makes room for what the item keeps of each sample, and names it to the block.
    fn keep(&mut self, item: &Sampling, block: &mut ControlBlock, tsc_hz: u64) {
        if item.limit_per_ms > 0 {
            block.throttle = Throttle::new((tsc_hz / 1000).max(1), item.limit_per_ms.into());
        }
        let capacity = item.capacity as usize;
        match item.keep {
            Keep::Histogram => {
                self.buckets = vec![Bucket::default(); capacity.next_power_of_two()];
                block.count_addresses(&mut self.buckets);
                if self.has_data() {
                    self.data_buckets = self.buckets.clone();
                    block.count_data(&mut self.data_buckets);
                }
            }
            Keep::Samples => {
                self.log = vec![Sample::default(); capacity];
                block.log_to(&mut self.log);
                if item.registers != 0 {
                    self.registers = vec![[0; REGISTERS]; capacity];
                    block.registers_to(&mut self.registers);
                }
                self.besides.keep(&mut self.groups, capacity, block);
                if self.has_data() {
                    self.data = vec![Datum::default(); capacity];
                    block.data_to(&mut self.data);
                }
                if item.on_full == OnFull::Stop {
                    block.stop_when_full();
                }
            }
        }
    }

    /// Begins anew: the counters at their presets, the witnesses at 0, log and counts empty. `block` is one that no
    /// handler uses now.
    ///
    /// # Errors
    /// The PMU refuses.
    pub fn restart(
        &mut self,
        registers: &mut dyn Registers,
        driver: &Driver,
        block: &mut ControlBlock,
    ) -> Result<(), PmuError> {
        driver.stop(registers)?;
        driver.empty_store(registers)?;
        let status = driver.status(registers)?;
        driver.acknowledge(registers, status)?;
        for one in &self.events {
            let preset = match one.ibs {
                Some(_) => 0,
                None => driver.preset(one.counter, one.distance())?,
            };
            driver.write(registers, one.counter, preset)?;
            if let Some((witness, _)) = one.witness {
                driver.write(registers, witness, 0)?;
            }
        }
        self.besides.clear(registers, driver)?;
        block.clear();
        Ok(())
    }

    /// Whether samples may have a data address.
    fn has_data(&self) -> bool {
        self.store.is_some() || self.has_instruction_based()
    }

    /// Whether samples are instruction-based.
    pub(super) fn has_instruction_based(&self) -> bool {
        self.events.iter().any(|one| one.ibs.is_some())
    }

    /// Room for the times of the timer's first ticks.
    pub(super) fn times(&mut self) -> &mut [u64] {
        &mut self.times
    }

    /// The samples that `block` says are in the log.
    #[must_use]
    pub fn samples(&self, block: &ControlBlock) -> &[Sample] {
        &self.log[..block.logged(self.log.as_ptr()).min(self.log.len())]
    }

    /// The data accesses of those samples; empty if nothing tells of any.
    #[must_use]
    pub fn data(&self) -> &[Datum] {
        &self.data
    }

    /// The registers of those samples; empty if they were not kept.
    #[must_use]
    pub fn registers(&self) -> &[[u64; REGISTERS]] {
        &self.registers
    }
}
