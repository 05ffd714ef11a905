//! The hypervisor's parts: getting in ([`entry`], [`launch`]), what the processor wants ([`vmcb`], [`svm`],
//! [`tables`], [`switch`]), the machine's clock and timers ([`icount`], [`hpet`], [`lapic`]), the guest's ([`clock`],
//! [`timer`], [`pm_timer`]), the guest ([`guest`], [`counting`],
//! [`memory`], [`breakpoint`]), the other processors ([`processors`]), and the loop that runs it: which way to run ([`run`]), each way ([`free`], [`bulk`],
//! [`step`]), who counts for it at full speed ([`plugin`]), what made it leave ([`exits`]), what is delivered to it ([`events`],
//! [`delivery`], [`ibs`]), and what it executes while it is counted at full speed ([`code`], [`nested_paging`], [`maps`]). What
//! all of it costs is counted by [`statistics`].

mod accesses;
mod acpi;
mod breakpoint;
mod bulk;
mod clock;
mod code;
mod counting;
pub mod debug;
mod delivery;
pub mod entry;
mod events;
mod exits;
mod free;
mod guest;
mod heap;
mod hpet;
mod ibs;
mod icount;
mod lapic;
mod launch;
mod maps;
mod memory;
mod nested_guest;
mod nested_paging;
mod panic;
mod plugin;
mod pm_timer;
mod port;
mod precise;
mod processors;
mod qualified;
mod recorded;
mod retire;
mod run;
mod statistics;
mod step;
mod svm;
mod switch;
mod system_call;
mod tables;
mod timer;
mod vector_registers;
