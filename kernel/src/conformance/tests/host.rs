//! The register-level model as a bench: it is told what each instruction of the stated code does.

use super::super::machine::{TestMachine, Work};
use arch::msr::{Absent, Msr};
use arch::pmu::driver::Write;
use arch::pmu::ibs::Unit;
use arch::pmu::pmi::{ControlBlock, Delivery, Interrupted, Raw, Sample, sampled, service};
use arch::pmu::workload::{Ring0Code, Ring3Code, STRAIGHT_INSTRUCTIONS, calls_sites};
use arch::pmu::{Gate, Registers, window};
use pmu_model::uarch::{Access, AccessKind};
use pmu_model::{
    Branch, BranchKind, Delta, Model, Occurrence, PageSize, Pmu, Retirement, Ring, RingMask,
    Sampled, Timing,
};
use raw_cpuid::CpuIdResult;

/// Instructions of ring 0 on the way into ring 3 or out of it: any constant would do.
const PASSAGE: u64 = 40;

/// Where memory lies.
const fn physical(linear: u64) -> u64 {
    linear + 0x4000_0000
}

/// What a register reads, from what the model's does.
type Altered = fn(u64) -> u64;

pub struct Host {
    pub pmu: Pmu,
    block: ControlBlock,
    delivery: Option<Delivery>,
    /// Intel's APIC masks LVTPC at delivery.
    masks: bool,
    masked: bool,
    log: *mut [Sample],
    tsc: u64,
    rip: u64,
    stray: Option<String>,
    /// Does not say that it is emulated, so that it is taken for a processor.
    pub unmarked: bool,
    /// What leaf 1 says in EAX, in place of the model's.
    pub signature: Option<u32>,
    /// A register that reads otherwise than the model's.
    pub altered: Option<(Msr, Altered)>,
    /// Writes that switched a unit of IBS off and left its maximum count in the same write.
    pub at_once: u32,
}

impl Host {
    pub fn new(model: Model) -> Self {
        Self {
            pmu: Pmu::new(model, pmu_model::Host::EXAMPLE, Timing::DEFAULT),
            block: ControlBlock::EMPTY,
            delivery: None,
            masks: model.spec().intel().is_some(),
            masked: true,
            log: Box::into_raw(vec![Sample::default(); 64].into_boxed_slice()),
            tsc: 0,
            rip: 0,
            stray: None,
            unmarked: false,
            signature: None,
            altered: None,
            at_once: 0,
        }
    }

    /// A write; whether it succeeded.
    fn wrote(&mut self, msr: u32, value: u64) -> Result<(), Absent> {
        let unit = [Unit::Fetch, Unit::Op].into_iter().find(|unit| unit.control().0 == msr);
        if let (Some(unit), Ok(before)) = (unit, self.pmu.read_msr(msr)) {
            const MAXIMUM: u64 = 0xffff;
            let off = before & !value & unit.enable() != 0;
            self.at_once += u32::from(off && before & MAXIMUM != 0);
        }
        Registers::wrmsr(&mut self.pmu, Msr(msr), value)
    }

    fn advance(&mut self, delta: &Delta) {
        self.retire(
            delta,
            Retirement { ip: self.rip, next: self.rip + 1, ..Retirement::default() },
        );
    }

    fn retire(&mut self, delta: &Delta, retired: Retirement) {
        self.tsc += delta.instructions;
        let outcome = arch::pmu::model::retire(&mut self.pmu, delta, &retired);
        if outcome.ibs && self.delivery.is_some() {
            let mut block = std::mem::replace(&mut self.block, ControlBlock::EMPTY);
            let from = Interrupted { rip: self.rip, ..Interrupted::default() };
            sampled(&mut block, self, &from);
            self.block = block;
        }
        if !outcome.pmi || self.masked || self.delivery.is_none() {
            return;
        }
        if self.pmu.has_wrong_vector() {
            // Nobody has that vector.
            self.stray = Some(format!("a stray interrupt at {:#x}", self.rip));
            return;
        }
        self.masked = self.masks;
        let mut block = std::mem::replace(&mut self.block, ControlBlock::EMPTY);
        let from = Interrupted { rip: self.rip, ..Interrupted::default() };
        service(&mut block, self, &from);
        self.block = block;
    }

    /// Instructions without anything of note, stopping wherever a counter overflows, if that could interrupt.
    fn plain(&mut self, ring: Ring, mut instructions: u64) {
        if self.pmu.needs().precise {
            // Each may be in a record. The interrupt comes at the next one.
            for _ in 0..instructions {
                self.rip += 1;
                let (ip, next) = (self.rip - 1, self.rip);
                self.retire(&Delta::step(ring), Retirement { ip, next, ..Retirement::default() });
            }
            return;
        }
        if self.delivery.is_none() {
            self.rip += instructions;
            return self.advance(&Delta::bulk(ring, instructions));
        }
        while instructions > 0 {
            let until = self.pmu.until_overflow(RingMask::BOTH).unwrap_or(u64::MAX);
            let part = instructions.min(until.max(1));
            self.rip += part;
            self.advance(&Delta::bulk(ring, part));
            instructions -= part;
        }
    }

    fn branch(&mut self, branch: &Branch) {
        let mut delta = Delta::step(branch.ring);
        delta.add_branch(branch);
        if self.pmu.record_branch(branch) {
            delta.add(Occurrence::LbrInsert, 1);
        }
        if branch.taken {
            self.rip = branch.to;
        }
        let next = if branch.taken { branch.to } else { branch.from + 1 };
        let sampled = Sampled { branch: Some(*branch), ..Sampled::default() };
        let retired = Retirement { ip: branch.from, next, sampled, ..Retirement::default() };
        self.retire(&delta, retired);
    }

    fn jump(&mut self, kind: BranchKind, from: u64, to: u64, taken: bool, mispredicted: bool) {
        self.branch(&Branch { from, to, kind, taken, mispredicted, ring: Ring::Kernel, cycles: 2 });
    }

    /// The jump at the end of a loop from `from` back to `to`; the last one falls through, unforeseen.
    fn loop_jump(&mut self, from: u64, to: u64, last: bool) {
        self.jump(BranchKind::Conditional, from, to, !last, last);
    }

    fn write(&mut self, write: &Write) {
        let _ = self.pmu.write_msr(write.msr, write.value);
    }

    /// `dec; jnz` so often.
    fn count_down(&mut self, at: u64, turns: u64) {
        for turn in 1..=turns {
            self.plain(Ring::Kernel, 1);
            self.loop_jump(at + 3, at, turn == turns);
        }
    }

    fn kernel(&mut self, piece: Ring0Code, turns: u64) {
        let (at, [_, back]) = (piece.address(), window::call_site());
        let mut leave = at + 0x20;
        match piece {
            Ring0Code::Empty => {}
            Ring0Code::Loop => self.count_down(at, turns),
            Ring0Code::NotTaken => {
                for turn in 1..=turns {
                    self.plain(Ring::Kernel, 1);
                    self.jump(BranchKind::Conditional, at + 3, at + 10, false, false);
                    self.plain(Ring::Kernel, 1);
                    self.loop_jump(at + 8, at, turn == turns);
                }
            }
            Ring0Code::Calls => {
                let sites = calls_sites();
                for turn in 1..=turns {
                    self.jump(BranchKind::RelativeCall, sites.call, sites.leaf, true, false);
                    self.jump(BranchKind::Return, sites.leaf, sites.after, true, false);
                    self.plain(Ring::Kernel, 1);
                    self.loop_jump(sites.jump, sites.call, turn == turns);
                }
                leave = sites.piece_return;
            }
            Ring0Code::Unpredictable => {
                self.plain(Ring::Kernel, 3);
                for turn in 1..=turns {
                    self.plain(Ring::Kernel, 3);
                    let taken = turn % 3 == 0 || turn % 7 == 0;
                    self.jump(BranchKind::Conditional, at + 0x20, at + 0x22, taken, turn % 2 == 0);
                    self.plain(Ring::Kernel, 1);
                    if taken {
                        self.plain(Ring::Kernel, 1);
                    } else {
                        self.jump(BranchKind::RelativeJump, at + 0x23, at + 0x27, true, false);
                    }
                    self.plain(Ring::Kernel, 1);
                    self.loop_jump(at + 0x2a, at + 0x17, turn == turns);
                }
            }
            Ring0Code::ColdLoads => {
                for turn in 1..=turns {
                    self.plain(Ring::Kernel, 2);
                    let load = Delta::step(Ring::Kernel)
                        .with(Occurrence::Load, 1)
                        .with(Occurrence::LoadLlcMiss, 1)
                        .with(Occurrence::LlcReference, 1)
                        .with(Occurrence::LlcMiss, 1);
                    let linear = 0x10_0000 + 64 * turn;
                    let access = Access {
                        physical: physical(linear),
                        ..Access::identity(linear, 8, AccessKind::Load)
                    };
                    let access = Some((access, PageSize::default()));
                    let retired = Retirement {
                        ip: at + 6,
                        next: at + 9,
                        load: Some(linear),
                        sampled: Sampled { access, ..Sampled::default() },
                        ..Retirement::default()
                    };
                    self.retire(&load, retired);
                    self.plain(Ring::Kernel, 2);
                    self.loop_jump(at + 0x10, at, turn == turns);
                }
            }
            Ring0Code::Straight => {
                self.rip = at;
                self.plain(Ring::Kernel, STRAIGHT_INSTRUCTIONS);
            }
            Ring0Code::Rewrite => unreachable!("it has a write"),
        }
        self.jump(BranchKind::Return, leave, back, true, false);
    }

    fn far(&mut self, from: Ring) {
        let (at, to) = (self.rip, if from == Ring::User { Ring::Kernel } else { Ring::User });
        let branch = Branch {
            from: at,
            to: at + 0x1000,
            kind: BranchKind::Far,
            taken: true,
            mispredicted: false,
            ring: to,
            cycles: 1,
        };
        let mut delta = Delta::step(from);
        delta.add_branch(&branch);
        self.pmu.record_branch(&branch);
        self.advance(&delta);
    }

    fn user(&mut self, piece: Ring3Code, turns: u64) {
        let [_, back] = window::call_site();
        self.plain(Ring::Kernel, PASSAGE);
        self.far(Ring::Kernel);
        if piece == Ring3Code::Faults {
            self.plain(Ring::User, 1);
        }
        for turn in 1..=turns {
            match piece {
                Ring3Code::Interrupts => {
                    self.far(Ring::User);
                    self.plain(Ring::Kernel, PASSAGE);
                    self.far(Ring::Kernel);
                }
                Ring3Code::Faults => {
                    self.plain(Ring::Kernel, PASSAGE);
                    self.far(Ring::Kernel);
                }
                Ring3Code::Loop | Ring3Code::Rdpmc | Ring3Code::Rdtsc | Ring3Code::SystemCalls => {}
            }
            self.plain(Ring::User, 1);
            self.branch(&Branch {
                from: 0x1003,
                to: 0x1000,
                kind: BranchKind::Conditional,
                taken: turn < turns,
                mispredicted: turn == turns,
                ring: Ring::User,
                cycles: 2,
            });
        }
        self.far(Ring::User);
        self.plain(Ring::Kernel, PASSAGE);
        self.jump(BranchKind::Return, 0x2000, back, true, false);
    }
}

impl Registers for Host {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = match leaf {
            0x4000_0100 if !self.unmarked => {
                let part = |text: &[u8; 4]| u32::from_le_bytes(*text);
                [0x4000_0101, part(b"bare"), part(b"coun"), part(b"tPMU")]
            }
            0x4000_0101 if !self.unmarked => [self.pmu.model() as u32, 0, 0, 0],
            _ => {
                let seen = Registers::cpuid(&self.pmu, leaf, subleaf);
                let eax = self.signature.filter(|_| leaf == 1).unwrap_or(seen.eax);
                return CpuIdResult { eax, ..seen };
            }
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.pmu.set_time(self.tsc);
        let value = Registers::rdmsr(&mut self.pmu, msr)?;
        let altered = self.altered.filter(|(one, _)| *one == msr);
        Ok(altered.map_or(value, |(_, read)| read(value)))
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.wrote(msr.0, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.pmu, index)
    }
}

impl Raw for Host {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.pmu.read_msr(msr).unwrap_or(0)
    }
    fn wrmsr(&mut self, msr: u32, value: u64) {
        let _ = self.wrote(msr, value);
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

impl TestMachine for Host {
    fn run(&mut self, gate: &Gate, work: Work) -> u64 {
        let (start, [call, _]) = (self.tsc, window::call_site());
        let writes = gate.on().len();
        for (n, write) in gate.on().iter().enumerate() {
            self.plain(Ring::Kernel, 4);
            self.write(write);
            self.plain(Ring::Kernel, 2);
            self.loop_jump(call - 2, call - 32, n + 1 == writes);
        }
        let target = match work {
            Work::Kernel { piece, .. } => piece.address(),
            Work::Rewrite { .. } => Ring0Code::Rewrite.address(),
            Work::User { .. } => 0x2000,
        };
        self.jump(BranchKind::IndirectCall, call, target, true, false);
        match work {
            Work::Kernel { piece, turns } => self.kernel(piece, turns),
            Work::User { piece, turns } => self.user(piece, turns),
            Work::Rewrite { turns, write } => {
                self.plain(Ring::Kernel, 4);
                self.write(&write);
                self.count_down(target + 13, turns);
                self.jump(BranchKind::Return, target + 18, call + 2, true, false);
            }
        }
        for (n, write) in gate.off().iter().enumerate() {
            self.plain(Ring::Kernel, 4);
            self.write(write);
            self.plain(Ring::Kernel, 2);
            self.loop_jump(call + 20, call + 2, n + 1 == writes);
        }
        // The model's reference clock runs at two thirds of the core's: so does this machine's TSC.
        (self.tsc - start) * 2 / 3
    }

    fn deliver(&mut self, block: ControlBlock, delivery: Delivery) {
        self.block = block;
        self.delivery = Some(delivery);
        self.masked = false;
    }

    fn withdraw(&mut self) -> ControlBlock {
        self.delivery = None;
        self.masked = true;
        self.block.clone()
    }

    fn physical(&mut self, linear: u64) -> Option<u64> {
        Some(physical(linear))
    }

    fn has_extended_lvt(&mut self, entry: u8) -> bool {
        entry < 4
    }

    fn log(&mut self) -> &'static mut [Sample] {
        // SAFETY: leaked in `new`; one check at a time uses it.
        let log = unsafe { &mut *self.log };
        log.fill(Sample::default());
        log
    }

    fn rdpmc_in_ring_3(&mut self, index: u32, allowed: bool) -> Option<u64> {
        self.pmu.rdpmc_at(index, 3, allowed).ok()
    }

    fn tsc(&mut self) -> u64 {
        self.tsc
    }

    fn rdtsc_in_ring_3(&mut self, allowed: bool) -> Option<u64> {
        allowed.then_some(self.tsc)
    }

    fn take_stray(&mut self) -> Option<String> {
        self.stray.take()
    }

    fn counts_handlers(&self) -> bool {
        false
    }
}
