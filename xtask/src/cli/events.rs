//! `events`: its arguments.

use crate::events::encodings::{Msr, Number};
use crate::events::{CpuName, EventFile};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `events`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask events --cpu skylakex l2_rqsts              names that contain or resemble it
  cargo xtask events --cpu 6.0x5e 'mem_*_retired.l3_*'    wild cards for the whole name
  cargo xtask events --cpu zen4 ls_dispatch.ld_dispatch:u=1:c=1
                                                          the register values of an event
  cargo xtask events --cpu skx 'cycles,{l2_rqsts.*_miss:u}'
                                                          the same for a list, groups in braces
  cargo xtask events --cpu alderlake --plan cycles,branches,l2_rqsts.miss
                                                          the passes and counters of a set
  cargo xtask events --cpu skylakex --decode 0x4300c0     what a register value counts
  cargo xtask events --cpu zen4 --metrics bound           metrics whose names contain this
  cargo xtask events --generic                            the same names on every processor")]
pub struct Events {
    /// A part of a name, a name with wild cards, or events with modifiers, separated by commas or in braces. Default: all
    /// events, generic ones first.
    pub pattern: Option<String>,
    /// The processor: a table's name or another of its names (skx, alderlake), FAMILY.MODEL or FAMILY.MODEL.STEPPING;
    /// without it, the one that the events name (skx::cycles), or this machine's.
    #[arg(long, value_name = "NAME|FAMILY.MODEL")]
    pub cpu: Option<CpuName>,
    /// List the events that have the same name and number on every processor, with their encoding on this one.
    #[arg(long)]
    pub generic: bool,
    /// Show how many passes these events need, and which counter each event gets; with hyper-threading off.
    #[arg(long, value_name = "EVENTS", conflicts_with_all = ["pattern", "generic"])]
    pub plan: Option<String>,
    /// With --plan: the number of general-purpose counters, for example 4 with hyper-threading on before Ice Lake.
    #[arg(long, value_name = "N", requires = "plan", value_parser = clap::value_parser!(u8).range(1..=48))]
    pub counters: Option<u8>,
    /// Show what an event select register with this value counts.
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["pattern", "generic", "plan"])]
    pub decode: Option<Number>,
    /// With --decode: the value of an extra MSR.
    #[arg(long, value_name = "ADDRESS=VALUE", requires = "decode")]
    pub msr: Vec<Msr>,
    /// List the metrics of the processor, or those whose names contain PATTERN.
    #[arg(long, conflicts_with_all = ["generic", "plan", "decode"])]
    pub metrics: bool,
    /// List the processors that have a table.
    #[arg(long, conflicts_with_all = ["pattern", "generic", "decode", "plan", "cpu", "metrics"])]
    pub cpus: bool,
    /// Events in perfmon's JSON format, which override those of the tables.
    #[arg(long = "event-file", value_name = "[CPU=]FILE")]
    pub event_files: Vec<EventFile>,
    /// The list's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Format of a list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    #[default]
    Table,
    /// One document.
    Json,
    /// One row per line.
    Csv,
}
