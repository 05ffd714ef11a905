//! The performance monitoring interrupt.
//!
//! The path from the interrupted instruction to the resumed one takes no lock, allocates nothing and formats
//! nothing. All that it needs was worked out before and lies in the processor's own [`ControlBlock`]. In order:
//!
//! 1. read the status; nothing there: a spurious interrupt, counted;
//! 2. acknowledge the counters' bits, but not the frozen ones, which would start the counters;
//! 3. count each overflow and give its counter the preset back;
//! 4. write a sample, if there is a log;
//! 5. let frozen counters go on;
//! 6. unmask LVTPC, which Intel's APIC masks at delivery and AMD's does not (SDM vol. 3, 20.2.8 and 10.5.4). A PMI
//!    that is raised while it is masked is lost, so
//! 7. look at the status once more, and begin again at 2 if something came; such are counted as back-to-back;
//! 8. end the interrupt, unless it is an NMI.
//!
//! With a status register all this is assembly. Without one the counters' top bits have to be looked at: on
//! AMD before PerfMonV2 in assembly as well, on Intel's version 1 by [`service`]. [`service`] knows every way; host
//! tests run it on a model.

mod assembly;
mod block;
mod entry;
mod service;

pub use block::{ControlBlock, Sample, Slot};
pub use entry::{Delivery, VECTOR, block, install, uninstall};
pub use service::{Raw, service};
