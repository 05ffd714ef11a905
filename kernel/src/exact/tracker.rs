//! From trap to trap: which instruction was executed between them, and what it did.
//!
//! A trap shows the registers after one instruction and before the next. So each trap counts the instruction that was
//! seen at the last one, now that it is known where it went, and looks at the next, as long as the registers still hold
//! its addresses. An instruction that faults makes no trap and is not counted.

use super::tally::Accesses;
use super::{Qualifier, Refusal, Site, Tally};
use crate::snippet::{Emitted, fault};
use alloc::vec::Vec;
use arch::step::{Next, TRAP_FLAG};
use arch::trap::TrapFrame;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use protocol::bits::Bits;
use step::{Behind, Kind, StringOperation, Touch};

/// What the tracker needs of the machine in addition to the registers.
pub trait Processor {
    /// Base address of FS or GS.
    fn base(&self, segment: Register) -> u64;
    /// EAX, EBX, ECX and EDX of CPUID.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4];
    /// Clears bit 8, where TF is, of the flags that have just been pushed to `stack`.
    fn clear_pushed_trap_flag(&mut self, stack: u64);
}

/// Follows one run of an emitted snippet.
pub struct Tracker<'a> {
    emitted: &'a Emitted,
    /// The bytes of [`Emitted::function`].
    code: &'a [u8],
    /// Compiled code that the emitted one calls, with its addresses: then that alone counts.
    program: Vec<(u64, &'a [u8])>,
    qualifier: &'a Qualifier<'a>,
    /// The counts so far.
    pub tally: Tally,
    /// Why it stopped, if it did.
    pub refusal: Option<Refusal>,
    /// The body has begun.
    inside: bool,
    pending: Pending,
    /// The instruction that was executed last.
    last: u64,
    factory: InstructionInfoFactory,
    steps: u64,
    /// Most of them.
    limit: u64,
}

/// What the processor is executing.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, and a box would be allocated at each step"
)]
enum Pending {
    /// Nothing of ours.
    Nothing,
    /// Bytes that do not belong to the function, or are no instruction: it faults, most likely.
    Unknown,
    Known(Seen),
}

/// An instruction before it is executed.
struct Seen {
    instruction: Instruction,
    kind: Kind,
    accesses: Accesses,
    frame: TrapFrame,
    /// The next one, if the trap may come after that.
    shadowed: Option<(Instruction, Accesses)>,
}

impl<'a> Tracker<'a> {
    /// Before the first trap. `code` are the bytes of the emitted function; it is left after `limit` instructions.
    #[must_use]
    pub fn new(
        emitted: &'a Emitted,
        code: &'a [u8],
        qualifier: &'a Qualifier<'a>,
        limit: u64,
    ) -> Self {
        Self {
            emitted,
            code,
            program: Vec::new(),
            qualifier,
            tally: Tally::default(),
            refusal: None,
            inside: false,
            pending: Pending::Nothing,
            last: emitted.function.start,
            factory: InstructionInfoFactory::new(),
            steps: 0,
            limit,
        }
    }

    /// The same for a function of `program`, which is called in place of a body: pieces of code at their addresses.
    #[must_use]
    pub fn calling(self, program: Vec<(u64, &'a [u8])>) -> Self {
        Self { program, ..self }
    }

    /// Instructions so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Looks at the registers between two instructions.
    pub fn trap(&mut self, frame: &mut TrapFrame, processor: &mut impl Processor) -> Next {
        let next = self.follow(frame, processor);
        next.unwrap_or_else(|refusal| {
            self.refusal = Some(refusal);
            self.pending = Pending::Nothing;
            Next::Leave
        })
    }

    fn follow(
        &mut self,
        frame: &mut TrapFrame,
        processor: &mut impl Processor,
    ) -> Result<Next, Refusal> {
        self.steps += 1;
        match core::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Unknown => return Err(Refusal::Outside(self.site(self.last))),
            Pending::Known(mut seen) => {
                self.finish(&mut seen, frame, processor)?;
                if matches!(seen.kind, Kind::Repeated(_)) && frame.rip == seen.instruction.ip() {
                    // Stopped between two iterations.
                    self.pending = Pending::Known(seen);
                    return self.limit();
                }
            }
        }
        loop {
            if let Some(next) = self.begin(frame, processor)? {
                return Ok(next);
            }
        }
    }

    /// Looks at the next instruction. `None`: it has been executed here, and there is another one.
    fn begin(
        &mut self,
        frame: &mut TrapFrame,
        processor: &mut impl Processor,
    ) -> Result<Option<Next>, Refusal> {
        let rip = frame.rip;
        if (self.emitted.exit..self.emitted.function.end).contains(&rip) {
            return Ok(Some(Next::Free));
        }
        self.inside |= rip == self.emitted.body.start;
        if !self.program.is_empty() && rip == self.emitted.body.end {
            // Teardown code follows, which may call the same functions.
            self.inside = false;
        }
        let bits = fault::bits(frame);
        let Some(instruction) = self.decode(rip, bits) else {
            self.pending = Pending::Unknown;
            return self.limit().map(Some);
        };
        let kind = step::kind(&instruction);
        self.refuse(&instruction, kind)?;
        if instruction.mnemonic() == Mnemonic::Cpuid {
            // Every hypervisor executes it in the guest's place, and not all of them make the trap after it.
            let values = processor.cpuid(frame.rax as u32, frame.rcx as u32).map(u64::from);
            [frame.rax, frame.rbx, frame.rcx, frame.rdx] = values;
            frame.rip = instruction.next_ip();
            self.steps += 1;
            self.retire(&instruction, &behind(frame), &Accesses::default())?;
            return self.limit().map(|_| None);
        }
        let accesses = self.accesses(&instruction, kind, frame, processor);
        let shadowed = match kind {
            Kind::Shadow => {
                let Some(next) = self.decode(instruction.next_ip(), bits) else {
                    return Err(self.unsteppable(&instruction));
                };
                let next_kind = step::kind(&next);
                if next_kind != Kind::Plain {
                    return Err(self.unsteppable(&next));
                }
                // POP SS has moved the stack pointer by then.
                let moved = instruction.stack_pointer_increment().into();
                let after = TrapFrame { rsp: frame.rsp.wrapping_add_signed(moved), ..*frame };
                Some((next, self.accesses(&next, next_kind, &after, processor)))
            }
            _ => None,
        };
        let frame = *frame;
        self.pending = Pending::Known(Seen { instruction, kind, accesses, frame, shadowed });
        self.limit().map(Some)
    }

    fn limit(&self) -> Result<Next, Refusal> {
        if self.steps < self.limit { Ok(Next::Step) } else { Err(Refusal::TooLong(self.limit)) }
    }

    fn decode(&self, rip: u64, bits: Bits) -> Option<Instruction> {
        let whole = core::iter::once((self.emitted.function.start, self.code));
        let mut pieces = whole.chain(self.program.iter().copied());
        let bytes = pieces.find_map(|(start, code)| {
            let at = usize::try_from(rip.checked_sub(start)?).ok()?;
            code.get(at..).filter(|code| !code.is_empty())
        })?;
        step::decode(bytes, rip, bits.number().into())
    }

    /// Instructions after which no trap comes, or only after code that is not the snippet's.
    fn refuse(&self, instruction: &Instruction, kind: Kind) -> Result<(), Refusal> {
        let leaves = match kind {
            // The exceptions' vectors end the run as faults.
            Kind::SoftwareInterrupt(vector) => vector >= arch::vectors::FIRST_DEVICE_VECTOR,
            Kind::SystemCall | Kind::SystemReturn(_) => true,
            _ => matches!(
                instruction.mnemonic(),
                Mnemonic::Hlt
                    | Mnemonic::Mwait
                    | Mnemonic::Mwaitx
                    | Mnemonic::Xbegin
                    | Mnemonic::Vmlaunch
                    | Mnemonic::Vmresume
                    | Mnemonic::Vmrun
            ),
        };
        if leaves { Err(self.unsteppable(instruction)) } else { Ok(()) }
    }

    fn unsteppable(&self, instruction: &Instruction) -> Refusal {
        let opcode = super::name(instruction.mnemonic());
        Refusal::Unsteppable { opcode, site: self.site(instruction.ip()) }
    }

    /// Where the code at `rip` is. Its address in the arena would be another one with other options, and says nothing.
    fn site(&self, rip: u64) -> Site {
        match (self.offset(rip), self.program.is_empty()) {
            (Some(offset), true) => Site::Body(offset),
            // What calls it is emitted code.
            (Some(address), false) if !self.emitted.function.contains(&rip) => {
                Site::Program(address)
            }
            _ => Site::Around,
        }
    }

    /// Whether the instruction at `rip` is the snippet's: not that of the code around it.
    fn counts(&self, rip: u64) -> bool {
        let not_ours = match self.program.is_empty() {
            true => self.emitted.body.end..self.emitted.function.end,
            false => self.emitted.function.clone(),
        };
        self.inside && !not_ours.contains(&rip)
    }

    /// In a program, the address.
    fn offset(&self, rip: u64) -> Option<u64> {
        let body = &self.emitted.body;
        if !self.program.is_empty() {
            return Some(rip);
        }
        body.contains(&rip).then(|| (rip - body.start) % self.emitted.copy_bytes)
    }

    fn accesses(
        &mut self,
        instruction: &Instruction,
        kind: Kind,
        frame: &TrapFrame,
        processor: &impl Processor,
    ) -> Accesses {
        let mut accesses = Accesses::default();
        if self.counts(instruction.ip()) && !matches!(kind, Kind::Repeated(_)) {
            let register = |name| value(frame, name, processor);
            step::accesses(&mut self.factory, instruction, register, |touch| {
                accesses.add(self.qualifier, &touch);
            });
        }
        accesses
    }

    /// The pending instruction was executed, or one iteration of it.
    fn finish(
        &mut self,
        seen: &mut Seen,
        frame: &TrapFrame,
        processor: &mut impl Processor,
    ) -> Result<(), Refusal> {
        let (from, next, to) = (seen.instruction.ip(), seen.instruction.next_ip(), frame.rip);
        match seen.kind {
            Kind::Repeated(operation) => {
                if self.counts(from) {
                    self.iterations(seen, operation, frame, processor);
                }
                seen.frame = *frame;
                if to == from {
                    return Ok(());
                }
            }
            Kind::PushFlags => processor.clear_pushed_trap_flag(frame.rsp),
            Kind::PopFlags | Kind::InterruptReturn if frame.rflags & TRAP_FLAG != 0 => {
                return Err(Refusal::TrapFlag);
            }
            _ => {}
        }
        let behind = behind(frame);
        if let Some((shadowed, accesses)) = seen.shadowed.take().filter(|_| to != next) {
            self.retire(&seen.instruction, &Behind { rip: next, ..behind }, &seen.accesses)?;
            return self.retire(&shadowed, &behind, &accesses);
        }
        self.retire(&seen.instruction, &behind, &seen.accesses)
    }

    fn retire(
        &mut self,
        instruction: &Instruction,
        behind: &Behind,
        accesses: &Accesses,
    ) -> Result<(), Refusal> {
        let (from, to) = (instruction.ip(), behind.rip);
        let is_branch = step::branch(instruction, behind, pmu_model::Ring::Kernel).is_some();
        if !is_branch && to != instruction.next_ip() {
            return Err(Refusal::Lost(self.site(from)));
        }
        self.last = from;
        if self.counts(from) {
            let offset = self.offset(from);
            self.tally.retire(self.qualifier, instruction, offset, behind, accesses);
        }
        Ok(())
    }

    /// Adds the accesses of the iterations that a repeated string instruction made since the last trap.
    fn iterations(
        &self,
        seen: &mut Seen,
        operation: StringOperation,
        after: &TrapFrame,
        processor: &impl Processor,
    ) {
        let mask = StringOperation::count_mask(&seen.instruction);
        let before = &seen.frame;
        let segment = value(before, seen.instruction.memory_segment(), processor);
        let bytes = u64::from(operation.element_bytes);
        // RFLAGS.DF.
        let stride = if before.rflags & 1 << 10 == 0 { bytes } else { bytes.wrapping_neg() };
        for index in 0..before.rcx.wrapping_sub(after.rcx) & mask {
            let at = |pointer: u64| pointer.wrapping_add(stride.wrapping_mul(index)) & mask;
            let mut touch = |linear, kind| {
                let touch =
                    Touch { linear, bytes: bytes as u32, kind, locked: false, non_temporal: false };
                seen.accesses.add(self.qualifier, &touch);
            };
            if operation.source {
                let linear = at(before.rsi).wrapping_add(segment);
                touch(linear, pmu_model::uarch::AccessKind::Load);
            }
            if let Some(kind) = operation.destination {
                touch(at(before.rdi), kind);
            }
        }
    }
}

/// What a branch is judged by.
fn behind(frame: &TrapFrame) -> Behind {
    Behind { rip: frame.rip, rflags: frame.rflags, rcx: frame.rcx }
}

/// Value of a register of an address; of a segment register, its base.
fn value(frame: &TrapFrame, name: Register, processor: &impl Processor) -> u64 {
    let full = match name.full_register() {
        Register::RAX => frame.rax,
        Register::RBX => frame.rbx,
        Register::RCX => frame.rcx,
        Register::RDX => frame.rdx,
        Register::RSI => frame.rsi,
        Register::RDI => frame.rdi,
        Register::RBP => frame.rbp,
        Register::RSP => frame.rsp,
        Register::R8 => frame.r8,
        Register::R9 => frame.r9,
        Register::R10 => frame.r10,
        Register::R11 => frame.r11,
        Register::R12 => frame.r12,
        Register::R13 => frame.r13,
        Register::R14 => frame.r14,
        Register::R15 => frame.r15,
        segment @ (Register::FS | Register::GS) => return processor.base(segment),
        // The other segments begin at 0, in 64-bit mode always, in 32-bit code because all those of the firmware do.
        // Vector registers: the index of a gather.
        _ => return 0,
    };
    match name.size() {
        4 => full & 0xffff_ffff,
        2 => full & 0xffff,
        _ => full,
    }
}
