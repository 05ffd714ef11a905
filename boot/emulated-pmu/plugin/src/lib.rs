//! Counts for the emulated PMU inside QEMU's translator (TCG), at the translator's speed.
//!
//! QEMU loads this library with `-plugin file=LIBRARY[,stop=FD]`. It does nothing until a hypervisor requests something by
//! the calls of [`plugin_channel`]. From then on each block of code that is translated outside the hypervisor's own memory
//! gets counting code put next to its instructions.
//!
//! | part | what it does |
//! | --- | --- |
//! | [`decode`], [`facts`], [`leaves`] | what the instructions of a block are |
//! | [`plan`] | what is put next to them; [`tally`], [`opened`] and [`bound`] are what it is made of |
//! | [`translate`], [`translator`], [`apply`] | the block and its plan, from and to QEMU |
//! | [`callbacks`], [`resolve`] | what translated code calls |
//! | [`shape`], [`trace`], [`memory`], [`recent`], [`registers`] | accesses with their addresses |
//! | [`records`] | branch records |
//! | [`calls`], [`vcpu`], [`running`], [`state`], [`cells`] | the hypervisor's calls, and what is kept |
//! | [`limit`], [`stop`] | making the guest leave |
//! | [`qemu`] | QEMU's interface |
//!
//! It needs icount, with which QEMU runs all vCPUs on one thread: see [`cells`]. Each has its own hypervisor, and one at a
//! time is in its guest.
#![warn(missing_docs)]

pub mod apply;
pub mod arrival;
pub mod bound;
pub mod callbacks;
pub mod calls;
pub mod cells;
pub mod decode;
pub mod facts;
mod fetch;
mod frame;
pub mod install;
pub mod leaves;
pub mod limit;
pub mod memory;
pub mod opened;
pub mod plan;
pub mod qemu;
pub mod recent;
pub mod records;
pub mod registers;
pub mod resolve;
pub mod running;
pub mod shape;
pub mod state;
pub mod stop;
pub mod tally;
pub mod trace;
pub mod translate;
pub mod translator;
pub mod uops;
pub mod vcpu;
mod window;
