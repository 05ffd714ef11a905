//! What is loaded.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use arch::call::Function;
use arch::cpu;
use arch::interrupts;
use arch::memory::arena::Arena;
use arch::pmu::Gate;
use arch::vectors::SNIPPET_VECTORS;
use kernel::snippet::{Emitted, Phase, Place, emit};
use protocol::job::{Control, LoopCounter, Setup, Snippet};

/// The code that runs next, and the memory that it runs in.
///
/// What was emitted last lies in the code area of the arena, and nothing writes there before the next
/// [`emit`](Loaded::emit): so it can be called any number of times.
pub struct Loaded {
    pub arena: Arena,
    emitted: Option<Emitted>,
    phase: Phase,
    /// It may leave something in the extended state.
    pub resets_extended: bool,
    /// A run is the call alone: nothing has to be done around it.
    pub is_bare: bool,
    /// Runs of it so far.
    pub runs: u64,
}

impl Loaded {
    /// Nothing yet.
    pub fn new(arena: Arena) -> Self {
        Self {
            arena,
            emitted: None,
            phase: Phase::Measured,
            resets_extended: false,
            is_bare: false,
            runs: 0,
        }
    }

    /// Emits a snippet, and makes it ready to run.
    pub fn emit(
        &mut self,
        (phase, place): (Phase, &Place),
        snippet: &Snippet,
        copies: u64,
        gate: &Gate,
    ) {
        let emitted = emit::emit(self.arena.code_mut(), place, snippet, copies, gate);
        for (vector, landing) in SNIPPET_VECTORS.into_iter().zip(emitted.landings.iter().flatten())
        {
            // SAFETY: what is emitted there ends the interrupt by going back to ring 3 or to its caller.
            unsafe { interrupts::set_entry(vector, *landing) };
        }
        (self.emitted, self.phase, self.runs) = (Some(emitted), phase, 0);
        (self.resets_extended, self.is_bare) = (snippet.extended_state, false);
        // The code was written through another address than it runs at: a serialising instruction has to
        // stand between (SDM vol. 3, 8.1.3).
        cpu::serialise();
    }

    /// Where it is.
    ///
    /// # Panics
    /// If nothing was loaded.
    pub fn emitted(&self) -> &Emitted {
        self.emitted.as_ref().expect("loaded before")
    }

    /// The same, if `address` is in it.
    pub fn around(&self, address: u64) -> Option<&Emitted> {
        self.emitted.as_ref().filter(|emitted| emitted.function.contains(&address))
    }

    /// As what it was loaded.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The function to call.
    ///
    /// # Panics
    /// If nothing was loaded.
    pub fn function(&self) -> Function {
        let emitted = self.emitted();
        Function { entry: emitted.function.start, exit: emitted.exit }
    }
}

/// The snippet's one-time init and nothing else.
pub fn once_alone<'a>(snippet: &'a Snippet) -> Snippet<'a> {
    Snippet {
        init: snippet.setup.one_time_init.clone(),
        body: Cow::Borrowed(&[]),
        loop_count: 0,
        loop_counter: LoopCounter::R15,
        setup: Setup {
            control: Control { msrs: Vec::new(), ..snippet.setup.control.clone() },
            bits: snippet.setup.bits,
            ..Setup::default()
        },
        ..snippet.clone()
    }
}
