//! The hypervisor's parts: getting in ([`entry`], [`launch`]), what the processor wants ([`vmcb`], [`svm`],
//! [`tables`]), the machine's clock and timers ([`icount`], [`hpet`], [`lapic`]), the guest ([`guest`]), and the
//! loop that runs it ([`run`], [`exits`]).

pub mod debug;
pub mod entry;
mod exits;
mod guest;
mod heap;
mod hpet;
mod icount;
mod lapic;
mod launch;
mod panic;
mod port;
mod run;
mod svm;
mod switch;
mod tables;
mod vmcb;
