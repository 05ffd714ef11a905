//! How the emulated PMU's hypervisor and its plugin in QEMU's translator (TCG) talk to each other.
//!
//! The hypervisor executes [`call`]s: NOPs with a long displacement, in a page of its own. The plugin recognises
//! them when the translator meets them, and has a callback run when they are executed. The callback finds a [`Mailbox`]
//! in the page after the NOP's, by the host's address of that page, reads a command's operands there and writes its
//! results. To a processor without the plugin the calls are NOPs, and the mailbox stays as it was.
//!
//! | command | operands | results |
//! | --- | --- | --- |
//! | [`Command::Who`] | `question` | `answer`, `version`, `stops` |
//! | [`Command::Region`] | `region_start`, `region_end`, `own`, `parameters` | |
//! | [`Command::Mode`] | `mode`, `qualifiers` | |
//! | [`Command::Enter`] | `parts`, `record_kinds`, `entry`, `limits`, `fault_handler` | `lead` |
//! | [`Command::Exit`] | `rip`, `rflags`, `rcx`, `place`, `stack` | `counts`, `instructions`, `string_starts`, `string_ends`, `lead`, `stopped`, `returned`, `records`, `qualified` |
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

mod mailbox;

pub use mailbox::{Limit, MAX_LIMITS, MAX_RECORDS, Mailbox, Record, Records, SLOTS, STACK_WORDS};

use bitflags::bitflags;

/// What both sides must agree on; any change of this crate is a new version.
pub const VERSION: u64 = 16;
/// In `question`, at [`Command::Who`]: a guest's own NOP will not have it there.
pub const QUESTION: u64 = u64::from_le_bytes(*b"barecnt?");
/// In `answer`, of a plugin.
pub const ANSWER: u64 = u64::from_le_bytes(*b"barecnt!");

/// Bytes of a call.
pub const CALL_BYTES: usize = 8;
/// NOP DWORD [RAX+RAX+disp32] (SDM vol. 2, NOP: 0F 1F /0).
const NOP: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
/// In the upper three bytes of the displacement.
const TAG: u32 = 0x6263_7000;

/// What the hypervisor wants.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Command {
    /// Is a plugin there, and which?
    Who = 0,
    /// Where the hypervisor lies: what it executes there is not counted.
    Region = 1,
    /// What is to be counted from the next block on; translated code is thrown away if that changes.
    Mode = 2,
    /// The guest is about to run.
    Enter = 3,
    /// The guest has left: once per #VMEXIT. The counts are those since the last one.
    Exit = 4,
}

/// The bytes of a call.
#[must_use]
pub const fn call(command: Command) -> [u8; CALL_BYTES] {
    let [a, b, c, d] = NOP;
    let [e, f, g, h] = (TAG | command as u32).to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

/// The command of a call; `None` if the instruction is none.
#[must_use]
pub fn command(instruction: &[u8]) -> Option<Command> {
    const ALL: [Command; 5] = {
        use Command::*;
        [Who, Region, Mode, Enter, Exit]
    };
    ALL.into_iter().find(|&command| instruction == call(command))
}

bitflags! {
    /// What code is translated with. What is not requested may be reported as 0.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Mode: u64 {
        /// Starts and ends of repeated string instructions, which QEMU's clock counts by iteration.
        const STRINGS = 1 << 0;
        /// Retired branches by kind. A conditional jump counts as one that was taken, by its direction.
        const BRANCHES = 1 << 1;
        /// Conditional jumps that were not taken are told from those that were.
        const TAKEN = 1 << 2;
        /// Data accesses by direction, and locked ones.
        const ACCESSES = 1 << 3;
        /// A limit may be given with [`Command::Enter`].
        const LIMITS = 1 << 4;
        /// Accesses with their addresses: lines that they cross, caches and TLBs. Includes [`Mode::ACCESSES`].
        const MEMORY = 1 << 5;
        /// The branch predictor. Includes [`Mode::BRANCHES`] and [`Mode::TAKEN`].
        const PREDICTOR = 1 << 6;
        /// Taken branches with their linear addresses. Includes [`Mode::PREDICTOR`].
        const RECORDS = 1 << 7;
        /// Retired instructions of each vCPU by itself: QEMU's clock counts those of all together.
        const INSTRUCTIONS = 1 << 8;
        /// Micro-operations by port, and cycles of the ports, by the map in the parameters.
        const PORTS = 1 << 9;
        /// What passes the qualifiers, by itself: [`Mailbox::qualifiers`].
        const QUALIFIED = 1 << 10;
    }

    /// The parts of the microarchitecture that see what runs from now on. With none of them the state stays as it is.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Parts: u64 {
        /// Caches and TLBs.
        const MEMORY = 1 << 0;
        /// The predictor.
        const PREDICTOR = 1 << 1;
        /// Branch records.
        const RECORDS = 1 << 2;
        /// The guest continues at the instruction at which it left, and nothing has been delivered to it: a repeated string
        /// instruction continues with the lines that it has touched, see [`pmu_model::uarch::StringRun`].
        const RESUMES = 1 << 3;
        /// The guest is not in long mode (EFER.LMA), so its code is of 16 or 32 bits. To change that it has to leave.
        const LEGACY = 1 << 4;
    }
}

impl Mode {
    /// Whether the plugin sees by itself that an interrupt or a page fault was delivered, so that a guest in long mode need not leave
    /// for it. Where a block may leave a branch open, it does not.
    #[must_use]
    pub const fn sees_deliveries(self) -> bool {
        const SEEN: Mode =
            Mode::STRINGS.union(Mode::LIMITS).union(Mode::BRANCHES).union(Mode::ACCESSES);
        self.contains(Self::STRINGS) && SEEN.contains(self)
    }

    /// Whether it sees the delivery of a page fault alone, by [`Mailbox::fault_handler`]: a callback decides what every block leaves
    /// open.
    #[must_use]
    pub const fn sees_page_faults(self) -> bool {
        const SEEN: Mode = Mode::STRINGS
            .union(Mode::LIMITS)
            .union(Mode::BRANCHES)
            .union(Mode::TAKEN)
            .union(Mode::ACCESSES)
            .union(Mode::PREDICTOR)
            .union(Mode::MEMORY);
        let decides = Self::PREDICTOR.union(Self::MEMORY).intersects(self);
        decides && self.contains(Self::STRINGS) && SEEN.contains(self)
    }
}

/// Where the guest is at its exit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Place {
    /// Between two instructions: everything before RIP is done. Interrupts, NMIs, traps.
    Boundary = 0,
    /// At an instruction that has begun and is not done: a fault, or one that is intercepted.
    Instruction = 1,
}

#[cfg(test)]
mod tests;
