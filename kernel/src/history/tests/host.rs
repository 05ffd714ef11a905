//! A made-up machine around the model: it runs snippets whose every byte is an instruction.

use super::super::Historian;
use crate::events::Known;
use crate::sampling::{Pmu, Sampler, Scheduled};
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::{Runner, Unmeasured};
use arch::call::Trap;
use arch::pmu::driver::Write;
use arch::pmu::pmi::{ControlBlock, Delivery, Interval};
use arch::pmu::stop_on_overflow::{Stop, StopOnOverflow};
use arch::pmu::{Capabilities, Driver, FreezeKind, Gate, Missing, find, trial};
use arch::trap::TrapFrame;
use pmu_model::{Branch, BranchKind, Delta, Model, Mutation, Occurrence, Ring, Timing};
use protocol::hex::Hex;
use protocol::job::Snippet;
use protocol::job::sampling::Sampling;
use protocol::job::workload::Task;
use protocol::program::ProgramKey;
use protocol::record::{CodePlace, Fault, Within};
use std::rc::Rc;

pub const NOP: u8 = 0;
pub const BRANCH: u8 = 1;
pub const LOAD: u8 = 2;
pub const FAULT: u8 = 3;
/// Instructions of a system management interrupt's handler.
const SMI: u64 = 3;
/// How often a run with one is repeated.
const REPEATS: u32 = 1;

pub struct Host {
    pub pmu: pmu_model::Pmu,
    driver: Driver,
    pub known: Known<'static>,
    gate: Gate,
    on_overflow: Option<StopOnOverflow>,
    /// Front, then body with its loop.
    code: Vec<u8>,
    taken: u64,
    pub runs: u64,
    /// No interrupt comes.
    pub deaf: bool,
    /// The interrupt comes in the runs alone for which this holds.
    pub hears: Option<Box<dyn Fn(u64) -> bool>>,
    /// One is being handled.
    handling: bool,
    /// There is no PMU.
    pub absent: bool,
    /// Something has taken the interrupt.
    pub armed: bool,
    /// The run that raises an exception in the middle.
    pub fault_at: Option<u64>,
    /// The run that a system management interrupt comes into. Its handler takes events of the clock.
    pub smi_at: Option<u64>,
    smis: u64,
    /// Which instruction comes next, and which one the last interrupt came in front of.
    next: u64,
    interrupted: u64,
    /// How far the item said it was.
    pub beats: Vec<Within>,
}

impl Host {
    pub fn new(model: Model) -> Self {
        let mut pmu = pmu_model::Pmu::new(model, pmu_model::Host::EXAMPLE, Timing::FLAT);
        let has = find(&mut pmu).expect("a PMU");
        Self::of(pmu, has)
    }

    /// With a fault, found as the firmware finds it.
    pub fn with(model: Model, fault: Mutation) -> Result<Self, Missing> {
        let mut pmu = pmu_model::Pmu::new(model, pmu_model::Host::EXAMPLE, Timing::FLAT);
        pmu.set_mutation(Some(fault));
        pmu.reset();
        let has = find(&mut pmu).and_then(|has| trial::run(&has, &mut pmu))?;
        Ok(Self::of(pmu, has))
    }

    fn of(mut pmu: pmu_model::Pmu, has: Capabilities) -> Self {
        let known = Known::new(&has, None, &mut pmu);
        let (gate, on_overflow) = (Gate::EMPTY, None);
        let (driver, code) = (Driver::new(has), Vec::new());
        Self {
            pmu,
            driver,
            known,
            gate,
            on_overflow,
            code,
            taken: 0,
            runs: 0,
            deaf: false,
            hears: None,
            handling: false,
            absent: false,
            armed: false,
            fault_at: None,
            smi_at: None,
            smis: 0,
            next: 0,
            interrupted: 0,
            beats: Vec::new(),
        }
    }

    pub fn freezes(&self) -> bool {
        self.driver.capabilities().freeze != FreezeKind::None
    }

    /// One instruction, and the interrupt that it may lead to.
    fn step(&mut self, delta: &Delta) {
        let pmi = self.pmu.advance(delta).pmi;
        let hears = !self.deaf && self.hears.as_ref().is_none_or(|hears| hears(self.runs));
        let comes = pmi && hears && !self.handling;
        let Some(on_overflow) = self.on_overflow.filter(|_| comes) else { return };
        self.taken += 1;
        self.interrupted = self.next;
        if on_overflow.stop() == Stop::Handler {
            // Another NMI waits for the end of this one.
            self.handling = true;
            self.pmu.advance(&Delta::bulk(Ring::Kernel, 3));
            self.writes(on_overflow.gate().off());
            self.handling = false;
        }
    }

    /// Three MOVs and the WRMSR, which is counted by what it stops and not by what it starts.
    fn writes(&mut self, writes: &[Write]) {
        for write in writes {
            for _ in 0..4 {
                self.step(&Delta::step(Ring::Kernel));
            }
            self.pmu.write_msr(write.msr, write.value).expect("a register of the PMU");
        }
    }

    /// Whether it was executed.
    fn execute(&mut self, code: u8, at: usize) -> bool {
        let mut delta = Delta::step(Ring::Kernel);
        let (from, ring) = (at as u64, Ring::Kernel);
        let (kind, taken, mispredicted) = (BranchKind::RelativeJump, true, false);
        match code {
            BRANCH => {
                let to = from + 1;
                let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 1 };
                delta.add_branch(&branch);
            }
            LOAD => delta.add(Occurrence::Load, 1),
            FAULT => return false,
            _ => {}
        }
        self.step(&delta);
        true
    }
}

fn trap() -> Box<Trap> {
    let frame = TrapFrame { vector: 6, ..Default::default() };
    Box::new(Trap { frame, cr2: 0, cause: Default::default() })
}

impl Historian for Host {
    fn load_within(&mut self, snippet: &Snippet, copies: u64, gate: &Gate) {
        self.gate = *gate;
        // After the switch: three registers back from memory, and an LFENCE.
        self.code = vec![LOAD, LOAD, LOAD, NOP];
        self.code.extend_from_slice(&snippet.setup.late_init);
        let mut body = snippet.body.repeat(copies as usize);
        if snippet.loop_count > 0 {
            body.extend([NOP, BRANCH]);
        }
        self.code.extend(body.repeat(snippet.loop_count.max(1) as usize));
    }

    fn arm(&mut self, on_overflow: &StopOnOverflow) {
        (self.on_overflow, self.armed) = (Some(*on_overflow), true);
    }

    fn run_armed(&mut self) -> Result<(), Box<Trap>> {
        self.runs += 1;
        let gate = self.gate;
        self.next = 0;
        self.writes(gate.on());
        if self.smi_at == Some(self.runs) {
            self.smis += 1;
            (0..SMI).for_each(|_| self.step(&Delta::step(Ring::Kernel)));
        }
        let code = self.code.clone();
        for (at, &one) in code.iter().enumerate() {
            self.next = at as u64 + 1;
            let late = self.fault_at == Some(self.runs) && at == code.len() - 1;
            if late || !self.execute(one, at) {
                return Err(trap());
            }
        }
        self.writes(gate.off());
        Ok(())
    }

    fn interrupts(&self) -> u64 {
        self.taken
    }

    fn interrupted(&self) -> u64 {
        self.interrupted
    }

    fn smis(&self) -> (u64, u32) {
        (self.smis, REPEATS)
    }

    fn disarm(&mut self) {
        (self.on_overflow, self.armed) = (None, false);
    }
}

impl Runner for Host {
    fn prepare(&mut self, _: &Snippet) -> Rc<Plan> {
        unreachable!("a history has a plan of its own")
    }
    fn program(&mut self, _: &[Counted]) -> Result<(), (usize, String)> {
        Ok(())
    }
    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.load_within(snippet, copies, &Gate::EMPTY);
    }
    fn load_once(&mut self, _: &Snippet) {}
    fn run(&mut self) -> Result<u64, Box<Trap>> {
        self.run_armed().map(|()| 0)
    }
    fn counts(&self) -> &[u64] {
        &[]
    }
    fn beat(&mut self, within: Within) {
        self.beats.push(within);
    }
    fn called(&self) -> Option<ProgramKey> {
        Some(ProgramKey { key: Hex(9), ..ProgramKey::default() })
    }
    fn explain(&self, trap: &Trap, _: &Snippet) -> Fault {
        Fault {
            bits: 64,
            vector: trap.frame.vector as u8,
            mnemonic: "#UD".into(),
            error_code: None,
            part: "body".into(),
            offset: None,
            copy: None,
            bytes: None,
            registers: Default::default(),
            ..Fault::default()
        }
    }
}

impl Sampler for Host {
    fn pmu(&mut self) -> Result<Pmu<'_>, String> {
        if self.absent {
            return Err("there is no PMU: none".to_string());
        }
        Ok(Pmu { registers: &mut self.pmu, driver: &mut self.driver, known: &self.known })
    }
    fn gather(&mut self, _: &[u16], _: bool) -> Result<(), String> {
        unreachable!("nothing is sampled")
    }
    fn on(
        &mut self,
        _: u16,
        _: &mut dyn FnMut(&mut dyn arch::pmu::Registers, &mut Driver),
    ) -> Result<(), String> {
        unreachable!("nothing is sampled")
    }
    fn load_task(&mut self, _: &Task, _: &Gate) -> (CodePlace, core::ops::Range<u64>) {
        unreachable!("nothing is sampled")
    }
    fn run_task(&mut self, _: &Task, _: bool) -> Result<u64, Unmeasured> {
        unreachable!("nothing is sampled")
    }
    fn run_tasks(&mut self, _: &Sampling, _: Option<u64>) -> Result<Scheduled, String> {
        unreachable!("nothing is sampled")
    }
    fn deliver(&mut self, _: u16, _: &ControlBlock, _: Delivery, _: Option<Interval>) {}
    fn withdraw(&mut self, _: u16, _: &mut ControlBlock) {}
    fn clocks(&self) -> [u64; 2] {
        [1; 2]
    }
    fn code(&mut self, _: u64) -> Vec<u8> {
        Vec::new()
    }
    fn pointers(&self, _: Option<usize>) -> [u64; 5] {
        [0; 5]
    }
    fn has_extended_lvt(&mut self, _: u8) -> bool {
        true
    }
    fn has_emulated_pmu(&self) -> bool {
        true
    }
}
