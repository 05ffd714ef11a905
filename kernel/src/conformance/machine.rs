//! What the checks need of the machine.

use crate::counting::Platform;
use alloc::string::String;
use arch::pmu::driver::Write;
use arch::pmu::pmi::{ControlBlock, Delivery, Sample};
use arch::pmu::workload::{Ring0Code, Ring3Code};
use arch::pmu::{Gate, Registers};

/// Code to run inside a window.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// A piece of ring 0.
    Kernel {
        /// The code that runs.
        piece: Ring0Code,
        /// How many turns, at least 1.
        turns: u64,
    },
    /// [`Ring0Code::Rewrite`].
    Rewrite {
        /// Turns of the loop after the write.
        turns: u64,
        /// The write.
        write: Write,
    },
    /// A piece of ring 3. Ring 0 brings it there and back, by a constant number of instructions.
    User {
        /// The code that runs.
        piece: Ring3Code,
        /// How many turns, at least 1.
        turns: u64,
    },
}

impl Work {
    /// A piece of ring 0.
    #[must_use]
    pub const fn kernel(piece: Ring0Code, turns: u64) -> Self {
        Self::Kernel { piece, turns }
    }

    /// A piece of ring 3.
    #[must_use]
    pub const fn user(piece: Ring3Code, turns: u64) -> Self {
        Self::User { piece, turns }
    }
}

/// A machine with a PMU.
pub trait TestMachine: Registers {
    /// Runs `work` once while `gate` is open, as `arch::pmu::window` describes. Interrupts are on if a fixed vector was
    /// chosen for the PMI. Returns ticks of the TSC.
    fn run(&mut self, gate: &Gate, work: Work) -> u64;

    /// Lets PMIs come to the handler, which works with `block`.
    fn deliver(&mut self, block: ControlBlock, delivery: Delivery);

    /// Masks LVTPC and returns the block as the handler left it.
    fn withdraw(&mut self) -> ControlBlock;

    /// The log that a block may name: zeroed, with room for at least 64 samples.
    fn log(&mut self) -> &'static mut [Sample];

    /// RDPMC in ring 3 with CR4.PCE set or clear. `None`: it raised an exception.
    fn rdpmc_in_ring_3(&mut self, index: u32, allowed: bool) -> Option<u64>;

    /// The TSC, read in ring 0.
    fn tsc(&mut self) -> u64;

    /// RDTSC in ring 3 with CR4.TSD clear or set. `None`: it raised an exception.
    fn rdtsc_in_ring_3(&mut self, allowed: bool) -> Option<u64>;

    /// Calls `work` with the platform that jobs count with, interrupts off. `false`: there is none.
    fn on_platform(&mut self, work: &mut dyn FnMut(&mut dyn Platform)) -> bool {
        let _ = work;
        false
    }

    /// Interrupts since the last call that nothing requested and no instruction raised, in a sentence.
    fn take_stray(&mut self) -> Option<String> {
        None
    }

    /// The physical address of a linear one, if it is mapped.
    fn physical(&mut self, linear: u64) -> Option<u64>;

    /// Whether the local APIC has this entry of AMD's extended local vector table.
    fn has_extended_lvt(&mut self, entry: u8) -> bool;

    /// Whether the handler's own instructions are counted. They are on any processor; a model runs no handler.
    fn counts_handlers(&self) -> bool;
}
