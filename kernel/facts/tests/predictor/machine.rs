//! A processor that knows the instructions of the programs, with the emulated PMU's predictor and caches.

use super::retire;
use facts::pipeline::CodeProbe;
use facts::pipeline::code::{Emitted, Program, emit};
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpKind, Register,
};
use pmu_model::BranchKind;
use pmu_model::uarch::parameters::Parameters;
use pmu_model::uarch::window::Step;
use pmu_model::uarch::{Access, AccessKind, Hierarchy, Predictor, Resolved};
use pmu_model::{Delta, Occurrence, Ring};

/// Bytes for programs.
pub const BYTES: u32 = 512 << 10;
/// Where the code lies, and where it returns to.
const BASE: u64 = 0x3040_0000_0000;
/// Its data, elsewhere by another mapping.
const DATA: u64 = 0x5000_0000_0000;
/// Numbers by their bits.
const ONE: u64 = 0x3ff0_0000_0000_0000;
const HALF: u64 = 0x3fe0_0000_0000_0000;
const OUTSIDE: u64 = 0xffff_ffff_8010_0123;

/// The emulated PMU's predictor, and a processor that knows the instructions of these programs.
pub struct Modelled {
    pub memory: Vec<u8>,
    /// What was decoded since the code was written, by its place.
    pub decoded: Vec<Option<(Instruction, Step)>>,
    pub places: Vec<usize>,
    pub factory: InstructionInfoFactory,
    pub predictor: Predictor,
    pub caches: Hierarchy,
    pub line: u64,
    pub mispredict: u64,
    pub cycles: u64,
    /// Instructions of a cycle, if these alone take time; and those of the block that runs.
    pub issue: Option<u64>,
    pub block: u64,
    /// Cycles are those of the core.
    pub core: bool,
    /// What a denormal product, an SSE instruction after one of 256 bits, a store to code, and a split lock cost.
    pub planted: [u64; 4],
    pub denormal: bool,
    /// What a counter of retired instructions counts, if there is one; and for it the latencies of instructions of the last run.
    pub retirement: Option<retire::Retirement>,
    pub retired: Vec<u64>,
    /// Most cycles by which a try takes longer, at random.
    pub noise: u64,
}

impl Modelled {
    pub fn new(parameters: &Parameters) -> Self {
        let mut predictor = Predictor::new();
        predictor.keep_returns(parameters.returns);
        predictor.keep_targets(parameters.btb);
        let mispredict = parameters.mispredict_cycles.into();
        let (memory, decoded) = (vec![0; BYTES as usize], vec![None; BYTES as usize]);
        let (caches, line) = (Hierarchy::new(parameters), parameters.line.into());
        Self {
            memory,
            decoded,
            places: Vec::new(),
            factory: InstructionInfoFactory::new(),
            predictor,
            caches,
            line,
            mispredict,
            cycles: 0,
            issue: None,
            block: 0,
            core: true,
            planted: [0; 4],
            denormal: false,
            retirement: None,
            retired: Vec::new(),
            noise: 0,
        }
    }

    fn branch(&mut self, one: &Instruction, to: u64, kind: BranchKind, taken: bool) {
        if let Some(issue) = self.issue {
            let block = std::mem::take(&mut self.block);
            self.cycles += if issue > 0 { block.div_ceil(issue) } else { 0 };
            return;
        }
        let addresses = (one.ip(), to, one.next_ip());
        let resolved = Resolved::new(addresses, kind, taken, to <= one.ip());
        self.cycles += if self.predictor.branch(&resolved) { self.mispredict } else { 0 };
    }

    /// Fetches what an instruction lies in, and begins it.
    fn fetch(&mut self, one: &Instruction, step: Step) {
        let mut delta = Delta::step(Ring::Kernel);
        for line in one.ip() / self.line..=(one.next_ip() - 1) / self.line {
            self.caches.fetch(line, &mut delta);
        }
        self.caches.begin(step, &mut delta);
        self.caches.deliver(one.ip(), one.len() as u64, &mut delta);
        self.cycles += delta.count(Occurrence::MemoryStall) + delta.count(Occurrence::PortCycle);
    }

    /// A direct jump or call.
    fn jump(&mut self, one: &Instruction) {
        let mut delta = Delta::step(Ring::Kernel);
        self.caches.jump(one.ip(), &mut delta);
        self.cycles += delta.count(Occurrence::MemoryStall);
    }

    /// An instruction that uses data, all of which are zeros; false: it is another one.
    fn data(&mut self, one: &Instruction) -> bool {
        let is_data = one.memory_base() == Register::RSI;
        match one.code() {
            Code::Lfence => {
                self.retired.last_mut().into_iter().for_each(|latency| *latency = retire::FENCE);
                return true;
            }
            Code::Xor_rm32_r32 | Code::Mfence => return true,
            Code::Pushq_imm32 | Code::Pop_r64 | Code::Ldmxcsr_m32 | Code::VEX_Vzeroupper => {
                return true;
            }
            Code::Movq_xmm_rm64 | Code::Movapd_xmm_xmmm128 | Code::Xorps_xmm_xmmm128 => {
                return true;
            }
            Code::Mov_r64_imm64 if one.immediate64() != HALF => {
                self.denormal = one.immediate64() < ONE;
                return true;
            }
            Code::Mov_r64_imm64 | Code::Sqrtps_xmm_xmmm128 => return true,
            Code::Pshufd_xmm_xmmm128_imm8 => return true,
            Code::VEX_Vorps_xmm_xmm_xmmm128 => return true,
            Code::VEX_Vorps_ymm_ymm_ymmm256 => {
                self.cycles += self.planted[1];
                return true;
            }
            Code::Mulsd_xmm_xmmm64 => {
                self.cycles += if self.denormal { self.planted[0] } else { 0 };
                return true;
            }
            _ if !is_data => return false,
            _ => {}
        }
        let address = DATA.wrapping_add(one.memory_displacement64());
        if one.code() == Code::Clflush_m8 {
            self.caches.flush_line(address);
            return true;
        }
        if one.code() == Code::Mov_rm8_imm8 {
            let is_code = one.memory_displacement64() > u64::from(BYTES / 4);
            self.cycles += if is_code { self.planted[2] } else { 0 };
            return true;
        }
        let splits = address % 128 > 124;
        self.cycles += if splits && one.has_lock_prefix() { self.planted[3] } else { 0 };
        let kind =
            if one.op0_kind() == OpKind::Memory { AccessKind::Store } else { AccessKind::Load };
        let kind = if one.code() == Code::Add_rm32_r32 { AccessKind::LoadStore } else { kind };
        let bytes = one.memory_size().size() as u32;
        let mut delta = Delta::step(Ring::Kernel);
        self.caches.access(&Access::identity(address, bytes, kind), &mut delta);
        self.cycles += delta.count(Occurrence::MemoryStall);
        let at = (BYTES / 2) as usize + one.memory_displacement64() as usize;
        if kind == AccessKind::Load {
            assert!(self.memory[at..at + bytes as usize].iter().all(|byte| *byte == 0));
        }
        true
    }

    /// Loads the next place of a chain.
    fn load(&mut self, place: u64) -> u64 {
        let mut delta = Delta::step(Ring::Kernel);
        self.caches.access(&Access::identity(DATA + place, 4, AccessKind::Load), &mut delta);
        let waits = delta.count(Occurrence::MemoryStall);
        self.cycles += waits;
        self.retired.last_mut().into_iter().for_each(|latency| *latency += waits);
        let at = (BYTES / 2) as usize + place as usize;
        u32::from_le_bytes(self.memory[at..at + 4].try_into().unwrap()).into()
    }

    fn run(&mut self, entry: u32) {
        self.retired.clear();
        let (mut ip, mut stack) = (BASE + u64::from(entry), vec![OUTSIDE]);
        let (mut rax, mut rcx, mut rdi, mut r8, mut r9, mut r10) = (0, 0u32, 0, 0, 0u64, 0);
        let (mut carry, mut zero) = (false, false);
        while ip != OUTSIDE {
            let at = (ip - BASE) as usize;
            let decode = || {
                self.places.push(at);
                let memory = &self.memory[at..];
                let one = Decoder::with_ip(64, memory, ip, DecoderOptions::NONE).decode();
                (one, step::window(&mut self.factory, &one))
            };
            let (one, step) = *self.decoded[at].get_or_insert_with(decode);
            match self.issue {
                None => self.cycles += 1,
                Some(_) => self.block += 1,
            }
            self.fetch(&one, step);
            if self.retirement.is_some() {
                self.retired.push(1);
            }
            if one.code() == Code::Mov_r32_rm32
                && one.memory_index() != Register::None
                && one.memory_displacement64() == 0
            {
                let chain = if one.op0_register() == Register::EAX { &mut rax } else { &mut r8 };
                *chain = self.load(*chain);
                ip = one.next_ip();
                continue;
            }
            if self.data(&one) {
                ip = one.next_ip();
                continue;
            }
            ip = one.next_ip();
            let target = one.near_branch_target();
            match one.code() {
                Code::Mov_r32_imm32 if one.op0_register() == Register::ECX => {
                    rcx = one.immediate32();
                }
                Code::Mov_r32_imm32 if one.op0_register() == Register::EAX => {
                    rax = u64::from(one.immediate32());
                }
                Code::Mov_r32_imm32 => r8 = u64::from(one.immediate32()),
                Code::Lea_r32_m => {}
                Code::Lea_r64_m if one.op0_register() == Register::RDI => {
                    rdi = one.memory_displacement64();
                }
                Code::Lea_r64_m => rax = one.memory_displacement64(),
                Code::Mov_rm64_r64 if one.op0_register() == Register::RSP => stack.truncate(r10),
                Code::Mov_rm64_r64 if one.op0_register() == Register::R10 => r10 = stack.len(),
                Code::Mov_r64_rm64 => {
                    let at = (rdi - BASE) as usize;
                    r9 = u64::from_le_bytes(self.memory[at..at + 8].try_into().unwrap());
                }
                Code::Nop_rm32 | Code::Nop_rm16 | Code::Nopd | Code::Nopw => {}
                Code::Ror_rm64_1 => (carry, r9) = (r9 & 1 != 0, r9.rotate_right(1)),
                Code::Add_rm64_imm8 => rdi += one.immediate8to64() as u64,
                Code::Add_RAX_imm32 => rax = rax.wrapping_add_signed(one.immediate32to64()),
                Code::Add_rm64_r64 => *stack.last_mut().unwrap() += r8,
                Code::Dec_rm32 => (rcx, zero) = (rcx - 1, rcx == 1),
                Code::Jb_rel8_64 => self.jcc(&one, carry, &mut ip),
                Code::Jne_rel32_64 => self.jcc(&one, !zero, &mut ip),
                Code::Je_rel32_64 => self.jcc(&one, zero, &mut ip),
                Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => {
                    self.jump(&one);
                    ip = target;
                }
                Code::Jmp_rm64 => {
                    ip = rax;
                    self.branch(&one, ip, BranchKind::IndirectJump, true);
                }
                Code::Call_rel32_64 => {
                    self.jump(&one);
                    self.branch(&one, target, BranchKind::RelativeCall, true);
                    stack.push(ip);
                    ip = target;
                }
                Code::Retnq => {
                    ip = stack.pop().unwrap();
                    self.branch(&one, ip, BranchKind::Return, true);
                }
                other => panic!("{other:?} at {ip:#x}"),
            }
        }
        assert!(stack.is_empty());
    }

    fn jcc(&mut self, one: &Instruction, taken: bool, ip: &mut u64) {
        let target = one.near_branch_target();
        self.branch(one, target, BranchKind::Conditional, taken);
        *ip = if taken { target } else { *ip };
    }
}

impl CodeProbe for Modelled {
    fn bytes(&self) -> u32 {
        BYTES
    }

    fn retiring(&mut self, program: &Program<'_>, at_least: u8) -> Result<u64, &'static str> {
        let counts = self.retirement.ok_or(retire::NO_COUNTER)?;
        self.cycles(program, 1);
        Ok(counts.cycles(&self.retired, at_least))
    }

    fn counts_core_cycles(&self) -> bool {
        self.core
    }

    fn cycles(&mut self, program: &Program<'_>, tries: u32) -> u64 {
        let Emitted { pieces, entry, before } = emit(program, BYTES);
        self.places.drain(..).for_each(|at| self.decoded[at] = None);
        for (at, bytes) in pieces {
            self.memory[at as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        let mut once = || {
            before.into_iter().for_each(|entry| self.run(entry));
            let before = self.cycles;
            self.run(entry);
            // As odd as an address, and always the same.
            self.cycles += self.cycles.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (self.noise + 1);
            self.cycles - before
        };
        (0..tries).map(|_| once()).min().unwrap()
    }
}
