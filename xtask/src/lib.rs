//! barecount's host tool: `cargo xtask` in a checkout, `cargo barecount` where it was installed.
//!
//! - [`cli`]: what can be typed; [`commands`]: one file per command; [`tool`]: from arguments to exit code.
//! - [`setup`]: what a machine needs and how it is got; [`build`]: kernel, loaders, images; [`parts`]: the same, carried by
//!   the installed program.
//! - [`benchmarks`]: what a crate or a C file registers to be measured, and the crate to begin with.
//! - [`job`]: from a TOML file to a packed job, assembling on the way.
//! - [`program`]: compiled code, linked for a job.
//! - [`mod@events`]: event tables, for listing and for the ramdisk.
//! - [`machine`]: which QEMU to start and how; [`collect`]: reading a report from it or from elsewhere.
//! - [`output`], [`text`]: what leaves the program, and what of it a terminal may see; [`interrupt`]: Ctrl-C.
//! - [`stock_linux`]: the distribution's Linux, for tests and figures.
//! - [`mutants`]: planted mistakes that no test notices.
//! - [`forecast`]: what a job will take, before it starts.
//! - [`compare`]: two reports side by side, for people and CI services; [`limits`]: how far figures may get worse.
//! - [`lab`]: a job on many machines, through labgrid.
//! - [`honest`]: whether a PMU can be believed, judged from its report.
//! - [`recording`]: recorded processors for the emulated PMU; [`replay`]: what a machine does otherwise than its replay.
//! - [`bring_up`]: what was found out about a machine.
//! - [`instructions`]: the table of all instruction forms.
//! - [`qr`]: the digest of a run, out of photographs of a screen.
//! - [`render`]: the report as table, TAP or CSV; [`json`] and [`document`]: as JSON, written and read; [`page`]: as one HTML file.
//!   What each kind of item shows there is in `kinds`; [`notes`] is what is to be said of the whole; [`primitives`] are the parts of all
//!   forms, and know nothing of reports. [`context`]: how a report came about.
//! - [`forms`]: results of instruction forms; [`mod@bench`]: the project's own figures.
//!
//! Everything that starts a process is here and in `qemu-tests`.
//!
//! `docs/architecture.md` tells the way of one measurement through the code.
#![warn(missing_docs)]

// Its table of the sections of job files is for what reads them.
#[macro_use]
pub(crate) mod kinds;

pub mod bench;
pub mod benchmarks;
pub mod bring_up;
pub mod build;
pub(crate) mod clean;
pub mod cli;
pub mod collect;
pub mod commands;
pub mod compare;
pub mod console;
pub mod context;
pub mod disassembly;
pub mod document;
pub mod events;
pub mod exit_code;
pub mod failure;
pub mod forecast;
pub mod forms;
pub mod honest;
pub mod instructions;
pub mod interrupt;
pub mod job;
pub mod json;
pub mod lab;
pub mod limits;
pub mod machine;
pub mod metrics;
pub mod mutants;
pub mod notes;
pub mod output;
pub mod page;
pub mod parts;
pub mod plots;
pub mod ports;
pub mod primitives;
pub mod process;
pub mod program;
pub mod progress;
pub mod qr;
pub mod recording;
pub mod render;
pub mod replay;
pub mod samples;
pub mod setup;
pub mod stick;
pub mod stock_linux;
pub mod symbols;
pub mod text;
pub mod tool;
pub mod verdict;

pub use failure::{Failure, Result};
