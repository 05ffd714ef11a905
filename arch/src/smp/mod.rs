//! The other processors.
//!
//! - [`bring_up`]: INIT-SIPI-SIPI, and what becomes of each processor. `start` (on the bare machine): the whole of it, from the MADT's
//!   list to processors that wait for work.
//! - [`processor()`], [`this`], [`count`]: each one's own data ([`Processor`]).
//! - [`run_on`], [`on_all`], [`on_some`]: work for a processor, for all at once, or for some. [`Instant`]: something read on all of them at one
//!   instant, with the skew that it really had. [`offsets`]: how far their time stamp counters are apart.
//!
//! [`Handover`]: which processor has something that goes from one to another.
//!
//! The memory that they share for this is in `mailbox`, `arrival`, `rendezvous`, `exchange` and `handover`, which know nothing of the
//! machine: a model checker (`tests/interleavings.rs`) goes through all orders in which processors can come through them.
//!
//! Between two pieces of work a processor is halted with interrupts on, so that it takes nothing from the others: no
//! bus, no shared core, and under an emulator no instructions.

#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "host tests have one processor"))]
mod arrival;
mod bring_up;
mod exchange;
mod handover;
mod instant;
mod mailbox;
mod offsets;
mod processor;
mod rendezvous;
#[cfg(target_os = "none")]
mod start;
mod sync;
#[cfg(target_os = "none")]
mod trampoline;
mod work;

pub use bring_up::{Signals, Silent, bring_up, init_us};
pub use handover::Handover;
pub use instant::{Instant, at_instant, skew};
pub use offsets::{Offset, Round, best, offsets};
pub use processor::{MAX_PROCESSORS, Processor, boot, count, in_use, processor, this};
#[cfg(target_os = "none")]
pub use start::{LOW_BYTES, Outcome, Stacks, start};
pub use work::{CallError, halt_while_waiting, halting, on_all, on_some, run_on};
