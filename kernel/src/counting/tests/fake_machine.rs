//! The register-level model as the platform: instructions retire between any two accesses to its registers, and the
//! interrupt comes wherever it may.

use super::super::{Platform, Session};
use arch::msr::{Absent, Msr};
use arch::pmu::driver::Write;
use arch::pmu::numbers::DEBUGCTL;
use arch::pmu::pmi::{ControlBlock, Interrupted, Raw, service};
use arch::pmu::{Counter, Deferred, Driver, Gate, Registers, find};
use pmu_model::{Delta, Host, Model, Pmu, Ring, RingMask, Timing};
use raw_cpuid::CpuIdResult;
use std::collections::VecDeque;

/// Instructions of the kernel that counters see before they are stopped, and after they are started.
pub const WAY_IN: u64 = 29;
pub const WAY_OUT: u64 = 20;

pub struct FakeMachine {
    pub pmu: Pmu,
    block: ControlBlock,
    delivering: bool,
    /// LVTPC masks itself at delivery: Intel's.
    masks: bool,
    masked: bool,
    pending: bool,
    /// The interrupt flag.
    pub interrupts: bool,
    in_handler: bool,
    /// Instructions of ring 0 before each further access to a register.
    pub between: VecDeque<u64>,
    /// Instructions of the handler before each of its accesses.
    pub handler_instructions: u64,
    /// Instructions of ring 0 and of ring 3 so far; those of the handler are in `handled`.
    pub instructions: [u64; 2],
    pub handled: u64,
    /// RDMSR and WRMSR so far, outside the handler.
    pub accesses: [u64; 2],
    /// Interrupts that are still to come, one before each look at what the kernel took.
    pub to_come: u64,
    came: u64,
    /// What the handler found since somebody last asked.
    pub found: u64,
    /// What starts counters is put off to [`FakeMachine::leave`].
    pub deferred: Option<Deferred>,
    /// Whether there are APERF, two a tick, and MPERF, three a tick, and a count of SMIs.
    pub clocks: bool,
    /// Bits of DEBUGCTL that somebody else clears after each write.
    pub cleared: u64,
    /// System management interrupts that are still to come, one before each look at their number.
    pub smis_to_come: u64,
    smis: u64,
    /// A register that has gone.
    pub gone: Option<Msr>,
}

impl FakeMachine {
    pub fn new(model: Model) -> Self {
        Self {
            pmu: Pmu::new(model, Host::EXAMPLE, Timing::FLAT),
            block: ControlBlock::EMPTY,
            delivering: false,
            masks: model.spec().intel().is_some(),
            masked: true,
            pending: false,
            interrupts: true,
            in_handler: false,
            between: VecDeque::new(),
            handler_instructions: 0,
            instructions: [0; 2],
            handled: 0,
            accesses: [0; 2],
            to_come: 0,
            came: 0,
            found: 0,
            deferred: None,
            clocks: false,
            cleared: 0,
            smis_to_come: 0,
            smis: 7,
            gone: None,
        }
    }

    /// A way into the kernel: so many instructions of ring 0 see what runs.
    pub fn enter(&mut self) {
        self.run(Ring::Kernel, WAY_IN);
        self.enter_unseen();
    }

    /// The same where no instruction of it sees what runs.
    pub fn enter_unseen(&mut self) {
        let off = self.deferred.map(|deferred| deferred.off().to_vec()).unwrap_or_default();
        for write in off {
            Registers::wrmsr(&mut self.pmu, Msr(write.msr), write.value).unwrap();
        }
        self.deferred.iter_mut().for_each(Deferred::close);
    }

    /// A way out of it.
    pub fn leave(&mut self) {
        let on = self.deferred.map(|deferred| deferred.on().to_vec()).unwrap_or_default();
        for write in on {
            Registers::wrmsr(&mut self.pmu, Msr(write.msr), write.value).unwrap();
        }
        self.run(Ring::Kernel, WAY_OUT);
    }

    /// Every model that has a PMU, each with a driver.
    pub fn all() -> impl Iterator<Item = (Model, Self, Driver)> {
        Model::ALL.into_iter().filter(|&model| model != Model::None).map(|model| {
            let mut bench = Self::new(model);
            let mut driver = Driver::new(find(&mut bench).expect("a PMU"));
            driver.reset(&mut bench).expect("registers that take 0");
            (model, bench, driver)
        })
    }

    /// Code that does nothing of note.
    pub fn run(&mut self, ring: Ring, mut instructions: u64) {
        self.instructions[usize::from(ring == Ring::User)] += instructions;
        while instructions > 0 {
            let until = self.pmu.until_overflow(RingMask::BOTH).unwrap_or(u64::MAX);
            let part = instructions.min(until.max(1));
            self.advance(&Delta::bulk(ring, part));
            instructions -= part;
        }
    }

    /// This, at once.
    pub fn execute(&mut self, delta: &Delta) {
        self.advance(delta);
    }

    /// The same with a session's part of the interrupt, where the handler has found something.
    pub fn run_for(&mut self, session: &mut Session, ring: Ring, mut instructions: u64) {
        while instructions > 0 {
            let until = self.pmu.until_overflow(RingMask::BOTH).unwrap_or(u64::MAX);
            let part = instructions.min(until.max(1));
            self.run(ring, part);
            instructions -= part;
            self.session_interrupt(session);
        }
    }

    /// The session's part of an interrupt, if there was one.
    pub fn session_interrupt(&mut self, session: &mut Session) {
        if std::mem::take(&mut self.found) != 0 {
            let was = std::mem::replace(&mut self.in_handler, true);
            session.interrupt(self).unwrap();
            self.in_handler = was;
        }
    }

    /// The interrupt flag; what waits for it comes at once.
    pub fn set_interrupts(&mut self, on: bool) {
        self.interrupts = on;
        self.deliver_pending();
    }

    fn advance(&mut self, delta: &Delta) {
        let outcome = self.pmu.advance(delta);
        // A PMI that finds LVTPC masked is lost.
        self.pending |= outcome.pmi && !self.masked && self.delivering;
        self.deliver_pending();
    }

    fn deliver_pending(&mut self) {
        if !self.pending || !self.interrupts || self.in_handler {
            return;
        }
        self.pending = false;
        self.masked = self.masks;
        self.in_handler = true;
        let mut block = std::mem::replace(&mut self.block, ControlBlock::EMPTY);
        let before = overflows(&block);
        service(&mut block, self, &Interrupted::default());
        let after = overflows(&block);
        let grown = (0..64).filter(|&n| after[n] != before[n]);
        self.found |= grown.fold(0, |bits, n| bits | 1 << n);
        self.block = block;
        self.in_handler = false;
        // What came meanwhile on a processor that leaves LVTPC open.
        self.deliver_pending();
    }

    fn elapse(&mut self) {
        if let Some(instructions) = self.between.pop_front() {
            self.run(Ring::Kernel, instructions);
        }
    }

    fn elapse_in_handler(&mut self) {
        self.handled += self.handler_instructions;
        if self.handler_instructions > 0 {
            self.advance(&Delta::bulk(Ring::Kernel, self.handler_instructions));
        }
    }
}

fn overflows(block: &ControlBlock) -> [u64; 64] {
    let counter = |n| if n < 32 { Counter::General(n) } else { Counter::Fixed(n - 32) };
    std::array::from_fn(|n| block.overflows(counter(n as u8)))
}

impl Registers for FakeMachine {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let answer = Registers::cpuid(&self.pmu, leaf, subleaf);
        match (self.clocks, leaf) {
            // The highest leaf there is, and leaf 6 with APERF and MPERF.
            (true, 0) => CpuIdResult { eax: answer.eax.max(6), ..answer },
            (true, 6) => CpuIdResult { ecx: answer.ecx | 1, ..answer },
            _ => answer,
        }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.accesses[0] += 1;
        self.elapse();
        match (self.clocks, msr.0) {
            _ if self.gone == Some(msr) => Err(Absent),
            (true, 0xe8) => Ok(2 * Platform::tsc(self)),
            (true, 0xe7) => Ok(3 * Platform::tsc(self)),
            (true, 0x34) => {
                if self.smis_to_come > 0 {
                    (self.smis_to_come, self.smis) = (self.smis_to_come - 1, self.smis + 1);
                }
                Ok(self.smis)
            }
            _ => Registers::rdmsr(&mut self.pmu, msr),
        }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.accesses[1] += 1;
        self.elapse();
        let value = if msr == DEBUGCTL { value & !self.cleared } else { value };
        let write = Write::new(msr, value);
        let write = self.deferred.as_mut().map_or(write, |deferred| deferred.take(write));
        Registers::wrmsr(&mut self.pmu, msr, write.value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.elapse();
        Registers::rdpmc(&mut self.pmu, index)
    }
}

impl Raw for FakeMachine {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.elapse_in_handler();
        self.pmu.read_msr(msr).expect("a register of the PMU")
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.elapse_in_handler();
        self.pmu.write_msr(msr, value).expect("a register of the PMU");
    }
    fn unmask(&mut self) {
        self.masked = false;
    }
    fn end(&mut self) {}
    fn tsc(&mut self) -> u64 {
        Platform::tsc(self)
    }
}

impl Platform for FakeMachine {
    fn closings(&mut self) -> u64 {
        self.deferred.as_mut().map_or(0, Deferred::closings)
    }

    fn windows(&mut self, gate: &Gate, nops: u64, times: u64) {
        let Some(mut deferred) = self.deferred else { return };
        gate.on().iter().for_each(|&on| _ = deferred.take(on));
        for _ in 0..times {
            self.deferred = Some(deferred);
            self.leave();
            self.run(Ring::Kernel, nops);
            self.enter();
        }
        gate.off().iter().for_each(|&off| _ = deferred.take(off));
        self.deferred = Some(deferred);
    }

    fn taken(&mut self, to: &mut [u64; 256]) {
        to.fill(0);
        to[14] = self.taken_in_all();
    }

    fn taken_in_all(&mut self) -> u64 {
        if self.to_come > 0 {
            (self.to_come, self.came) = (self.to_come - 1, self.came + 1);
        }
        self.came
    }

    /// A tick is an instruction.
    fn tsc(&mut self) -> u64 {
        self.instructions[0] + self.instructions[1] + self.handled
    }

    fn overflows(&mut self, counter: Counter) -> u64 {
        self.elapse();
        self.block.overflows(counter)
    }

    fn owed(&mut self, counter: Counter) -> u64 {
        self.elapse();
        self.block.owed(counter)
    }

    fn interrupts(&mut self) -> u64 {
        self.block.pmis
    }

    fn deliver(&mut self, block: ControlBlock) {
        self.block = block;
        self.delivering = true;
        self.masked = false;
        self.pending = false;
    }

    fn follow(&mut self, counters: u64, enabled: u64) {
        self.block.follow(counters, enabled);
    }

    fn withdraw(&mut self) {
        self.delivering = false;
        self.masked = true;
        self.pending = false;
    }
}
