//! The code around a snippet.
//!
//! What is emitted is one function of the C ABI without arguments:
//!
//! ```text
//! entry:  save the ABI's registers and the stack pointer; give every register its start value
//!         init
//!         fill up with NOPs, so that the body starts at a multiple of 64 bytes, or as far after one as asked
//!         start = TSC, between two LFENCE, all registers and flags preserved
//!         open the gate of the counters, if events are counted, likewise
//!         late init; if requested, drain the front end
//! body:   the snippet, `copies` times; or a call of a function, for no copy to the next instruction
//!         if there is a loop: count down, back to body
//!         close the gate
//!         stop = TSC, between two LFENCE
//!         teardown code of a function
//! exit:   restore stack pointer and registers from memory; return
//! ```
//!
//! Everything that the function keeps in memory is in [`Data`], addressed relative to RIP, so that the
//! snippet may use every register. In no-memory mode nothing is kept there between init and the end of the body: the
//! TSC's start stays in R12 and R13, and R9 to R11 hold RAX, RDX and RCX meanwhile. There the snippet may not use
//! every register. The exit needs none either, which is what makes a fault survivable
//! (see `arch::call`).
//!
//! A function is called once. The smaller code size has a call of the same length that leads after itself, so that what the
//! two differ in is the function from its first instruction to its RET.
//!
//! What differs for ring 3 and for 32-bit code is in `mode_switch`; the gate's code at markers in the body is in `pauses`.

use arch::pmu::Gate;
use arch::pmu::driver::Write;
use core::mem::offset_of;
use core::ops::Range;
use function::CALL_BYTES;
use mode_switch::ModeSwitch;
use protocol::bits::Bits;
use protocol::job::{DRAIN_NOPS, LoopCounter, Snippet};
use protocol::limits::MAX_MSRS;

mod compatibility;
mod function;
mod mode_switch;
mod msrs;
mod pauses;
mod user;

/// What the emitted code keeps in memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Data {
    stack: u64,
    rax: u64,
    rdx: u64,
    rcx: u64,
    count: u64,
    /// TSC before the body.
    pub start: u64,
    /// TSC after it.
    pub stop: u64,
    /// Of each model-specific register that is read: before and after.
    pub msrs: [[u64; 2]; MAX_MSRS],
    /// What IRETQ takes on the way to ring 3: RIP, CS, RFLAGS, RSP, SS. On the way to 32-bit code of ring 0 the first is
    /// what the far jump takes.
    user: [u64; 5],
}

/// Where code and data lie when the code runs, and what the registers point to at its start.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address of the first byte of code.
    pub code: u64,
    /// Address of the [`Data`], within 2 GiB of the code.
    pub data: u64,
    /// Start values of RSP, RBP, RDI, RSI, and of R14, for which EBX is in 32-bit code.
    pub pointers: [u64; 5],
}

/// What was emitted, as addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Emitted {
    /// The whole function.
    pub function: Range<u64>,
    /// The way out without registers.
    pub exit: u64,
    /// The init code.
    pub init: Range<u64>,
    /// The late init code.
    pub late_init: Range<u64>,
    /// All copies of the body.
    pub body: Range<u64>,
    /// Bytes of one copy.
    pub copy_bytes: u64,
    /// The teardown code.
    pub teardown: Range<u64>,
    /// The code after the write that closes the gate, or after the first one of several.
    pub closed: Range<u64>,
    /// For ring 3: where `arch::ring3::SNIPPET_VECTORS` have to lead.
    pub landings: Option<[u64; 3]>,
}

/// The body's alignment: a cache line, and the fetch window of all x86 decoders.
pub(crate) const ALIGN: u64 = 64;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R12: u8 = 12;
const R14: u8 = 14;
const R15: u8 = 15;

/// Emits the function for `copies` copies of the snippet's body into `memory`. Counters count while the body runs:
/// `gate` opens before it and closes after it.
///
/// # Panics
/// If the memory is too small: `protocol::limits` makes sure that checked snippets fit.
pub fn emit(
    memory: &mut [u8],
    place: &Place,
    snippet: &Snippet,
    copies: u64,
    gate: &Gate,
) -> Emitted {
    let mut code = Code::new(memory, place);
    let setup = &snippet.setup;
    let switch = ModeSwitch::of(setup);
    let is_compatibility = setup.bits == Bits::Compatibility;
    // push rbx; push rbp; push r12; push r13; push r14; push r15; pushfq
    code.put(&[0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x9c]);
    code.store(RSP, offset_of!(Data, stack));
    if snippet.loop_counter == LoopCounter::Memory {
        code.load_constant(RAX, snippet.loop_count);
        code.store(RAX, offset_of!(Data, count));
    }
    let to_init = switch.map(|switch| code.prepare(switch));
    for register in 0..16 {
        let value = match register {
            RSP => place.pointers[0],
            RBP => place.pointers[1],
            RDI => place.pointers[2],
            RSI => place.pointers[3],
            R14 => place.pointers[4],
            RBX if is_compatibility => place.pointers[4],
            _ => 0,
        };
        code.load_constant(register, value);
    }
    if let Some(entry) = to_init {
        code.enter(entry);
    }
    let init = code.put(&snippet.init);
    let landed = switch.map(|switch| code.land(switch, 0));
    let to_body = switch.map(|switch| code.keep(switch));
    if snippet.loop_count > 0 && snippet.loop_counter == LoopCounter::R15 {
        code.load_constant(R15, snippet.loop_count);
    }
    code.read_msrs(&setup.control.msrs, 0);
    let drain = if setup.drain_frontend { LFENCE.len() + DRAIN_NOPS } else { 0 };
    let opening = match setup.no_memory {
        true => REGISTER_START_BYTES + WRITE_BYTES * gate.on().len() as u64,
        false => TIMER_START_BYTES + gate_open_bytes(gate),
    };
    let crossing = switch.map_or(0, ModeSwitch::enter_bytes);
    let ahead = opening + crossing + (setup.late_init.len() + drain) as u64;
    code.align(ALIGN, u64::from(setup.alignment_offset), ahead);
    let window = code.address();
    if setup.no_memory {
        code.start_in_registers(gate);
    } else {
        code.start_timer();
        code.open(gate);
    }
    if let Some(entry) = to_body {
        code.enter(entry);
    }
    let late_init = code.put(&setup.late_init);
    if setup.drain_frontend {
        code.put(&LFENCE);
        code.put(&[0x90; DRAIN_NOPS]);
    }
    debug_assert_eq!(code.address() - window, ahead);
    let body = match &setup.call {
        Some(call) => {
            code.call(if copies > 0 { call.function } else { code.address() + CALL_BYTES })
        }
        None => code.repeat(&snippet.body, copies),
    };
    if snippet.loop_count > 0 {
        code.loop_back(snippet.loop_counter, setup.bits, body.start);
    }
    let landings = switch.zip(landed).map(|(switch, init)| [init, code.land(switch, 1)]);
    let is_user = matches!(switch, Some(ModeSwitch::User { .. }));
    let closing = code.address();
    code.writes(gate.off());
    code.stop_timer();
    code.read_msrs(&setup.control.msrs, 1);
    if setup.no_memory {
        code.store_start();
    }
    let (teardown, torn_down) = match &setup.call {
        Some(call) if !call.teardown.is_empty() => code.teardown(switch, &call.teardown),
        _ => (0..0, None),
    };
    let exit = code.address();
    code.load(RSP, offset_of!(Data, stack));
    if is_user {
        code.kernel_segments();
    }
    // cld; popfq; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx; ret
    code.put(&[0xfc, 0x9d, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3]);
    let first = if gate.off().is_empty() { 0 } else { WRITE_BYTES };
    let closed = closing + first..code.address();
    code.pauses(&snippet.body, &body, gate);
    let landings = landings.filter(|_| is_user);
    let landings = landings.map(|[init, body]| [init, body, torn_down.unwrap_or(body)]);
    let function = place.code..code.address();
    let copy_bytes = if setup.call.is_some() { CALL_BYTES } else { snippet.body.len() as u64 };
    Emitted { function, exit, init, late_init, body, copy_bytes, teardown, closed, landings }
}

const LFENCE: [u8; 3] = [0x0f, 0xae, 0xe8];
/// Bytes of one WRMSR with its operands.
const WRITE_BYTES: u64 = 17;
/// Bytes that `start_in_registers` emits in addition to its writes.
const REGISTER_START_BYTES: u64 = 32;

/// Bytes that `start_timer` emits; checked there.
const TIMER_START_BYTES: u64 = 48;

/// Bytes that `open` emits; checked there. Each write takes three times mov r32, imm32 and a WRMSR; around them three
/// registers are stored and loaded, and an LFENCE follows.
fn gate_open_bytes(gate: &Gate) -> u64 {
    match gate.on().len() as u64 {
        0 => 0,
        writes => WRITE_BYTES * writes + 6 * 7 + 3,
    }
}

/// Where the loop's count is in [`Data`].
pub const COUNT_AT: usize = offset_of!(Data, count);

/// Machine code under construction.
pub(crate) struct Code<'a> {
    memory: &'a mut [u8],
    at: usize,
    place: &'a Place,
}

impl<'a> Code<'a> {
    /// No code yet.
    pub(crate) fn new(memory: &'a mut [u8], place: &'a Place) -> Self {
        Self { memory, at: 0, place }
    }

    fn address(&self) -> u64 {
        self.place.code + self.at as u64
    }

    /// Appends bytes; returns their addresses.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Range<u64> {
        let start = self.address();
        self.memory[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        start..self.address()
    }

    /// Appends so many bytes: what [`Code::put`] does, without a copy whose length is not known.
    fn put_these<const BYTES: usize>(&mut self, bytes: [u8; BYTES]) {
        let end = self.at + BYTES;
        self.memory[self.at..end].copy_from_slice(&bytes);
        self.at = end;
    }

    /// Appends `copies` copies, doubling what is there already.
    fn repeat(&mut self, bytes: &[u8], copies: u64) -> Range<u64> {
        let total = bytes.len() * copies as usize;
        let (start, first) = (self.address(), self.at);
        if total > 0 {
            self.put(bytes);
        }
        while self.at - first < total {
            let piece = (self.at - first).min(total - (self.at - first));
            self.memory.copy_within(first..first + piece, self.at);
            self.at += piece;
        }
        start..self.address()
    }

    /// Fills with NOPs (0x90) until what follows after `ahead` more bytes is `offset` after a multiple of `align`, a
    /// power of two.
    pub(crate) fn align(&mut self, align: u64, offset: u64, ahead: u64) {
        let missing = offset.wrapping_sub(self.address() + ahead) & (align - 1);
        let end = self.at + missing as usize;
        self.memory[self.at..end].fill(0x90);
        self.at = end;
    }

    /// Displacement from the end of an instruction, whose last 4 bytes are to hold it, to `target`.
    fn displacement(&self, target: u64, instruction_bytes: usize) -> [u8; 4] {
        let end = self.address() + instruction_bytes as u64;
        i32::try_from(target.wrapping_sub(end) as i64).expect("within 2 GiB").to_le_bytes()
    }

    /// Address of what is at `offset` in [`Data`].
    fn data(&self, offset: usize) -> u64 {
        self.place.data + offset as u64
    }

    /// Opcode with REX.W, ModRM of a register and [rip + disp32].
    fn with_data(&mut self, opcode: u8, register: u8, offset: usize) {
        let rex = 0x48 | (register >> 3) << 2;
        let [a, b, c, d] = self.displacement(self.data(offset), 7);
        self.put_these([rex, opcode, (register & 7) << 3 | 5, a, b, c, d]);
    }

    /// mov [rip + data], r64
    fn store(&mut self, register: u8, offset: usize) {
        self.with_data(0x89, register, offset);
    }

    /// mov r64, [rip + data]
    fn load(&mut self, register: u8, offset: usize) {
        self.with_data(0x8b, register, offset);
    }

    /// mov [rip + data], r32, for the eight old registers
    fn store_half(&mut self, register: u8, offset: usize) {
        let [a, b, c, d] = self.displacement(self.data(offset), 6);
        self.put_these([0x89, register << 3 | 5, a, b, c, d]);
    }

    /// mov r64, imm64
    fn load_constant(&mut self, register: u8, value: u64) {
        let mut bytes = [0x48 | register >> 3, 0xb8 | register & 7, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[2..].copy_from_slice(&value.to_le_bytes());
        self.put_these(bytes);
    }

    /// lfence; rdtsc; the two halves to memory. MOV leaves the flags alone.
    fn read_timer(&mut self, offset: usize) {
        self.put_these([0x0f, 0xae, 0xe8, 0x0f, 0x31]);
        self.store_half(RAX, offset);
        self.store_half(RDX, offset + 4);
    }

    fn start_timer(&mut self) {
        let before = self.at;
        self.store(RAX, offset_of!(Data, rax));
        self.store(RDX, offset_of!(Data, rdx));
        self.read_timer(offset_of!(Data, start));
        self.load(RAX, offset_of!(Data, rax));
        self.load(RDX, offset_of!(Data, rdx));
        // After the reloads, so that neither they nor RDTSC are still in flight when the body starts.
        self.put_these(LFENCE);
        debug_assert_eq!((self.at - before) as u64, TIMER_START_BYTES);
    }

    /// WRMSRs. They overwrite RAX, RCX and RDX, and leave the flags alone.
    fn writes(&mut self, writes: &[Write]) {
        for write in writes {
            let (low, high) = (write.value as u32, (write.value >> 32) as u32);
            for (register, value) in [(RCX, write.msr), (RAX, low), (RDX, high)] {
                self.put(&[0xb8 | register]);
                self.put(&value.to_le_bytes());
            }
            self.put(&[0x0f, 0x30]);
        }
    }

    /// What `emit` emits may change RAX, RCX and RDX: they are kept in memory meanwhile.
    fn kept(&mut self, emit: impl FnOnce(&mut Self)) {
        let kept = [
            (RAX, offset_of!(Data, rax)),
            (RCX, offset_of!(Data, rcx)),
            (RDX, offset_of!(Data, rdx)),
        ];
        for (register, offset) in kept {
            self.store(register, offset);
        }
        emit(self);
        for (register, offset) in kept {
            self.load(register, offset);
        }
    }

    /// What `emit` emits may change RAX alone.
    fn keep_rax<T>(&mut self, emit: impl FnOnce(&mut Self) -> T) -> T {
        self.store(RAX, offset_of!(Data, rax));
        let result = emit(self);
        self.load(RAX, offset_of!(Data, rax));
        result
    }

    fn open(&mut self, gate: &Gate) {
        let before = self.at;
        if gate.on().is_empty() {
            return;
        }
        self.kept(|code| code.writes(gate.on()));
        self.put_these(LFENCE);
        debug_assert_eq!((self.at - before) as u64, gate_open_bytes(gate));
    }

    /// Timer and gate without memory. MOV leaves the flags alone.
    fn start_in_registers(&mut self, gate: &Gate) {
        // mov r9, rax; mov r10, rdx; mov r11, rcx
        self.put(&[0x49, 0x89, 0xc1, 0x49, 0x89, 0xd2, 0x49, 0x89, 0xcb]);
        // lfence; rdtsc; mov r12d, eax; mov r13d, edx
        self.put(&[0x0f, 0xae, 0xe8, 0x0f, 0x31, 0x41, 0x89, 0xc4, 0x41, 0x89, 0xd5]);
        self.writes(gate.on());
        // mov rax, r9; mov rdx, r10; mov rcx, r11
        self.put(&[0x4c, 0x89, 0xc8, 0x4c, 0x89, 0xd2, 0x4c, 0x89, 0xd9]);
        self.put(&LFENCE);
    }

    /// The start that R12 and R13 kept, to memory.
    fn store_start(&mut self) {
        // shl r13, 32; or r12, r13
        self.put(&[0x49, 0xc1, 0xe5, 0x20, 0x4d, 0x09, 0xec]);
        self.store(R12, offset_of!(Data, start));
    }

    fn stop_timer(&mut self) {
        self.read_timer(offset_of!(Data, stop));
        self.put_these(LFENCE);
    }

    /// Counts down, and goes back to `target` while something is left. 32-bit code counts in memory.
    pub(crate) fn loop_back(&mut self, counter: LoopCounter, bits: Bits, target: u64) {
        match (bits, counter) {
            // dec r15
            (Bits::SixtyFour, LoopCounter::R15) => {
                self.put(&[0x49, 0xff, 0xcf]);
            }
            // dec qword ptr [rip + count]
            (Bits::SixtyFour, LoopCounter::Memory) => self.with_data(0xff, 1, COUNT_AT),
            (Bits::Compatibility, _) => self.count_down_compatibility(COUNT_AT),
        }
        // jnz rel32
        let displacement = self.displacement(target, 6);
        self.put(&[0x0f, 0x85]);
        self.put(&displacement);
    }
}

#[cfg(test)]
mod tests;
