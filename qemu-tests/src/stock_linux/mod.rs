//! Linux as the distribution ships it ([`xtask::stock_linux`]): a machine that boots it with the emulated PMU in front
//! ([`machine`]), also with guests of KVM in it ([`kvm`]), programs of which every instruction is known ([`known`]), tasks
//! of a job as programs ([`task`], [`work`]), and how to read what perf and the kernel say ([`perf`], [`script`], [`data`],
//! [`kernel_log`]).

pub mod data;
pub mod kernel_log;
pub mod known;
pub mod kvm;
pub mod machine;
pub mod perf;
pub mod script;
pub mod task;
pub mod work;

pub use xtask::stock_linux::{
    StockError, Tools, emulator, file_system, kernel, modules, partition, steps, tools,
};
