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

pub(crate) use code::Code;

use arch::pmu::Gate;
use core::mem::offset_of;
use core::ops::Range;
use function::CALL_BYTES;
use mode_switch::ModeSwitch;
use protocol::bits::Bits;
use protocol::job::limits::MAX_MSRS;
use protocol::job::{DRAIN_NOPS, LoopCounter, Snippet};
use window::{LFENCE, REGISTER_START_BYTES, TIMER_START_BYTES, WRITE_BYTES, gate_open_bytes};

mod code;
mod compatibility;
mod function;
mod mode_switch;
mod msrs;
mod pauses;
mod user;
mod window;

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
    /// For ring 3: where `arch::vectors::SNIPPET_VECTORS` have to lead.
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
/// If the memory is too small: `protocol::job::limits` makes sure that checked snippets fit.
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

/// Where the loop's count is in [`Data`].
pub const COUNT_AT: usize = offset_of!(Data, count);

#[cfg(test)]
mod tests;
