//! What an instruction does, as far as somebody who steps over it has to know: whether it needs special treatment
//! ([`Kind`]), which branch it is ([`branch()`]) and which data it touches ([`accesses()`]).
//!
//! The emulated PMU steps a whole guest by it, exact mode a snippet.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

mod accesses;
mod branch;
mod condition;
mod raises;
mod string;
mod uops;
mod window;

pub use accesses::{Touch, accesses};
pub use branch::{branch, undecided};
pub use condition::{Behind, Condition};
pub use raises::can_raise;
pub use string::StringOperation;
pub use uops::uop_class;
pub use window::window;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Longest instruction (SDM vol. 2, 2.3.11).
pub const MAX_BYTES: usize = 15;

/// How an instruction must be stepped over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// With the trap flag.
    Plain,
    /// A string instruction with a repeat prefix: the trap flag would stop it at each iteration.
    Repeated(StringOperation),
    /// Shows the flags, and with them the trap flag, on the stack.
    PushFlags,
    /// Sets the flags, the trap flag among them.
    PopFlags,
    /// Continues where its frame says, with the frame's flags.
    InterruptReturn,
    /// INT n, INT3, INT1 or INTO, by vector.
    SoftwareInterrupt(u8),
    /// SYSCALL or SYSENTER.
    SystemCall,
    /// SYSRET or SYSEXIT; true with a 64-bit operand.
    SystemReturn(bool),
    /// Holds interrupts and traps back until the next instruction is done: a load of SS, and STI.
    Shadow,
}

/// Whether the instruction that begins so is surely [`Kind::Plain`]: told from its first bytes, without decoding it.
/// False means that it must be decoded.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let mut rest = bytes.iter().skip_while(|byte| is_prefix(byte));
    match rest.next() {
        // PUSHF, POPF; INT3, INT n, INTO, IRET; INT1; STI; MOV to and POP of a segment register; string operations.
        Some(0x9c | 0x9d | 0xcc..=0xcf | 0xf1 | 0xfb | 0x8e | 0x17) => false,
        Some(0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf) => false,
        // SYSCALL, SYSRET, and whatever else has two bytes and is rare.
        Some(0x0f) => rest.next().is_some_and(|second| matches!(second, 0x10..=0x9f | 0xa2..=0xff)),
        Some(_) => true,
        None => false,
    }
}

/// Decodes the instruction at `rip`, whose first bytes are `bytes`. `None` if they are not instruction, or its end is
/// not among them.
#[must_use]
pub fn decode(bytes: &[u8], rip: u64, bits: u32) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(bits, bytes, rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// How it must be stepped over.
#[must_use]
pub fn kind(instruction: &Instruction) -> Kind {
    if let Some(operation) = string::operation(instruction) {
        return Kind::Repeated(operation);
    }
    let loads_ss =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::SS;
    match instruction.mnemonic() {
        Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq => Kind::PushFlags,
        Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => Kind::PopFlags,
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => Kind::InterruptReturn,
        Mnemonic::Int => Kind::SoftwareInterrupt(instruction.immediate8()),
        Mnemonic::Int1 => Kind::SoftwareInterrupt(1),
        Mnemonic::Int3 => Kind::SoftwareInterrupt(3),
        Mnemonic::Into => Kind::SoftwareInterrupt(4),
        Mnemonic::Syscall | Mnemonic::Sysenter => Kind::SystemCall,
        Mnemonic::Sysret | Mnemonic::Sysexit => Kind::SystemReturn(false),
        Mnemonic::Sysretq | Mnemonic::Sysexitq => Kind::SystemReturn(true),
        Mnemonic::Sti => Kind::Shadow,
        Mnemonic::Mov | Mnemonic::Pop if loads_ss => Kind::Shadow,
        _ => Kind::Plain,
    }
}

/// Whether it faults outside ring 0, without regard to its operands. Port accesses do not: IOPL decides.
#[must_use]
pub fn is_privileged(instruction: &Instruction) -> bool {
    let is_port = matches!(
        instruction.mnemonic(),
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insw
            | Mnemonic::Insd
            | Mnemonic::Outsb
            | Mnemonic::Outsw
            | Mnemonic::Outsd
            | Mnemonic::Cli
            | Mnemonic::Sti
    );
    instruction.is_privileged() && !is_port
}

/// Instructions that change what caches and translations hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Maintenance {
    /// CLFLUSH, CLFLUSHOPT, and CLWB, which does not evict.
    FlushLine {
        /// Whether the line leaves the caches.
        evicts: bool,
    },
    /// INVLPG.
    FlushPage,
    /// WBINVD or INVD.
    FlushCaches,
    /// A load of CR3, CR0 or CR4, or INVPCID: translations go.
    FlushTranslations,
}

/// Whether it is one of them.
#[must_use]
pub fn maintenance(instruction: &Instruction) -> Option<Maintenance> {
    match instruction.mnemonic() {
        Mnemonic::Clflush | Mnemonic::Clflushopt => Some(Maintenance::FlushLine { evicts: true }),
        Mnemonic::Clwb => Some(Maintenance::FlushLine { evicts: false }),
        Mnemonic::Invlpg => Some(Maintenance::FlushPage),
        Mnemonic::Wbinvd | Mnemonic::Invd => Some(Maintenance::FlushCaches),
        Mnemonic::Invpcid => Some(Maintenance::FlushTranslations),
        _ if matches!(instruction.code(), Code::Mov_cr_r64 | Code::Mov_cr_r32) => {
            Some(Maintenance::FlushTranslations)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
