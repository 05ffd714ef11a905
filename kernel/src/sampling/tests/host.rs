//! A machine whose tasks are one-byte instructions.

use super::*;
use arch::pmu::data_source::Told;
use arch::pmu::driver::Write;
use arch::pmu::pmi::{
    Access, Accesses, Interrupted, Raw, drain, note_tick, pause, resume, service, tick,
};
use arch::pmu::{Capabilities, Missing, find, trial};
use pmu_model::uarch::{Access as Access_, AccessKind};
use pmu_model::{
    Branch, BranchKind, Delta, Mutation, Occurrence, Outcome, PageSize, Pmu as Registers_,
    Retirement, Ring, Timing,
};
use protocol::hex::Hex;
use protocol::record::Ticks;

/// A machine whose tasks are one-byte instructions, `body.len()` of them each turn.
pub(super) struct Host {
    pub(super) pmu: Registers_,
    pub(super) driver: Driver,
    pub(super) known: Known<'static>,
    pub(super) block: Option<ControlBlock>,
    pub(super) gate: Gate,
    pub(super) masks: bool,
    pub(super) masked: bool,
    pub(super) tsc: u64,
    /// Ticks between two of the timer.
    pub(super) timer: Option<u64>,
    pub(super) next_tick: u64,
    /// Instructions of the handler, which advance the TSC but are not counted.
    pub(super) handler: u64,
    /// Of the TSC and of the timer.
    pub(super) clock_hz: u64,
    /// Interrupts do not come through.
    pub(super) deaf: bool,
    /// The table of addresses is gone at the end.
    pub(super) forgets: bool,
    /// There is no PMU.
    pub(super) absent: bool,
    /// Its number.
    pub(super) cpu: u16,
    /// Whether interrupts as vectors were asked for, in each run of a task that was called.
    pub(super) vectors: Vec<bool>,
    /// Whether its processors were to have a PMU.
    pub(super) counts: Option<bool>,
    /// There is one place for the sources of accesses.
    pub(super) few_sources: bool,
    /// Nothing says that the PMU is emulated.
    pub(super) real: bool,
    /// Its local APIC has no extended LVT.
    pub(super) plain_apic: bool,
    /// Samples of IBS that had no address.
    pub(super) invalid: u64,
}

impl Host {
    pub(super) fn new(model: Model) -> Self {
        let mut pmu = Registers_::new(model, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
        let has = find(&mut pmu).expect("a PMU");
        Self::of(pmu, has)
    }

    /// With a fault, found as the firmware finds it.
    pub(super) fn with(model: Model, fault: Mutation) -> Result<Self, Missing> {
        let mut pmu = Registers_::new(model, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
        pmu.set_mutation(Some(fault));
        pmu.reset();
        let has = find(&mut pmu).and_then(|has| trial::run(&has, &mut pmu))?;
        Ok(Self::of(pmu, has))
    }

    pub(super) fn of(mut pmu: Registers_, has: Capabilities) -> Self {
        let model = pmu.model();
        let known = Known::new(&has, None, &mut pmu);
        Self {
            pmu,
            driver: Driver::new(has),
            known,
            block: None,
            gate: Gate::EMPTY,
            masks: model.spec().intel().is_some(),
            masked: true,
            tsc: 0,
            timer: None,
            next_tick: 0,
            handler: 100,
            clock_hz: 1_000_000_000,
            deaf: false,
            forgets: false,
            absent: false,
            cpu: 0,
            vectors: Vec::new(),
            counts: None,
            few_sources: false,
            real: false,
            plain_apic: false,
            invalid: 0,
        }
    }

    pub(super) fn write(&mut self, writes: &[Write]) {
        for write in writes {
            self.pmu.write_msr(write.msr, write.value).expect("a register of the PMU");
        }
    }

    /// The instruction at `rip` retires; [`LOAD`] loads.
    pub(super) fn retire(&mut self, ring: Ring, rip: u64, next: u64, byte: u8) -> Outcome {
        let mut delta = Delta::step(ring);
        let mut retired = Retirement { ip: rip, next, tsc: self.tsc, ..Retirement::default() };
        retired.registers[3] = next;
        retired.vectors = core::array::from_fn(|half| next + half as u64);
        retired.ymm_upper = Some(core::array::from_fn(|half| 7 * next + half as u64));
        // What IBS reports of an access beside it.
        let access = |linear, kind| {
            let (physical, physical_next_page, bytes) = (linear, 0, 8);
            let (locked, non_temporal, page_bits) = (false, false, 12);
            let access = Access_ {
                linear,
                physical,
                physical_next_page,
                bytes,
                kind,
                locked,
                non_temporal,
                page_bits,
            };
            Some((access, PageSize::Small))
        };
        let mut adds = |list: &[Occurrence]| list.iter().for_each(|&one| delta.add(one, 1));
        match byte {
            LOAD => {
                adds(&[Occurrence::Load, Occurrence::LoadL1Hit]);
                let at = DATA + 8 * (self.tsc % 4);
                (retired.load, retired.sampled.access) = (Some(at), access(at, AccessKind::Load));
            }
            FAR => {
                adds(&[Occurrence::Load, Occurrence::LoadLlcMiss, Occurrence::LoadWalk]);
                retired.load = Some(FAR_DATA);
            }
            STORE => {
                adds(&[Occurrence::Store, Occurrence::StoreLlcMiss]);
                retired.store = Some(FAR_DATA + 8);
            }
            _ => {}
        }
        let kind = match byte {
            CALL => Some(BranchKind::RelativeCall),
            RETURN => Some(BranchKind::Return),
            JUMP => Some(BranchKind::RelativeJump),
            _ => None,
        };
        if let Some(kind) = kind {
            let (from, to, taken, mispredicted) = (rip, next, true, false);
            let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 7 };
            self.pmu.record_branch(&branch);
            retired.sampled.branch = Some(branch);
        }
        arch::pmu::model::retire(&mut self.pmu, &delta, &retired)
    }

    pub(super) fn interrupt(&mut self, rip: u64, timer: bool) {
        if self.deaf {
            return;
        }
        let Some(mut block) = self.block.take() else { return };
        self.tsc += self.handler;
        let mut from = Interrupted { rip, ..Interrupted::default() };
        from.registers[3] = rip;
        if timer {
            tick(&mut block, self, &from);
        } else {
            self.masked = self.masks;
            service(&mut block, self, &from);
        }
        self.block = Some(block);
    }
}

impl Raw for Host {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.pmu.read_msr(msr).expect("a register of the PMU")
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.pmu.write_msr(msr, value).expect("a register of the PMU");
    }
    fn unmask(&mut self) {
        self.masked = false;
    }
    fn mask(&mut self) {
        self.masked = true;
    }
    fn end(&mut self) {}
    fn tsc(&mut self) -> u64 {
        self.tsc
    }
}

impl Sampler for Host {
    fn pmu(&mut self) -> Result<Pmu<'_>, String> {
        if self.absent {
            return Err("there is no PMU: none".to_string());
        }
        Ok(Pmu { registers: &mut self.pmu, driver: &mut self.driver, known: &self.known })
    }

    fn gather(&mut self, cpus: &[u16], counts: bool) -> Result<(), String> {
        self.counts = Some(counts);
        if cpus == [0] { Ok(()) } else { Err("there is one processor".to_string()) }
    }

    fn on(
        &mut self,
        _: u16,
        work: &mut dyn FnMut(&mut dyn Registers, &mut Driver),
    ) -> Result<(), String> {
        let pmu = self.pmu()?;
        work(pmu.registers, pmu.driver);
        Ok(())
    }

    fn load_task(&mut self, task: &Task, gate: &Gate) -> (CodePlace, core::ops::Range<u64>) {
        self.gate = *gate;
        let [body, init, function] =
            [task.body.len() as u64, 0, 100].map(|len| [Hex(AT), Hex(AT + len)]);
        (CodePlace { body, init, function, program: None }, 0..0)
    }

    fn run_task(&mut self, task: &Task, vectors: bool) -> Result<u64, Unmeasured> {
        self.vectors.push(vectors);
        let start = self.tsc;
        let gate = self.gate;
        self.write(gate.on());
        self.next_tick = self.tsc + self.timer.unwrap_or(u64::MAX / 2);
        let len = task.body.len() as u64;
        for at in 0..task.turns * len {
            // The next instruction is where the interrupt comes.
            let rip = AT + (at + 1) % len;
            let byte = task.body[(at % len) as usize];
            let outcome = self.retire(Ring::Kernel, AT + at % len, rip, byte);
            self.tsc += 1;
            if self.timer.is_some() && self.tsc >= self.next_tick {
                self.next_tick += self.timer.unwrap_or(u64::MAX / 2);
                self.interrupt(rip, true);
            }
            if outcome.pmi && !self.masked {
                self.interrupt(rip, false);
            }
        }
        self.write(gate.off());
        Ok(self.tsc - start)
    }

    /// Round robin, seven instructions at a time. The PMI of a slice's last instruction waits for the scheduler's end.
    fn run_tasks(&mut self, item: &Sampling, interval: Option<u64>) -> Result<Scheduled, String> {
        self.next_tick = self.tsc + interval.unwrap_or(u64::MAX / 2);
        let start = self.tsc;
        let tasks = &item.workload.tasks;
        let at = |task: usize| AT + 0x100 * task as u64;
        let mut done = vec![0; tasks.len()];
        let length = |task: &Task| task.turns * task.body.len() as u64;
        let here = |index| item.workload.cpu_of(index) == self.cpu;
        let work: Vec<u64> = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| if here(index) { length(task) } else { 0 })
            .collect();
        while done != work {
            for (index, task) in tasks.iter().enumerate() {
                let slice = 7.min(work[index] - done[index]);
                if slice == 0 {
                    continue;
                }
                let mut block = self.block.take().expect("delivered before");
                block.task = index as u32;
                resume(&mut block, self);
                self.block = Some(block);
                for left in (0..slice).rev() {
                    let ring = match task.ring {
                        TaskRing::User => Ring::User,
                        TaskRing::Kernel => Ring::Kernel,
                    };
                    let ip = at(index) + done[index] % task.body.len() as u64;
                    done[index] += 1;
                    let rip = at(index) + done[index] % task.body.len() as u64;
                    let byte = task.body[(ip - at(index)) as usize];
                    let outcome = self.retire(ring, ip, rip, byte);
                    self.tsc += 1;
                    if outcome.pmi && !self.masked && left > 0 {
                        self.interrupt(rip, false);
                    }
                    // The scheduler's timer samples beside its ticks.
                    let sampled = self.tsc >= self.next_tick;
                    if left == 0 || sampled {
                        let mut block = self.block.take().expect("delivered before");
                        let cs = if ring == Ring::User { 3 } else { 0 };
                        let from = Interrupted { rip, cs, ..Interrupted::default() };
                        pause(&mut block, self, &from);
                        if sampled {
                            self.next_tick += interval.unwrap_or(u64::MAX / 2);
                            note_tick(&mut block, self, &from);
                        }
                        if left > 0 {
                            resume(&mut block, self);
                        }
                        self.block = Some(block);
                    }
                }
                // The scheduler's own work is not counted.
                for _ in 0..20 {
                    let outcome = self.pmu.advance(&Delta::step(Ring::Kernel));
                    assert!(!outcome.pmi, "{outcome:?}");
                }
            }
        }
        let places = (0..tasks.len()).map(|index| {
            let range = [Hex(at(index)), Hex(at(index + 1))];
            CodePlace { body: range, init: range, function: range, program: None }
        });
        let summary = Summary {
            tasks: vec![],
            switches: 0,
            ticks: Ticks::default(),
            interrupts: vec![],
            user_instructions: None,
            together: None,
        };
        Ok(Scheduled { summary, places: places.collect(), ticks: self.tsc - start })
    }

    fn deliver(&mut self, _: u16, block: &ControlBlock, _: Delivery, timer: Option<Interval>) {
        let mut block = block.clone();
        if let Some(accesses) = block.accesses().filter(|_| self.few_sources) {
            let [sources, addresses] = [1, 64].map(|len| vec![Access::default(); len].leak());
            let few = Accesses::new(*accesses.words(), sources, addresses).expect("places");
            block.count_accesses(few.telling(u64::MAX, Told::Load));
        }
        self.block = Some(block);
        self.masked = false;
        // The timer counts as fast as the TSC.
        self.timer = timer.map(|interval| u64::from(interval.count) << interval.divider);
    }

    fn withdraw(&mut self, _: u16, left: &mut ControlBlock) {
        self.timer = None;
        self.masked = true;
        let mut block = self.block.take().expect("delivered before");
        drain(&mut block, self, &Interrupted::default());
        if self.forgets {
            block.count_addresses(&mut []);
        }
        if let Some(mut unit) = block.sampling().copied().filter(|_| self.invalid > 0) {
            unit.invalid = self.invalid;
            block.sample_by(unit);
        }
        *left = block;
    }

    fn clocks(&self) -> [u64; 2] {
        [self.clock_hz; 2]
    }

    fn code(&mut self, address: u64) -> Vec<u8> {
        vec![0x90; usize::from(address < AT + 10)]
    }

    fn pointers(&self, task: Option<usize>) -> [u64; 5] {
        [task.map_or(0, |task| 0x1000 * (1 + task as u64)); 5]
    }

    fn has_extended_lvt(&mut self, _: u8) -> bool {
        !self.plain_apic
    }
    fn has_emulated_pmu(&self) -> bool {
        !self.real
    }
}
