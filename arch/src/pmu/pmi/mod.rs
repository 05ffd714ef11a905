//! The performance monitoring interrupt.
//!
//! The path from the interrupted instruction to the resumed one takes no lock, allocates nothing and formats
//! nothing. All that it needs was worked out before and is in the processor's own [`ControlBlock`]. In order:
//!
//! 1. read the status; nothing there: a spurious interrupt, counted;
//! 2. acknowledge the counters' bits, but not the frozen ones, which would start the counters;
//! 3. count each overflow and give its counter the preset back;
//! 4. write a sample, if there is a log; or one for each PEBS record, if the buffer of such interrupts;
//! 5. unmask LVTPC, which Intel's APIC masks at delivery and AMD's does not (SDM vol. 3, 20.2.8 and 10.5.4). A PMI
//!    that is raised while it is masked is lost, so
//! 6. look at the status once more, and begin again at 2 if something came; such are counted as back-to-back;
//! 7. end the interrupt, unless it is an NMI;
//! 8. let frozen or stopped counters continue: the last thing before the return, so that they see nothing of the rest
//!    but [`Handling::seen`]. Not where the gate has been closed meanwhile ([`ControlBlock::closes_in`], [`shut`]).
//!
//! With a status register all this is assembly. Without one the counters' top bits must be looked at: on
//! AMD before PerfMonV2 in assembly as well, on Intel's version 1 by [`service`]. [`service`] knows every way, and alone
//! what takes longer: a [`Histogram`], throttling, registers in the log, a callback, stopping when the log is full.
//! Host tests run it on a model.
//!
//! `docs/architecture/overflow.md` tells the way from arming a counter to its sample.

mod accesses;
mod assembly;
mod block;
mod carry;
mod chains;
mod edges;
mod entry;
mod groups;
mod handling;
mod hash;
mod histogram;
mod ibs;
mod records_by_task;
mod retired;
mod service;
mod serviced;
mod table;
mod throttle;
mod timer;

pub use accesses::{Access, Accesses, Outcome};
pub use block::{ControlBlock, Notify, Sample, Slot};
pub use chains::{Chain, MOST_CALLS};
pub use edges::{Edge, Edges};
pub use entry::{
    Delivery, VECTOR, block, drain_installed, exchange, install, install_for, let_in, let_out,
    mask, sample_tick, service_installed, shut, uninstall,
};
pub use groups::GroupLog;
pub use handling::Handling;
pub use histogram::{Bucket, Histogram};
pub use ibs::{Filter, IBS_VECTOR, Sampling, sampled};
pub use retired::{Retired, RetiredByCounter};
pub use service::{
    Interrupted, MOST_SPURIOUS, REGISTERS, Raw, drain, note_tick, pause, resume, service, tick,
};
pub use table::{Row, Table};
pub use throttle::Throttle;
pub use timer::{Interval, TIMER_BIT, TIMER_SLOT, TIMER_VECTOR, Times, start_timer, stop_timer};
