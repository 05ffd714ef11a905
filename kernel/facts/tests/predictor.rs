//! Blind recovery: a predictor with parameters that a test draws, and what is told of it. The programs run as they are, instruction
//! by instruction.

use facts::pipeline::code::{self, Emitted, Program, emit};
use facts::pipeline::{CodeProbe, hazards, instruction_cache, measure, stores, width};
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpKind, Register,
};
use pmu_model::BranchKind;
use pmu_model::uarch::forward::Forward;
use pmu_model::uarch::parameters::{CacheShape, Parameters, TlbShape};
use pmu_model::uarch::replacement::Policy;
use pmu_model::uarch::window::Step;
use pmu_model::uarch::{Access, AccessKind, Hierarchy, Predictor, Resolved};
use pmu_model::{Delta, Occurrence, Ring};
use protocol::record::{CodeCacheFact, ForwardFact, PipelineFacts};

#[path = "predictor/direct.rs"]
mod direct;
#[path = "predictor/retire.rs"]
mod retire;
#[path = "predictor/window.rs"]
mod window;

const BYTES: u32 = 512 << 10;
/// Where the code lies, and where it returns to.
const BASE: u64 = 0x3040_0000_0000;
/// Its data, elsewhere by another mapping.
const DATA: u64 = 0x5000_0000_0000;
/// Numbers by their bits.
const ONE: u64 = 0x3ff0_0000_0000_0000;
const HALF: u64 = 0x3fe0_0000_0000_0000;
const OUTSIDE: u64 = 0xffff_ffff_8010_0123;

/// The emulated PMU's predictor, and a processor that knows the instructions of these programs.
struct Modelled {
    memory: Vec<u8>,
    /// What was decoded since the code was written, by its place.
    decoded: Vec<Option<(Instruction, Step)>>,
    places: Vec<usize>,
    factory: InstructionInfoFactory,
    predictor: Predictor,
    caches: Hierarchy,
    line: u64,
    mispredict: u64,
    cycles: u64,
    /// Instructions of a cycle, if these alone take time; and those of the block that runs.
    issue: Option<u64>,
    block: u64,
    /// Cycles are those of the core.
    core: bool,
    /// What a denormal product, an SSE instruction after one of 256 bits, a store to code, and a split lock cost.
    planted: [u64; 4],
    denormal: bool,
    /// What a counter of retired instructions counts, if there is one; and for it the latencies of instructions of the last run.
    retirement: Option<retire::Retirement>,
    retired: Vec<u64>,
    /// Most cycles by which a try takes longer, at random.
    noise: u64,
}

impl Modelled {
    fn new(parameters: &Parameters) -> Self {
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
        self.cycles += delta.count(Occurrence::MemoryStall);
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
                Code::Nop_rm32 | Code::Nopd => {}
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

/// What is found is what there is; returns which of the two figures are told.
fn check(parameters: &Parameters, facts: &PipelineFacts) -> [bool; 2] {
    let tenths = u64::from(parameters.mispredict_cycles) * 10;
    let times = facts.mispredict_tenths;
    assert_eq!((times.least, times.most), (tenths, tenths), "{parameters}");
    if let Some(entries) = facts.returns.entries {
        assert_eq!(entries, parameters.returns, "{parameters}");
    }
    let (btb, told) = (parameters.btb, &facts.targets);
    if let Some(entries) = told.entries() {
        assert_eq!((entries, told.ways), (btb.entries, Some(btb.ways)), "{parameters}");
    }
    assert_eq!(facts.returns.entries.is_none(), facts.returns.reason.is_some());
    assert_eq!(told.ways.is_none(), told.reason.is_some());
    [facts.returns.entries.is_some(), told.ways.is_some()]
}

#[test]
fn d1_blind_recovery_of_200_random_predictors() {
    let mut state = 23u64;
    let mut draw = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut told = [0; 2];
    for _ in 0..200 {
        let ways = 1 + draw(16) as u32;
        let most = (1024 / ways).ilog2();
        let sets = 1 << draw(u64::from(most) + 1);
        let parameters = Parameters {
            mispredict_cycles: 1 + draw(30) as u32,
            returns: 1 + draw(64) as u32,
            btb: TlbShape { entries: sets * ways, ways },
            ..Parameters::DEFAULT
        };
        let facts = measure(&mut Modelled::new(&parameters));
        let is_told = check(&parameters, &facts);
        // One entry looks as none at all.
        assert_eq!(is_told[0], parameters.returns > 1, "{parameters}: {:?}", facts.returns);
        assert!(is_told[1], "{parameters}: {:?}", facts.targets);
        told = [0, 1].map(|at| told[at] + u32::from(is_told[at]));
    }
    println!("returns told of 200: {}, targets: {}", told[0], told[1]);
}

#[test]
fn d1_where_a_misprediction_costs_nothing_nothing_is_told() {
    let parameters = Parameters { mispredict_cycles: 0, ..Parameters::DEFAULT };
    let facts = measure(&mut Modelled::new(&parameters));
    assert_eq!(check(&parameters, &facts), [false; 2]);
}

#[test]
fn d1_a_clock_that_differs_from_try_to_try_tells_nothing() {
    let parameters = Parameters::DEFAULT;
    let mut noisy = Modelled { noise: 20_000, ..Modelled::new(&parameters) };
    let facts = measure(&mut noisy);
    assert!(facts.mispredict_tenths.most > facts.mispredict_tenths.least, "{facts:?}");
    assert_eq!((facts.returns.entries, facts.targets.ways), (None, None), "{facts:?}");
    assert!(facts.returns.reason.is_some() && facts.targets.reason.is_some());
    // A little of it does no harm.
    let mut quiet = Modelled { noise: 60, ..Modelled::new(&parameters) };
    let facts = measure(&mut quiet);
    assert_eq!(facts.returns.entries, Some(parameters.returns), "{facts:?}");
    assert_eq!(facts.targets.entries(), Some(parameters.btb.entries), "{facts:?}");
}

/// An instruction cache as a test draws it: at most 16 ways, whose sets repeat at no more than 16 KiB.
fn drawn(draw: &mut impl FnMut(u64) -> u64) -> Parameters {
    let line = 32 << draw(3);
    let (ways, cycles) = (1 + draw(16) as u32, 2 + draw(40) as u32);
    // At least the 1 KiB of code that is compared with, and the page beside it.
    let sets = (0..10).map(|step| 1 << step).filter(|sets| {
        let bytes = sets * line * u64::from(ways);
        sets * line <= 16 << 10 && bytes >= 4096
    });
    let sets: Vec<u64> = sets.collect();
    let bytes = sets[draw(sets.len() as u64) as usize] * line * u64::from(ways);
    let code = CacheShape { bytes, ways, policy: Policy::Lru, cycles };
    Parameters { line: line as u32, code: Some(code), ..Parameters::DEFAULT }
}

#[test]
fn d1_blind_recovery_of_200_random_instruction_caches() {
    let mut state = 77u64;
    let mut draw = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for _ in 0..200 {
        let parameters = drawn(&mut draw);
        let code = parameters.code.unwrap();
        let fact = instruction_cache(&mut Modelled::new(&parameters));
        let text = format!("{parameters}: {fact:?}");
        assert_eq!(fact.bytes().map(u64::from), Some(code.bytes), "{text}");
        assert_eq!((fact.ways, fact.line), (Some(code.ways), Some(parameters.line)), "{text}");
        assert_eq!((fact.miss_tenths, fact.doubtful), (u64::from(code.cycles) * 10, 0), "{text}");
    }
}

#[test]
fn d1_where_code_takes_no_time_no_instruction_cache_is_told() {
    let fact = instruction_cache(&mut Modelled::new(&Parameters::DEFAULT));
    assert!(fact.reason.as_ref().is_some_and(|why| why.contains("costs nothing")), "{fact:?}");
    assert_eq!(fact, CodeCacheFact { reason: fact.reason.clone(), ..CodeCacheFact::default() });
    // More lines of a set than are tried.
    let code = CacheShape { bytes: 64 * 4096, ways: 64, policy: Policy::Lru, cycles: 9 };
    let parameters = Parameters { code: Some(code), ..Parameters::DEFAULT };
    let fact = instruction_cache(&mut Modelled::new(&parameters));
    assert!(fact.bytes().is_none() && fact.line.is_none() && fact.reason.is_some(), "{fact:?}");
}

/// What a case has to take, by the parameters.
fn expected(forward: &Forward, fact: &ForwardFact) -> u16 {
    match (fact.offset, fact.store, fact.load) {
        (4096.., ..) => forward.alias,
        _ if fact.crosses => forward.cross,
        (offset, store, load) if offset as u32 + load > store => forward.wide,
        (0, store, load) if store == load => forward.same,
        (0, ..) => forward.narrow,
        _ => forward.offset,
    }
}

#[test]
fn d1_blind_recovery_of_200_random_store_buffers() {
    assert_eq!(code::data(BYTES), BYTES / 2);
    let mut state = 5u64;
    let mut draw = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut told = 0;
    for _ in 0..200 {
        let parameters = Parameters {
            line: 32 << draw(3),
            memory_cycles: 60 + draw(300) as u32,
            forward: Forward::of([0; 6].map(|_: u16| draw(40) as u16)),
            stores: 1 + draw(127) as u32,
            ..Parameters::DEFAULT
        };
        let fact = stores(&mut Modelled::new(&parameters));
        for case in &fact.forward {
            let tenths = i64::from(expected(&parameters.forward, case)) * 10;
            assert_eq!(case.tenths, [tenths; 3], "{parameters}: {case:?}");
        }
        // It waits for the first store, if that is not written before: by more than a quarter of what each one after it waits.
        let sure = parameters.stores * 4 / 3 + 4 < parameters.memory_cycles;
        let is_right = fact.entries == Some(parameters.stores);
        assert!(is_right || !sure && fact.entries.is_none(), "{parameters}: {fact:?}");
        assert_eq!(fact.entries.is_none(), fact.reason.is_some(), "{parameters}: {fact:?}");
        told += u32::from(fact.entries == Some(parameters.stores));
    }
    println!("entries told of 200: {told}");
}

#[test]
fn d1_where_stores_wait_for_nothing_no_store_buffer_is_told() {
    let fact = stores(&mut Modelled::new(&Parameters::DEFAULT));
    assert!(fact.entries.is_none(), "{fact:?}");
    assert!(fact.reason.is_some_and(|why| why.contains("hardly longer")));
    assert_eq!(fact.forward.len(), 8);
    assert!(fact.forward.iter().all(|case| case.tenths == [0; 3]), "{:?}", fact.forward);
}

#[test]
fn d1_every_width_of_issue_up_to_16_is_told() {
    let of =
        |issue, core| width(&mut Modelled { issue, core, ..Modelled::new(&Parameters::DEFAULT) });
    for issue in 1..=16 {
        let fact = of(Some(issue), true);
        assert_eq!((fact.width, fact.reason.as_ref()), (Some(issue as u32), None), "{fact:?}");
    }
    // An instruction takes a cycle.
    assert_eq!(of(None, true).width, Some(1));
    let free = of(Some(0), true);
    assert!(
        free.width.is_none() && free.reason.as_ref().is_some_and(|why| why.contains("no longer"))
    );
    let ticks = of(Some(4), false);
    assert!(ticks.width.is_none() && ticks.reason.as_ref().is_some_and(|why| why.contains("TSC")));
}

#[test]
fn d1_what_code_costs_by_its_operands_and_what_is_before_it_is_told() {
    let names = ["denormal result", "SSE after AVX", "self-modified code", "split lock"];
    for planted in [[0; 4], [140, 70, 250, 1000], [0, 3, 0, 0], [7, 0, 0, 0]] {
        let mut machine = Modelled { planted, ..Modelled::new(&Parameters::DEFAULT) };
        let told = hazards(&mut machine);
        assert!(told.iter().map(|one| one.name.as_str()).eq(names));
        let tenths: Vec<_> = told.iter().map(|one| one.tenths).collect();
        let all = planted.map(|cycles| Some([cycles as i64 * 10; 3]));
        assert_eq!(tenths, all, "{told:?}");
    }
}
